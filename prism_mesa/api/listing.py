"""Which runs there are, as users call it."""

import os
from dataclasses import asdict, fields

import pandas as pd

from prism_mesa.studies.listing import Listed, listed


def list_runs(out: str | os.PathLike[str] = "results") -> pd.DataFrame:
    """Return the runs, studies, calibrations and validations in a folder, newest first, as ``prism runs`` lists them.

    Args:
        out: The folder in which they lie; of a study, the runs that have kept their tables.

    Returns:
        A row for each, with the columns of `studies.listing.Listed`: `run_dir`, `kind`, `config`, `seed`, `status`
        (`done`, `failed`, `interrupted`, `running`, `died`; of many runs also `incomplete`; `damaged`), `state` (the
        same in words, with the round), `round`, `rounds`, `started`, `age_s` (seconds), `size_bytes`, `error`.

    Raises:
        DataError: If there is no such folder.
    """
    columns = [field.name for field in fields(Listed)]
    table = pd.DataFrame([asdict(one) for one in listed(out)], columns=columns)
    whole = dict.fromkeys(("seed", "round", "rounds"), "Int64")
    return table.astype({**whole, "size_bytes": "int64", "age_s": "float64"})
