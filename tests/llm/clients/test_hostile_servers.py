"""Servers that answer with bombs, redirects and our own credentials, or are busy: the same for both HTTP clients."""

import asyncio
import base64
import gzip
import json
import zlib
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from ollama_server import as_json, chat_answer, headed, packed_as, raw, serving

from prism_mesa.errors import OracleError
from prism_mesa.llm import Ledger, OllamaChatClient, OpenAIChatClient
from prism_mesa.llm.clients import server as over_http
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner
from prism_mesa.statechart import AgentState

PASSWORD = "pass/word@of-a-test"
KEY = "sk-a-key-of-a-test-123"
SCROLL = '{"next_state": "scrolling"}'
CHOICES = (AgentState.COMPOSING, AgentState.SCROLLING)
PLACED = PlacedQuestion(Question(Persona("a"), AgentState.EVALUATING, "decides", CHOICES))


def openai_answer(content):
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice]}
    return as_json(200, body)


@pytest.fixture(params=["ollama", "openai"])
def kind(request, monkeypatch):
    for name in ("OPENAI_API_KEY", "OLLAMA_API_KEY"):
        monkeypatch.setenv(name, KEY)
    return request.param


@pytest.fixture
def client_of(kind):
    """Return what makes a client of a server, which is sent a user and a password if `named`."""

    def make(server, named=False, **given):
        host = server.url.replace("://", "://me:pass%2Fword%40of-a-test@") if named else server.url
        return OllamaChatClient(host=host, **given) if kind == "ollama" else OpenAIChatClient("tiny", host, **given)

    return make


@pytest.fixture
def says(kind):
    return chat_answer if kind == "ollama" else openai_answer


def chat(client):
    return asyncio.run(client.chat("Which?"))


def fault(client):
    with pytest.raises(OracleError) as caught:
        chat(client)
    return caught.value


# -- sizes ---------------------------------------------------------------------------------------------


ZEROS = b" " * 400_000


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(ZEROS)),
        ("deflate", zlib.compress(ZEROS)),
        ("identity", ZEROS),
    ],
    ids=["gzip", "deflate", "not packed"],
)
def test_a_response_that_unpacks_to_too_much_is_not_unpacked(encoding, body, client_of, monkeypatch):
    monkeypatch.setattr(over_http, "MAX_BYTES", 100_000)
    with serving(always=packed_as(encoding, body)) as server:
        assert fault(client_of(server)).reason == "too-large"


@pytest.mark.parametrize(("encoding", "body"), [("br", b"x"), ("gzip", b"oops"), ("gzip, gzip", b"x")])
def test_a_response_packed_in_a_way_that_was_not_asked_for_is_a_transport_fault(encoding, body, client_of):
    with serving(always=packed_as(encoding, body)) as server:
        assert fault(client_of(server)).reason == "transport"


def test_nothing_packed_is_asked_for_and_a_small_packed_answer_is_read(client_of, says):
    seen = []

    def packing(handler):
        seen.append(handler.headers["Accept-Encoding"])
        sent = SimpleNamespace(send=lambda status, body, announced: packed_as("gzip", gzip.compress(body))(handler))
        says("hello")(sent)

    with serving(always=packing) as server:
        assert chat(client_of(server)).text == "hello"
    assert seen == ["identity"]


def test_json_that_is_nested_too_deeply_is_none(client_of):
    with serving(always=raw(200, b"[" * 200_000)) as server:
        assert fault(client_of(server)).reason == "not-json"


# -- redirects -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 307, 308])
def test_no_redirect_is_followed_and_the_message_says_where_it_leads(status, client_of, says):
    with serving(always=says("stolen")) as elsewhere:
        with serving(always=headed(status, Location=f"{elsewhere.url}/api/chat")) as server:
            failed = fault(client_of(server))
        assert elsewhere.sent == []
    assert failed.reason == f"http-{status}"
    assert elsewhere.url in str(failed)
    assert server.url in str(failed)


# -- credentials -------------------------------------------------------------------------------------------


def echoing(status, says):
    """Answer, or refuse, with what was sent to prove who asks."""

    def reply(handler):
        sent = handler.headers["Authorization"]
        plain = base64.b64decode(sent.split()[1]).decode() if sent.startswith("Basic") else sent
        text = f"you sent {sent} which is {plain}"
        (says(text) if status == 200 else as_json(status, {"error": {"message": text}}))(handler)

    return reply


@pytest.mark.parametrize("named", [True, False], ids=["a user and password", "a key"])
@pytest.mark.parametrize("status", [200, 401, 503])
def test_credentials_that_a_server_repeats_are_masked(status, named, client_of, says):
    with serving(always=echoing(status, says)) as server:
        client = client_of(server, named=named)
        told = chat(client).text if status == 200 else str(fault(client))
    assert "you sent" in told
    assert "***" in told
    for secret in (PASSWORD, KEY, base64.b64encode(f"me:{PASSWORD}".encode()).decode()):
        assert secret not in told


@pytest.mark.parametrize(
    "spelled",
    [
        lambda secret: secret,
        lambda secret: json.dumps(secret)[1:-1],
        lambda secret: quote(secret, safe=""),
        lambda secret: base64.b64encode(secret.encode()).decode(),
    ],
)
def test_a_secret_is_masked_in_any_spelling(spelled):
    secret = "a <b>&'c\\d\"é+/?~ü"
    pattern = over_http.secrets_pattern(["", "short", secret])
    shown = pattern.sub(b"***", f"you: {spelled(secret)}.".encode()).decode()
    assert shown in ("you: ***.", "you: ***==.", "you: ***=.")
    assert pattern.sub(b"***", b"short: answers") == b"short: answers"


# -- busy servers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_when_it_says_and_no_refusal_counts_as_an_attempt(
    status, client_of, says, tmp_path, monkeypatch
):
    waits, sleep = [], asyncio.sleep
    with serving(*[headed(status, Retry_After="7")] * 4, always=says(SCROLL)) as server:
        monkeypatch.setattr(asyncio, "sleep", lambda s: (waits.append(s), sleep(0))[1])
        ledger = Ledger(tmp_path / "d.sqlite")
        with ledger, Reasoner(client_of(server), ledger=ledger, timeout_s=30, attempts=1) as reasoner:
            [answer] = reasoner.answer([PLACED])
    assert (answer.source, answer.choice, answer.attempts) == ("llm", AgentState.SCROLLING, 1)
    assert [s for s in waits if s > 1] == [7.0] * 4


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [
        (429, "7", 7),
        (429, "99999999999999", 30),
        (429, "soon", 0),
        (500, "7", 0),
        (429, "Fri, 31 Dec 2100 23:59:59 GMT", 30),
        (429, "Wed, 21 Oct 2015 07:28:00 GMT", 0),
    ],
)
def test_when_to_ask_again_is_read_as_seconds_or_as_a_date_up_to_the_timeout(status, header, seconds):
    response = SimpleNamespace(status_code=status, headers={"retry-after": header})
    assert over_http.retry_after_s(response, 30.0) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("body", "text"), [(b"out \xff of memory", "out \ufffd of memory"), (b'{"error": {"message": "busy"}}', "busy")]
)
def test_an_error_that_is_no_text_is_read_as_far_as_it_is(body, text):
    assert over_http.Response(500, {}, body).error_text() == text
