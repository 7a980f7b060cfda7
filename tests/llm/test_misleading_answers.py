"""Answers that seem to name an option and do not: each is refused by name, ends the run, and nothing is recorded."""

import json

import pytest
from ollama_server import as_json, serving

from prism_mesa.errors import ConfigError, LLMFailureException
from prism_mesa.llm import Ledger, OllamaChatClient, OpenAIChatClient
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner, ReasonerParams
from prism_mesa.reasoner.asking import recorded_oracle
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING
CHOICE, LETTER = '{"next_state": "scrolling"}', "B"
MORE = "reasoner.max_answer_tokens=1000"
OTHER = "reasoner.answer=choice"
WORDS = "the library stays open on Saturdays " * 20


def asks(n=30, llm=""):
    who = [Question(Persona(f"a{at}", personality=WORDS), AgentState.EVALUATING, "decides", (C, S)) for at in range(n)]
    return [PlacedQuestion(one, agent=at, llm=llm) for at, one in enumerate(who)]


def said(text, *places, reason="stop", done=True):
    """A reply of Ollama; each place is a token, and the log-probabilities that are told for it."""
    told = {"done": done, "done_reason": reason, "prompt_eval_count": 900, "eval_count": 9}
    told |= {"model": "llama3.2", "created_at": "2026-11-25T00:00:00Z"}
    logprobs = [
        {"token": token, "logprob": -0.1, "top_logprobs": [{"token": name, "logprob": p} for name, p in top.items()]}
        for token, top in places
    ]
    return told | {"message": {"role": "assistant", "content": text}} | ({"logprobs": logprobs} if places else {})


def chat(*texts, reason="stop"):
    """A reply of a server with OpenAI's protocol, with a choice for each text."""
    choices = [
        {"index": at, "finish_reason": reason, "message": {"role": "assistant", "content": text}}
        for at, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}


def decided(n_tokens):
    answer = {"type": "choice", "choice": "scrolling", "probabilities": {"scrolling": 0.8, "composing": 0.2}}
    return {"model": "m", "answers": {"answer": answer}, "usage": {"input_tokens": n_tokens, "output_tokens": 1}}


def told_of(reply, tmp_path, kind=OllamaChatClient, **options):
    """Return what ends the work on a server that always says one thing; nothing of that is in the ledger."""
    with serving(always=as_json(200, reply)) as server, Ledger(tmp_path / "ledger.sqlite") as ledger:
        client = kind("llama3.2", host=server.url)
        with Reasoner(client, backoff_s=0, max_concurrency=1, **options) as reasoner:
            reasoner.record(ledger, "run")
            with pytest.raises(LLMFailureException, match="its first 20 answers") as caught:
                reasoner.answer(asks())
        assert list(ledger.answers()) == []
        assert len([body for body in server.sent if body]) == 20
    return str(caught.value)


B, A = {"B": -0.1, "A": -2.4}, {"A": -0.1, "B": -2.4}
LETTERS = {"answer": "probabilities"}


@pytest.mark.parametrize(
    ("reply", "options", "way"),
    [
        (said("composing", reason="length"), {}, MORE),
        (said(CHOICE[:-1], reason="length"), {}, MORE),
        (said(CHOICE[:-1] + ', "reason": "I would', reason="length"), {"reason": True}, MORE),
        (said("A", ("A", A), reason="length"), LETTERS, MORE),
        (said("A", reason="length"), LETTERS, MORE),
        (said("B", ("B", A)), LETTERS, OTHER),
        (said("B", ("B", {"A": -0.1, "x": -2.4})), LETTERS, OTHER),
        (said("C", ("C", {"C": -0.7, "A": -1.2, "B": -1.6})), LETTERS, "PRISM expects"),
        (
            said("A. composing? No, B.", ("A", A), (". composing? No,", {}), (" B", {" B": -0.1}), (".", {})),
            LETTERS,
            "PRISM expects",
        ),
        (said("A. composing would be wrong", ("A", A), (". composing would be wrong", {})), LETTERS, "PRISM expects"),
        (said(CHOICE, done=False), {}, "reasoner.host"),
    ],
)
def test_an_answer_that_may_mislead_ends_the_run_with_what_to_change(reply, options, way, tmp_path):
    assert way in told_of(reply, tmp_path, **options)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (chat("composing", reason="length"), MORE),
        (chat("composing", reason="content_filter"), "content filter"),
        (chat('{"next_state": "composing"}', CHOICE), "not a chat answer"),
    ],
)
def test_so_does_one_of_a_server_with_openais_protocol(reply, why, tmp_path):
    assert why in told_of(reply, tmp_path, OpenAIChatClient)


def test_so_does_a_decision_on_a_part_of_the_text(tmp_path):
    assert "an LLM with more context" in told_of(decided(40), tmp_path, answer="decision")


@pytest.mark.parametrize(
    ("reply", "options"),
    [
        (said(CHOICE, reason="length"), {}),
        (said("B", ("B", {"A": -0.6, "B": -0.8})), LETTERS),
        (said("B. scrolling: Continue", ("B", B), (". scrolling: Continue", {})), LETTERS),
        (decided(900), {"answer": "decision"}),
    ],
)
def test_what_does_name_an_option_is_taken(reply, options):
    with serving(always=as_json(200, reply)) as server, Reasoner(OllamaChatClient(host=server.url), **options) as own:
        assert own.answer(asks(1))[0].source == "llm"


def test_an_llm_that_draws_its_words_may_say_a_letter_that_is_not_the_likeliest():
    with serving(always=as_json(200, said("B", ("B", A)))) as server:
        client = OllamaChatClient("llama3.2", server.url, temperature=1)
        with Reasoner(client, **LETTERS) as reasoner:
            assert reasoner.answer(asks(1))[0].probabilities == pytest.approx((0.909, 0.091), abs=1e-3)


@pytest.mark.parametrize("kind", [OllamaChatClient, OpenAIChatClient])
def test_what_follows_a_response_is_not_taken_for_the_next_one(kind):
    def twice(handler):
        for option in (S, C):
            text = json.dumps({"next_state": option.value})
            as_json(200, said(text) if kind is OllamaChatClient else chat(text))(handler)

    with serving(always=twice) as server, Reasoner(kind("llama3.2", server.url), max_concurrency=1) as reasoner:
        assert {answer.choice for answer in reasoner.answer(asks(12))} == {S}


def test_two_clients_that_a_ledger_cannot_tell_apart_are_refused():
    clients = {name: OllamaChatClient("llama3.2", f"http://127.0.0.1:{port}") for name, port in (("a", 1), ("b", 2))}
    with pytest.raises(ConfigError, match="the same name"):
        Reasoner(clients)


def test_decisions_on_parts_of_texts_that_were_accepted_are_replayed(tmp_path):
    own = ReasonerParams(kind="ollama", model="llama3.2", answer="decision", cut_prompts="accept")
    with serving(always=as_json(200, decided(40))) as server, Ledger(tmp_path / "ledger.sqlite") as ledger:
        with Reasoner(OllamaChatClient(host=server.url, cut_prompts="accept"), params=own) as reasoner:
            reasoner.record(ledger, "run")
            assert reasoner.answer(asks(1))[0].source == "llm"
        assert recorded_oracle(ledger, own).decoding == reasoner.oracle.decoding
