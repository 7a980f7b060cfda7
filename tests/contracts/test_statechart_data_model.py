"""The code of the contract `statechart_data_model`, copied; what it does not define is defined here."""

from datetime import UTC, datetime

import pytest
from worlds import small

from prism_mesa import AgentState, Statechart, Transition
from prism_mesa.errors import ChartError
from prism_mesa.statechart import StateTransition

social_agent_chart = Statechart(
    states=set(AgentState),
    transitions=[
        Transition("feed_ready", AgentState.IDLE, AgentState.SCROLLING),
        Transition("sees_post", AgentState.SCROLLING, AgentState.EVALUATING),
        Transition("ignores", AgentState.EVALUATING, AgentState.SCROLLING),
        Transition("decides", AgentState.EVALUATING, AgentState.COMPOSING, guard=lambda a, p: a.should_engage(p)),
        Transition("decides", AgentState.EVALUATING, AgentState.SCROLLING),
        Transition(
            "compose_done",
            AgentState.COMPOSING,
            AgentState.ENGAGING_REPLY,
            guard=lambda a, _: a.pending_action == "reply",
        ),
        # ... etc
    ],
    initial=AgentState.IDLE,
)


def test_the_contracts_chart_moves_an_agent_to_its_reply():
    agent = small().agent(0)
    agent.engagement_threshold = 0.0
    for trigger in ("feed_ready", "sees_post", "decides"):
        social_agent_chart.fire(agent, trigger, {"relevance": 0.9, "utility": 0.9, "velocity": 0, "post_id": 3})
    agent.pending_action = "reply"
    assert social_agent_chart.fire(agent, "compose_done") is AgentState.ENGAGING_REPLY
    assert agent.ticks_in_state == 0


def test_each_agent_keeps_as_many_changes_as_its_own_max_history_depth():
    model = small(agents_activity=1.0)
    agent, other = model.agent(0), model.agent(1)
    assert (agent.max_history_depth, agent.timeout_threshold, agent.state_history) == (50, 5, [])
    agent.max_history_depth = 2
    model.run_for(3)
    assert (len(agent.state_history), len(other.state_history) > 2) == (2, True)
    assert [entry.to_state for entry in agent.state_history][-1] is AgentState.IDLE


def test_the_time_of_utcnow_is_refused_with_what_to_write_instead():
    with pytest.warns(DeprecationWarning, match="utcnow"):
        timestamp = datetime.utcnow()
    with pytest.raises(ChartError, match=r"datetime\.now\(UTC\)"):
        StateTransition(AgentState.IDLE, AgentState.SCROLLING, "feed_ready", timestamp)
    StateTransition(AgentState.IDLE, AgentState.SCROLLING, "feed_ready", datetime.now(UTC))
