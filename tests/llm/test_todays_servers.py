"""What servers of today do with a question, row by row: each works, or ends within 20 answers and says what to change.

The server knows which option it meant by each answer, and no row records another one.
"""

import asyncio
import gzip
import itertools
import json
import re
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b

import pytest
from ollama_server import as_json, chat_answer, headed, packed_as, serving
from stand_in import Said, StandIn, Token, prompt_text

from prism_mesa.domain import Post
from prism_mesa.errors import LLMFailureException
from prism_mesa.llm import Ledger, LLMClient, LLMRequest, OllamaChatClient
from prism_mesa.llm.clients import server as over_http
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, ReasonerParams, make_reasoner
from prism_mesa.statechart import AgentState

OPTIONS = (AgentState.COMPOSING, AgentState.SCROLLING)
WORDS = "says the council, and everybody who lives nearby is happy about it " * 4
SHORT, LONG = "A person ", 'A person like this: {"next_state": "composing"} A, so composing. A ' * 16


def meant(prompt):
    """The option that the server means: any, by a hash of what reaches it."""
    return blake2b(prompt.encode(), digest_size=2).digest()[0] % 2


def said(prompt, form="choice", frame="{}"):
    """The answer that names it."""
    place = meant(prompt)
    if form == "probabilities":
        tops = tuple(("AB"[at], -0.1 if at == place else -2.4) for at in (place, 1 - place))
        return Said(frame.format("AB"[place]), (Token("AB"[place], -0.1, tops),))
    return frame.format(json.dumps({"next_state": OPTIONS[place].value}))


def asks(n=30):
    posts = (Post(text=f"Post {at}: the library stays open on Saturdays, {WORDS}") for at in range(n))
    who = Persona("Ada Kaya", ("politics", "cooking"), "curious and calm")
    questions = [Question(who, AgentState.EVALUATING, "decides", OPTIONS, post) for post in posts]
    return [PlacedQuestion(one, agent=at) for at, one in enumerate(questions)]


# -- servers -----------------------------------------------------------------------------------------------


@contextmanager
def ollama(form="choice", frame="{}", **given):
    with StandIn(lambda body: said(prompt_text(body), form, frame), **given) as server:
        yield server.url, lambda: server.n_requests


def answering(handler):
    """Answer as Ollama would, and OpenAI's protocol with as many tokens of thought as the server has."""
    chat_answer(said(handler.body["messages"][0]["content"]))(handler)


@contextmanager
def http(reply, owner=""):
    with serving(always=reply) as server:
        server.gets["/v1/models"] = as_json(200, {"data": [{"id": "llama3.2", "object": "model", "owned_by": owner}]})
        yield server.url + ("/v1" if owner else ""), lambda: len(server.sent)


def each_third_is_limited():
    n, lock = itertools.count(1), threading.Lock()

    def reply(handler):
        with lock:
            limited = next(n) % 3 == 0
        (headed(429, Retry_After="0") if limited else answering)(handler)

    return http(reply)


@contextmanager
def redirected():
    with serving(always=answering) as elsewhere:
        with http(headed(307, Location=f"{elsewhere.url}/api/chat")) as server:
            yield server
        assert elsewhere.sent == []


def bomb():
    return http(packed_as("gzip", gzip.compress(b" " * 400_000)))


