"""Limits: never exceeded, whom they are spent on, what they leave over, and shares of them."""

import asyncio
import json
import math
import threading
import time
from collections import Counter
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.domain import Post
from prism_mesa.errors import OracleError
from prism_mesa.llm import Completion, Ledger
from prism_mesa.llm.budget import Budget
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner, RuleReasoner
from prism_mesa.reasoner.params import ReasonerParams
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING
MOST_SAID = 20
FREE = ("refused", "busy", "http-400")


def ask(name, *, relevance=0.5, low=0.4, high=0.6, **place):
    persona = Persona(name, low=low, high=high)
    return PlacedQuestion(
        Question(persona, AgentState.EVALUATING, "decides", (C, S), Post(text="x", relevance=relevance)), **place
    )


def dice(*parts):
    """Return a number below 2**16 that depends on nothing else."""
    return int.from_bytes(sha256(repr(parts).encode()).digest()[:2])


class Till:
    """An LLM that counts what it really took, by round, which is the first word of who asks.

    Fails as `fate` says of (name, attempt), answers after `wait` of them.
    """

    name = "till"

    def __init__(self, fate=lambda *_: "", wait=lambda *_: 0.0):
        self.decoding = {"max_tokens": MOST_SAID}
        self.fate, self.wait = fate, wait
        self.calls, self.tokens = Counter(), Counter()
        self.asked = []

    async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
        name = prompt.split("You are <<< ")[1].split(" >>>")[0]
        of_round = name.split()[0]
        self.calls[of_round] += 1
        self.asked.append(name)
        read, said = dice("read", name) % len(prompt.encode()) + 1, dice("said", name) % MOST_SAID + 1
        fate = self.fate(name, seed_offset)
        if fate not in FREE:
            self.tokens[of_round] += read + said
        await asyncio.sleep(self.wait(name, seed_offset))
        if fate and fate != "useless":
            raise OracleError(fate, "on purpose")
        chosen = (C, S)[dice("choice", name) % 2].value
        return Completion("Sure!" if fate else json.dumps({"next_state": chosen}), read, said)


PAID = ("timeout", "dropped", "useless")


def fates(seed, share):
    """Let `share` of 8 of all attempts fail, in any of the ways."""

    def fate(name, attempt):
        roll = dice(seed, name, attempt)
        return (*PAID, *FREE)[roll // 8 % 6] if roll % 8 < share else ""

    return fate


def waits(seed):
    return lambda name, attempt: dice("wait", seed, name, attempt) % 4 * 0.0004


def told(answers):
    return [(a.choice, "answered" if a.source in ("llm", "cache") else a.source, a.reason) for a in answers]


LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "max_calls": st.integers(0, 20),
        "max_tokens": st.integers(0, 20_000),
        "max_calls_per_round": st.integers(0, 10),
        "max_tokens_per_round": st.integers(0, 10_000),
    },
)


# -- it is never exceeded ------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    limits=LIMITS,
    n=st.integers(0, 12),
    slots=st.integers(1, 8),
    attempts=st.integers(1, 3),
    seed=st.integers(0, 10**6),
    share=st.integers(0, 7),
)
def test_calls_and_tokens_never_pass_their_limits_in_a_run_and_in_a_round(limits, n, slots, attempts, seed, share):
    till = Till(fates(seed, share), waits(seed))
    with Reasoner(till, max_concurrency=slots, attempts=attempts, backoff_s=0, **limits) as reasoner:
        for round_ in range(2):
            reasoner.answer([ask(f"r{round_} a{i}", round=round_, agent=i) for i in range(n)])
    assert till.calls.total() <= limits.get("max_calls", math.inf)
    assert till.tokens.total() <= limits.get("max_tokens", math.inf)
    assert max(till.calls.values(), default=0) <= limits.get("max_calls_per_round", math.inf)
    assert max(till.tokens.values(), default=0) <= limits.get("max_tokens_per_round", math.inf)
    assert reasoner.usage["calls"] == till.calls.total()
    assert sum(reasoner.counts.values()) == 2 * n


steps = st.lists(
    st.tuples(st.sampled_from(["take", "settle", "round", "wait"]), st.integers(0, 50), st.integers(0, 50)), max_size=40
)


