"""Whole models advised by an LLM: failures, order, and what nations see."""

import asyncio
import random

import numpy as np
import pytest
from advised_nations import EconomyModelOf, advised, adviser, assert_same_tables, assert_unchanged, everything, says

from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.observation import INDICATORS
from prism_mesa.errors import LLMFailureException

# -- whole models --------------------------------------------------------------------------------------


def test_whether_an_action_is_valid_is_said_by_the_validator_only():
    def llm(prompt):
        fine = advised(prompt) == "Canada"
        return says("Raise the policy rate by 0.5 points" if fine else "Raise the policy rate by 20 points")

    with EconomyModelOf(llm) as model:
        model.step()
        assert {one.action.agent_name for one in model.decisions if one.action.validated} == {"Canada"}
        assert model.totals == {"accepted": 1, "rejected": 4}
        moved = model.world.policy_rate - model.macro.start().policy_rate
    assert np.allclose(moved, [0, 0, 0.5, 0, 0])


class Broken:
    """`adviser`, except that while `fault` is set one nation gets that instead."""

    def __init__(self, nation):
        self.nation = nation
        self.fault = None

    def __call__(self, prompt):
        if self.fault is None or advised(prompt) != self.nation:
            return adviser(prompt)
        if isinstance(self.fault, Exception):
            raise self.fault
        return self.fault


FAULTS = [
    ("RuntimeError", 1, RuntimeError("my own bug")),
    ("irrelevant", 2, says("Plant more flowers")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("reason", "attempts", "fault"), FAULTS)
def test_a_step_in_which_an_llm_fails_has_not_been_and_the_next_one_goes_on_as_if_it_had_not(reason, attempts, fault):
    llm = Broken("Canada")
    with EconomyModelOf(llm) as model, EconomyModelOf(adviser) as unbroken:
        for quarter in range(4):
            if quarter in (0, 2):
                llm.fault = fault
                assert_a_step_fails_and_changes_nothing(model, reason, attempts)
                assert_a_step_fails_and_changes_nothing(model, reason, attempts)
                llm.fault = None
            model.step()
            unbroken.step()
        assert (model.time, model.steps) == (4.0, 4)
        assert_same_tables(model, unbroken)
        assert (model.totals, model.read_by) == (unbroken.totals, unbroken.read_by)


def assert_a_step_fails_and_changes_nothing(model, reason, attempts):
    before = everything(model)
    with pytest.raises(LLMFailureException, match=reason) as caught:
        model.step()
    assert (caught.value.reason, caught.value.attempts, caught.value.component) == (reason, attempts, "agent")
    assert_unchanged(model, before)


def test_a_reading_that_nobody_answers_ends_the_step_too():
    def llm(prompt):
        if "The sentence is by Canada" in prompt:
            raise ConnectionError("gone")
        return says("Lowr intrest rates by 50 basis points, my friends") if "You advise" in prompt else "{}"

    with EconomyModelOf(llm) as model:
        before = everything(model)["world"]
        with pytest.raises(LLMFailureException, match="gone") as caught:
            model.step()
        assert (caught.value.component, model.steps) == ("reading", 0)
        assert model.world.equals(before)


def test_the_first_failure_by_row_is_the_one_that_is_told_whichever_comes_first():
    async def llm(prompt):
        nation = advised(prompt)
        if nation in ("Canada", "Sweden"):
            await asyncio.sleep(0.02 if nation == "Canada" else 0)
            raise RuntimeError(f"for {nation}")
        return adviser(prompt)

    with EconomyModelOf(llm) as model, pytest.raises(LLMFailureException, match="for Canada"):
        model.step()


def test_the_order_in_which_answers_arrive_does_not_matter():
    def late_by(seed):
        drawn = random.Random(seed)

        async def llm(prompt):
            await asyncio.sleep(drawn.random() * 0.01)
            return adviser(prompt)

        return llm

    with EconomyModelOf(adviser) as plain, EconomyModelOf(late_by(1)) as one, EconomyModelOf(late_by(2)) as other:
        for _ in range(4):
            for model in (plain, one, other):
                model.step()
        assert len(plain.totals) > 1
        assert_same_tables(one, plain)
        assert_same_tables(other, plain)


# -- what nations see ----------------------------------------------------------------------------------


HOLD = '{"action": "Keep interest rates unchanged", "reasoning": "Wait.", "confidence": 0.5}'
PUBLIC = {"policy_rate", "lending_rate", "exports", "imports", "trade_balance", "exchange_rate"}


def seen_after(quarters, **params):
    """Return what nations see after some quarters, and the truth: indicator -> shape (n,)."""
    model = EconomyModel(economy_policy="llm", llm=lambda prompt: HOLD, **params)
    for _ in range(quarters):
        model.step()
    model.close()
    return model.observe(), model.indicators


def errors_of(states, truth):
    """Return indicator -> what observers see less what is, shape (observers, observed)."""
    return {
        name: np.array([[getattr(seen, name) for seen in state.agents.values()] for state in states]) - truth[name]
        for name in INDICATORS
    }


def test_a_nation_sees_itself_exactly_and_others_with_an_error_of_its_own():
    states, truth = seen_after(2)
    others = ~np.eye(len(states), dtype=bool)
    for name, error in errors_of(states, truth).items():
        assert np.all(np.diag(error) == 0)
        assert np.all(error[others] != 0) == (name not in PUBLIC)
        if name not in PUBLIC:
            assert len(np.unique(error[others])) == others.sum()


def test_errors_are_keyed_by_the_seed_and_new_in_each_quarter():
    one, again, other, later = (
        errors_of(*seen_after(quarters, seed=seed))["inflation"] for seed, quarters in ((1, 2), (1, 2), (2, 2), (1, 3))
    )
    others = ~np.eye(len(one), dtype=bool)
    assert np.array_equal(one, again)
    assert np.all(one[others] != other[others])
    assert np.all(one[others] != later[others])
