"""The reasoner while questions are out: collecting, interrupts, its thread, its ledger."""

import asyncio
import copy
import gc
import pickle
import signal
import threading
import time

import pytest
from asked_reasoners import C, S, Script, ask, says

from prism_mesa.errors import DataError
from prism_mesa.llm import AskedRow, FunctionClient, Ledger, answer_key
from prism_mesa.reasoner import Reasoner, question_prompt

# -- going on while questions are out ------------------------------------------------------------------


def collected(reasoner):
    found = []
    while came := reasoner.collect():
        found += came
    return found


def test_what_is_submitted_is_collected_once_whatever_the_order():
    async def llm(prompt):
        await asyncio.sleep(0.001 * (len(prompt) % 7))
        return says(S)

    asks = [ask("a" * (i + 1), agent=i) for i in range(30)]
    with Reasoner(llm) as reasoner:
        reasoner.submit(asks[:20])
        reasoner.submit(asks[20:])
        found = collected(reasoner)
        assert reasoner.collect() == []
    assert sorted(a.agent for a, _ in found) == list(range(30))
    assert {answer.choice for _, answer in found} == {S}


def test_who_submits_need_not_wait_for_the_slowest_answer():
    release = threading.Event()

    async def llm(prompt):
        while "slow" in prompt and not release.is_set():
            await asyncio.sleep(0.001)
        return says(S)

    with Reasoner(llm, max_concurrency=2) as reasoner:
        reasoner.submit([ask("slow"), ask("quick")])
        [(first, _)] = reasoner.collect()
        reasoner.submit([ask("second")])
        [(second, _)] = reasoner.collect()
        release.set()
        [(last, _)] = reasoner.collect()
    assert [a.question.persona.name for a in (first, second, last)] == ["quick", "second", "slow"]


def test_a_ledger_that_breaks_while_nobody_waits_is_told_to_whoever_waits_next(tmp_path):
    with Ledger(tmp_path / "d.sqlite") as ledger, Reasoner(Script(says(S)), ledger=ledger) as reasoner:
        ledger.close()
        reasoner.submit([ask()])
        time.sleep(0.05)  # nobody waits while it breaks
        with pytest.raises(DataError, match=r"cannot be written .*closed"):
            reasoner.collect()


# -- plain callers -----------------------------------------------------------------------------------


def test_plain_code_can_ask_inside_a_running_loop_as_in_jupyter():
    async def cell():
        with Reasoner(Script(says(S), says(C))) as reasoner:
            return [reasoner.answer([ask(name)])[0].choice for name in ("a", "b")]

    assert asyncio.run(cell()) == [S, C]


def test_close_ends_the_background_thread_and_the_reasoner_can_be_used_again():
    reasoner = Reasoner(Script(says(S), says(C)))
    before = threading.active_count()
    assert reasoner.answer([ask("a")])[0].choice is S
    assert threading.active_count() == before + 1
    reasoner.close()
    reasoner.close()
    assert threading.active_count() == before
    assert reasoner.answer([ask("b")])[0].choice is C
    reasoner.close()


@pytest.mark.slow
def test_a_forgotten_reasoner_leaves_no_thread_behind():
    before = set(threading.enumerate())
    Reasoner(Script(says(S))).answer([ask()])
    gc.collect()
    until = time.monotonic() + 5
    while set(threading.enumerate()) - before and time.monotonic() < until:
        time.sleep(0.005)
    assert set(threading.enumerate()) <= before


class Stuck:
    """An LLM that never answers, until it is told to."""

    def __init__(self):
        self.asked = threading.Event()
        self.answers = False

    async def __call__(self, prompt):
        self.asked.set()
        while not self.answers:
            await asyncio.sleep(0.001)
        return says(S)


