"""Measures of how things are spread around their middle or mean, as data sets have them."""

from collections.abc import Callable
from math import nan
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.runs.measures import top_share
from prism_mesa.social.state.posts import POST, RESHARE
from prism_mesa.studies.measures.measure import FinishedRun, Measure, ratio
from prism_mesa.studies.measures.observed import SEEN_ENOUGH, sizes_of
from prism_mesa.studies.measures.rhythms import activities, delays
from prism_mesa.studies.measures.window import measured_posts, of_kind

FOLLOWED_ENOUGH: Final = 100
"""Followers that an author needs for impressions per follower."""


def _median_rate(counter: str) -> Callable[[FinishedRun], float]:
    def median(run: FinishedRun) -> float:
        posts = run.once(measured_posts).table
        seen = posts[posts["impressions"] >= SEEN_ENOUGH]
        return float((seen[counter] / seen["impressions"]).median()) if len(seen) else nan

    return median


def _reach(run: FinishedRun) -> float:
    posts = run.once(measured_posts).table
    followers = run.table("agents")["followers"].to_numpy()[posts["author"].to_numpy()]
    enough = followers >= FOLLOWED_ENOUGH
    return float(np.median(posts["impressions"].to_numpy()[enough] / followers[enough])) if enough.any() else nan


def _top_posts(run: FinishedRun) -> float:
    return top_share(sizes_of(run) - 1, 0.01)


def _only(kind: int) -> Callable[[FinishedRun], float]:
    """Return what takes the share of agents, of those who post or reshare, who do only the one."""
    other_kind = POST if kind == RESHARE else RESHARE

    def share(run: FinishedRun) -> float:
        posts = run.table("posts")
        authors: npt.NDArray[np.integer] = posts["author"].to_numpy()
        own, other = (np.bincount(authors[of_kind(posts, k) & (authors >= 0)]) for k in (kind, other_kind))
        both = np.zeros((2, max(len(own), len(other))), np.int64)
        both[0, : len(own)], both[1, : len(other)] = own, other
        return ratio(float(((both[0] > 0) & (both[1] == 0)).sum()), float((both.sum(axis=0) > 0).sum()))

    return share


def _delay_at(quantile: float) -> Callable[[FinishedRun], float]:
    def at(run: FinishedRun) -> float:
        found = run.once(delays)
        return float(np.quantile(found, quantile)) if len(found) else nan

    return at


SPREADS: Final = (
    *(
        Measure(
            f"post_{action}_rate_median",
            _median_rate(counter),
            f"median over measured posts that were seen at least {SEEN_ENOUGH} times of {counter} per impression",
            "share",
            0,
            1,
        )
        for action, counter in (("like", "likes"), ("reshare", "reshares"))
    ),
    Measure(
        "post_reach_median",
        _reach,
        f"median impressions per follower of measured posts whose authors have at least {FOLLOWED_ENOUGH} followers",
        "impressions",
    ),
    Measure("post_top_1", _top_posts, "what the hundredth of measured posts with most has of reshares", "share", 0, 1),
    Measure(
        "written_top_1",
        lambda run: top_share(run.once(activities), 0.01),
        "what the hundredth of agents with most has of posts and reshares",
        "share",
        0,
        1,
    ),
    Measure(
        "written_only_reshares", _only(RESHARE), "agents, of those who post or reshare, who only reshare", "share", 0, 1
    ),
    Measure("written_only_posts", _only(POST), "such agents who only post", "share", 0, 1),
    *(
        Measure(
            f"delay_{name}",
            _delay_at(quantile),
            f"{statistic} of the times from a measured post to a like, reply or reshare of it within a day; of agents "
            "that are recorded",
            "minutes",
            tables=("engagements",),
        )
        for name, statistic, quantile in (
            ("median", "median", 0.5),
            ("lower", "lower quartile", 0.25),
            ("upper", "upper quartile", 0.75),
        )
    ),
)
