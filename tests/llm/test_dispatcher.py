"""The dispatcher: how many questions are out, and which are asked again."""

import asyncio
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.errors import OracleError
from prism_mesa.llm import AskedRow, FunctionClient, Ledger
from prism_mesa.reasoner import Reasoner
from prism_mesa.reasoner.question import Persona, PlacedQuestion, Question
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING
SCROLL = json.dumps({"next_state": "scrolling"})


def asks(n, **place):
    return [
        PlacedQuestion(Question(Persona(f"a{i}"), AgentState.EVALUATING, "decides", (C, S)), **({"agent": i} | place))
        for i in range(n)
    ]


def name_in(prompt):
    return prompt.split("You are <<< ")[1].split(" >>>")[0]


class SlowLLM:
    """An LLM that takes a while and knows how many questions were out at once, and for how long."""

    def __init__(self, seconds=lambda prompt: 0.002):
        self.seconds = seconds
        self.now = self.most = self.gaps = 0
        self.left = 0

    async def __call__(self, prompt):
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.seconds(prompt))
        self.now -= 1
        return SCROLL


# -- slots -------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(
    slots=st.integers(1, 8),
    n=st.integers(0, 25),
    waits=st.lists(st.integers(0, 3), min_size=1, max_size=7),
    fails=st.sets(st.integers(0, 24), max_size=19),
    limited=st.booleans(),
)
def test_no_more_than_max_concurrency_are_ever_out_and_no_fewer_if_there_are_as_many(slots, n, waits, fails, limited):
    llm = SlowLLM(lambda prompt: 0.001 * waits[int(name_in(prompt)[1:]) % len(waits)] + 0.0005)
    failed = set()

    async def once_failing(prompt):
        said = await llm(prompt)
        if int(name_in(prompt)[1:]) in fails - failed:
            failed.add(int(name_in(prompt)[1:]))
            return "useless"
        return said

    limit = {"max_calls": 10_000} if limited else {}
    with Reasoner(once_failing, max_concurrency=slots, backoff_s=0, **limit) as reasoner:
        answers = reasoner.answer(asks(n))
    assert {answer.choice for answer in answers} <= {S}
    assert llm.most == min(slots, n)
    assert reasoner.usage["calls"] == n + len(fails & set(range(n)))


def test_a_slot_is_filled_again_as_soon_as_it_is_free():
    """One slow question and many quick ones: these go through the other slot meanwhile."""
    order = []

    async def llm(prompt):
        name = name_in(prompt)
        while name == "a0" and len(order) < 9:
            await asyncio.sleep(0.001)
        order.append(name)
        return SCROLL

    with Reasoner(llm, max_concurrency=2) as reasoner:
        reasoner.answer(asks(10))
    assert order == [f"a{i}" for i in range(1, 10)] + ["a0"]


def test_a_call_that_waits_to_be_asked_again_holds_no_slot():
    asked = []

    async def llm(prompt):
        asked.append(name_in(prompt))
        if asked.count("a0") == 1 and name_in(prompt) == "a0":
            raise OracleError("busy", "the queue is full")
        return SCROLL

    with Reasoner(llm, max_concurrency=1, backoff_s=0.05) as reasoner:
        answers = reasoner.answer(asks(4))
    assert asked == ["a0", "a1", "a2", "a3", "a0"]
    assert [answer.attempts for answer in answers] == [2, 1, 1, 1]


# -- what is asked again -----------------------------------------------------------------------------

PASSING = [
    *((reason, OracleError(reason, "x")) for reason in ("refused", "partial")),
    ("http-429", OracleError("http-429", "x")),
    ("timeout", OracleError("timeout", "x")),
    ("timeout", TimeoutError()),
    ("empty", "  "),
    ("unparsable", "Sure!"),
    ("invalid-state", json.dumps({"next_state": "resting"})),
]
LASTING = [
    *((reason, OracleError(reason, "x")) for reason in ("http-404", "http-307")),
    *((reason, OracleError(reason, "x")) for reason in ("too-long", "refused-request")),
    ("ValueError", ValueError("my own bug")),
    ("KeyError", KeyError("x")),
]


def one_after_another(*replies):
    left = list(replies)

    def llm(prompt):
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return llm


