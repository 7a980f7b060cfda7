"""Measures of activity: posts, engagements, states, decisions, inequality between agents, joining and leaving."""

from collections.abc import Callable
from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Ints, Mask
from prism_mesa.domain import SHARE, STATES, AgentState
from prism_mesa.runs.measures import gini, top_share
from prism_mesa.social.tables import COUNTERS
from prism_mesa.studies.estimators.timing import survival
from prism_mesa.studies.measures.measure import FinishedRun, Measure, index, joined_agents, ratio, share, summary

GINI: Final = "Gini 1912; as in Dorfman 1979, doi:10.2307/1924845"


def _engagements(run: FinishedRun) -> float:
    return float(sum(run.summary["engagement"][counter] for counter in COUNTERS))


def _per_impression(count: Callable[[FinishedRun], float]) -> Callable[[FinishedRun], float]:
    return lambda run: ratio(count(run), run.summary["impressions"])


def _open_share(run: FinishedRun) -> float:
    transitions = run.table("transitions")
    return float(transitions["open"][transitions["to_state"] == AgentState.COMPOSING].mean())


_RATE: Final = "engagements per impression"

ENGAGEMENT: Final = (
    Measure("posts", summary("engagement.posts"), "posts in all rounds, without replies and reshares", "posts"),
    Measure("impressions", summary("impressions"), "number of times that an agent read a post", "impressions"),
    *(Measure(counter, summary(f"engagement.{counter}"), f"{counter} in all rounds", counter) for counter in COUNTERS),
    Measure("engagements", _engagements, "likes, replies and reshares in all rounds", "engagements"),
    Measure("engagement_per_impression", _per_impression(_engagements), _RATE, _RATE),
    *(
        Measure(
            f"{counter}_per_impression",
            _per_impression(summary(f"engagement.{counter}")),
            *(f"{counter} per impression", f"{counter} per impression"),
        )
        for counter in COUNTERS
    ),
)


def state_share(state: str) -> Measure:
    """Return the measure of the share of a state by its name; NaN if a run's chart lacks the state."""
    return share(SHARE + state, summary(f"state_shares.{state}"), f"agent-ticks in state `{state}`")


STATE_SHARES: Final = tuple(state_share(state.value) for state in STATES)

_EVENTS: Final = "network_changes.events"
DECISIONS: Final = (
    Measure("new_follows", summary(f"{_EVENTS}.follow"), "new follows; NaN for a fixed network", "follows"),
    Measure("unfollows", summary(f"{_EVENTS}.unfollow"), "ended follows; NaN for a fixed network", "follows"),
    Measure("open_choices", summary("decisions.open"), "choices that the guards left open", "choices"),
    Measure(
        "open_rate", summary("decisions.rates.open"), "open choices per agent and round", "choices per agent-round"
    ),
    share("open_engagement_share", _open_share, "decisions to engage that were left open", tables=("transitions",)),
    share(
        "fallback_rate",
        summary("decisions.rates.fallback"),
        "open choices for which the LLM gave no usable answer; 0 without open choices",
    ),
    share(
        "budget_rate",
        summary("decisions.rates.budget"),
        "open choices after a limit of calls, tokens or seconds; 0 without open choices",
    ),
)


def _followers(run: FinishedRun) -> npt.NDArray[Any]:
    return np.asarray(run.table("agents")["followers"])[joined_agents(run)]


def _reshare_counts(run: FinishedRun) -> Floats:
    """Return how often each agent's posts and replies were reshared."""
    posts, has_joined = run.table("posts"), joined_agents(run)
    return np.bincount(posts["author"], posts["reshares"], minlength=len(has_joined))[has_joined]


def _inequality(
    name: str,
    amount: str,
    owners: str,
    functions: tuple[Callable[[FinishedRun], float], Callable[[FinishedRun], float]],
    tables: tuple[str, ...] = (),
) -> tuple[Measure, Measure]:
    meaning = f"Gini coefficient of {amount} over {owners}"
    return (
        index(f"gini_{name}", functions[0], meaning, source=GINI, tables=tables, low=0),
        share(f"top_10_{name}", functions[1], f"share of the top tenth of {owners} in {amount}", tables=tables),
    )


def _summary_pair(group: str, end: str = "") -> tuple[Callable[[FinishedRun], float], Callable[[FinishedRun], float]]:
    return summary(f"{group}.gini{end}"), summary(f"{group}.top_10_share{end}")


