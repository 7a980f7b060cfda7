"""Guards and actions that raise: the agent is as before, and a note on the error says whose, when and on which line."""

import pytest
from fired_agents import COMPOSING, EVALUATING, NOON, SCROLLING, a_chart, an_agent, as_it_was, broken
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.errors import AgentError, OwnCodeError
from prism_mesa.statechart import F, StateTransition
from prism_mesa.statechart.users_code import is_user_code_error

BROKEN_LINE = f"fired_agents.py:{broken.__code__.co_firstlineno + 1} in broken"


def fired(chart, agent, kind=RuntimeError):
    """Return what firing raises, which is of this kind."""
    with pytest.raises(kind) as caught:
        chart.fire(agent, "decides")
    return caught.value


def test_what_an_action_raises_keeps_its_type_and_has_a_note_on_agent_state_trigger_and_line():
    error = fired(a_chart((COMPOSING, None, broken)), an_agent(agent_id="ann", moment="round 3, tick 2"))
    assert str(error) == "no such luck"
    assert error.__notes__ == [
        "agent ann in round 3, tick 2, evaluating on decides: "
        f"the action of evaluating --decides--> composing, {BROKEN_LINE}"
    ]


@pytest.mark.parametrize(("raised", "again"), [(ValueError("no"), True), (OSError("not there"), False)])
def test_what_may_pass_is_not_told_as_a_fault_of_the_code(raised, again):
    def acts(agent, post):
        raise raised

    assert is_user_code_error(fired(a_chart((COMPOSING, None, acts)), an_agent(), type(raised))) == again
    with pytest.raises(OwnCodeError) as caught:
        raise OwnCodeError("my_feeds:liked: raised") from raised
    assert is_user_code_error(caught.value) == again
    assert not is_user_code_error(raised.__class__("somewhere else"))


def test_what_a_guard_of_a_strict_chart_raises_has_the_same_note():
    error = fired(a_chart((COMPOSING, broken, None), strict=True), an_agent(unique_id=7))
    [note] = error.__notes__
    assert note == (
        f"agent 7, evaluating on decides: the guard of evaluating --decides--> composing [broken()], {BROKEN_LINE}"
    )


def test_where_a_guard_raised_first_goes_into_a_snapshot():
    chart, other = (a_chart((COMPOSING, broken, None), (SCROLLING, None)) for _ in range(2))
    chart.fire(an_agent(agent_id="ann", moment="round 3, tick 2"), "decides")
    other.restore(chart.snapshot())
    other.fire(an_agent(agent_id="bob", moment="round 4, tick 2"), "decides")
    [failing] = other.failing_guards()
    assert (failing.n_errors, failing.first_location) == (2, f"agent ann in round 3, tick 2, {BROKEN_LINE}")


def test_the_line_is_the_users_own_where_something_raises_that_it_calls():
    def asks_too_much(agent, post):
        int("ten")
        sorted([1, "a"])  # never reached

    def lies(agent, post):
        raise AgentError("0 is no name")

    for action, kind in ((asks_too_much, ValueError), (lies, AgentError)):
        [note] = fired(a_chart((COMPOSING, None, action)), an_agent(), kind).__notes__
        line = action.__code__.co_firstlineno + 1
        assert note.endswith(f"--decides--> composing, test_users_code.py:{line} in {action.__name__}")
        assert note.startswith("an agent (SimpleNamespace), evaluating on decides")


def test_the_line_is_that_of_a_helper_of_the_users_but_not_of_a_library():
    def helped(agent, post):
        return broken(agent, post)

    def parsed(agent, post):
        import json

        json.loads("{")

    [of_helper] = fired(a_chart((COMPOSING, None, helped)), an_agent()).__notes__
    [of_library] = fired(a_chart((COMPOSING, None, parsed)), an_agent(), ValueError).__notes__
    assert of_helper.endswith(BROKEN_LINE)
    assert of_library.endswith(f"test_users_code.py:{parsed.__code__.co_firstlineno + 3} in parsed")


def test_an_expression_that_raises_has_no_line_but_says_what_it_is():
    chart = a_chart((COMPOSING, 1 / F.agent.luck > 2, None), strict=True)
    [note] = fired(chart, an_agent(luck=0), ZeroDivisionError).__notes__
    assert note.endswith("the guard of evaluating --decides--> composing [1 / agent.luck > 2]")


@given(
    state=st.sampled_from([EVALUATING, COMPOSING, SCROLLING]),
    ticks=st.integers(0, 9),
    names=st.lists(st.sampled_from(["mood", "luck", "state_history", "max_history_depth"]), unique=True),
)
def test_whatever_an_action_changed_of_its_agent_before_it_raised_is_as_before(state, ticks, names):
    def changes(agent, post):
        agent.state, agent.ticks_in_state = state, ticks
        agent.state_history.append("nonsense")
        agent.new = 1
        for name in names:
            delattr(agent, name)
        raise KeyboardInterrupt

    agent = an_agent(mood=4, luck=7)
    fired(a_chart((COMPOSING, None, changes)), agent, KeyboardInterrupt)
    assert as_it_was(agent)
    assert agent == an_agent(mood=4, luck=7)


def test_an_agent_without_attributes_of_its_own_gets_its_state_back():
    class Slotted:
        __slots__ = ("max_history_depth", "state", "state_history", "ticks_in_state")

        def __init__(self):
            self.state, self.ticks_in_state, self.max_history_depth = EVALUATING, 3, 5
            self.state_history = [StateTransition(SCROLLING, EVALUATING, "sees_post", NOON)]

    def changes(agent, post):
        agent.state, agent.ticks_in_state = COMPOSING, 9
        agent.state_history.clear()
        raise OSError("gone")

    agent = Slotted()
    fired(a_chart((COMPOSING, None, changes)), agent, OSError)
    assert (agent.state, agent.ticks_in_state, len(agent.state_history)) == (EVALUATING, 3, 1)
