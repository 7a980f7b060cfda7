"""The reasoner: who is asked, how often, what stands in for an answer, and what is recorded."""

import asyncio
import gc
import json
import logging
import threading
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.reasoner import (
    Ask,
    AskedRow,
    Completion,
    FunctionClient,
    Ledger,
    Persona,
    Question,
    Reasoner,
    RuleReasoner,
    answer_key,
    question_prompt,
)
from prism_mesa.records import Post
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING
POST = Post(text="Rain again", author_name="Bo")
ANN = SimpleNamespace(name="Ann", interests=["art"], personality="Calm.")


def says(state):
    return json.dumps({"next_state": state.value})


def ask(name="Ann", *, options=(C, S), post=POST, **place):
    return Ask(Question(Persona(name), AgentState.EVALUATING, "decides", options, post), **place)


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
    for told in ("You are Ann", "Your interests: art", "Your personality: Calm.", '"evaluating"', "Rain again"):
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
    reasoner = Reasoner(Script(reply))
    assert decide(reasoner) is C
    [record] = caplog.records
    assert (record.name, record.levelno) == ("prism_mesa.reasoner", logging.WARNING)
    assert f"Ann, decides in evaluating: fallback 'first' ({reason}" in record.message
    assert reasoner.counts == {"fallback": 1}
    assert reasoner.reasons == {reason: 1}
    assert reasoner.fallback_share == 1


def test_only_an_unforeseen_error_is_logged_with_its_trace(caplog):
    decide(Reasoner(Script(RuntimeError("my own bug"))))
    decide(Reasoner(Script("no JSON")))
    assert [record.exc_info is not None for record in caplog.records] == [True, False]


def test_the_fallback_stay_leaves_the_agent_where_it_is():
    reasoner = Reasoner(Script("useless", "useless"), fallback="stay")
    assert decide(reasoner) is AgentState.EVALUATING
    [answer] = asyncio.run(reasoner.answer_all([ask()]))
    assert (answer.choice, answer.source, answer.reason) == (None, "fallback", "unparsable")


def test_the_fallback_rule_uses_the_asks_own_draw():
    reasoner = Reasoner(Script("useless"), fallback="rule")
    asks = [ask(draw=0.01), ask(draw=0.99)]
    assert [answer.choice for answer in asyncio.run(reasoner.answer_all(asks))] == [C, S]
    assert [answer.choice for answer in RuleReasoner().answer(asks)] == [C, S]
    assert reasoner.counts == {"fallback": 2}


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"fallback": "frist"}, "'frist' is none of first, rule, stay. Did you mean 'first'?"),
        ({"max_concurrency": 0}, "max_concurrency: 0 is below 1"),
    ],
)
def test_wrong_settings_are_refused(wrong, complaint):
    with pytest.raises(ConfigError, match=complaint.replace("?", r"\?")):
        Reasoner(Script(), **wrong)


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(TypeError, match="cannot be asked: give a client"):
        Reasoner("llama3.2")


def test_a_client_of_ones_own_needs_a_name_its_decoding_and_chat():
    class Parrot:
        name = "parrot"
        decoding = {"temperature": 0}  # noqa: RUF012

        async def chat(self, prompt, schema=None, seed_offset=0):
            assert schema["properties"]["next_state"]["enum"] == ["composing", "scrolling"]
            return Completion(says(S), 10, 5)

    reasoner = Reasoner(Parrot())
    assert decide(reasoner) is S
    assert reasoner.label == "parrot"


# -- a batch -----------------------------------------------------------------------------------------


def test_answers_come_in_the_order_of_asks_whichever_arrives_first():
    async def llm(prompt):
        late = "You are a0," in prompt
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
    reasoner = Reasoner(Script("useless", says(S)))
    failed = asyncio.run(reasoner.answer_all([ask(), ask()]))
    assert [(a.choice, a.source, a.attempts) for a in failed] == [(C, "fallback", 1), (C, "fallback", 0)]
    assert asyncio.run(reasoner.answer_all([ask()]))[0].choice is S
    assert reasoner.counts == {"fallback": 2, "llm": 1}
    assert reasoner.fallback_share == pytest.approx(2 / 3)


def test_one_failure_does_not_touch_its_neighbours():
    def llm(prompt):
        if "You are a1," in prompt:
            raise OracleError("refused", "nobody there")
        return says(S)

    answers = asyncio.run(Reasoner(llm).answer_all([ask(f"a{i}") for i in range(3)]))
    assert [(a.choice, a.source, a.reason) for a in answers] == [
        (S, "llm", ""),
        (C, "fallback", "refused"),
        (S, "llm", ""),
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
    asyncio.run(Reasoner(llm).answer_all([Ask(q) for q in [question, *others]]))
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
    before = threading.active_count()
    Reasoner(Script(says(S))).answer([ask()])
    gc.collect()
    assert threading.active_count() == before


def test_an_interrupt_while_waiting_reaches_the_caller():
    def llm(prompt):
        raise KeyboardInterrupt("stop")

    reasoner = Reasoner(llm)
    with pytest.raises(KeyboardInterrupt, match="stop"):
        asyncio.run(reasoner.answer_all([ask()]))


# -- the ledger --------------------------------------------------------------------------------------


def test_answers_and_asks_are_recorded_in_the_order_of_asks(tmp_path):
    replies = {"a": says(S), "b": "useless", "c": " " + says(C)}

    async def llm(prompt):
        name = prompt.split("You are ")[1][0]
        await asyncio.sleep(0.01 if name == "a" else 0)
        return replies[name]

    asks = [ask(name, round=3, tick=2, agent=agent) for agent, name in enumerate("abca")]
    with Ledger(tmp_path / "d.sqlite") as ledger:
        reasoner = Reasoner(FunctionClient(llm, "toy"), ledger=ledger)
        answers = asyncio.run(reasoner.answer_all(asks))
        keys = [answer.key for answer in answers]
        assert keys == [answer_key(question_prompt(a.question), (C, S), "toy", "", {}) for a in asks]
        assert ledger.asked() == [
            AskedRow(3, 2, 0, keys[0], "llm", "", 1),
            AskedRow(3, 2, 1, keys[1], "fallback", "unparsable", 1),
            AskedRow(3, 2, 2, keys[2], "llm", "", 1),
            AskedRow(3, 2, 3, keys[0], "cache", "", 0),
        ]
        first, second = ledger.answers()
    assert (first.key, first.choice, first.raw) == (keys[0], "scrolling", says(S))
    assert (second.key, second.choice, second.raw) == (keys[2], "composing", " " + says(C))
    assert (first.llm, first.options) == ("toy", '["composing", "scrolling"]')
    assert first.prompt == question_prompt(asks[0].question)


def test_tokens_and_latency_of_an_answer_are_recorded(tmp_path):
    class Counted(FunctionClient):
        async def chat(self, prompt, schema=None, seed_offset=0):
            return Completion(says(S), 120, 7, 33.5)

    with Ledger(tmp_path / "d.sqlite") as ledger:
        asyncio.run(Reasoner(Counted(str), ledger=ledger).answer_all([ask()]))
        [row] = ledger.answers()
    assert (row.prompt_tokens, row.completion_tokens, row.latency_ms) == (120, 7, 33.5)


def test_the_ledger_can_be_written_from_the_background_thread(tmp_path):
    with Ledger(tmp_path / "d.sqlite") as ledger, Reasoner(Script(says(S)), ledger=ledger) as reasoner:
        reasoner.answer([ask()])
        assert len(ledger.answers()) == 1
