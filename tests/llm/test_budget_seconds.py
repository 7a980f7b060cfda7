"""Limits of seconds, and limits that are lent."""

import asyncio
import threading
import time

import pytest
from budget_reasoners import C, ask

from prism_mesa.llm.budget import Budget
from prism_mesa.reasoner import Reasoner
from prism_mesa.reasoner.params import ReasonerParams

# -- seconds -----------------------------------------------------------------------------------------------


class Endless:
    """An LLM that never answers."""

    def __init__(self):
        self.asked = 0
        self.cut = threading.Event()

    async def __call__(self, prompt):
        self.asked += 1
        try:
            await asyncio.sleep(60)
        finally:
            self.cut.set()


@pytest.mark.parametrize("limit", ["max_seconds", "max_seconds_per_round"])
def test_what_is_out_when_the_time_is_over_is_cut_and_nobody_is_asked_any_more(limit):
    llm = Endless()
    with Reasoner(llm, max_concurrency=2, **{limit: 0.05}) as reasoner:
        began = time.monotonic()
        answers = reasoner.answer([ask(f"a{i}", agent=i) for i in range(6)])
        assert time.monotonic() - began < 5
        assert llm.cut.is_set()
    assert [(a.choice, a.source, a.reason, a.attempts) for a in answers] == [(C, "budget", "budget", 1)] * 2 + [
        (C, "budget", "budget", 0)
    ] * 4
    assert llm.asked == reasoner.usage["calls"] == 2
    assert reasoner.counts["fallback"] == 0


def test_seconds_of_a_round_begin_anew_and_seconds_of_a_run_do_not():
    for limit, asked in (("max_seconds_per_round", 2), ("max_seconds", 1)):
        llm = Endless()
        with Reasoner(llm, **{limit: 0.03}) as reasoner:
            for round_ in range(2):
                reasoner.answer([ask("a", round=round_, agent=0)])
        assert llm.asked == asked


def test_only_seconds_in_which_a_call_is_out_count_and_calls_at_the_same_time_count_once():
    now = [0.0]
    budget = Budget(ReasonerParams(max_seconds=10, max_seconds_per_round=6), clock=lambda: now[0])
    assert budget.set_aside(1)
    now[0] = 2.0
    assert budget.set_aside(1)
    now[0] = 3.0
    budget.settle(1, 1)
    now[0] = 4.0
    budget.settle(1, 1)
    now[0] = 400.0
    assert budget.seconds_left == 2.0
    budget.at_round(1)
    assert budget.seconds_left == 6.0
    assert budget.set_aside(1)
    now[0] = 500.0
    assert budget.seconds_left == 0.0
    assert not budget.set_aside(1)


def test_of_what_is_left_a_share_can_be_lent_and_the_rest_comes_back():
    budget = Budget(ReasonerParams(kind="rule", max_calls=100, max_calls_per_round=7, max_seconds=8))
    budget.at_round(0)
    with budget.limited_to(0, 0.5, 0.5):
        given = 0
        while budget.set_aside(10):
            budget.settle(10, 10)
            given += 1
        assert given == 3
        assert budget.seconds_left <= 4
    given = 0
    while budget.set_aside(10):
        budget.settle(10, 10)
        given += 1
    assert given == 4


def test_seconds_that_were_not_lent_come_back_less_those_that_passed():
    now = [0.0]
    budget = Budget(ReasonerParams(max_seconds=8, max_seconds_per_round=6), clock=lambda: now[0])
    with budget.limited_to(0, 0.5, 0.25):
        assert budget.seconds_left == 1.5
        assert budget.set_aside(1)
        now[0] = 1.0
        budget.settle(1, 1)
        assert budget.seconds_left == 0.5
    assert budget.seconds_left == 5.0
    budget.at_round(1)
    assert budget.seconds_left == 6.0
    assert budget.snapshot()["run"] == [None, None, 7.0]
