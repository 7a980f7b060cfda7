"""Columns of the tables that the statistics of a study come to, and their types: the same when nothing is in them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

type Columns = Mapping[str, str]

EXPECTED: Final = "expectations"
MARGINS: Final = "expectations, of a margin"
OTHERS: Final = "other differences"  # families of Holm's correction, as column `family` names them
_TEXTS: Final = ("text", "measure", "term", "left", "right", "family", "effect", "factor", "index")
_COUNTS: Final = ("n", "missing", "df", "seeds")


def _columns(names: str) -> Columns:
    """Return columns with their types: texts, counts, the flag `equivalent`, else numbers."""
    kinds = {**dict.fromkeys(_TEXTS, "str"), **dict.fromkeys(_COUNTS, "int64"), "equivalent": "bool"}
    return {name: kinds.get(name, "float64") for name in names.split()}


ANSWERS: Final = _columns("measure n missing mean median sd low high")
"""Those after `arm` and the factors, which have the types that the runs give them."""
DIFFERENCES: Final = _columns(
    "measure term left right n missing difference low high d_z p p_holm family u p_mann_whitney rank_biserial"
)
GROUPS: Final = _columns("measure term n missing h df p p_holm")
EQUIVALENCE: Final = _columns(
    "text measure left right n missing margin low high p_low p_high p p_apart p_holm equivalent"
)
EFFECTS: Final = _columns("measure effect n missing df f p p_holm partial_eta_squared")
SENSITIVITY: Final = _columns("measure factor index value low high")
PRECISION: Final = _columns("measure term left right seeds half_width")
EXPECTED_WIDTH: Final = _columns("measure term left right half_width")


def table_of(columns: Columns, parts: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a table with exactly these columns.

    Args:
        parts: Rows: for the first column a list, for each other a value, or as many as that list has.
    """
    gathered: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in columns}
    first = next(iter(columns))
    for part in parts:
        for name, kind in columns.items():
            values = np.asarray(part[name], object if kind == "str" else kind)
            gathered[name].append(np.broadcast_to(values, len(part[first])))
    joined = {name: np.concatenate(arrays) if arrays else [] for name, arrays in gathered.items()}
    return pd.DataFrame({name: pd.Series(joined[name], dtype=kind) for name, kind in columns.items()})
