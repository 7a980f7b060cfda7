"""The reasoner: who is asked, how often, what stands in for an answer, and what is recorded."""

import asyncio
import copy
import gc
import json
import logging
import pickle
import re
import signal
import threading
import time
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from prism_mesa.domain import Post
from prism_mesa.errors import ConfigError, DataError, OracleError
from prism_mesa.llm import AskedRow, Completion, FunctionClient, Ledger, answer_key
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner, RuleReasoner, question_prompt
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING
POST = Post(text="Rain again", author_name="Bo")
ANN = SimpleNamespace(name="Ann", interests=["art"], personality="Calm.")


def says(state):
    return json.dumps({"next_state": state.value})


def ask(name="Ann", *, options=(C, S), post=POST, **place):
    return PlacedQuestion(Question(Persona(name), AgentState.EVALUATING, "decides", options, post), **place)


def decide(reasoner, options=(C, S), agent=ANN, context=POST):
    return asyncio.run(reasoner.decide(agent, AgentState.EVALUATING, "decides", list(options), context))


class Script:
    """An LLM that says one thing after another and remembers what it was asked."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.prompts = []

    def __call__(self, prompt):
        self.prompts.append(prompt)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


# -- one agent ---------------------------------------------------------------------------------------


def test_a_plain_function_can_play_the_llm():
    assert decide(Reasoner(lambda prompt: says(S) if "Rain" in prompt else says(C))) is S


def test_an_async_function_can_play_the_llm():
    async def llm(prompt):
        await asyncio.sleep(0)
        return says(S)

    assert decide(Reasoner(llm)) is S


def test_the_client_may_be_given_by_name_as_in_the_contract():
    assert decide(Reasoner(client=FunctionClient(lambda prompt: says(S)))) is S


def test_the_llm_is_told_the_agent_the_situation_and_the_post():
    llm = Script(says(C))
    decide(Reasoner(llm))
    for told in (
        "You are <<< Ann >>>",
        "interests: <<< art >>>",
        "personality: <<< Calm. >>>",
        '"evaluating"',
        "Rain again",
    ):
        assert told in llm.prompts[0]


def test_no_options_are_an_error():
    with pytest.raises(ValueError, match="no options for 'decides'"):
        decide(Reasoner(Script()), options=())


def test_a_single_option_is_taken_without_asking():
    reasoner = Reasoner(Script())
    assert decide(reasoner, options=[S]) is S
    assert reasoner.counts == Counter()


FAILURES = [
    ("Sure, let me scroll!", "unparsable"),
    ('{"next_state": "resting"}', "invalid-state"),
    ("   ", "empty"),
    (None, "empty"),
    (TimeoutError(), "timeout"),
    (OracleError("busy", "the queue is full"), "busy"),
    (RuntimeError("my own bug"), "RuntimeError"),
]


@pytest.mark.parametrize(("reply", "reason"), FAILURES)
def test_whatever_goes_wrong_is_logged_counted_by_reason_and_ends_in_the_first_option(reply, reason, caplog):
    reasoner = Reasoner(Script(reply), attempts=1)
    assert decide(reasoner) is C
    [record] = caplog.records
    assert (record.name, record.levelno) == ("prism_mesa.reasoner", logging.WARNING)
    assert f"Ann, decides in evaluating: fallback 'first' ({reason}" in record.message
    assert reasoner.counts == {"fallback": 1}
    assert reasoner.reasons == {reason: 1}


def test_only_an_unforeseen_error_is_logged_with_its_trace(caplog):
    decide(Reasoner(Script(RuntimeError("my own bug"))))
    decide(Reasoner(Script("no JSON"), attempts=1))
    assert [record.exc_info is not None for record in caplog.records] == [True, False]


def test_the_fallback_stay_leaves_the_agent_where_it_is():
    reasoner = Reasoner(Script("useless", "useless"), fallback="stay", attempts=1)
    assert decide(reasoner) is AgentState.EVALUATING
    [answer] = asyncio.run(reasoner.answer_all([ask()]))
    assert (answer.choice, answer.source, answer.reason) == (None, "fallback", "unparsable")


def test_the_fallback_rule_uses_the_asks_own_draw():
    reasoner = Reasoner(Script("useless"), fallback="rule", attempts=1)
    asks = [ask(draw=0.01), ask(draw=0.99)]
    assert [answer.choice for answer in asyncio.run(reasoner.answer_all(asks))] == [C, S]
    assert [answer.choice for answer in RuleReasoner().answer(asks)] == [C, S]
    assert reasoner.counts == {"fallback": 2}


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"fallback": "frist"}, "reasoner: fallback: Input should be 'first', 'rule' or 'stay', not 'frist'"),
        ({"max_concurrency": 0}, "reasoner: max_concurrency: Input should be greater than or equal to 1, not 0"),
        ({"fallbak": "first"}, "Reasoner: no parameter 'fallbak'. Did you mean 'fallback'?"),
    ],
)
def test_wrong_settings_are_refused(wrong, complaint):
    with pytest.raises(ConfigError, match=re.escape(complaint)):
        Reasoner(Script(), **wrong)


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(TypeError, match="cannot be asked: give a client"):
        Reasoner("llama3.2")


def test_a_client_of_ones_own_needs_a_name_its_decoding_and_chat():
    class Parrot:
        name = "parrot"
        decoding = {"temperature": 0}  # noqa: RUF012

        async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
            assert schema["properties"]["next_state"]["enum"] == ["composing", "scrolling"]
            return Completion(says(S), 10, 5)

    reasoner = Reasoner(Parrot())
    assert decide(reasoner) is S
    assert reasoner.label == "parrot"


# -- a batch -----------------------------------------------------------------------------------------


def test_answers_come_in_the_order_of_asks_whichever_arrives_first():
    async def llm(prompt):
        late = "You are <<< a0 >>>" in prompt
        await asyncio.sleep(0.05 if late else 0)
        return says(S if late else C)

    answers = asyncio.run(Reasoner(llm).answer_all([ask(f"a{i}") for i in range(4)]))
    assert [answer.choice for answer in answers] == [S, C, C, C]


def test_equal_questions_are_asked_once_and_the_first_counts_as_llm():
    llm = Script(says(S), says(C))
    reasoner = Reasoner(llm)
    answers = asyncio.run(reasoner.answer_all([ask("a", agent=1), ask("b"), ask("a", agent=2, draw=0.9)]))
    assert [(a.choice, a.source, a.attempts) for a in answers] == [(S, "llm", 1), (C, "llm", 1), (S, "cache", 0)]
    assert len(llm.prompts) == 2


def test_a_later_batch_shares_the_first_answer():
    llm = Script(says(S))
    reasoner = Reasoner(llm)
    first, second = (asyncio.run(reasoner.answer_all([ask(tick=tick)]))[0] for tick in (1, 2))
    assert (first.source, second.source) == ("llm", "cache")
    assert first.choice is second.choice is S
    assert reasoner.counts == {"llm": 1, "cache": 1}


def test_a_fallback_is_shared_within_its_batch_and_never_kept():
    reasoner = Reasoner(Script("useless", says(S)), attempts=1)
    failed = asyncio.run(reasoner.answer_all([ask(), ask()]))
    assert [(a.choice, a.source, a.attempts) for a in failed] == [(C, "fallback", 1), (C, "fallback", 0)]
    assert asyncio.run(reasoner.answer_all([ask()]))[0].choice is S
    assert reasoner.counts == {"fallback": 2, "llm": 1}


def test_within_a_round_a_failure_is_shared_by_later_ticks_and_the_next_round_asks_again():
    llm = Script("useless", says(S))
    with Reasoner(llm, attempts=1) as reasoner:
        places = [(1, 0, 4), (1, 3, 5), (2, 0, 4), (2, 1, 5)]
        answers = [reasoner.answer([ask(round=r, tick=t, agent=a)])[0] for r, t, a in places]
    assert [(a.source, a.reason, a.attempts) for a in answers] == [
        ("fallback", "unparsable", 1),
        ("fallback", "unparsable", 0),
        ("llm", "", 1),
        ("cache", "", 0),
    ]
    assert reasoner.reasons == {"unparsable": 2}


def test_a_useless_answer_is_asked_again_and_a_later_good_one_counts():
    reasoner = Reasoner(Script("Sure!", '{"next_state": "resting"}', says(S)))
    [answer] = asyncio.run(reasoner.answer_all([ask()]))
    assert (answer.choice, answer.source, answer.attempts) == (S, "llm", 3)
    assert reasoner.usage["calls"] == 3


def test_one_failure_does_not_touch_its_neighbours():
    def llm(prompt):
        if "You are <<< a1 >>>" in prompt:
            raise OracleError("refused", "nobody there")
        return says(S)

    answers = asyncio.run(Reasoner(llm, backoff_s=0).answer_all([ask(f"a{i}") for i in range(3)]))
    assert [(a.choice, a.source, a.reason, a.attempts) for a in answers] == [
        (S, "llm", "", 1),
        (C, "fallback", "refused", 3),
        (S, "llm", "", 1),
    ]


@pytest.mark.parametrize("limit", [1, 3])
def test_at_most_max_concurrency_questions_are_out_at_once(limit):
    out = Counter()

    async def llm(prompt):
        out["now"] += 1
        out["most"] = max(out["most"], out["now"])
        await asyncio.sleep(0.002)
        out["now"] -= 1
        return says(S)

    async def both(reasoner):
        decided = (reasoner.decide(SimpleNamespace(name=f"d{i}"), S, "x", [C, S]) for i in range(5))
        await asyncio.gather(reasoner.answer_all([ask(f"a{i}") for i in range(10)]), *decided)

    asyncio.run(both(Reasoner(llm, max_concurrency=limit)))
    assert out["most"] == limit


def test_questions_that_differ_in_anything_told_are_asked_apart():
    question = ask().question
    others = [
        replace(question, trigger="timeout"),
        replace(question, state=S),
        replace(question, options=(S, C)),
        replace(question, post=replace(POST, likes=1)),
        replace(question, history=("idle -> scrolling (feed_ready)",)),
    ]
    llm = Script(*[says(S)] * 6)
    asyncio.run(Reasoner(llm).answer_all([PlacedQuestion(q) for q in [question, *others]]))
    assert len(set(llm.prompts)) == 6


def test_relevance_is_not_told_so_it_makes_no_other_question():
    llm = Script(says(S))
    posts = [replace(POST, relevance=relevance, post_id=i) for i, relevance in enumerate((0.45, 0.55))]
    asyncio.run(Reasoner(llm).answer_all([ask(post=post) for post in posts]))
    assert len(llm.prompts) == 1


def test_an_empty_batch_is_no_trouble():
    assert asyncio.run(Reasoner(Script()).answer_all([])) == []


def test_a_single_option_in_a_batch_is_taken_and_not_counted():
    reasoner = Reasoner(Script(says(S)))
    answers = asyncio.run(reasoner.answer_all([ask(options=(C,)), ask()]))
    assert [answer.choice for answer in answers] == [C, S]
    assert reasoner.counts == {"llm": 1}


def test_a_question_without_options_is_an_error_in_a_batch_too():
    with pytest.raises(ValueError, match="no options for 'decides' in"):
        asyncio.run(Reasoner(Script()).answer_all([ask(options=())]))


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


def test_nothing_submitted_is_nothing_to_wait_for():
    with Reasoner(Script()) as reasoner:
        assert reasoner.collect() == []


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


def test_known_answers_and_single_options_are_collected_without_asking():
    with Reasoner(Script(says(S))) as reasoner:
        reasoner.answer([ask()])
        reasoner.submit([ask(tick=2), ask(options=(C,))])
        assert [(a.choice, a.source) for _, a in reasoner.collect()] == [(S, "cache"), (C, "rule")]


def test_a_bad_question_among_good_ones_leaves_nothing_to_wait_for_in_vain():
    with Reasoner(Script(says(S))) as reasoner:
        with pytest.raises(ValueError, match="no options"):
            reasoner.submit([ask("a"), ask(options=()), ask("b")])
        assert [a.question.persona.name for a, _ in collected(reasoner)] == ["a"]


def test_a_ledger_that_breaks_while_nobody_waits_is_told_to_whoever_waits_next(tmp_path):
    with Ledger(tmp_path / "d.sqlite") as ledger, Reasoner(Script(says(S)), ledger=ledger) as reasoner:
        ledger.close()
        reasoner.submit([ask()])
        time.sleep(0.05)  # nobody waits while it breaks
        with pytest.raises(DataError, match=r"cannot be written .*closed"):
            reasoner.collect()


# -- plain callers -----------------------------------------------------------------------------------


def test_plain_code_can_ask_without_a_loop():
    with Reasoner(Script(says(S))) as reasoner:
        assert reasoner.answer([ask()])[0].choice is S


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


def test_tokens_and_latency_of_an_answer_are_recorded(tmp_path):
    class Counted(FunctionClient):
        async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
            return Completion(says(S), 120, 7, 33.5)

    with Ledger(tmp_path / "d.sqlite") as ledger:
        asyncio.run(Reasoner(Counted(str), ledger=ledger).answer_all([ask()]))
        [row] = ledger.answers()
    assert (row.prompt_tokens, row.completion_tokens, row.latency_ms) == (120, 7, 33.5)


def test_the_ledger_can_be_written_from_the_background_thread(tmp_path):
    with Ledger(tmp_path / "d.sqlite") as ledger, Reasoner(Script(says(S)), ledger=ledger) as reasoner:
        reasoner.answer([ask()])
        assert len(ledger.answers()) == 1


def plain_llm(prompt):
    return '{"next_state": "scrolling"}'


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda asker: pickle.loads(pickle.dumps(asker))], ids=["copy", "pickle"]
)
def test_a_reasoner_can_be_copied_after_it_was_asked_and_asked_in_both_places(copied):
    with Reasoner(plain_llm) as reasoner:
        [first] = reasoner.answer([ask()])
        with copied(reasoner) as other:
            [again] = other.answer([ask("Bo")])
            assert (first.choice, again.choice) == (S, S)
            assert other.usage["calls"] == 2
        assert reasoner.usage["calls"] == 1