@pytest.fixture
def interrupt_when():
    """Press Ctrl-C once an event is there, and again until Python has seen it.

    A signal that comes just before the main thread goes to sleep does not wake it.
    """
    seen = threading.Event()

    def interrupted(*_):
        if not seen.is_set():
            seen.set()
            raise KeyboardInterrupt

    def start(event):
        def press():
            event.wait(5)
            while not seen.is_set():
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                seen.wait(0.1)

        thread = threading.Thread(target=press)
        thread.start()
        return thread

    before = signal.signal(signal.SIGINT, interrupted)
    yield start
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_waiting_reaches_the_caller_and_close_then_ends(interrupt_when):
    before = set(threading.enumerate())
    llm = Stuck()
    reasoner = Reasoner(llm)
    sender = interrupt_when(llm.asked)
    with pytest.raises(KeyboardInterrupt):
        reasoner.answer([ask()])
    sender.join()
    reasoner.close()
    assert set(threading.enumerate()) <= before


def test_what_was_out_when_a_reasoner_was_closed_is_asked_anew():
    llm = Stuck()
    with Reasoner(llm) as reasoner:
        reasoner.submit([ask("a"), ask("b")])
        llm.asked.wait(5)
        reasoner.close()
        llm.answers = True
        assert reasoner.collect() == []
        assert reasoner.answer([ask("a")])[0].choice is S
        reasoner.submit([ask("b"), ask("c")])
        assert len(collected(reasoner)) == 2


def test_a_question_that_is_still_out_after_an_interrupt_is_waited_for_and_not_asked_twice(interrupt_when):
    llm = Stuck()
    with Reasoner(llm) as reasoner:
        sender = interrupt_when(llm.asked)
        with pytest.raises(KeyboardInterrupt):
            reasoner.answer([ask()])
        sender.join()
        llm.answers = True
        assert reasoner.answer([ask()])[0].choice is S
        assert reasoner.usage["calls"] == 1


# -- the ledger --------------------------------------------------------------------------------------


def test_answers_and_asks_are_recorded(tmp_path):
    replies = {"a": says(S), "b": "useless", "c": " " + says(C)}

    async def llm(prompt):
        name = prompt.split("You are <<< ")[1][0]
        await asyncio.sleep(0.01 if name == "a" else 0)
        return replies[name]

    asks = [ask(name, round=3, tick=2, agent=agent) for agent, name in enumerate("abca")]
    with Ledger(tmp_path / "d.sqlite") as ledger:
        reasoner = Reasoner(FunctionClient(llm, "toy"), ledger=ledger, attempts=1)
        answers = asyncio.run(reasoner.answer_all(asks))
        keys = [answer.key for answer in answers]
        decoding = {"answer": "choice"}
        assert keys == [answer_key(question_prompt(a.question), (C, S), "toy", "", decoding) for a in asks]
        assert sorted(ledger.asked(), key=lambda row: row.agent) == [
            AskedRow(3, 2, 0, keys[0], "llm", "", 1),
            AskedRow(3, 2, 1, keys[1], "fallback", "unparsable", 1),
            AskedRow(3, 2, 2, keys[2], "llm", "", 1),
            AskedRow(3, 2, 3, keys[0], "cache", "", 0),
        ]
        rows = {row.key: row for row in ledger.answers()}
    assert rows.keys() == {keys[0], keys[2]}
    first, second = rows[keys[0]], rows[keys[2]]
    assert (first.choice, first.raw, first.probabilities) == ("scrolling", says(S), "")
    assert (second.choice, second.raw) == ("composing", " " + says(C))
    assert (first.llm, first.options) == ("toy", '["composing", "scrolling"]')
    assert first.prompt == question_prompt(asks[0].question)


def plain_llm(prompt):
    return '{"next_state": "scrolling"}'


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda reasoner: pickle.loads(pickle.dumps(reasoner))], ids=["copy", "pickle"]
)
def test_a_reasoner_can_be_copied_after_it_was_asked_and_asked_in_both_places(copied):
    with Reasoner(plain_llm) as reasoner:
        [first] = reasoner.answer([ask()])
        with copied(reasoner) as other:
            [again] = other.answer([ask("Bo")])
            assert (first.choice, again.choice) == (S, S)
            assert other.usage["calls"] == 2
        assert reasoner.usage["calls"] == 1
