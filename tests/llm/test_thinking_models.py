"""LLMs that think before they answer, each in its own way: no thought is ever taken for an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ollama_server import as_json, serving
from stand_in import Said, StandIn, Token

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm import Ledger, OllamaChatClient
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.clients.completions import strip_thought
from prism_mesa.llm.ledger import answer_key
from prism_mesa.llm.multiple_choice import make_recordable
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner, ReasonerParams, make_reasoner
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING
MISLEADING = 'A person like this: {"next_state": "composing"} A, so composing. A'
ANSWER = {"choice": '{"next_state": "scrolling"}', "probabilities": "B"}
TOPS = (("B", -0.1), ("A", -2.4))


def brain(form):
    tokens = (Token("B", -0.1, TOPS),) if form == "probabilities" else ()
    return lambda body: Said(ANSWER[form], tokens, prompt_tokens=900)


def asks(n):
    questions = [Question(Persona(f"a{at}"), AgentState.EVALUATING, "decides", (C, S)) for at in range(n)]
    return [PlacedQuestion(one, agent=at) for at, one in enumerate(questions)]


def params(server, form, **options):
    own = {"kind": "ollama", "host": server.url, "answer": form, "backoff_s": 0, "max_concurrency": 1} | options
    return ReasonerParams(**own)


# -- what is asked for -----------------------------------------------------------------------------------------


def test_the_default_keeps_the_keys_of_existing_ledgers():
    before = {"temperature": 0.0, "seed": 0, "max_tokens": 256}
    assert ReasonerParams().decoding == before
    assert ReasonerParams(answer="probabilities").decoding == before | {"max_tokens": 16}
    assert OllamaChatClient().decoding == before == OllamaChatClient(think=False, keep_alive="1h").decoding
    assert answer_key("p", ["a"], "m", "d", ReasonerParams(keep_alive="10m").decoding) == answer_key(
        "p", ["a"], "m", "d", before
    )


@pytest.mark.parametrize("think", [True, "low", "medium", "high", "max", None])
def test_what_is_not_the_default_is_in_the_key(think):
    own = ReasonerParams(kind="ollama", think=think, num_ctx=8192).decoding
    assert (own["think"], own["num_ctx"]) == (think, 8192)
    assert OllamaChatClient(think=think, num_ctx=8192, temperature=0, seed=0).decoding == own


def test_ollama_is_sent_them_in_its_own_way():
    with StandIn(brain("choice"), thinks="always") as server:
        for options in ({}, {"think": "high", "num_ctx": 8192, "keep_alive": "10m"}, {"think": None}):
            with make_reasoner(params(server, "choice", **options)) as reasoner:
                reasoner.answer(asks(1))
    first, second, third = server.requests
    assert (first["think"], "num_ctx" in first["options"], "keep_alive" in first) == (False, False, False)
    assert (second["think"], second["options"]["num_ctx"], second["keep_alive"]) == ("high", 8192, "10m")
    assert "think" not in third


@pytest.mark.parametrize("options", [{"think": True}, {"think": "high"}, {"think": True, "kind": "auto"}])
def test_an_llm_that_cannot_think_is_not_asked_to_and_no_other_takes_its_place(options):
    with StandIn() as server, pytest.raises(ConfigError, match=r"reasoner\.think: 'llama3.2' does not think"):
        make_reasoner(params(server, "choice", **options))
    assert server.n_requests == 0


@pytest.mark.parametrize(("most", "sent"), [({}, 16), ({"max_answer_tokens": 300}, 300), ({"think": True}, 256)])
def test_probabilities_have_the_tokens_that_were_set(most, sent):
    assert ReasonerParams(answer="probabilities", **most).decoding["max_tokens"] == sent


# -- what is answered ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["choice", "probabilities"])
@pytest.mark.parametrize("think", [False, True, "low", None])
@pytest.mark.parametrize("mode", ["switch", "always", "inline", "unopened"])
def test_the_answer_after_the_thought_is_recorded(mode, think, form, tmp_path):
    with StandIn(brain(form), thinks=mode, thought=MISLEADING) as server, Ledger(tmp_path / "l.sqlite") as ledger:
        own = params(server, form, think=think, max_answer_tokens=1000)
        with make_reasoner(own) as reasoner:
            reasoner.record(ledger, "run")
            [answer] = reasoner.answer(asks(1))
        [stored] = ledger.answers()
    assert (answer.source, server.n_requests) == ("llm", 1)
    assert answer.probabilities == pytest.approx((0, 1) if form == "choice" else (0.0911, 0.9089), abs=1e-3)
    assert "person" not in stored.raw


@given(
    st.lists(st.sampled_from(["A", " B", "\n", "composing", " é", "\ufffd", "<x>"]), max_size=8),
    st.sampled_from(["B", "**B**", " B.", "B\n"]),
    st.sampled_from(["", "<|im_end|>"]),
    st.booleans(),
)
def test_log_probabilities_are_those_of_the_answer_or_none(thought, answer, end, inline):
    said = [*thought, *answer, *([end] if end else [])]
    content = f"<think>{''.join(thought)}</think>{answer}" if inline else answer
    said = ["<think>", *thought, "</think>", *answer, *([end] if end else [])] if inline else said
    reply = Completion(content, 9, len(said), 1.0, tuple(((token, -0.1),) for token in said))
    own = {"label": "x", "thought": "hm", "tokens": said, "decoding": {"max_tokens": 9}}
    kept = strip_thought(reply=reply, **own)
    assert kept.text.strip() == answer.strip()
    assert "B" in [token for ((token, _),) in kept.top_logprobs]
    assert "".join(token for ((token, _),) in kept.top_logprobs).strip() in (answer.strip(), f"{answer}{end}".strip())


def test_log_probabilities_of_something_else_are_refused():
    reply = Completion("B", top_logprobs=((("A", -0.1),),))
    with pytest.raises(OracleError, match="may belong to its thought") as caught:
        strip_thought("x", reply, thought=None, tokens=["A"], decoding={"max_tokens": 9})
    assert caught.value.reason == "unmatched"


# -- servers with OpenAI's protocol ----------------------------------------------------------------------------


def openai_server(owner, **message):
    told = {"role": "assistant", "content": ANSWER["choice"]} | message
    choice = {"index": 0, "finish_reason": "stop", "message": told}
    usage = {"prompt_tokens": 900, "completion_tokens": 8, "total_tokens": 908}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice], "usage": usage}
    server = serving(always=as_json(200, body))
    return server, as_json(200, {"object": "list", "data": [{"id": "tiny", "object": "model", "owned_by": owner}]})


OFF = {"enable_thinking": False, "thinking": False}
LOW = {"enable_thinking": True, "thinking": True, "reasoning_effort": "low"}


@pytest.mark.parametrize(
    ("owner", "think", "sent"),
    [
        ("library", False, {"reasoning_effort": "none"}),
        ("library", "max", {"reasoning_effort": "xhigh"}),
        ("vllm", False, {"chat_template_kwargs": OFF}),
        ("vllm", "low", {"chat_template_kwargs": LOW}),
        ("llamacpp", False, {"chat_template_kwargs": OFF}),
        ("llamacpp", None, {}),
        ("somebody", False, {}),
        ("somebody", True, {}),
    ],
)
def test_each_server_is_told_how_to_think_in_its_own_way(owner, think, sent):
    serves, models = openai_server(owner)
    with serves as server:
        server.gets["/v1/models"] = models
        own = ReasonerParams(kind="openai", model="tiny", host=f"{server.url}/v1", think=think)
        with make_reasoner(own) as reasoner:
            reasoner.answer(asks(1))
        note = reasoner.note
    [body] = server.sent
    assert {name: body[name] for name in ("reasoning_effort", "chat_template_kwargs") if name in body} == sent
    assert ("reasoner.think: not sent" in note) == (owner == "somebody" and think is True)


def refusing(handler):
    """Refuse as OpenAI's reasoning models do, one option after the other."""
    wrong = {"max_tokens": "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}
    wrong["temperature"] = "Unsupported value: 'temperature' does not support 0 with this model."
    told = next((wrong[name] for name in wrong if name in handler.body), None)
    if told is not None:
        return as_json(400, {"error": {"message": f"Unsupported parameter: {told}", "type": "x"}})(handler)
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER["choice"]}}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "o9", "choices": [choice]}
    return as_json(200, body)(handler)


