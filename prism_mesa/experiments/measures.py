"""Measures on tables of a run. They read columns and return numbers; nothing here reads files or draws."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd


def ccdf(values: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """Return the distinct values, ascending, and the share of all values that are at least as large.

    >>> [a.tolist() for a in ccdf([1, 1, 1, 5])]
    [[1, 5], [1.0, 0.25]]
    """
    distinct, counts = np.unique(np.asarray(values), return_counts=True)
    return distinct, counts[::-1].cumsum()[::-1] / max(1, int(counts.sum()))


def cascade_summary(cascades: pd.DataFrame) -> dict[str, float]:
    """Return number, sizes, depths and structural virality of cascades (`social.cascades.cascades`)."""
    if cascades.empty:
        return {"n": 0}
    spread = cascades[cascades["size"] > 1]
    return {
        "n": len(cascades),
        "share_never_reshared": float((cascades["size"] == 1).mean()),
        "mean_size": float(cascades["size"].mean()),
        "max_size": int(cascades["size"].max()),
        "max_depth": int(cascades["depth"].max()),
        "max_breadth": int(cascades["breadth"].max()),
        "mean_structural_virality": float(spread["structural_virality"].mean()) if len(spread) else 0.0,
    }
