"""Measures of an intervention with a share: treated minus control agents (``measure@intervention``)."""

from collections.abc import Callable
from functools import partial
from math import inf, nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import ConfigError, printable
from prism_mesa.social.state.assignments import GROUPS
from prism_mesa.social.state.posts import POST
from prism_mesa.social.tables import COUNTERS
from prism_mesa.studies.measures.engagement import stay_intervals
from prism_mesa.studies.measures.measure import FinishedRun, Measure, is_kind, mean

type Floats = npt.NDArray[np.float64]
type Rounds = tuple[int, int]


def _rounds(run: FinishedRun, name: str) -> Rounds | None:
    """Return the first round of an intervention with a share, and the round after its last; None without any such."""
    by_name = {act.name: act for act in run.config.interventions if act.share is not None}
    if not by_name:
        return None
    if name not in by_name:
        known = ", ".join(map(str, by_name))
        raise ConfigError(f"no intervention {printable(name)!r} has a share (these have: {known})")
    act = by_name[name]
    return act.at, run.config.rounds if act.until is None else act.until


def _rounds_present(run: FinishedRun, rounds: Rounds) -> Floats:
    """Return in how many of some rounds each agent was on the platform."""
    n = len(run.table("agents"))
    if not run.config.has_churn:
        return np.full(n, float(rounds[1] - rounds[0]))
    agents, starts, ends = stay_intervals(run)
    overlap = np.minimum(ends, rounds[1]) - np.maximum(starts, rounds[0])
    return np.bincount(agents, np.maximum(overlap, 0), minlength=n)


def _count_rows(table: str, action: str, run: FinishedRun, rounds: Rounds) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return how many rows of a table each agent has in some rounds, and which agents are recorded."""
    rows, agents = run.table(table), run.table("agents")
    is_counted = rows["round"].between(*rounds, inclusive="left")
    if action:
        is_counted &= rows["action"] == action
    counts = np.bincount(rows["agent"][is_counted], minlength=len(agents))
    return counts.astype(np.float64), agents[f"recorded_{table}"].to_numpy(np.bool_)


def _count_posts(run: FinishedRun, rounds: Rounds) -> tuple[Floats, npt.NDArray[np.bool_]]:
    posts, n = run.table("posts"), len(run.table("agents"))
    is_counted = is_kind(posts, POST) & posts["round"].between(*rounds, inclusive="left").to_numpy()
    return np.bincount(posts["author"][is_counted], minlength=n).astype(np.float64), np.ones(n, np.bool_)


def _difference(count: Callable[[FinishedRun, Rounds], Any], name: str, run: FinishedRun) -> float:
    """Return the mean of treated minus control agents, per round on the platform; NaN without either."""
    rounds = _rounds(run, name)
    if rounds is None:
        return nan
    counts, is_recorded = count(run, rounds)
    present = _rounds_present(run, rounds)
    rates = counts / np.where(present, present, np.nan)
    groups = run.table("agents")[name].to_numpy()
    treated, control = (mean(rates[(groups == group) & is_recorded & (present > 0)]) for group in GROUPS)
    return treated - control


_COUNTS: Final[dict[str, tuple[Callable[[FinishedRun, Rounds], Any], tuple[str, ...]]]] = {
    "impressions": (partial(_count_rows, "impressions", ""), ("impressions", "churn")),
    "engagements": (partial(_count_rows, "engagements", ""), ("engagements", "churn")),
    **{
        f"{counter}": (partial(_count_rows, "engagements", action), ("engagements", "churn"))
        for counter, action in zip(COUNTERS, ("like", "reply", "reshare"), strict=True)
    },
    "posts": (_count_posts, ("churn",)),
}


def measures_of_treatment(name: str) -> tuple[Measure, ...]:
    """Return the measures of an intervention with a share, by agent."""
    return tuple(
        Measure(
            measure,
            partial(_difference, count, name),
            f"{measure} per agent and round on the platform, treated minus control agents of intervention `{name}`",
            f"{measure} per agent and round",
            -inf,
            tables=tables,
        )
        for measure, (count, tables) in _COUNTS.items()
    )