@pytest.mark.parametrize(("reason", "reply"), PASSING)
def test_what_may_pass_is_asked_again(reason, reply, tmp_path):
    [ask] = asks(1, round=2, tick=3)
    with (
        Ledger(tmp_path / "d.sqlite") as ledger,
        Reasoner(one_after_another(reply, SCROLL), ledger=ledger, backoff_s=0) as reasoner,
    ):
        [answer] = reasoner.answer([ask])
        assert ledger.asked() == [AskedRow(2, 3, 0, answer.key, "llm", "", 2)]
    assert (answer.choice, answer.source, answer.reason, answer.attempts) == (S, "llm", "", 2)


@pytest.mark.parametrize("limit", [{}, {"max_calls": 99}])
@pytest.mark.parametrize(("reason", "reply"), PASSING)
def test_what_does_not_pass_is_a_fallback_after_the_last_attempt_with_the_last_reason(reason, reply, limit, tmp_path):
    llm = one_after_another("Sure!", OracleError("busy", "x"), reply)
    with Ledger(tmp_path / "d.sqlite") as ledger, Reasoner(llm, ledger=ledger, backoff_s=0, **limit) as reasoner:
        [answer] = reasoner.answer(asks(1))
        [row] = ledger.asked()
        assert ledger.answers() == []
    assert (answer.choice, answer.source, answer.reason, answer.attempts) == (C, "fallback", reason, 3)
    assert (row.source, row.reason, row.attempts) == ("fallback", reason, 3)
    assert reasoner.reasons == {reason: 1}
    assert reasoner.usage["calls"] == 3


@pytest.mark.parametrize("limit", [{}, {"max_calls": 99}])
@pytest.mark.parametrize(("reason", "reply"), LASTING)
def test_what_will_not_pass_is_asked_once(reason, reply, limit, tmp_path):
    with (
        Ledger(tmp_path / "d.sqlite") as ledger,
        Reasoner(one_after_another(reply, SCROLL), ledger=ledger, **limit) as reasoner,
    ):
        [answer] = reasoner.answer(asks(1))
        [row] = ledger.asked()
    assert (answer.source, answer.reason, answer.attempts) == ("fallback", reason, 1)
    assert (row.reason, row.attempts) == (reason, 1)
    assert reasoner.usage["calls"] == 1


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_a_question_is_asked_as_often_as_the_parameter_says(attempts):
    count = Counter()

    def llm(prompt):
        count[name_in(prompt)] += 1
        return "useless"

    with Reasoner(llm, attempts=attempts) as reasoner:
        answers = reasoner.answer(asks(3))
    assert count == {f"a{i}": attempts for i in range(3)}
    assert [answer.attempts for answer in answers] == [attempts] * 3


class Seeded(FunctionClient):
    """Keeps the seed offsets that it was asked with, and answers as its function says."""

    def __init__(self, function):
        super().__init__(function, "seeded")
        self.offsets = []

    async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
        self.offsets.append(seed_offset)
        return await super().chat(prompt, schema, seed_offset, top_logprobs)


@pytest.mark.parametrize("limit", [{}, {"max_calls": 99}])
@pytest.mark.parametrize("failure", ["Sure!", OracleError("busy", "x")])
def test_each_attempt_has_the_next_seed(failure, limit):
    client = Seeded(one_after_another(failure, failure, SCROLL))
    with Reasoner(client, backoff_s=0, **limit) as reasoner:
        [answer] = reasoner.answer(asks(1))
    assert client.offsets == [0, 1, 2]
    assert (answer.choice, answer.attempts) == (S, 3)


def test_the_wait_before_another_attempt_doubles_and_is_spread_by_a_keyed_jitter(monkeypatch):
    """The pauses are those that the dispatcher asks its loop for."""
    slept = []
    sleep = asyncio.sleep

    async def noted(seconds, *more):
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    for _ in range(2):
        with Reasoner(one_after_another(*[OracleError("busy", "x")] * 4), attempts=4, backoff_s=2.0) as reasoner:
            reasoner.answer(asks(1))
    first, again = slept[:3], slept[3:]
    assert first == again
    assert [low <= pause <= 3 * low for low, pause in zip((1, 2, 4), first, strict=True)] == [True] * 3
    assert len({pause / 2**i for i, pause in enumerate(first)}) == 3
