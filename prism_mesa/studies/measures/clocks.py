"""Measures of how fast posts are seen and passed on: half-lives of impressions, delays in large cascades."""

from collections.abc import Callable
from typing import Final

import numpy as np
import pandas as pd

from prism_mesa.domain import ACTIONS
from prism_mesa.studies.measures.large import ENOUGH, WHICH, large_trees
from prism_mesa.studies.measures.measure import FinishedRun, Measure
from prism_mesa.studies.measures.rhythms import DAY_MIN, reactions
from prism_mesa.studies.measures.window import measured_posts

SEEN: Final = 20
"""Impressions in its first 24 hours that a post needs to count."""

_LATER_MIN: Final = DAY_MIN + 12 * 60
_SILENT: Final = 0.01
_PFEFFER: Final = "after Pfeffer, Matter and Sargsyan 2023, ICWSM 17, 1163-1167, arXiv:2302.09654"
_NEEDS: Final = "of the posts that `records.views` draws, NaN without any"


def _views_within(run: FinishedRun, minutes: float) -> pd.DataFrame:
    """Return rows of `views` in the first minutes of measured posts that appeared as long before the end.

    They have a column `after`: minutes from the appearance to the beginning of the round, ascending for each root.
    """
    if not run.config.records.views:
        return pd.DataFrame({"root": [], "after": [], "impressions": []})
    views, appeared, each = run.table("views"), run.table("posts")["round"].to_numpy(), run.config.clock.round_minutes
    born = appeared[views["root"]]
    views = views.assign(after=(views["round"] - born) * each)
    counts = run.once(measured_posts).mask[views["root"]] & ((run.config.rounds - born) * each >= minutes)
    return views[counts & (views["after"] < minutes)]


def half_lives(run: FinishedRun) -> "pd.Series[float]":
    """Return minutes in which each post got half of the impressions of its first 24 hours, of posts with `SEEN`.

    The impressions of a round count as spread evenly over it.
    """
    views = _views_within(run, DAY_MIN)
    by_root, new = views.groupby("root")["impressions"], views["impressions"]
    total = by_root.transform("sum")
    lacking = total / 2 - (by_root.cumsum() - new)  # as the round begins
    reached = (total >= SEEN) & (lacking > 0) & (lacking <= new)
    return (views["after"] + lacking / new * run.config.clock.round_minutes)[reached]


def _silent(run: FinishedRun) -> float:
    views = _views_within(run, _LATER_MIN)
    is_late = views["after"] >= DAY_MIN
    first, later = (views[part].groupby("root")["impressions"].sum() for part in (~is_late, is_late))
    first = first[first >= SEEN]
    return float((later.reindex(first.index, fill_value=0) <= _SILENT * first).mean())


def _large_delays(run: FinishedRun) -> "pd.Series[float]":
    """Return minutes from the appearance of a post to each reshare in its cascade, by root, of large cascades."""
    root, action, minutes = run.once(reactions)
    large = run.once(large_trees)[0]["root"]
    counts = np.isin(root, large if len(large) >= ENOUGH else []) & (action == ACTIONS.index("reshare"))
    return pd.Series(minutes[counts], index=root[counts])


_DELAYS: Final[tuple[tuple[str, str, str, Callable[[FinishedRun], float]], ...]] = (
    ("large_delay_lower", "minutes", "lower quartile of the", lambda run: run.once(_large_delays).quantile(0.25)),
    ("large_delay_median", "minutes", "median", lambda run: run.once(_large_delays).median()),
    ("large_delay_upper", "minutes", "upper quartile of the", lambda run: run.once(_large_delays).quantile(0.75)),
    (
        "large_reshares_by",
        "hours",
        "median over cascades of the upper quartile of the",
        lambda run: run.once(_large_delays).groupby(level=0).quantile(0.75).median() / 60,
    ),
)
CLOCKS: Final = (
    Measure(
        "view_half_life",
        lambda run: float(run.once(half_lives).median()),
        "median time from the appearance of a measured post to half of the impressions of its first 24 hours, of posts "
        f"with {SEEN} of these that appeared 24 hours before the end; a round's count as spread evenly; {_NEEDS}",
        "minutes",
        source=_PFEFFER,
        tables=("views",),
    ),
    Measure(
        "silent_after_day",
        _silent,
        f"measured posts with {SEEN} impressions in their first 24 hours that get at most a hundredth as many in the "
        f"next 12, of posts that appeared 36 hours before the end; {_NEEDS}",
        "share",
        0,
        1,
        _PFEFFER,
        ("views",),
    ),
    *(
        Measure(
            name,
            number,
            f"{statistic} time from a post to a reshare in its cascade, over {WHICH}; of agents that are recorded",
            unit,
            tables=("engagements",),
        )
        for name, unit, statistic, number in _DELAYS
    ),
)
