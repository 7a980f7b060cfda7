"""A quarter is a value: one that fails in the midst has not been, and a state that was kept stays as it was."""

import copy
import pickle
from dataclasses import replace
from functools import partial

import mesa
import pytest
from advised_nations import EconomyModelOf, adviser, assert_same_tables, assert_unchanged, everything

from prism_mesa.economy import agent as economy_agent
from prism_mesa.economy import model as economy_model
from prism_mesa.economy.agent import EconLLMAgent, RuleAgent
from prism_mesa.economy.macro import Macro
from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.observation import INDICATORS, NationState
from prism_mesa.economy.rules import RULES, Rule
from prism_mesa.economy.state import EconomyState
from prism_mesa.errors import LLMFailureException, PrismWarning

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


PLACES = {
    "what nations see": (economy_model, "observed", 0),
    "the prompt of the second nation": (EconLLMAgent, "_construct_prompt", 1),
    "the reading of what it says": (economy_agent, "read_policy", 1),
    "the last decision of a rule": (RuleAgent, "decide", 1),
    "the validator, of the third nation": (economy_model, "judge", 2),
    "the instruments": (economy_model, "with_policies", 0),
    "the economy": (Macro, "next_quarter", 0),
    "the new state": (EconomyState, "after", 0),
    "the rows": (economy_model, "rows_of", 0),
    "the first row": (EconomyModelOf, "write", 0),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("done", [0, 2])
def test_a_quarter_that_fails_in_the_midst_has_not_been_and_can_be_repeated(monkeypatch, place, done):
    owner, name, call = PLACES[place]
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


def test_a_rule_that_raises_for_one_nation_moves_no_other(monkeypatch):
    def broken(context, row):
        if row == 3:
            raise BugError(f"in quarter {context.world.quarter}")
        return RULES["nothing"].policy(context, row)

    model, plain = EconomyModel(), EconomyModel()
    model.step()
    plain.run_for(3)
    before = everything_but_rows(model)
    with monkeypatch.context() as patched:
        patched.setitem(RULES, "taylor", Rule("a rule of my own", broken))
        for _ in range(2):
            with pytest.raises(BugError, match="in quarter 1"):
                model.step()
            assert everything_but_rows(model) == before
    model.run_for(2)
    assert model.world.equals(plain.world)
    frames = [one.datacollector.get_agent_vars_dataframe() for one in (model, plain)]
    assert frames[0].equals(frames[1])


def everything_but_rows(model):
    collected = model.datacollector.get_agent_vars_dataframe().to_csv()
    return (model.state, model.time, model.steps, model.running, collected, dict(model.totals))


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


def test_a_reporter_of_ones_own_that_raises_comes_after_the_quarter_and_the_next_one_follows():
    model, broken = EconomyModel(), []

    def gap(of):
        if broken:
            raise BugError(broken.pop())
        return of.world.gap[0]

    model.datacollector = mesa.DataCollector(model_reporters={"gap": gap})
    model.step()
    broken.append("in the midst")
    with pytest.raises(BugError, match="midst"):
        model.step()
    assert (model.time, model.steps, model.world.quarter) == (2.0, 2, 2)
    model.step()
    assert (model.time, model.steps, model.world.quarter) == (3.0, 3, 3)


def test_a_reporter_that_raises_in_the_last_quarter_makes_no_other_one():
    model = EconomyModel(rounds=2)

    def gap(of):
        if of.world.quarter == 2:
            raise BugError("at the end")
        return of.world.gap[0]

    model.datacollector = mesa.DataCollector(model_reporters={"gap": gap})
    model.step()
    with pytest.raises(BugError, match="at the end"):
        model.step()
    assert (model.world.quarter, model.running) == (2, False)


def test_a_world_that_is_set_is_where_nations_stand():
    model, other = EconomyModel(economy_policy="nothing"), EconomyModel(economy_policy="nothing")
    other.world = replace(other.world, policy_rate=other.world.policy_rate + 1)
    assert other.nation_state(0).policy_rate == pytest.approx(model.nation_state(0).policy_rate + 1)
    model.step()
    other.step()
    assert other.seen["policy_rate"] == pytest.approx(model.seen["policy_rate"] + 1)


def test_a_nation_whose_own_decide_action_nobody_would_call_is_warned_of():
    with pytest.warns(PrismWarning, match="Stubborn.decide_action: a model calls decide"):
        type("Stubborn", (EconLLMAgent,), {"decide_action": lambda self, state: None})


def test_a_nation_that_fails_takes_back_no_nations_reasons_but_its_own_decision_keeps_them():
    def llm(prompt):
        if "advise Sweden" in prompt and "it is 2010Q1" in prompt:
            raise RuntimeError("gone")
        return adviser(prompt)

    with EconomyModelOf(llm, economy_nations=["Canada", "Sweden"]) as model:
        model.step()
        chains = [nation.reasoning_chain for nation in model.nations]
        assert [chain.turn for chain in chains] == [0, 0]
        assert chains == [one.chain for one in model.decided]
        with pytest.raises(LLMFailureException, match="gone"):
            model.step()
        assert [nation.reasoning_chain for nation in model.nations] == chains


def test_a_state_that_was_kept_is_not_moved_by_later_quarters():
    with EconomyModelOf(adviser, economy_nations=MIXED) as model:
        model.run_for(2)
        kept, before = model.state, copy.deepcopy(model.state)
        model.run_for(3)
        assert_same_state(kept, before)
        assert kept.world.quarter == 2
        assert [len(past) for past in kept.past] == [2, 0, 2, 0]
        assert [len(past) for past in model.state.past] == [4, 0, 4, 0]  # as many as a nation remembers


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
    assert list(model.seen) == list(INDICATORS)
    for row, state in enumerate(model.state.nation_states):
        assert (state.name, state.inflation_target) == (model.macro.names[row], model.macro.target[row])
        assert state.natural_unemployment == model.macro.natural[row]
        assert [getattr(state, name) for name in INDICATORS] == [model.seen[name][row] for name in INDICATORS]


def assert_same_state(state, other):
    assert state.world.equals(other.world)
    assert {name: list(of) for name, of in state.seen.items()} == {name: list(of) for name, of in other.seen.items()}
    for name in ("nation_states", "past", "decided", "totals", "read_by"):
        assert getattr(state, name) == getattr(other, name), name