@given(limits=LIMITS.map(lambda limits: {name: value % 200 for name, value in limits.items()}), steps=steps)
def test_whatever_is_taken_and_given_back_the_sum_stays_within_the_limits(limits, steps):
    budget = Budget(ReasonerParams(**limits), clock=lambda: 0.0)
    out, spent, rounds = [], Counter(), [Counter()]
    for what, a, b in steps:
        if what == "take" and budget.reserve(a):
            out.append(a)
            for count in (spent, rounds[-1]):
                count.update(calls=1, tokens=a)
        elif what == "settle" and out:
            aside = out.pop()
            used = min(b, aside)
            budget.release(aside, used)
            for count in (spent, rounds[-1]):
                count["tokens"] += used - aside
        elif what == "round" and not out:
            rounds.append(Counter())
            budget.begin_round(len(rounds))
        for name in ("calls", "tokens"):
            assert spent[name] <= limits.get(f"max_{name}", math.inf)
            assert all(one[name] <= limits.get(f"max_{name}_per_round", math.inf) for one in rounds)


# -- whom it is spent on ---------------------------------------------------------------------------------


def by_ticks(reasoner, seed, n, ticks):
    """Let n agents ask once a tick, each again as soon as it has its answer; half of all questions are shared."""

    def question(agent, tick):
        shared = dice("shared", seed, agent, tick) % 2
        name = f"r0 any{dice('which', seed, agent, tick) % 4} t{tick}" if shared else f"r0 a{agent} t{tick}"
        relevance = dice("relevance", seed, agent, tick) / 2**16
        return ask(name, relevance=relevance, low=0.0, high=1.0, tick=tick, agent=agent, followers=dice(seed, agent))

    found = {}
    reasoner.submit([question(agent, 0) for agent in range(n)])
    while came := reasoner.collect():
        found |= {(one.agent, one.tick): answer for one, answer in came}
        after = [question(one.agent, one.tick + 1) for one, _ in came if one.tick + 1 < ticks]
        reasoner.submit(after)
    return [found[key] for key in sorted(found)]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    limits=LIMITS,
    n=st.integers(1, 6),
    slots=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    seed=st.integers(0, 10**6),
    share=st.integers(0, 6),
    spend_on=st.sampled_from(["open", "followed"]),
)
def test_who_gets_it_is_the_same_whatever_the_latencies_and_the_slots(limits, n, slots, seed, share, spend_on):
    results = []
    for i, n_slots in enumerate(slots):
        till = Till(fates(seed, share), waits(i))
        given_ = {"max_concurrency": n_slots, "backoff_s": 0, "spend_on": spend_on, **limits}
        with Reasoner(till, **given_) as reasoner:
            results.append((told(by_ticks(reasoner, seed, n, 3)), sorted(till.asked), till.tokens))
    assert results[0] == results[1]


def answered(reasoner, asks):
    """Return the agents that an LLM answered, and that an answer is left over for."""
    answers = reasoner.answer(asks)
    got = {one.agent for one, answer in zip(asks, answers, strict=True) if answer.source in ("llm", "cache")}
    return got, {one.agent for one in asks} - got


@pytest.mark.parametrize("slots", [1, 8])
def test_the_most_open_choices_come_first(slots):
    bands = {0: (0.4, 0.6, 0.59), 1: (0.2, 0.8, 0.55), 2: (0.4, 0.6, 0.51), 3: (0.0, 0.4, 0.2), 4: (0.4, 0.6, 0.41)}
    asks = [
        ask(f"a{i}", low=low, high=high, relevance=relevance, agent=i) for i, (low, high, relevance) in bands.items()
    ]
    off_the_middle = {0: 0.9, 1: 0.05 / 0.3, 2: 0.1, 3: 0.0, 4: 0.9}
    for limit in range(6):
        with Reasoner(Till(), spend_on="open", max_calls=limit, max_concurrency=slots) as reasoner:
            assert answered(reasoner, asks)[0] == set(sorted(off_the_middle, key=off_the_middle.get)[:limit])


def test_who_has_to_be_asked_again_comes_before_who_is_less_urgent():
    till = Till(lambda name, attempt: "busy" if (name, attempt) == ("a0", 0) else "")
    asks = [ask(f"a{i}", agent=i, followers=9 - i) for i in range(4)]
    with Reasoner(till, spend_on="followed", max_calls=1, backoff_s=0) as reasoner:
        [first, *_] = reasoner.answer(asks)
    assert (first.source, first.reason, first.attempts) == ("fallback", "busy", 1)
    with Reasoner(till, spend_on="followed", max_tokens=1300, backoff_s=0, max_concurrency=1) as reasoner:
        [first, *_] = reasoner.answer(asks)
    assert (first.source, first.attempts) == ("llm", 2)


