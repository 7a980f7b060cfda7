"""Measures of the posts that users place (`posts.seeded`); all are NaN without any."""

from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.studies.measures.columns import is_sampled
from prism_mesa.studies.measures.homophily import communities_reached
from prism_mesa.studies.measures.measure import FinishedRun, Measure


def _placed(run: FinishedRun, column: str) -> npt.NDArray[Any]:
    """Return a number of each seeded post, as the summary has it."""
    return np.array([post[column] for post in run.summary["seeded"]])


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else nan


def _sizes(run: FinishedRun) -> npt.NDArray[Any]:
    if not run.summary["seeded"]:
        return np.zeros(0)
    trees = run.table("cascades")
    place = np.searchsorted(trees["root"].to_numpy(), _placed(run, "post"))
    return np.asarray(trees["size"])[place]


def _impressions(run: FinishedRun) -> float:
    if not run.summary["seeded"]:
        return nan
    return _mean(run.table("posts")["impressions"].to_numpy()[_placed(run, "post")])


def _communities(run: FinishedRun) -> float:
    if not run.summary["seeded"] or is_sampled(run, "impressions"):
        return nan
    return communities_reached(run, _placed(run, "post"))


SEEDED: Final = (
    Measure(
        "seeded_cascade_mean",
        lambda run: _mean(_sizes(run)),
        "mean size of the cascades of seeded posts, 1 + reshares",
        "posts",
        1,
    ),
    Measure("seeded_impressions", _impressions, "mean impressions of a seeded post and its copies", "impressions"),
    Measure(
        "seeded_communities",
        _communities,
        "communities in which anybody read a seeded post or a reshare of it, as a mean over them; NaN where not all "
        "impressions are recorded",
        "share",
        0,
        1,
        tables=("impressions",),
    ),
    Measure(
        "seeded_followers",
        lambda run: _mean(_placed(run, "followers")),
        "mean followers of the authors of seeded posts, at the beginning",
        "agents",
    ),
    Measure(
        "seeded_bridging",
        lambda run: _mean(_placed(run, "share_across")),
        "share of the followers of the authors of seeded posts who are of other communities, at the beginning, as a "
        "mean over posts",
        "share",
        0,
        1,
    ),
)
