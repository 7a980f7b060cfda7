"""Measures of cascades: the trees of reshares under posts; replies, and reshares of them, are not looked at."""

from collections.abc import Callable
from typing import Final

from prism_mesa.domain import POST_KINDS
from prism_mesa.runs.measures import ENOUGH, TAILS
from prism_mesa.social.state.posts import POST
from prism_mesa.studies.measures.measure import FinishedRun, Measure, said

_GOEL: Final = "Goel, Anderson, Hofman and Watts 2016, doi:10.1287/mnsc.2015.2158"
_CLAUSET: Final = "Clauset, Shalizi and Newman 2009, doi:10.1137/070710111"


def _mean_of(column: str) -> Callable[[FinishedRun], float]:
    """Return what takes the mean of a column of `cascades` over posts; NaN without any."""

    def mean(run: FinishedRun) -> float:
        trees = run.table("cascades")
        return float(trees[column][trees["kind"] == POST_KINDS[POST]].mean())

    return mean


CASCADES: Final = (
    Measure("cascades", said("cascades", "n"), "posts, each with its tree of reshares", "cascades"),
    Measure("cascade_mean", said("cascades", "mean_size"), "mean size of a cascade, 1 + reshares", "posts", 1),
    Measure("cascade_max", said("cascades", "max_size"), "size of the largest cascade", "posts", 1),
    Measure(
        "cascade_never_reshared",
        said("cascades", "share_never_reshared"),
        "posts that nobody reshared",
        "share",
        0,
        1,
    ),
    Measure(
        "cascade_depth_mean",
        _mean_of("depth"),
        "mean depth of a cascade: reshares from the post to the farthest one",
        "reshares",
        source=_GOEL,
    ),
    Measure("cascade_depth", said("cascades", "max_depth"), "depth of the deepest cascade", "reshares", source=_GOEL),
    Measure(
        "cascade_breadth_mean",
        _mean_of("breadth"),
        "mean breadth of a cascade: most reshares at one depth, 1 of a lone post",
        "posts",
        1,
        source=_GOEL,
    ),
    Measure("cascade_breadth", said("cascades", "max_breadth"), "breadth of the broadest", "posts", 1, source=_GOEL),
    Measure(
        "cascade_virality",
        said("cascades", "mean_structural_virality"),
        "mean structural virality of cascades with a reshare: mean distance of all pairs in the tree; 0 without any",
        "steps",
        source=_GOEL,
    ),
    Measure(
        "cascade_virality_max",
        said("cascades", "max_structural_virality"),
        "structural virality of the most viral cascade",
        "steps",
        source=_GOEL,
    ),
    *(
        Measure(
            f"cascade_tail_{above}",
            said("cascades", "tail_exponents", f"above_{above}", "exponent"),
            f"exponent of the tail of sizes from {above} on, if it is a power law; NaN with fewer than {ENOUGH} such",
            "",
            1,
            source=_CLAUSET,
        )
        for above in TAILS
    ),
)
