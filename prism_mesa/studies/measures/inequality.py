"""Measures of inequality between agents: of attention, of activity, of followers, of what is passed on."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.runs.measures import gini, top_share
from prism_mesa.studies.measures.columns import have_joined
from prism_mesa.studies.measures.measure import FinishedRun, Measure, said

_GINI: Final = "Gini 1912; as in Dorfman 1979, doi:10.2307/1924845"


def _followers(run: FinishedRun) -> npt.NDArray[Any]:
    return np.asarray(run.table("agents")["followers"])[have_joined(run)]


def _reshared(run: FinishedRun) -> npt.NDArray[np.float64]:
    """Return how often posts and replies of each agent were reshared."""
    posts = run.table("posts")
    joined = have_joined(run)
    return np.bincount(posts["author"], posts["reshares"], minlength=len(joined))[joined]


def _pair(
    what: str,
    meaning: str,
    unequal: Callable[[FinishedRun], float],
    top: Callable[[FinishedRun], float],
    *,
    of: str = "agents",
    tables: tuple[str, ...] = (),
) -> tuple[Measure, Measure]:
    """Return the two measures of how unequally something is shared."""
    return (
        Measure(f"gini_{what}", unequal, f"Gini coefficient of {meaning}", "", 0, 1, _GINI, tables),
        Measure(
            f"top_10_{what}", top, f"what the tenth of {of} with most of it has of {meaning}", "share", 0, 1, "", tables
        ),
    )


_ATTENTION: Final = "attention, impressions of what each wrote,"
_ACTIVITY: Final = "activity, posts, likes, replies and reshares of each,"

INEQUALITY: Final = (
    *_pair(
        "impressions",
        f"{_ATTENTION} between all agents",
        said("attention", "gini"),
        said("attention", "top_10_share"),
    ),
    *_pair(
        "impressions_seen",
        f"{_ATTENTION} between agents of whom anything was seen",
        said("attention", "gini_seen"),
        said("attention", "top_10_share_seen"),
        of="such",
    ),
    *_pair(
        "activity",
        f"{_ACTIVITY} between all agents",
        said("activity", "gini"),
        said("activity", "top_10_share"),
    ),
    *_pair(
        "activity_active",
        f"{_ACTIVITY} between agents that did anything",
        said("activity", "gini_active"),
        said("activity", "top_10_share_active"),
        of="such",
    ),
    Measure("share_active", said("activity", "share_active"), "agents that did anything", "share", 0, 1),
    *_pair(
        "followers",
        "followers between all agents",
        lambda run: gini(_followers(run)),
        lambda run: top_share(_followers(run), 0.1),
        tables=("churn",),
    ),
    *_pair(
        "reshares",
        "reshares of what each wrote between all agents",
        lambda run: gini(_reshared(run)),
        lambda run: top_share(_reshared(run), 0.1),
        tables=("churn",),
    ),
)