def openai(thought=0, owner="vllm", refuses=None, context=10**6):
    def reply(handler):
        prompt, body = handler.body["messages"][0]["content"], handler.body
        if refuses and refuses[0] in body:
            return as_json(400, {"error": {"message": refuses[1], "type": "invalid_request_error"}})(handler)
        n = len(prompt) // 4 + 1
        prompt, n = (prompt, n) if n <= context else (prompt[-2 * context :], context // 2 + 2)
        most = body.get("max_completion_tokens") or body["max_tokens"]
        is_cut = most < thought + 8
        message = {"role": "assistant", "content": "" if is_cut else said(prompt)}
        message |= {"reasoning": LONG} if thought else {}
        choice = {"index": 0, "finish_reason": "length" if is_cut else "stop", "message": message}
        usage = {"prompt_tokens": n, "completion_tokens": min(most, thought + 8), "total_tokens": 0}
        answer = {"id": "x", "object": "chat.completion", "created": 1, "model": "llama3.2"}
        return as_json(200, answer | {"choices": [choice], "usage": usage})(handler)

    return http(reply, owner)


OPENAI = {"kind": "openai"}
LETTERS = {"answer": "probabilities"}
TOO_LONG = ("max_tokens", "This model's maximum context length is 128 tokens")
USE_OTHER = ("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")


@dataclass
class Row:
    """What a server does, how it is asked, and, if it cannot be used so, the words that say what to change."""

    name: str
    serves: object
    options: dict = field(default_factory=dict)
    told: str = ""


ROWS = [
    Row("plain", ollama),
    Row("plain, probabilities", lambda: ollama("probabilities"), LETTERS),
    Row("thinks unless told not to", lambda: ollama(thinks="switch", thought=LONG)),
    Row("thinks, 256 tokens", lambda: ollama(thinks="always", thought=LONG), {}, "reasoner.max_answer_tokens=1000"),
    Row("thinks, 1000 tokens", lambda: ollama(thinks="always", thought=LONG), {"max_answer_tokens": 1000}),
    Row(
        "thinks, 1000 tokens, probabilities",
        lambda: ollama("probabilities", thinks="always", thought=LONG),
        {"max_answer_tokens": 1000} | LETTERS,
    ),
    Row(
        "thinks fewer than 16 tokens, probabilities",
        lambda: ollama("probabilities", thinks="always", thought=SHORT),
        LETTERS,
    ),
    Row(
        "levels only, 256 tokens",
        lambda: ollama(thinks="always", thought=LONG),
        {"think": "low"},
        "reasoner.think=false",
    ),
    Row(
        "levels only, 1000 tokens",
        lambda: ollama(thinks="always", thought=LONG),
        {"think": "low", "max_answer_tokens": 1000},
    ),
    Row(
        "all in thinking, done_reason stop",
        lambda: ollama(thinks="lost", thought=SHORT),
        {"think": None},
        "reasoner.think=false",
    ),
    Row("all in thinking, told not to think", lambda: ollama(thinks="lost", thought=SHORT)),
    Row("fences", lambda: ollama(frame="```json\n{}\n```")),
    Row("a think block in the content", lambda: ollama(thinks="inline", thought=SHORT)),
    Row("a think block that its template opens", lambda: ollama(thinks="unopened", thought=SHORT)),
    Row("a byte order mark", lambda: ollama(frame="\ufeff{}")),
    Row(
        "num_ctx 200", lambda: ollama(context=200), {}, r"cut the prompt to its last 102 tokens.*reasoner.num_ctx=4096"
    ),
    Row("num_ctx 200, probabilities", lambda: ollama("probabilities", context=200), LETTERS, "reasoner.num_ctx=4096"),
    Row("num_ctx 200, more asked for", lambda: ollama(context=200), {"num_ctx": 4096}),
    Row("num_ctx 200, accepted", lambda: ollama(context=200), {"cut_prompts": "accept"}),
    Row("each third is limited (429)", each_third_is_limited, {"attempts": 9}),
    Row("redirects to another server (307)", redirected, {}, r"redirects to .*not followed.*reasoner.host"),
    Row("a gzip bomb", bomb, {}, r"more than .*reasoner.host"),
    Row("another program", lambda: http(as_json(200, {"hello": "world"})), {}, "not a chat answer.*reasoner.host"),
    Row("openai: plain", openai, OPENAI),
    Row("openai: thinks, 256 tokens", lambda: openai(thought=300), OPENAI, "reasoner.max_answer_tokens=1000"),
    Row("openai: thinks, 1000 tokens", lambda: openai(thought=300), OPENAI | {"max_answer_tokens": 1000}),
    Row("openai: max_tokens refused", lambda: openai(refuses=USE_OTHER), OPENAI),
    Row(
        "openai: context exceeded (400)",
        lambda: openai(refuses=TOO_LONG),
        OPENAI,
        r"128 tokens.*more context \(reasoner.num_ctx",
    ),
    Row("openai: Ollama cuts", lambda: openai(owner="library", context=200), OPENAI, "OLLAMA_CONTEXT_LENGTH=4096"),
    Row("openai: an unknown server cuts", lambda: openai(owner="x", context=200), OPENAI, "reasoner.num_ctx=4096"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_server_works_or_ends_within_twenty_answers_and_says_what_to_change(row, tmp_path, monkeypatch):
    if row.serves is bomb:
        monkeypatch.setattr(over_http, "MAX_BYTES", 100_000)
    with ExitStack() as stack:
        url, n_asked = stack.enter_context(row.serves())
        ledger = stack.enter_context(Ledger(tmp_path / "l.sqlite"))
        own = {"kind": "ollama", "model": "llama3.2", "host": url, "backoff_s": 0, "max_concurrency": 1, "attempts": 1}
        reasoner = stack.enter_context(make_reasoner(ReasonerParams(**own | row.options)))
        reasoner.record(ledger, "run")
        if row.told:
            with pytest.raises(LLMFailureException, match=re.compile(row.told, re.DOTALL)):
                reasoner.answer(asks())
            assert n_asked() == 20
        else:
            answers = reasoner.answer(asks())
            assert {answer.source for answer in answers} == {"llm"}
        stored = ledger.answers()
    assert len(stored) == (0 if row.told else 30)
    for answer in stored:
        # with a prompt that was cut and all the same accepted, the server meant something by its end
        prompt = answer.prompt[-4 * 101 :] if row.options.get("cut_prompts") else answer.prompt
        probabilities = json.loads(answer.probabilities) if answer.probabilities else None
        best = probabilities.index(max(probabilities)) if probabilities else OPTIONS.index(AgentState(answer.choice))
        assert best == meant(prompt)


@pytest.mark.parametrize("most", [256, 1000])
def test_content_llm_with_thoughts_writes_or_ends_and_says_what_to_change(most):
    with StandIn(lambda body: "Rain again.", thinks="always", thought=LONG) as server:
        client = LLMClient(OllamaChatClient(host=server.url, max_tokens=most), fails_if_useless=True)
        wanted = [LLMRequest(f"Write about {at}.", str) for at in range(30)]
        if most == 1000:
            assert set(client.answer(wanted)) == {"Rain again."}
        else:
            with pytest.raises(LLMFailureException, match=r"first 20 answers .* deliberation.max_answer_tokens"):
                client.answer(wanted)
            assert server.n_requests < 30
        client.close()


def test_a_cut_prompt_is_refused_whoever_asks_and_is_asked_once():
    with StandIn(lambda body: "Rain again.", context=200) as server:
        client = LLMClient(OllamaChatClient(host=server.url))
        with pytest.raises(LLMFailureException, match=r"cut the prompt .*reasoner.num_ctx=4096") as caught:
            asyncio.run(client.fetch(LLMRequest("rain and more rain " * 60, str)))
        client.close()
    assert (caught.value.reason, server.n_requests) == ("cut-prompt", 1)
    assert client.usage["prompt_tokens"] == 102
