"""Charts of users' own, and functions that play the oracle."""

import pytest
from lively_worlds import COMPOSING, EVALUATING, IDLE, LIVELY, RESTING, SCROLLING, moves, rounds_of
from worlds import named, ran, small

from prism_mesa.errors import ConfigError, PrismWarning
from prism_mesa.reasoner import Reasoner
from prism_mesa.social.behavior import social_chart
from prism_mesa.statechart import AgentState, Statechart, Transition

# charts of users' own


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("no.such.module:chart", "cannot import 'no.such.module'"),
        (
            "prism_mesa.social.behavior:RESTING",
            r"'RESTING' is not a Statechart \(charts in .*: social_chart, viral_chart\)",
        ),
    ],
)
def test_a_chart_that_is_not_there_is_a_config_error(where, message):
    with pytest.raises(ConfigError, match=rf"statechart\.chart: {where}: {message}"):
        small(statechart_chart=where)


def test_a_guard_that_raises_counts_as_false_and_is_counted_unless_strict():
    def breaks(agent, post):
        raise ZeroDivisionError("no ground")

    transitions = [*social_chart.transitions, Transition("feed_ready", IDLE, RESTING, guard=breaks)]
    where = named(Statechart(AgentState, transitions, IDLE), "breaking")
    model = small(statechart_chart=where, **LIVELY)
    with pytest.warns(PrismWarning, match=r"breaks\(\)\] raised each of the 30 times"):
        ran(model, 2)
    assert {row["to_state"] for row in moves(model, trigger="feed_ready")} == {"scrolling"}
    assert list(model.chart.guard_errors.values()) == [60]
    assert model.row_by_row_guards == {"idle --feed_ready--> resting [breaks()]"}
    with pytest.raises(ZeroDivisionError, match="no ground"):
        ran(small(statechart_chart=where, statechart_strict=True, **LIVELY), 1)


# the oracle, played by a function


def says(state):
    return f'{{"next_state": "{state.value}"}}'


def test_a_function_can_be_the_llm():
    prompts = []

    def keen(prompt):
        prompts.append(prompt)
        return says(COMPOSING)

    with Reasoner(keen) as reasoner:
        model = ran(small(reasoner=reasoner, agents_band=0.4, **LIVELY))
    asked = [row for row in moves(model, trigger="decides") if row["open"]]
    assert {row["to_state"] for row in asked} == {"composing"}
    assert model.totals["open"] == len(asked) == sum(model.sources.values())
    assert model.sources["llm"] == len(prompts) == len(set(prompts))
    names = [agent.name for agent in model.agents]
    assert all(any(name in prompt for name in names) for prompt in prompts)


@pytest.mark.parametrize(("fallback", "goes_to"), [("first", {"composing"}), ("stay", set())])
def test_an_answer_that_never_comes_is_a_fallback_and_counted(fallback, goes_to, caplog):
    def silent(prompt):
        raise TimeoutError("nobody there")

    with Reasoner(silent, fallback=fallback, backoff_s=0) as reasoner:
        model = ran(small(reasoner=reasoner, agents_band=0.4, **LIVELY), 2)
    assert model.totals["fallback"] == model.totals["open"] == model.sources["fallback"] > 0
    opened = [row for row in moves(model, trigger="decides") if row["open"]]
    assert {row["to_state"] for row in opened} == goes_to
    assert len(opened) == (model.totals["open"] if goes_to else 0)  # who stays makes no transition: docs/tables.md
    assert rounds_of(model)["fallback"].sum() == model.totals["fallback"]
    assert "fallback" in caplog.text


def test_who_stays_is_asked_again_until_it_times_out():
    def silent(prompt):
        raise TimeoutError("nobody there")

    with Reasoner(silent, fallback="stay", backoff_s=0) as reasoner:
        model = small(reasoner=reasoner)
        agent = model.agent(0)
        agent.state, agent.engagement_threshold, agent.timeout_threshold = EVALUATING, 0.5, 3
        told = []
        for _ in range(3):
            agent.step()
            told.append((agent.state, agent.ticks_in_state, model.counts["open"]))
    assert told == [(EVALUATING, 1, 1), (EVALUATING, 2, 2), (SCROLLING, 0, 2)]
