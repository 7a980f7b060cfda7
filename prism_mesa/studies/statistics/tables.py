"""Columns of the tables that the statistics of a study come to, and their types: the same when nothing is in them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

type Columns = Mapping[str, str]

EXPECTED: Final = "expectations"
MARGINS: Final = "expectations, of a margin"
OTHERS: Final = "other differences"
"""Families of Holm's correction, as column `family` names them."""

_PAIR: Final = {"measure": "str", "term": "str", "left": "str", "right": "str"}
_COUNTS: Final = {"n": "int64", "missing": "int64"}
_INTERVAL: Final = {"low": "float64", "high": "float64"}

ANSWERS: Final[Columns] = {
    "measure": "str",
    **_COUNTS,
    "mean": "float64",
    "median": "float64",
    "sd": "float64",
    **_INTERVAL,
}
"""Those after `arm` and the factors, which have the types that the runs give them."""
DIFFERENCES: Final[Columns] = {
    **_PAIR,
    **_COUNTS,
    "difference": "float64",
    **_INTERVAL,
    "d_z": "float64",
    "p": "float64",
    "p_holm": "float64",
    "family": "str",
    "u": "float64",
    "p_mann_whitney": "float64",
    "rank_biserial": "float64",
}
GROUPS: Final[Columns] = {
    "measure": "str",
    "term": "str",
    **_COUNTS,
    "h": "float64",
    "df": "int64",
    "p": "float64",
    "p_holm": "float64",
}
EQUIVALENCE: Final[Columns] = {
    "text": "str",
    "measure": "str",
    "left": "str",
    "right": "str",
    **_COUNTS,
    "margin": "float64",
    **_INTERVAL,
    "p_low": "float64",
    "p_high": "float64",
    "p": "float64",
    "p_apart": "float64",
    "p_holm": "float64",
    "equivalent": "bool",
}
EFFECTS: Final[Columns] = {
    "measure": "str",
    "effect": "str",
    **_COUNTS,
    "df": "int64",
    "f": "float64",
    "p": "float64",
    "p_holm": "float64",
    "partial_eta_squared": "float64",
}
SENSITIVITY: Final[Columns] = {
    "measure": "str",
    "factor": "str",
    "index": "str",
    "value": "float64",
    **_INTERVAL,
}
PRECISION: Final[Columns] = {**_PAIR, "seeds": "int64", "half_width": "float64"}
EXPECTED_WIDTH: Final[Columns] = {**_PAIR, "half_width": "float64"}


def table_of(columns: Columns, parts: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a table with exactly these columns.

    Args:
        columns: Name -> type.
        parts: Rows: for the first column a list, for each other a value, or as many as that list has.
    """
    gathered: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in columns}
    first = next(iter(columns))
    for part in parts:
        rows = len(part[first])
        for name, kind in columns.items():
            values = np.asarray(part[name], object if kind == "str" else kind)
            gathered[name].append(np.broadcast_to(values, rows))
    return pd.DataFrame(
        {
            name: pd.Series(np.concatenate(found) if found else [], dtype=columns[name])
            for name, found in gathered.items()
        }
    )
