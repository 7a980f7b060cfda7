"""Measures of cascades (the trees of reshares under posts), and of the posts that users place (`posts.seeded`)."""

from functools import partial
from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.runs.measures import ENOUGH, TAILS
from prism_mesa.social.state.posts import POST
from prism_mesa.studies.measures.exposure import communities_reached
from prism_mesa.studies.measures.measure import FinishedRun, Measure, is_kind, is_sampled, mean, share_measure, summary

_GOEL: Final = "Goel, Anderson, Hofman and Watts 2016, doi:10.1287/mnsc.2015.2158"
_CLAUSET: Final = "Clauset, Shalizi and Newman 2009, doi:10.1137/070710111"


def _mean_of_posts(column: str, run: FinishedRun) -> float:
    """Return the mean of a column of `cascades` over posts; NaN without any."""
    trees = run.table("cascades")
    return float(trees[column][is_kind(trees, POST)].mean())


CASCADES: Final = (
    Measure("cascades", summary("cascades.n"), "posts, each with its tree of reshares", "cascades"),
    Measure("cascade_mean", summary("cascades.mean_size"), "mean size of a cascade, 1 + reshares", "posts", 1),
    Measure("cascade_max", summary("cascades.max_size"), "size of the largest cascade", "posts", 1),
    share_measure("cascade_never_reshared", summary("cascades.share_never_reshared"), "posts that nobody reshared"),
    Measure(
        "cascade_depth_mean",
        partial(_mean_of_posts, "depth"),
        "mean depth of a cascade: reshares from the post to the farthest one",
        "reshares",
        source=_GOEL,
    ),
    Measure("cascade_depth", summary("cascades.max_depth"), "depth of the deepest cascade", "reshares", source=_GOEL),
    Measure(
        "cascade_breadth_mean",
        partial(_mean_of_posts, "breadth"),
        "mean breadth of a cascade: most reshares at one depth, 1 of a lone post",
        "posts",
        1,
        source=_GOEL,
    ),
    Measure("cascade_breadth", summary("cascades.max_breadth"), "breadth of the broadest", "posts", 1, source=_GOEL),
    Measure(
        "cascade_virality",
        summary("cascades.mean_structural_virality"),
        "mean structural virality of cascades with a reshare: mean distance of all pairs in the tree; 0 without any",
        "steps",
        source=_GOEL,
    ),
    Measure(
        "cascade_virality_max",
        summary("cascades.max_structural_virality"),
        "structural virality of the most viral cascade",
        "steps",
        source=_GOEL,
    ),
    *(
        Measure(
            f"cascade_tail_{above}",
            summary(f"cascades.tail_exponents.above_{above}.exponent"),
            f"exponent of the tail of sizes from {above} on, if it is a power law; NaN with fewer than {ENOUGH} such",
            "",
            1,
            source=_CLAUSET,
        )
        for above in TAILS
    ),
)


def _seeded(run: FinishedRun, column: str) -> npt.NDArray[Any]:
    """Return a number of each seeded post, from the summary."""
    return np.array([post[column] for post in run.summary["seeded"]])


def _sizes(run: FinishedRun) -> npt.NDArray[Any]:
    if not run.summary["seeded"]:
        return np.zeros(0)
    trees = run.table("cascades")
    return np.asarray(trees["size"])[np.searchsorted(trees["root"].to_numpy(), _seeded(run, "post"))]


def _impressions(run: FinishedRun) -> float:
    posts = _seeded(run, "post").astype(np.int64)
    return mean(run.table("posts")["impressions"].to_numpy()[posts]) if len(posts) else nan


def _communities(run: FinishedRun) -> float:
    if not run.summary["seeded"] or is_sampled(run, "impressions"):
        return nan
    return communities_reached(run, _seeded(run, "post"))


SEEDED: Final = (
    Measure(
        "seeded_cascade_mean",
        lambda run: mean(_sizes(run)),
        "mean size of the cascades of seeded posts, 1 + reshares",
        "posts",
        1,
    ),
    Measure("seeded_impressions", _impressions, "mean impressions of a seeded post and its copies", "impressions"),
    share_measure(
        "seeded_communities",
        _communities,
        "communities in which anybody read a seeded post or a reshare of it, as a mean over them; NaN where not all "
        "impressions are recorded",
        tables=("impressions",),
    ),
    Measure(
        "seeded_followers",
        lambda run: mean(_seeded(run, "followers")),
        "mean followers of the authors of seeded posts, at the beginning",
        "agents",
    ),
    share_measure(
        "seeded_bridging",
        lambda run: mean(_seeded(run, "share_across")),
        "share of the followers of the authors of seeded posts who are of other communities, at the beginning, as a "
        "mean over posts",
    ),
)