_ATTENTION: Final = "impressions received"
_ACTIVITY: Final = "posts, likes, replies and reshares made"

INEQUALITY: Final = (
    *_inequality("impressions", _ATTENTION, "all agents", _summary_pair("attention")),
    *_inequality("impressions_seen", _ATTENTION, "agents with impressions", _summary_pair("attention", "_seen")),
    *_inequality("activity", _ACTIVITY, "all agents", _summary_pair("activity")),
    *_inequality("activity_active", _ACTIVITY, "active agents", _summary_pair("activity", "_active")),
    share("share_active", summary("activity.share_active"), "agents that posted, liked, replied or reshared"),
    *_inequality(
        "followers",
        *("followers", "all agents"),
        (lambda run: gini(_followers(run)), lambda run: top_share(_followers(run), 0.1)),
        tables=("churn",),
    ),
    *_inequality(
        "reshares",
        *("reshares received", "all agents"),
        (lambda run: gini(_reshare_counts(run)), lambda run: top_share(_reshare_counts(run), 0.1)),
        tables=("churn",),
    ),
)


_NO_CHURN: Final = "NaN without `agents.churn`"


def stay_intervals(run: FinishedRun) -> tuple[Ints, Ints, Ints]:
    """Return each stay on the platform: its agent, its first round, and the round after its last.

    Stays that have ended come first. A stay begins with the run, or when an agent joins or returns. It ends with the
    run, or when the agent leaves or is removed.
    """
    n_rounds, table = run.config.rounds, run.table("churn")
    table = table.sort_values(["agent", "round"], kind="stable")
    agent, rounds = table["agent"].to_numpy(np.int64), table["round"].to_numpy(np.int64)
    is_arrival = table["event"].isin(["join", "back"]).to_numpy()
    is_first, is_last = np.diff(agent, prepend=-1) != 0, np.diff(agent, append=-1) != 0
    starts, is_ongoing = np.where(is_first, 0, np.roll(rounds, 1)), is_arrival & is_last
    never_left = run.table("agents")["present"].to_numpy(np.bool_).copy()
    never_left[agent] = False
    stayed = np.flatnonzero(never_left)
    agents = np.concatenate([agent[~is_arrival], agent[is_ongoing], stayed])
    firsts = np.concatenate([starts[~is_arrival], rounds[is_ongoing], np.zeros_like(stayed)])
    return agents, firsts, np.append(rounds[~is_arrival], np.full(len(agents) - (~is_arrival).sum(), n_rounds))


def stays(run: FinishedRun) -> tuple[Ints, Mask]:
    """Return the length in rounds of each stay on the platform, and whether the stay ended."""
    _, starts, ends = stay_intervals(run)
    is_departure = ~run.table("churn")["event"].isin(["join", "back"])
    return ends - starts, np.arange(len(ends)) < np.count_nonzero(is_departure)


def _median_stay(run: FinishedRun) -> float:
    if not run.config.has_churn:
        return nan
    lengths, survivors = survival(*run.compute(stays))
    return float(lengths[np.argmax(survivors <= 0.5)]) if len(lengths) and survivors[-1] <= 0.5 else nan


def _mean_present(run: FinishedRun) -> float:
    churn: dict[str, Any] = run.summary.get("churn", {})
    return ratio(churn["present_mean"], churn["rows"]) if churn else nan


def _per_round(event: str) -> Callable[[FinishedRun], float]:
    count = summary(f"churn.events.{event}")
    return lambda run: ratio(count(run), run.summary["rounds"])


CHURN: Final = (
    share("share_there", _mean_present, f"mean share of agents on the platform, over rounds; {_NO_CHURN}"),
    *(
        Measure(f"{name}_per_round", _per_round(key), f"agents who {verb} per round; {_NO_CHURN}", "agents per round")
        for name, key, verb in (("joined", "join", "join"), ("left", "leave", "leave"), ("came_back", "back", "return"))
    ),
    Measure(
        "median_stay",
        _median_stay,
        "median length of a stay within the run; NaN if fewer than half of the stays have ended",
        "rounds",
        source="Kaplan and Meier 1958, doi:10.1080/01621459.1958.10501452",
        tables=("churn",),
    ),
)
