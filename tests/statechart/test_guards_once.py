"""Each guard is asked once for a fire, on every path: by row, over columns, in a round, with an answer in between."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import ran, small

from prism_mesa.errors import PrismWarning
from prism_mesa.reasoner import Reasoner
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import social_chart
from prism_mesa.statechart import NEEDS_ORACLE, AgentState, ArrayColumns, F, Statechart, Transition

IDLE, SCROLLING, EVALUATING, COMPOSING = list(AgentState)[:4]
RESTING = AgentState.RESTING
RAISES = "raises"
LIVELY = {"agents_activity": 1.0, "agents_activity_sigma": 0.0, "agents_post_rate": 0.5}


class Counting:
    """A guard that gives what a list says, one entry for each time that it is asked."""

    def __init__(self, *says):
        self.says, self.asked = says, 0

    def __call__(self, agent, post):
        self.asked += 1
        said = self.says[(self.asked - 1) % len(self.says)]
        if said == RAISES:
            raise LookupError("no opinion")
        return said


def a_chart(*transitions, **options):
    """Return a chart of transitions (target, guard, action) from EVALUATING on "decides"."""
    return Statechart(AgentState, [Transition("decides", EVALUATING, *parts) for parts in transitions], IDLE, **options)


def an_agent():
    return SimpleNamespace(state=EVALUATING, state_history=[], ticks_in_state=0, max_history_depth=0)


SAYS = st.sampled_from([True, False, NEEDS_ORACLE, RAISES])
GUARDS = st.lists(SAYS, min_size=1, max_size=3)
TRANSITIONS = st.lists(
    st.tuples(st.sampled_from([COMPOSING, SCROLLING, RESTING, None]), st.none() | GUARDS), min_size=1, max_size=4
)
CONTEXTS = st.lists(st.sampled_from([None, SimpleNamespace(), {}]), min_size=1, max_size=5)


def guarded(transitions):
    """Return transitions with guards of their own, and these."""
    own = [(target, None if says is None else Counting(*says)) for target, says in transitions]
    return own, [guard for _, guard in own if guard is not None]


def expected_raises(guards, times):
    return sum(guard.says[i % len(guard.says)] == RAISES for guard in guards for i in range(times))


@settings(deadline=None)
@given(TRANSITIONS, CONTEXTS)
def test_a_fire_asks_each_guard_once_and_counts_what_raises(transitions, contexts):
    own, guards = guarded(transitions)
    chart = a_chart(*own)
    for done, context in enumerate(contexts, 1):
        chart.fire(an_agent(), "decides", context)
        assert [guard.asked for guard in guards] == [done] * len(guards)
        assert chart.guard_errors.total() == expected_raises(guards, done)


@settings(deadline=None)
@given(TRANSITIONS, st.integers(1, 40))
def test_firing_over_columns_asks_each_guard_once_for_each_row(transitions, n):
    own, guards = guarded(transitions)
    chart = a_chart(*own)
    columns = ArrayColumns({"x": np.zeros(n)})
    chart.fire_many(np.full(n, EVALUATING.code), "decides", columns, columns)
    assert [guard.asked for guard in guards] == [n] * len(guards)
    assert chart.guard_errors.total() == expected_raises(guards, n)


def test_what_the_guards_said_tells_the_way_to_an_answer_without_asking_again():
    guards = [Counting(RAISES, True), Counting(True), Counting(True)]
    did = []
    chart = a_chart(
        (COMPOSING, guards[0], lambda agent, post: did.append("first")),
        (COMPOSING, guards[1], lambda agent, post: did.append("second")),
        (SCROLLING, guards[2]),
    )
    agent = an_agent()
    options, said = chart.select(agent, "decides")
    assert options == (COMPOSING, SCROLLING)
    chart.take(chart.resolve_key(EVALUATING, "decides", COMPOSING, said), agent)
    assert (agent.state, did) == (COMPOSING, ["second"])
    assert [guard.asked for guard in guards] == [1, 1, 1]
    assert chart.guard_errors.total() == 1


def test_the_keys_of_columns_are_those_of_rows():
    chart = a_chart((COMPOSING, F.post.x > 2), (COMPOSING, F.post.x > 1), (SCROLLING, F.post.x > 0))
    posts = ArrayColumns({"x": np.array([0, 1, 2, 3])})
    fired = chart.fire_many(np.full(4, EVALUATING.code), "decides", posts, posts)
    alone = [chart.select(an_agent(), "decides", posts.row(i)) for i in range(4)]
    is_open = [isinstance(outcome, tuple) for outcome, _ in alone]
    assert is_open == (fired.option_indices >= 0).tolist() == [False, False, True, True]
    assert [key for outcome, key in alone if isinstance(outcome, tuple)] == fired.keys[
        fired.option_indices >= 0
    ].tolist()


class Scripted(SocialAgent):
    """Does what every agent does, by a script."""

    def step(self):
        super().step()


@pytest.mark.parametrize("asks", ["rule", "llm"])
@pytest.mark.parametrize("how", ["columns", "mesa", "scripts"])
def test_in_a_round_a_guard_is_asked_once_for_each_agent_that_decides(how, asks):
    asked, raised, acted = Counter(), Counter(), Counter()

    def guard(name, *, raises=False):
        def holds(agent, post):
            asked[name, agent.row, agent.model.round, agent.model.tick] += 1
            if raises:
                raised[agent.row, agent.model.round, agent.model.tick] += 1
                raise LookupError("no opinion")
            return True

        return holds

    def action(name):
        return lambda agent, post: acted.update([name])

    kept = [t for t in social_chart.transitions if t.trigger not in ("decides", "ignores")]
    own = [
        Transition("decides", EVALUATING, COMPOSING, guard("first", raises=True), action("first")),
        Transition("decides", EVALUATING, COMPOSING, guard("second"), action("second")),
        Transition("decides", EVALUATING, SCROLLING, guard("third"), action("third")),
    ]
    chart = Statechart(AgentState, [*kept, *own], IDLE, timeouts={RESTING: 2})
    more = {"reasoner": Reasoner(lambda prompt: '{"next_state": "composing"}')} if asks == "llm" else {}
    model = small(chart=chart, scheduler="mesa" if how == "mesa" else "columns", **LIVELY, **more)
    if how == "scripts":
        for row in range(0, 30, 3):
            Scripted(model, row)
    with pytest.warns(PrismWarning, match="the guard of evaluating --decides--> composing"):
        ran(model, 1)
    model.close()
    assert len(asked) > 30
    assert set(asked.values()) == {1}
    assert model.chart.guard_errors.total() == sum(raised.values()) == len(asked) // 3
    assert acted["first"] == 0
    assert acted["second"] > 0
