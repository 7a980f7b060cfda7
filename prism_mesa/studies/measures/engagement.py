"""Measures of what agents do: posts, engagements, states, decisions; inequality between agents; joining and leaving."""

from collections.abc import Callable
from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import ACTIONS
from prism_mesa.runs.measures import gini, top_share
from prism_mesa.statechart import STATES, AgentState
from prism_mesa.studies.estimators.timing import survival
from prism_mesa.studies.measures.measure import (
    FinishedRun,
    Measure,
    have_joined,
    index_measure,
    ratio,
    share_measure,
    summary,
)

_COUNTERS: Final = {"like": "likes", "reply": "replies", "reshare": "reshares"}
_MOVES: Final = ("transitions",)
_CHANGES: Final = ("network_changes", "events")


def _engagements(run: FinishedRun) -> float:
    return float(sum(run.summary["engagement"][counter] for counter in _COUNTERS.values()))


def _rate(action: str) -> Callable[[FinishedRun], float]:
    count = summary("engagement", _COUNTERS[action])
    return lambda run: ratio(count(run), run.summary["impressions"])


def _open_share(run: FinishedRun) -> float:
    moves = run.table(*_MOVES)
    return float(moves["open"][moves["to_state"] == AgentState.COMPOSING].mean())


ENGAGEMENT: Final = (
    Measure(
        "posts",
        summary("engagement", "posts"),
        "posts of all rounds, replies and reshares not among them",
        "posts",
    ),
    Measure("impressions", summary("impressions"), "posts that somebody read, each time", "impressions"),
    *(
        Measure(counter, summary("engagement", counter), f"{counter} of all rounds", counter)
        for counter in _COUNTERS.values()
    ),
    Measure("engagements", _engagements, "likes, replies and reshares of all rounds", "engagements"),
    Measure(
        "engagement_per_impression",
        lambda run: ratio(_engagements(run), run.summary["impressions"]),
        "engagements per impression",
        "engagements per impression",
    ),
    *(
        Measure(
            f"{_COUNTERS[action]}_per_impression",
            _rate(action),
            f"{_COUNTERS[action]} per impression",
            f"{_COUNTERS[action]} per impression",
        )
        for action in ACTIONS
    ),
)

STATE_SHARES: Final = tuple(
    share_measure(f"share_{state.value}", summary("state_shares", state.value), f"agent-ticks in state `{state.value}`")
    for state in STATES
)

DECISIONS: Final = (
    Measure(
        "new_follows",
        summary(*_CHANGES, "follow"),
        "follows that began; NaN where the network is fixed",
        "follows",
    ),
    Measure(
        "unfollows",
        summary(*_CHANGES, "unfollow"),
        "follows that ended; NaN where the network is fixed",
        "follows",
    ),
    Measure("open_choices", summary("decisions", "open"), "choices that the guards left open", "choices"),
    Measure(
        "open_rate",
        summary("decisions", "rates", "open"),
        "choices that the guards left open, per agent and round",
        "choices per agent-round",
    ),
    share_measure("open_engagement_share", _open_share, "decisions to engage left open", tables=_MOVES),
    share_measure(
        "fallback_rate",
        summary("decisions", "rates", "fallback"),
        "open choices that were answered by a fallback, as the LLM gave no usable answer; 0 where none was open",
    ),
    share_measure(
        "budget_rate",
        summary("decisions", "rates", "budget"),
        "open choices that a limit of calls, tokens or seconds left to the fallback; 0 where none was open",
    ),
)


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
        index_measure(f"gini_{what}", unequal, f"Gini coefficient of {meaning}", source=_GINI, tables=tables, low=0),
        share_measure(f"top_10_{what}", top, f"what the tenth of {of} with most of it has of {meaning}", tables=tables),
    )


_ATTENTION: Final = "attention, impressions of what each wrote,"
_ACTIVITY: Final = "activity, posts, likes, replies and reshares of each,"

INEQUALITY: Final = (
    *_pair(
        "impressions",
        f"{_ATTENTION} between all agents",
        summary("attention", "gini"),
        summary("attention", "top_10_share"),
    ),
    *_pair(
        "impressions_seen",
        f"{_ATTENTION} between agents of whom anything was seen",
        summary("attention", "gini_seen"),
        summary("attention", "top_10_share_seen"),
        of="such",
    ),
    *_pair(
        "activity",
        f"{_ACTIVITY} between all agents",
        summary("activity", "gini"),
        summary("activity", "top_10_share"),
    ),
    *_pair(
        "activity_active",
        f"{_ACTIVITY} between agents that did anything",
        summary("activity", "gini_active"),
        summary("activity", "top_10_share_active"),
        of="such",
    ),
    share_measure("share_active", summary("activity", "share_active"), "agents that did anything"),
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


_NONE: Final = "NaN without `agents.churn`"


def stays(run: FinishedRun) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return how many rounds each stay on the platform has lasted, and whether it has ended.

    A stay begins with the run, or as an agent joins or comes back; it ends as the agent leaves, or is removed.
    """
    rounds, table = run.config.rounds, run.table("churn")
    table = table.sort_values(["agent", "round"], kind="stable")
    agent, at = table["agent"].to_numpy(np.int64), table["round"].to_numpy(np.int64)
    comes = table["event"].isin(["join", "back"]).to_numpy()
    is_first, is_last = np.diff(agent, prepend=-1) != 0, np.diff(agent, append=-1) != 0
    began, still = np.where(is_first, 0, np.roll(at, 1)), rounds - at[comes & is_last]
    there = run.table("agents")["present"].to_numpy(np.bool_).copy()
    there[agent] = False
    lengths = np.concatenate([(at - began)[~comes], still, np.full(int(there.sum()), rounds)])
    return lengths, np.arange(len(lengths)) < np.count_nonzero(~comes)


def _median_stay(run: FinishedRun) -> float:
    if not run.config.has_churn:
        return nan
    at, lasts = survival(*run.once(stays))
    return float(at[np.argmax(lasts <= 0.5)]) if len(at) and lasts[-1] <= 0.5 else nan


def _share_there(run: FinishedRun) -> float:
    churn: dict[str, Any] = run.summary.get("churn", {})
    return ratio(churn["there_mean"], churn["rows"]) if churn else nan


def _per_round(event: str) -> Callable[[FinishedRun], float]:
    count = summary("churn", "events", event)
    return lambda run: ratio(count(run), run.summary["rounds"])


CHURN: Final = (
    share_measure("share_there", _share_there, f"agents who are there, as a mean of rounds; {_NONE}"),
    *(
        Measure(f"{name}_per_round", _per_round(event), f"agents who {told} in a round; {_NONE}", "agents per round")
        for name, event, told in (
            ("joined", "join", "join"),
            ("left", "leave", "leave"),
            ("came_back", "back", "come back"),
        )
    ),
    Measure(
        "median_stay",
        _median_stay,
        "how long half of all stays last at most, counted from the beginning of the run at the earliest; NaN if fewer "
        "have ended",
        "rounds",
        source="Kaplan and Meier 1958, doi:10.1080/01621459.1958.10501452",
        tables=("churn",),
    ),
)