# -- what it leaves over -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fallback", ["first", "rule", "stay"])
def test_what_is_left_over_is_answered_as_fallback_says_and_is_no_fallback(fallback, tmp_path, caplog):
    asks = [ask(f"a{i}", agent=i, round=1, draw=0.05 + 0.1 * i, relevance=0.52) for i in range(9)]
    stands_in = {"first": [C] * 9, "stay": [None] * 9, "rule": [a.choice for a in RuleReasoner().answer(asks)]}[
        fallback
    ]
    with (
        Ledger(tmp_path / "d.sqlite") as ledger,
        Reasoner(Till(), ledger=ledger, max_calls=2, fallback=fallback) as reasoner,
    ):
        answers = reasoner.answer(asks)
        rows = sorted(ledger.asked(), key=lambda row: row.agent)
        assert len(ledger.answers()) == 2
    assert [(a.choice, a.source, a.reason, a.attempts) for a in answers[2:]] == [
        (choice, "budget", "budget", 0) for choice in stands_in[2:]
    ]
    assert [(row.source, row.reason) for row in rows] == [("llm", "")] * 2 + [("budget", "budget")] * 7
    assert reasoner.counts == {"llm": 2, "budget": 7}
    assert (reasoner.counts["fallback"], reasoner.reasons) == (0, {})
    assert caplog.records == []


def test_the_limits_of_a_round_begin_anew_in_the_next_one_and_those_of_the_run_do_not():
    till = Till()
    with Reasoner(till, max_calls_per_round=2, max_calls=5) as reasoner:
        for round_ in range(4):
            reasoner.answer([ask(f"r{round_} a{i}", round=round_, tick=1, agent=i) for i in range(3)])
            reasoner.answer([ask(f"r{round_} b{i}", round=round_, tick=2, agent=i) for i in range(3)])
    assert till.calls == {"r0": 2, "r1": 2, "r2": 1}
    assert reasoner.counts == {"llm": 5, "budget": 19}


@pytest.mark.parametrize(("fate", "costs"), [*((fate, False) for fate in FREE), *((fate, True) for fate in PAID)])
def test_a_refusal_costs_the_budget_no_tokens_and_another_failure_does(fate, costs):
    with Reasoner(Till(lambda *_: fate), attempts=1, max_tokens=6000, max_fallback_share=1) as reasoner:
        reasoner.answer([ask("a", agent=1)])
        _, tokens, _ = reasoner.budget.snapshot()["run"]
    assert (tokens < 6000) == costs


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
    assert budget.reserve(1)
    now[0] = 2.0
    assert budget.reserve(1)
    now[0] = 3.0
    budget.release(1, 1)
    now[0] = 4.0
    budget.release(1, 1)
    now[0] = 400.0
    assert budget.seconds_left == 2.0
    budget.begin_round(1)
    assert budget.seconds_left == 6.0
    assert budget.reserve(1)
    now[0] = 500.0
    assert budget.seconds_left == 0.0
    assert not budget.reserve(1)


def test_of_what_is_left_a_share_can_be_lent_and_the_rest_comes_back():
    budget = Budget(ReasonerParams(kind="rule", max_calls=100, max_calls_per_round=7, max_seconds=8))
    budget.begin_round(0)
    with budget.limited_to(0, 0.5, 0.5):
        given = 0
        while budget.reserve(10):
            budget.release(10, 10)
            given += 1
        assert given == 3
        assert budget.seconds_left <= 4
    given = 0
    while budget.reserve(10):
        budget.release(10, 10)
        given += 1
    assert given == 4


def test_seconds_that_were_not_lent_come_back_less_those_that_passed():
    now = [0.0]
    budget = Budget(ReasonerParams(max_seconds=8, max_seconds_per_round=6), clock=lambda: now[0])
    with budget.limited_to(0, 0.5, 0.25):
        assert budget.seconds_left == 1.5
        assert budget.reserve(1)
        now[0] = 1.0
        budget.release(1, 1)
        assert budget.seconds_left == 0.5
    assert budget.seconds_left == 5.0
    budget.begin_round(1)
    assert budget.seconds_left == 6.0
    assert budget.snapshot()["run"] == [None, None, 7.0]
