"""Charts over your own enums: states, codes, columns, checks, pictures, pickling and queries follow the chart."""

import pickle
from copy import deepcopy
from enum import Enum, StrEnum
from types import SimpleNamespace

import numpy as np
import pytest

from prism_mesa import F, Statechart, StateTransition, Transition, agents_in_state, state_distribution
from prism_mesa.errors import ChartError
from prism_mesa.statechart import ArrayColumns, draw_chart, export_agent, mermaid


class Health(Enum):
    S = "susceptible"
    I = "infected"  # noqa: E741
    R = "recovered"


class Mood(StrEnum):
    CALM = "calm"
    S = "susceptible"


CATCH = Transition("meets", Health.S, Health.I, guard=F.agent.exposure > 2)
SIR = Statechart(Health, [CATCH, Transition("heals", Health.I, Health.R)], initial=Health.S)


def person(state, **fields):
    return SimpleNamespace(state=state, ticks_in_state=3, state_history=[], max_history_depth=5, **fields)


def test_a_chart_fires_between_the_states_of_any_enum_of_strings():
    ill = person(Health.S, exposure=3)
    assert SIR.fire(ill, "meets") is Health.I
    assert (ill.state, ill.ticks_in_state, ill.state_history[0].to_state) == (Health.I, 0, Health.I)
    assert SIR.fire(person(Health.S, exposure=1), "meets") is None
    assert export_agent(ill)["state_history"][0]["from_state"] == "susceptible"


def test_names_alone_make_an_enum_that_pickles_by_its_values():
    chart = Statechart(["browsing", "buying"], [Transition("chooses", "browsing", "buying")], "browsing")
    customer = person(chart.initial)
    assert chart.fire(customer, "chooses") == "buying"
    assert [state.value for state in chart.members] == ["browsing", "buying"]
    for copied in (pickle.loads(pickle.dumps(chart)), deepcopy(chart)):
        assert copied.initial is chart.initial
        assert copied.fire(person(copied.initial), "chooses") is customer.state
    assert Statechart({"buying", "browsing"}, [], "buying").members == tuple(sorted(chart.members))


def test_codes_and_columns_follow_the_order_of_the_enum():
    assert [SIR.codes[state] for state in Health] == [0, 1, 2]
    result = SIR.fire_many(
        np.array([0, 0, 1]), "meets", ArrayColumns({"exposure": np.array([1, 5, 9])}), ArrayColumns({})
    )
    assert result.transition_indices.tolist() == [-1, 0, -1]


def test_expressions_compare_the_state_with_members_and_values_alike():
    for guard in (F.agent.state == Health.S, F.agent.state == "susceptible"):
        chart = Statechart(Health, [Transition("meets", Health.S, Health.I, guard)], Health.S)
        assert chart.fire(person(Health.S), "meets") is Health.I
    assert not (F.agent.mood == Health.S)(SimpleNamespace(mood=Mood.CALM))
    assert (F.agent.mood == Health.S)(SimpleNamespace(mood=Mood.S))


def test_a_context_is_read_as_context_or_post_and_the_model_from_the_agent():
    guard = (F.context.price < F.agent.budget) & (F.model.is_open == True)  # noqa: E712
    agent = SimpleNamespace(budget=5, model=SimpleNamespace(is_open=True))
    assert guard(agent, {"price": 3}) is True
    assert guard(agent, {"price": 7}) is False
    assert (F.context.price < 4)(agent, {"price": 3}) == (F.post.price < 4)(agent, {"price": 3})
    assert str(F.context.price < 4) == "context.price < 4"
    columns = ArrayColumns({"budget": np.array([2, 5])}, model=agent.model)
    chart = Statechart(["in", "out"], [Transition("pays", "in", "out", guard)], "in")
    result = chart.fire_many(np.zeros(2, np.uint8), "pays", columns, ArrayColumns({"price": np.array([3, 3])}))
    assert result.transition_indices.tolist() == [-1, 0]
    assert not result.row_by_row_guards
    assert not [finding for finding in chart.check() if finding.kind == "shadowed"]


def test_queries_count_the_states_of_the_agents_enum():
    people = [person(Health.I), person(Health.I), person(Health.R)]
    assert state_distribution(people) == {Health.S: 0, Health.I: 2, Health.R: 1}
    assert agents_in_state("infected", people) == agents_in_state(Health.I, people) == 2
    with pytest.raises(ChartError, match="'ill'"):
        agents_in_state("ill", people)


def test_the_check_and_the_pictures_name_the_charts_own_states():
    assert {finding.where for finding in SIR.check() if finding.kind == "dead-end"} == {"recovered"}
    assert "susceptible --> infected: meets" in mermaid(SIR)
    odd = Statechart(["in the shop", "end"], [Transition("leaves", "in the shop", "end")], "in the shop")
    lines = mermaid(odd).splitlines()
    assert '    state "in the shop" as state_0' in lines
    assert "    state_0 --> state_1: leaves" in lines
    written = {text.get_text() for axes in draw_chart(odd).axes for text in axes.texts}
    assert {"in the shop", "end"} <= written


def test_two_states_of_a_chart_have_two_colors_and_an_enum_may_choose_them():
    assert len(set(SIR.colors.values())) == 3

    class Light(Enum):
        ON = "on"
        OFF = "off"

        @property
        def color(self):
            return {"on": "#ffff00", "off": "#000000"}[self.value]

    assert list(Statechart(Light, [], Light.OFF).colors.values()) == ["#ffff00", "#000000"]


class Twice(Enum):
    A = "same"
    B = "same"  # noqa: PIE796


class Numbers(Enum):
    A = 1


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: Statechart(Health, [Transition("t", Mood.CALM, "susceptible")], Health.S), "t"),
        (lambda: Statechart(Health, [Transition("t", Mood.S, Mood.CALM)], Health.S), "Health.S"),
        (lambda: Statechart(Health, [], Mood.CALM), "initial: 'calm'"),
        (lambda: Statechart([f"s{i}" for i in range(300)], [], "s0"), "300 states"),
        (lambda: Statechart(Twice, [], Twice.A), "B.*A.*'same'"),
        (lambda: Statechart(["a", "b", "a"], [], "a"), "two states are 'a'"),
        (lambda: Statechart(Numbers, [], Numbers.A), '"a"'),
        (lambda: Statechart("browsing", [], "browsing"), "one string"),
        (lambda: Statechart([], [], "browsing"), "0 states"),
        (lambda: Statechart(["a", ""], [], "a"), "'' is not a state"),
        (lambda: Statechart(["a", "mro"], [], "a"), "mro"),
        (lambda: Transition("t", "a", 3), "3 is not a state"),
        (lambda: StateTransition("a", "a", "t", None), "'a' to itself"),
    ],
)
def test_states_that_cannot_be_are_refused_with_the_place(make, names):
    with pytest.raises(ChartError, match=names):
        make()


def test_255_states_fit_a_chart():
    names = [f"s{i}" for i in range(255)]
    chart = Statechart(names, [Transition("next", "s253", "s254")], "s0")
    result = chart.fire_many(np.array([253, 254], np.uint8), "next", ArrayColumns({}), ArrayColumns({}))
    assert result.transition_indices.tolist() == [0, -1]
