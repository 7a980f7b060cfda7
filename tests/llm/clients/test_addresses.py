"""A password in the address of a server reaches that server, and is written and said nowhere else."""

import asyncio
import base64
import json

import pytest
from ollama_server import chat_answer, serving
from stand_in import StandIn
from test_openai_client import listing, says
from worlds import plain

from prism_mesa.analysis.interview.interview import Interview
from prism_mesa.errors import ConfigError, PrismError, redact_credentials
from prism_mesa.llm import OllamaChatClient, OpenAIChatClient
from prism_mesa.runs.config import make_config
from prism_mesa.runs.social import run

SECRET, TOKEN = "hunter2-and-more", "tok-1234567890"
WORLD = plain(
    {"agents": {"n": 30, "activity": 0.9, "band": 0.4}, "network": {"mean_degree": 6}, "rounds": 2, "seed": 7}
)


def with_secrets(url):
    return url.replace("http://", f"http://me:{SECRET}@") + f"/?api_key={TOKEN}"


def noting(seen, reply):
    def answer(handler):
        seen.append((handler.path, handler.headers.get("Authorization", "")))
        reply(handler)

    return answer


def files_of(folder):
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def assert_nowhere(folder):
    for name, held in files_of(folder).items():
        assert SECRET.encode() not in held, name
        assert TOKEN.encode() not in held, name


def test_ollama_is_sent_the_password_and_the_key_of_its_address():
    seen = []
    with serving(noting(seen, chat_answer("hello"))) as server:
        client = OllamaChatClient(host=with_secrets(server.url))
        assert asyncio.run(client.chat("?")).text == "hello"
        assert (SECRET in client.label, TOKEN in client.label) == (False, False)
    [(path, authorization)] = seen
    assert path.endswith(f"?api_key={TOKEN}")
    assert base64.b64decode(authorization.removeprefix("Basic ")).decode() == f"me:{SECRET}"


def test_a_server_of_openais_protocol_is_sent_the_password_in_place_of_the_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    seen = []
    with serving(noting(seen, says("hello"))) as server:
        server.gets["/models?api_key=" + TOKEN] = noting(seen, listing("tiny"))
        client = OpenAIChatClient("tiny", with_secrets(server.url))
        client.check()
        assert asyncio.run(client.chat("?")).text == "hello"
    assert all(path.endswith(f"?api_key={TOKEN}") for path, _ in seen)
    assert {base64.b64decode(sent.removeprefix("Basic ")).decode() for _, sent in seen} == {f"me:{SECRET}"}


def test_a_run_and_a_talk_keep_no_password(tmp_path):
    with StandIn(slots=8) as server:
        host = server.url.replace("http://", f"http://me:{SECRET}@")
        result = run(WORLD | {"reasoner": {"kind": "ollama", "host": [host]}}, out=tmp_path)
        with Interview(result.run_dir, "3", overrides=[f"reasoner.host={host}"], out=tmp_path) as talk:
            list(talk.chat_stream("What did you do?"))
            talk.save()
    assert result.summary["decisions"]["llm"]["calls"] > 0
    assert SECRET not in json.dumps(result.summary)
    assert json.loads((result.run_dir / "manifest.json").read_text())["config"]["reasoner"]["host"] == [server.url]
    assert_nowhere(tmp_path)


@pytest.mark.parametrize(
    "host",
    [
        f"http://me:{SECRET}@127.0.0.1:1",
        f"http://me:{SECRET}@ no host",
        f"http://127.0.0.1:1?x=1&access_token={SECRET}",
    ],
)
def test_no_error_says_a_password(host, tmp_path):
    config = make_config(WORLD | {"reasoner": {"kind": "ollama", "host": host}})
    with pytest.raises(ConfigError, match=r"reasoner\.host") as said:
        run(config, out=tmp_path)
    assert SECRET not in str(said.value)
    assert not any(tmp_path.iterdir())


def test_no_command_shows_a_password(prism):
    code, out, err = prism("run", "reasoner.kind=ollama", f"reasoner.host=me:{SECRET}@127.0.0.1:1", "agents.n=10")
    assert (code, SECRET in out + err) == (2, False)
    code, out, err = prism("run", "agents.n=10", f"reasoner={{kind: ollama, host: [3, 'http://me:{SECRET}@h']}}")
    assert (code, SECRET in out + err) == (2, False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("https://me:pass@host:8000/v1: refused", "https://host:8000/v1: refused"),
        ("http://tok@h, http://a:b@[::1]:80", "http://h, http://[::1]:80"),
        ("reasoner.host=me:pass@h", "reasoner.host=h"),
        ("GET http://h/x?api_key=abc&n=1#f", "GET http://h/x?api_key=***&n=1#f"),
        ("write to me@example.org, or see https://example.org/@me", None),
        ("module:object@1", None),
        ("at 12:30 @home", None),
    ],
)
def test_what_is_cut_out_of_texts_are_passwords_and_nothing_else(text, said):
    if text == "module:object@1":
        said = "1"  # who asks and a server cannot be told from that: rather too much than too little
    assert redact_credentials(text) == (text if said is None else said)
    assert str(PrismError(text)) == (text if said is None else said)
