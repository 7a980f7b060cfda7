"""What the platform's charts accept of the engine, and what they refuse by name."""

import numpy as np
import pytest
from worlds import small

from prism_mesa import AgentState, F, SocialModel, Statechart, Transition, after, rate
from prism_mesa.errors import ChartError
from prism_mesa.social.behavior import build_chart

IDLE, SCROLLING, EVALUATING, RESTING = (
    AgentState.IDLE,
    AgentState.SCROLLING,
    AgentState.EVALUATING,
    AgentState.RESTING,
)


def test_a_parent_as_a_source_gives_the_same_run_as_a_transition_from_each_state():
    tired = F.agent.n_unread < 3
    nested = build_chart(
        transitions=[Transition("sees_post", "reading", RESTING, tired)],
        timeouts={RESTING: 4},
        nested={"reading": [SCROLLING, EVALUATING]},
    )
    assert [str(t) for t in nested.transitions if t.placement.level] == [
        f"{state} --sees_post--> resting [agent.n_unread < 3]" for state in ("scrolling", "evaluating")
    ]
    # hidden by the unguarded transition of SCROLLING itself
    counts = [small(chart=chart, rounds=6) for chart in (nested, build_chart(timeouts={RESTING: 4}))]
    for model in counts:
        model.run_for(6)
    assert np.array_equal(counts[0].platform.agent_ticks, counts[1].platform.agent_ticks)


@pytest.mark.parametrize(
    ("chart", "names"),
    [
        (lambda: build_chart(transitions=[Transition(after(2), SCROLLING, IDLE)]), r"after\(2\).*timeouts"),
        (lambda: build_chart(transitions=[Transition(rate(0.1), SCROLLING, IDLE)]), r"rate\(0\.1\)"),
        (lambda: build_chart(transitions=[Transition("x", SCROLLING, IDLE, F.model.is_open == 1)]), r"F\.model"),
        (lambda: Statechart(AgentState, [], IDLE, on_enter={IDLE: print}, name="mine"), "mine: on_enter"),
        (lambda: Statechart(AgentState, [], IDLE, nested={"a": [IDLE]}, history={"a"}), "history"),
        (lambda: Statechart(["in", "out"], [], "in"), "'in' is not a state of the platform"),
    ],
)
def test_what_the_platform_cannot_run_is_refused_by_name(chart, names):
    with pytest.raises(ChartError, match=names):
        SocialModel(agents_n=20, chart=chart())
