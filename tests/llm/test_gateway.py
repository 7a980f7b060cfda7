"""The gateway: equal questions, the order of what is written down, and what waits, for whoever asks."""

import asyncio
import json
import threading

import pytest
from toy_clients import Said, quick, says

from prism_mesa.domain import Post
from prism_mesa.llm import AnswerStore, Ledger, LLMClient, LLMRequest, RunPosition
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING


def place(name="Ann", agent=0, tick=0, round_=0):
    return PlacedQuestion(Question(Persona(name), AgentState.EVALUATING, "decides", (C, S)), round_, tick, agent)


def scrolls(prompt):
    return json.dumps({"next_state": "scrolling"})


def wanted(prompt, agent=-1, tick=0, priority=0.0):
    return LLMRequest(prompt, Said, position=RunPosition(0, agent, tick), priority=priority)


def rows_of(ledger):
    return [(row.tick, row.agent, row.source, row.attempts) for row in ledger.asked()]


# -- equal questions -------------------------------------------------------------------------------------


def test_of_equal_questions_the_first_by_tick_and_then_agent_counts_as_asked_whoever_asks(tmp_path):
    places = [(2, 0), (1, 7), (1, 3), (3, 1)]
    expected = [(2, 0, "cache", 0), (1, 7, "cache", 0), (1, 3, "llm", 1), (3, 1, "cache", 0)]
    with Ledger(tmp_path / "r.sqlite") as ledger, Reasoner(scrolls, ledger=ledger) as reasoner:
        answers = reasoner.answer([place(agent=agent, tick=tick) for tick, agent in places])
        assert rows_of(ledger) == expected
        assert [(answer.source, answer.attempts) for answer in answers] == [row[2:] for row in expected]
    store = AnswerStore()
    with Ledger(tmp_path / "c.sqlite") as ledger, LLMClient(says, quick(), store=store) as client:
        client.record(ledger, "scope/run")
        client.answer([wanted("a", agent, tick) for tick, agent in places])
        assert rows_of(ledger) == expected


def test_of_equal_questions_that_fail_the_first_has_the_attempts_and_all_have_the_reason(tmp_path):
    with Ledger(tmp_path / "r.sqlite") as ledger:
        with Reasoner(lambda prompt: "Sure!", ledger=ledger, attempts=2, fallback="stay") as reasoner:
            answers = reasoner.answer([place(agent=1), place(agent=0)])
        assert rows_of(ledger) == [(0, 1, "fallback", 0), (0, 0, "fallback", 2)]
    assert [(a.choice, a.source, a.reason, a.attempts) for a in answers] == [
        (None, "fallback", "unparsable", 0),
        (None, "fallback", "unparsable", 2),
    ]


@pytest.mark.parametrize("urgent", ["a", "b", "c"])
def test_a_limit_is_spent_on_what_the_most_urgent_of_equal_prompts_wants(urgent):
    with LLMClient(says, quick(max_calls=1)) as client:
        requests = [wanted(prompt, agent, priority=1.0) for agent, prompt in enumerate("abc")]
        *_, last = client.answer([*requests, wanted(urgent, 9, priority=0.0)])
        assert last.word == urgent
        assert (client.counts, client.reasons) == ({"llm": 1, "cache": 1, "failed": 2}, {"budget": 2})


@pytest.mark.parametrize(("relevance", "distance"), [(0.4, 1.0), (0.45, 0.5), (0.5, 0.0), (0.6, 1.0), (0.9, 4.0)])
def test_a_choice_is_urgent_by_its_distance_from_the_middle_of_the_band_in_half_bands(relevance, distance):
    persona, post = Persona("Ann", low=0.4, high=0.6), Post(relevance=relevance)
    ask = PlacedQuestion(
        Question(persona, AgentState.EVALUATING, "decides", (C, S), post), tick=2, agent=5, followers=7
    )
    with Reasoner(scrolls) as reasoner, Reasoner(scrolls, spend_on="followed") as by_followers:
        assert reasoner.handler.prepare(ask).priority == (pytest.approx(distance), 2, 5)
        assert by_followers.handler.prepare(ask).priority == (-7.0, 2, 5)


def test_what_is_submitted_and_what_is_waited_for_share_one_call():
    asked, release = [], threading.Event()

    async def llm(prompt):
        asked.append(prompt)
        while not release.is_set():
            await asyncio.sleep(0.001)
        return scrolls(prompt)

    with Reasoner(llm) as reasoner:
        reasoner.submit([place(agent=1)])
        threading.Timer(0.02, release.set).start()
        [waited] = reasoner.answer([place(agent=0)])
        [(ask, collected)] = reasoner.collect()
        assert reasoner.collect() == []
    assert (waited.source, collected.source, ask.agent, len(asked)) == ("llm", "cache", 1, 1)
    assert reasoner.counts == {"llm": 1, "cache": 1}


