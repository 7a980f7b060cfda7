"""Measures of the shapes of large cascades, as data sets of reshare trees have them."""

from collections.abc import Callable
from math import nan
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.studies.measures.measure import FinishedRun, Measure, ratio
from prism_mesa.studies.measures.observed import hop_of_posts
from prism_mesa.studies.measures.window import measured_posts

LARGE: Final = 56
"""Posts of the smallest cascade that is large: the smallest of the trees that are compared with (Twitter15/16)."""

ENOUGH: Final = 20
"""Large cascades that their shapes need."""

_GOEL: Final = "Goel, Anderson, Hofman and Watts 2016, doi:10.1287/mnsc.2015.2158"
WHICH: Final = f"cascades of at least {LARGE} posts; NaN with fewer than {ENOUGH} such"


def large_trees(run: FinishedRun) -> tuple[pd.DataFrame, npt.NDArray[np.intp]]:
    """Return the rows of `cascades` of large cascades, and how many of their posts are at hop 0, 1, 2, ..."""
    trees = run.once(measured_posts).cascades
    trees, posts = trees[trees["size"] >= LARGE], run.table("posts")
    is_large = np.zeros(len(posts), np.bool_)
    is_large[trees["root"].to_numpy()] = True
    hop, joins = run.once(hop_of_posts)
    return trees, np.bincount(hop[is_large[posts["root"].to_numpy()] & (joins | is_large)], minlength=4)


def _large(number: Callable[[pd.DataFrame, npt.NDArray[np.intp]], float]) -> Callable[[FinishedRun], float]:
    def value(run: FinishedRun) -> float:
        trees, at_hop = run.once(large_trees)
        return float(number(trees, at_hop)) if len(trees) >= ENOUGH else nan

    return value


LARGE_TREES: Final = (
    Measure("large_depth", _large(lambda trees, _: trees["depth"].median()), f"median depth of {WHICH}", "reshares"),
    Measure(
        "large_virality",
        _large(lambda trees, _: trees["structural_virality"].mean()),
        "mean structural virality of such cascades",
        "steps",
        source=_GOEL,
    ),
    Measure(
        "large_size_virality",
        _large(lambda trees, _: trees["size"].rank().corr(trees["structural_virality"].rank())),
        "rank correlation (Spearman) of size and structural virality of such cascades",
        "",
        -1,
        1,
    ),
    *(
        Measure(
            f"large_hop_{hop}",
            _large(lambda _, at_hop, hop=hop: at_hop[hop] / at_hop[1:].sum()),  # type: ignore[misc]
            f"reshares of such cascades at hop {hop}, pooled" + (": of the post itself" if hop == 1 else ""),
            "share",
            0,
            1,
        )
        for hop in (1, 2, 3)
    ),
    *(
        Measure(
            f"large_reproduction_{hop}",
            _large(lambda _, at_hop, hop=hop: ratio(at_hop[hop], at_hop[hop - 1])),  # type: ignore[misc]
            f"reshares at hop {hop} per reshare at hop {hop - 1} of such cascades, pooled",
            "reshares",
        )
        for hop in (2, 3)
    ),
    Measure(
        "large_breadth",
        _large(lambda trees, _: (trees["breadth"] / trees["size"]).median()),
        "median of breadth over size of such cascades",
        "share",
        0,
        1,
    ),
)
