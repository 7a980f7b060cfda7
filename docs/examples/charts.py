"""A chart of one's own, and its guards: readers who heed labels, readers whom alarm moves, readers who know better."""

from typing import Any

from prism_mesa import AgentState, F, Statechart, Transition
from prism_mesa.social.behavior import IS_INTERESTED, build_chart, social_chart

HEEDS_LABEL = F.post.labelled & (F.agent.heed > 0.5)
IS_ALARMED = F.post.alarming & (F.agent.neuroticism > 3) & ~HEEDS_LABEL


def knows_better(agent: Any, post: Any) -> bool:
    """Return whether an untrue post is about what the reader likes best, and so is seen through without a label.

    A list of interests is nothing that an expression can read, so this guard is called for agent after agent.
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
"""As the default chart, but for labels and alarm.

Who is interested in a post and knows better has two ways to go: the chart leaves that open, and whoever decides is
asked.
"""