# -- what is written down --------------------------------------------------------------------------------


def test_what_is_asked_together_is_written_down_in_the_order_asked_whichever_answer_comes_first(tmp_path):
    async def llm(prompt):
        await asyncio.sleep(0.02 if prompt == "slow" else 0.0)
        return says(prompt)

    with Ledger(tmp_path / "c.sqlite") as ledger, LLMClient(llm, quick()) as client:
        client.record(ledger, "scope/run")
        client.answer([wanted("known", 5)])
        client.answer([wanted("slow", 1), wanted("quick", 2), wanted("known", 3)])
        assert [answer.prompt for answer in ledger.answers()] == ["known", "quick", "slow"]
        assert rows_of(ledger) == [(0, 5, "llm", 1), (0, 1, "llm", 1), (0, 2, "llm", 1), (0, 3, "cache", 0)]


def test_a_question_with_one_option_needs_no_llm_and_is_neither_counted_nor_written_down(tmp_path):
    heard = []
    only = PlacedQuestion(Question(Persona("Ann"), AgentState.EVALUATING, "decides", (C,)))
    with Ledger(tmp_path / "r.sqlite") as ledger, Reasoner(scrolls, ledger=ledger) as reasoner:
        reasoner.on_answer = lambda ask, answer: heard.append(ask)
        first, second = reasoner.answer([only, place()])
        assert (first.choice, first.source, first.key, second.source) == (C, "rule", "", "llm")
        assert (len(ledger.asked()), heard, reasoner.counts) == (1, [place()], {"llm": 1})


# -- what waits ------------------------------------------------------------------------------------------


def test_beginning_anew_keeps_the_connection_where_nothing_is_out_and_drops_what_is():
    async def llm(prompt):
        if prompt == "slow":
            await asyncio.sleep(60)
        return says(prompt)

    with LLMClient(llm, quick(max_calls=1)) as client:
        client.answer([wanted("a")])
        thread = client._background
        client.begin()
        assert [said.word for said in client.answer([wanted("b")])] == ["b"]
        assert client._background is thread
        client.begin()
        client.submit([wanted("slow")])
        client.begin()
        assert client.collect() == []
        assert [said.word for said in client.answer([wanted("c")])] == ["c"]


# -- when nobody waits any more ---------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [False, True])
def test_an_answer_that_nobody_waits_for_any_more_is_counted_and_written_down_all_the_same(tmp_path, fails):
    asked, may_go = threading.Event(), threading.Event()

    def slowly(prompt):
        asked.set()
        assert may_go.wait(10)
        return "Sure!" if fails else scrolls(prompt)

    async def lose_patience(reasoner):
        waiting = asyncio.ensure_future(reasoner.answer_all([place(agent=1), place(agent=2)]))
        await asyncio.to_thread(asked.wait, 10)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        may_go.set()
        for _ in range(1000):
            if rows_of(ledger):
                break
            await asyncio.sleep(0.01)

    with Ledger(tmp_path / "l.sqlite") as ledger, Reasoner(slowly, ledger=ledger, attempts=1) as reasoner:
        asyncio.run(lose_patience(reasoner))
        sources = ["fallback", "fallback"] if fails else ["llm", "cache"]
        assert rows_of(ledger) == [(0, 1, sources[0], 1), (0, 2, sources[1], 0)]
        assert reasoner.counts.total() == 2
        assert reasoner.answer([place(agent=3)])[0].source == ("fallback" if fails else "cache")


@pytest.mark.parametrize("submits", [False, True])
def test_what_was_known_before_a_question_that_cannot_be_put_is_not_lost(tmp_path, submits):
    bad = PlacedQuestion(Question(Persona("Ann"), AgentState.EVALUATING, "decides", ()), 0, 0, 5)
    with Ledger(tmp_path / "l.sqlite") as ledger, Reasoner(scrolls, ledger=ledger) as reasoner:
        reasoner.answer([place(agent=1)])
        with pytest.raises(ValueError, match="no options"):
            (reasoner.submit if submits else reasoner.answer)([place(agent=2), bad])
        assert rows_of(ledger) == [(0, 1, "llm", 1), (0, 2, "cache", 0)]
        assert [ask.agent for ask, _ in reasoner.collect()] == ([2] if submits else [])
