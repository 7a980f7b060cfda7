"""A chart of your own and its guards: readers who heed labels, alarmed readers, readers who know better."""

from typing import Any

from prism_mesa import AgentState, F, Statechart, Transition
from prism_mesa.social.behavior import IS_INTERESTED, build_chart, social_chart

HEEDS_LABEL = F.post.labelled & (F.agent.heed > 0.5)
IS_ALARMED = F.post.alarming & (F.agent.neuroticism > 3) & ~HEEDS_LABEL


def knows_better(agent: Any, post: Any) -> bool:
    """Return whether a reader sees through an untrue post because it is about the reader's main interest.

    An expression cannot read a list of interests, so PRISM calls this guard agent by agent.
    """
    return bool(post.untrue and agent.interests[0] == post.subject)


_EVALUATING = AgentState.EVALUATING

doubting = Statechart(
    AgentState,
    [
        Transition("decides", _EVALUATING, AgentState.SCROLLING, guard=HEEDS_LABEL),
        Transition("decides", _EVALUATING, AgentState.SCROLLING, guard=knows_better),
        Transition("ignores", _EVALUATING, AgentState.COMPOSING, guard=IS_ALARMED),
        *build_chart(engages=IS_INTERESTED & ~HEEDS_LABEL).transitions,
    ],
    AgentState.IDLE,
    timeouts=social_chart.timeouts,
    name="doubting",
)
"""The default chart with labels and alarm.

If a reader is interested in a post and knows better, the chart leaves the choice open and asks the oracle.
"""