def test_openais_reasoning_models_are_asked_with_what_they_take_and_it_is_remembered():
    with serving(always=refusing) as server:
        server.gets["/v1/models"] = as_json(404, {"error": "none"})
        own = ReasonerParams(kind="openai", model="o9", host=f"{server.url}/v1", max_concurrency=4, temperature=0)
        with make_reasoner(own) as reasoner:
            answers = reasoner.answer(asks(1))
            again = reasoner.answer([PlacedQuestion(Question(Persona("b"), AgentState.EVALUATING, "decides", (C, S)))])
    assert {answer.choice for answer in [*answers, *again]} == {S}
    assert len(server.sent) == 4
    assert server.sent[-1]["max_completion_tokens"] == 256
    assert not {"max_tokens", "temperature"} & server.sent[-1].keys()


@pytest.mark.parametrize(
    "refusal",
    ["Unrecognized request argument supplied: seed", "UNSUPPORTED option: seed", "the option seed is not supported"],
)
def test_an_option_that_a_server_refuses_in_any_case_is_left_out(refusal):
    def handler(request):
        if "seed" in request.body:
            return as_json(400, {"error": {"message": refusal}})(request)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER["choice"]}}
        return as_json(200, {"id": "x", "choices": [choice]})(request)

    with serving(always=handler) as server:
        server.gets["/v1/models"] = as_json(404, {"error": "none"})
        own = ReasonerParams(kind="openai", model="o9", host=f"{server.url}/v1", seed=7)
        with make_reasoner(own) as reasoner:
            [answer] = reasoner.answer(asks(1))
    assert answer.choice is S
    assert "seed" not in server.sent[-1]


