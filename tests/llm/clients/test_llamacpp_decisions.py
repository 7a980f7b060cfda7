"""llama.cpp's own code decides: SmolLM2's weights, to which a type of decision model and its template are added."""

import asyncio
import json

import pytest
from decision_gguf import make_decision_model

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm import Ledger
from prism_mesa.llm.clients.embedded import EmbeddedChatClient, close_engines, embedded_fault
from prism_mesa.llm.decision import Decision
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, ReasonerParams, make_reasoner
from prism_mesa.statechart import AgentState

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(embedded_fault()), reason=f"the embedded LLM {embedded_fault()}"),
]

C, S = AgentState.COMPOSING, AgentState.SCROLLING


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("decision") / "tiny-decision.gguf"
    make_decision_model(path)
    yield path
    close_engines()
    path.unlink()


def asks(*options):
    who = [Persona("Ann"), Persona("Bo", ("rain",))]
    return [PlacedQuestion(Question(one, AgentState.EVALUATING, "decides", options), agent=0) for one in who]


def params(model, **options):
    return ReasonerParams(kind="embedded", model=str(model), answer="decision", **options)


def test_decisions_are_recorded_and_the_same_whatever_is_asked_in_between(model, tmp_path):
    with Ledger(tmp_path / "l.sqlite") as ledger, make_reasoner(params(model)) as reasoner:
        reasoner.record(ledger, "run")
        answers = reasoner.answer(asks(C, S))
        stored = [one for answer in answers for one in ledger.answers() if one.key == answer.key]
    with make_reasoner(params(model)) as reasoner:
        again = [reasoner.answer([one])[0] for one in reversed(asks(C, S))][::-1]
    assert [one.probabilities for one in answers] == [one.probabilities for one in again]
    assert answers[0].probabilities != answers[1].probabilities
    assert {answer.source for answer in answers} == {"llm"}
    for one, answer in zip(stored, answers, strict=True):
        told = json.loads(one.raw)
        given = told["said"][0]["answer"]["probabilities"]
        assert [*given] == told["asked"][0]
        assert answer.probabilities == pytest.approx((given["composing"], given["scrolling"]))
        assert told["said"][0]["model"] == "tiny-decision.gguf"  # and not where it lies
        assert json.loads(one.decoding) == {"answer": "decision", "build": reasoner.oracle.client.build}
        assert one.prompt_tokens > 20


def test_the_levels_of_a_scale_are_a_score(model):
    form = Decision(("never", "at times", "always"), "How often?", is_scale=True)
    reply = asyncio.run(form.ask(EmbeddedChatClient(str(model)), "Ann likes rain."))
    assert sum(form.read(reply.text)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("criteria", "state", "reason", "told"),
    [
        ({}, "x", "refused-request", "non-empty object"),
        ({f"o{at}": None for at in range(300)}, "x", "refused-request", "at most 52"),
        ({"a": None, "b": None}, "rain " * 9000, "too-long", "context size"),
    ],
)
def test_what_llamacpp_refuses_is_named(model, criteria, state, reason, told):
    question = {"type": "choice", "instructions": "?", "criteria": criteria}
    with pytest.raises(OracleError, match=told) as caught:
        asyncio.run(EmbeddedChatClient(str(model)).decide(state, question))
    assert caught.value.reason == reason


def test_a_model_that_chats_is_refused_before_the_run_and_the_file_chats_all_the_same(model):
    with pytest.raises(ConfigError, match=r"not a decision model .*not a decision model.*reasoner.model=d1-omni:600m"):
        make_reasoner(params("smollm2"))
    with make_reasoner(ReasonerParams(kind="embedded", model=str(model), answer="choice")) as reasoner:
        assert reasoner.answer(asks(C, S)[:1])[0].probabilities in ((1, 0), (0, 1))
