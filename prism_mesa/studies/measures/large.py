"""Measures of the shapes of large cascades, as data sets of reshare trees have them."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.studies.estimators.trees import reproduction
from prism_mesa.studies.measures.measure import FinishedRun, Measure, ratio
from prism_mesa.studies.measures.observed import hop_of_posts
from prism_mesa.studies.measures.window import measured_posts

LARGE: Final = 56
"""Posts of the smallest cascade that is large: the smallest of the trees that are compared with (Twitter15/16)."""

ENOUGH: Final = 20
"""Large cascades that their shapes need."""

_GOEL: Final = "Goel, Anderson, Hofman and Watts 2016, doi:10.1287/mnsc.2015.2158"
_WHICH: Final = f"cascades of at least {LARGE} posts; NaN with fewer than {ENOUGH} such"


@dataclass(frozen=True)
class _LargeTrees:
    """The large cascades of the measured posts.

    Attributes:
        trees: Their rows of `cascades`.
        hop: Of each of their posts, the reshares between it and its root.
    """

    trees: pd.DataFrame
    hop: npt.NDArray[np.int32]


def _large_trees(run: FinishedRun) -> _LargeTrees:
    trees = run.once(measured_posts).cascades
    trees = trees[trees["size"] >= LARGE]
    posts = run.table("posts")
    is_large = np.zeros(len(posts), np.bool_)
    is_large[trees["root"].to_numpy()] = True
    hop, joins = run.once(hop_of_posts)
    return _LargeTrees(trees, hop[is_large[posts["root"].to_numpy()] & (joins | is_large)])


def _of_trees(number: Callable[[pd.DataFrame], float]) -> Callable[[FinishedRun], float]:
    def value(run: FinishedRun) -> float:
        trees = run.once(_large_trees).trees
        return float(number(trees)) if len(trees) >= ENOUGH else nan

    return value


def _share_at(hop: int) -> Callable[[FinishedRun], float]:
    def share(run: FinishedRun) -> float:
        large = run.once(_large_trees)
        reshares = large.hop[large.hop > 0]
        return ratio(float((reshares == hop).sum()), len(reshares)) if len(large.trees) >= ENOUGH else nan

    return share


def _reproduction_before(hop: int) -> Callable[[FinishedRun], float]:
    def number(run: FinishedRun) -> float:
        large = run.once(_large_trees)
        by_hop = reproduction(large.hop) if len(large.trees) >= ENOUGH else np.zeros(0)
        return float(by_hop[hop - 1]) if len(by_hop) >= hop else nan

    return number


LARGE_TREES: Final = (
    Measure(
        "large_depth", _of_trees(lambda trees: trees["depth"].median()), f"median depth of {_WHICH}", "reshares", 0
    ),
    Measure(
        "large_virality",
        _of_trees(lambda trees: trees["structural_virality"].mean()),
        "mean structural virality of such cascades",
        "steps",
        source=_GOEL,
    ),
    Measure(
        "large_size_virality",
        _of_trees(lambda trees: trees["size"].rank().corr(trees["structural_virality"].rank())),
        "rank correlation (Spearman) of size and structural virality of such cascades",
        "",
        -1,
        1,
    ),
    *(
        Measure(
            f"large_hop_{hop}",
            _share_at(hop),
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
            _reproduction_before(hop),
            f"reshares at hop {hop} per reshare at hop {hop - 1} of such cascades, pooled",
            "reshares",
        )
        for hop in (2, 3)
    ),
    Measure(
        "large_breadth",
        _of_trees(lambda trees: (trees["breadth"] / trees["size"]).median()),
        "median of breadth over size of such cascades",
        "share",
        0,
        1,
    ),
)
