"""A quarter is a value: one that fails in the midst has not been, and a state that was kept stays as it was."""

import pickle
from dataclasses import replace
from functools import partial

import pytest
from advised_nations import EconomyModelOf, adviser, assert_same_tables, assert_unchanged, everything

from prism_mesa.economy import agent as economy_agent
from prism_mesa.economy import model as economy_model
from prism_mesa.economy.agent import EconLLMAgent
from prism_mesa.economy.macro import Macro
from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.observation import INDICATORS, NationState
from prism_mesa.economy.state import EconomyState
from prism_mesa.errors import PrismWarning

MIXED = [
    "United States",
    {"name": "Canada", "policy": "random"},
    "Australia",
    {"name": "Sweden", "policy": "taylor"},
]


class BugError(Exception):
    """What goes wrong."""


def failing_at(call, function):
    """Return a function that raises at one of its calls, from 0, and else does what another does."""
    calls = iter(range(10**6))

    def fails(*args, **more):
        if next(calls) == call:
            raise BugError("in the midst")
        return function(*args, **more)

    return fails


FIELD_ROWS = {
    "the prompt of the second nation": (EconLLMAgent, "_construct_prompt", 1),
    "the reading of what it says": (economy_agent, "read_policy", 1),
    "the last decision of a rule": (economy_model, "propose_by_rule", 1),
    "the validator, of the third nation": (economy_model, "judge", 2),
    "the economy": (Macro, "next_quarter", 0),
    "the new state": (EconomyState, "next", 0),
    "the rows": (economy_model, "quarter_rows", 0),
    "the first row": (EconomyModelOf, "write", 0),
}


@pytest.mark.parametrize("place", FIELD_ROWS)
@pytest.mark.parametrize("done", [0, 2])
def test_a_quarter_that_fails_in_the_midst_has_not_been_and_can_be_repeated(monkeypatch, place, done):
    owner, name, call = FIELD_ROWS[place]
    with (
        EconomyModelOf(adviser, economy_nations=MIXED) as model,
        EconomyModelOf(adviser, economy_nations=MIXED) as unbroken,
    ):
        if done:
            model.run_for(done)
        before, state = everything(model), model.state
        with monkeypatch.context() as broken:
            broken.setattr(owner, name, failing_at(call, getattr(owner, name)))
            with pytest.raises(BugError, match="in the midst"):
                model.step()
        assert model.state is state
        assert_unchanged(model, before)
        model.run_for(2)
        unbroken.run_for(done + 2)
        assert (model.time, model.steps) == (done + 2.0, done + 2)
        assert_same_tables(model, unbroken)
        assert (model.totals, model.read_by) == (unbroken.totals, unbroken.read_by)
        assert [nation.past for nation in model.nations] == [nation.past for nation in unbroken.nations]


def test_a_step_that_fails_leaves_the_events_of_others_and_the_clock_goes_on_to_them(monkeypatch):
    model, heard = EconomyModel(), []
    note = partial(heard.append, "now")
    model.schedule_event(note, at=3.5)
    model.run_for(1)
    with monkeypatch.context() as broken:
        broken.setattr(Macro, "next_quarter", failing_at(1, Macro.next_quarter))
        with pytest.raises(BugError, match="midst"):
            model.run_for(3)
    assert (model.time, model.steps, model.world.quarter, heard) == (2.0, 2, 2, [])
    model.run_until(4)
    assert (model.time, model.steps, model.world.quarter, heard) == (4.0, 4, 4, ["now"])


def test_a_world_that_is_set_is_where_nations_stand():
    model, other = EconomyModel(economy_policy="nothing"), EconomyModel(economy_policy="nothing")
    other.world = replace(other.world, policy_rate=other.world.policy_rate + 1)
    assert other.nation_state(0).policy_rate == pytest.approx(model.nation_state(0).policy_rate + 1)
    model.step()
    other.step()
    assert other.indicators["policy_rate"] == pytest.approx(model.indicators["policy_rate"] + 1)


def test_a_nation_whose_own_decide_action_nobody_would_call_is_warned_of():
    with pytest.warns(PrismWarning, match="Stubborn.decide_action"):
        type("Stubborn", (EconLLMAgent,), {"decide_action": lambda self, state: None})


def test_a_state_can_be_saved_and_a_branch_from_it_goes_on_as_the_run_does():
    with EconomyModelOf(adviser, economy_nations=MIXED) as model, EconomyModelOf(adviser, economy_nations=MIXED) as one:
        model.run_for(2)
        one._set_state(pickle.loads(pickle.dumps(model.state)))
        one._set_clock(2)
        assert_same_state(one.state, model.state)
        model.run_for(2)
        one.run_for(2)
        assert (one.time, one.steps) == (4.0, 4)
        assert_same_state(one.state, model.state)
        one._set_state(EconomyState.first(one.macro))
        assert {(nation.past, nation.reasoning_chain) for nation in one.nations} == {((), None)}


def test_what_is_told_of_a_nation_is_every_indicator_in_order_and_what_it_aims_at():
    model = EconomyModel(economy_nations=["Sweden", "Canada"])
    aims = ["inflation_target", "natural_unemployment"]
    assert list(NationState.model_fields) == ["name", *INDICATORS, *aims]
    assert list(model.indicators) == list(INDICATORS)
    for row, state in enumerate(model.state.nation_states):
        assert (state.name, state.inflation_target) == (model.macro.names[row], model.macro.inflation_target[row])
        assert state.natural_unemployment == model.macro.natural_unemployment[row]
        assert [getattr(state, name) for name in INDICATORS] == [model.indicators[name][row] for name in INDICATORS]


def assert_same_state(state, other):
    assert state.world.equals(other.world)
    assert {name: list(of) for name, of in state.indicators.items()} == {
        name: list(of) for name, of in other.indicators.items()
    }
    for name in ("nation_states", "past", "decisions", "totals", "read_by"):
        assert getattr(state, name) == getattr(other, name), name
