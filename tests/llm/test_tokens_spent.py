"""Tokens of useless answers: counted in the usage, the budget and the ledger."""

import pytest
from ollama_server import chat_answer, serving

from prism_mesa.llm import Ledger
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, ReasonerParams, make_reasoner
from prism_mesa.runs.ledgers import ledger_stats
from prism_mesa.statechart import AgentState

GOOD = chat_answer('{"next_state": "scrolling"}')
USELESS = {
    "prose": chat_answer("Sure!"),
    "empty": chat_answer(""),
    "thought": chat_answer("<think>hm", done_reason="length"),
}


def asked(names="a"):
    options = (AgentState.COMPOSING, AgentState.SCROLLING)
    questions = [Question(Persona(name), AgentState.EVALUATING, "decides", options) for name in names]
    return [PlacedQuestion(question, agent=at) for at, question in enumerate(questions)]


@pytest.mark.parametrize("useless", USELESS)
def test_tokens_of_useless_answers_count_in_the_usage_and_in_the_ledger(useless, tmp_path):
    path = tmp_path / "decisions.sqlite"
    with serving(USELESS[useless], GOOD, USELESS[useless], USELESS[useless]) as server, Ledger(path) as ledger:
        own = ReasonerParams(kind="ollama", host=server.url, backoff_s=0, attempts=2, max_concurrency=1)
        with make_reasoner(own) as reasoner:
            reasoner.record(ledger, "scope/run")
            reasoner.answer(asked("aa"))
            reasoner.answer(asked("b"))
            usage = reasoner.usage
        rows = [(row.source, row.attempts, row.prompt_tokens, row.completion_tokens) for row in ledger.asked()]
    assert rows == [("llm", 2, 1800, 16), ("cache", 0, 0, 0), ("fallback", 2, 1800, 16)]
    assert (usage["calls"], usage["prompt_tokens"], usage["completion_tokens"]) == (4, 3600, 32)
    assert ledger_stats(path)["tokens"] == 3632


@pytest.mark.parametrize("useless", USELESS)
def test_a_limit_of_tokens_counts_useless_answers_at_what_they_cost(useless):
    with serving(always=USELESS[useless]) as server:
        own = ReasonerParams(kind="ollama", host=server.url, backoff_s=0, attempts=5, max_tokens=3500)
        with make_reasoner(own) as reasoner:
            most = reasoner.handler.prepare(asked()[0]).prompt.encode()
            reasoner.answer(asked())
            [run, *_] = [reasoner.budget.snapshot()["run"]]
    assert len(most) + 256 + 256 < 3500 - 908
    assert run[1] == 3500 - 908 * len(server.sent)
