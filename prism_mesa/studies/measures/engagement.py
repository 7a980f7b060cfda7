"""Measures of what agents do: posts, impressions, engagements, states, and who decides."""

from collections.abc import Callable
from typing import Final

from prism_mesa.domain import ACTIONS
from prism_mesa.statechart import STATES, AgentState
from prism_mesa.studies.measures.measure import FinishedRun, Measure, ratio, said

_COUNTERS: Final = {"like": "likes", "reply": "replies", "reshare": "reshares"}
_MOVES: Final = ("transitions",)
_CHANGES: Final = ("network_changes", "events")


def _engagements(run: FinishedRun) -> float:
    return float(sum(run.summary["engagement"][counter] for counter in _COUNTERS.values()))


def _rate(action: str) -> Callable[[FinishedRun], float]:
    count = said("engagement", _COUNTERS[action])
    return lambda run: ratio(count(run), run.summary["impressions"])


def _open_share(run: FinishedRun) -> float:
    moves = run.table(*_MOVES)
    return float(moves["open"][moves["to_state"] == AgentState.COMPOSING].mean())


ENGAGEMENT: Final = (
    Measure("posts", said("engagement", "posts"), "posts of all rounds, replies and reshares not among them", "posts"),
    Measure("impressions", said("impressions"), "posts that somebody read, each time", "impressions"),
    *(
        Measure(counter, said("engagement", counter), f"{counter} of all rounds", counter)
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
    Measure(
        f"share_{state.value}",
        said("state_shares", state.value),
        f"agent-ticks in state `{state.value}`",
        "share",
        0,
        1,
    )
    for state in STATES
)

DECISIONS: Final = (
    Measure("new_follows", said(*_CHANGES, "follow"), "follows that began; NaN where the network is fixed", "follows"),
    Measure("unfollows", said(*_CHANGES, "unfollow"), "follows that ended; NaN where the network is fixed", "follows"),
    Measure("open_choices", said("decisions", "open"), "choices that the guards left open", "choices"),
    Measure(
        "open_rate",
        said("decisions", "rates", "open"),
        "choices that the guards left open, per agent and round",
        "choices per agent-round",
    ),
    Measure("open_engagement_share", _open_share, "decisions to engage left open", "share", 0, 1, "", _MOVES),
    Measure(
        "fallback_rate",
        said("decisions", "rates", "fallback"),
        "open choices that were answered by a fallback, as the LLM gave no usable answer; 0 where none was open",
        "share",
        0,
        1,
    ),
    Measure(
        "budget_rate",
        said("decisions", "rates", "budget"),
        "open choices that a limit of calls, tokens or seconds left to the fallback; 0 where none was open",
        "share",
        0,
        1,
    ),
)