LETTERED = ("B", '"B"', "**B**", "(B)", "B.", "B. scrolling", "Answer: B", "The answer is B.", "B - scroll")
TALK = ("B or A", "Not B", "I would not choose A; I choose B", "B. composing", "B. scrolling or composing", "Be")


@pytest.mark.parametrize(("text", "reads"), [*((text, True) for text in LETTERED), *((text, False) for text in TALK)])
def test_log_probabilities_count_where_the_text_is_a_letter_with_its_option_or_alone(text, reads):
    tops = tuple(((piece, -0.01),) for piece in text.replace("B", " B ").replace("A", " A ").split())
    kept = json.loads(make_recordable(Completion(text, top_logprobs=tops), ["composing", "scrolling"]).text)
    assert bool(kept["top_logprobs"]) == reads


# -- replay ----------------------------------------------------------------------------------------------------


def replayed(path, **options):
    own = {"kind": "ollama", "ledger": "replay", "ledger_path": str(path), "answer": "probabilities"} | options
    with make_reasoner(ReasonerParams(**own)) as reasoner:
        return reasoner.answer(asks(1))[0].choice


def recorded(path, form="probabilities", **options):
    with StandIn(brain(form), thinks="always", thought=MISLEADING) as server, Ledger(path) as ledger:
        reasoner = make_reasoner(params(server, form, **options))
        reasoner.record(ledger, "run")
        choice = reasoner.answer(asks(1))[0].choice
        reasoner.close()
        return choice


def test_a_ledger_is_replayed_with_the_think_it_was_made_with_and_with_no_other(tmp_path):
    path = tmp_path / "l.sqlite"
    choice = recorded(path, think="low", num_ctx=8192)
    assert replayed(path, think="low", num_ctx=8192) == choice
    for other in ({}, {"think": "low"}, {"think": "high", "num_ctx": 8192}, {"num_ctx": 8192}):
        with pytest.raises(ConfigError, match="has no answers of the configured LLM with these options"):
            replayed(path, **other)


def test_a_ledger_of_letters_from_before_is_replayed_whatever_tokens_were_set(tmp_path):
    path = tmp_path / "l.sqlite"
    with StandIn(brain("probabilities")) as server, Ledger(path) as ledger:
        client = OllamaChatClient(host=server.url, max_tokens=16)
        with Reasoner(client, answer="probabilities") as reasoner:
            reasoner.record(ledger, "run")
            [answer] = reasoner.answer(asks(1))
    assert replayed(path, max_answer_tokens=300) == replayed(path) == answer.choice
