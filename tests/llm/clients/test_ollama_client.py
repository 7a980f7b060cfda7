"""The client of Ollama: asking, faults, and the check of the server."""

import asyncio
import gc

import pytest
from ollama_server import as_json, chat_answer, drip, drop, late, models, raw, serving

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm import OllamaChatClient


def chat(client, **given):
    return asyncio.run(client.chat("Which?", **given))


# -- asking ------------------------------------------------------------------------------------------


def test_an_answer_comes_with_its_tokens_and_its_time():
    with serving(chat_answer("hello")) as server:
        completion = chat(OllamaChatClient(host=server.url))
    assert (completion.text, completion.prompt_tokens, completion.completion_tokens) == ("hello", 900, 8)
    assert completion.latency_ms > 0


def test_the_server_is_sent_the_model_the_schema_and_every_decoding_option():
    schema = {"type": "object"}
    with serving(chat_answer("a"), chat_answer("b")) as server:
        client = OllamaChatClient("tiny", server.url, temperature=0.5, seed=40)
        chat(client, schema=schema)
        chat(client, seed_offset=2)
    first, second = server.sent
    assert (first["model"], first["format"], first["stream"]) == ("tiny", schema, False)
    assert first["options"] == {"temperature": 0.5, "seed": 40, "num_predict": 256}
    assert first["messages"] == [{"role": "user", "content": "Which?"}]
    assert second["options"]["seed"] == 42
    assert client.decoding == {"temperature": 0.5, "seed": 40, "max_tokens": 256}
    assert "logprobs" not in first


def test_log_probabilities_come_where_they_are_asked_for():
    tops = [{"token": "A", "logprob": -0.1}, {"token": "B", "logprob": -3}]
    place = {"token": "A", "logprob": -0.1, "top_logprobs": tops}
    alone = {"token": "!", "logprob": -0.5}
    with serving(chat_answer("A!", logprobs=[place, alone])) as server:
        completion = chat(OllamaChatClient(host=server.url), top_logprobs=2)
    assert (server.sent[0]["logprobs"], server.sent[0]["top_logprobs"]) == (True, 2)
    assert completion.top_logprobs == ((("A", -0.1), ("B", -3.0)), (("!", -0.5),))


THOUGHT = {"role": "assistant", "content": "", "thinking": "hm"}
FAULTS = [
    ("timeout", late, r"no answer within 0\.3 s"),
    ("timeout", drip, r"no answer within 0\.3 s"),
    ("dropped", drop, "the connection broke"),
    ("dropped", raw(200, b'{"mess', announced=500), "the connection broke"),
    ("http-404", as_json(404, {"error": "model 'llama3.2' not found"}), r"not found \(status 404\)"),
    ("http-400", as_json(400, {"error": {"code": 7, "message": "bad format"}}), "bad format"),
    ("busy", as_json(503, {"error": "server busy, please try again"}), "server busy"),
    ("server-error", as_json(500, {"error": "out of memory"}), "out of memory"),
    ("server-error", as_json(500, ["out", "of", "memory"]), "status 500"),
    ("not-json", raw(200, b"<html>Welcome</html>"), "the answer is not JSON"),
    ("wrong-shape", as_json(200, {"message": "hi", "done": True}), "not a chat answer"),
    ("wrong-shape", as_json(200, [1, 2]), "not a chat answer"),
    ("empty", chat_answer(""), "the answer is empty"),
    ("thought", chat_answer(None, message=THOUGHT), "all its 8 tokens are a thought"),
    ("partial", chat_answer('{"next_', done=False), "broke off"),
]


@pytest.mark.parametrize(("reason", "reply", "said"), FAULTS, ids=[f"{i}-{fault[0]}" for i, fault in enumerate(FAULTS)])
def test_every_fault_has_its_own_reason_and_says_what_happened(reason, reply, said):
    with serving(reply) as server, pytest.raises(OracleError, match=said) as caught:
        chat(OllamaChatClient(host=server.url, timeout_s=0.3))
    assert caught.value.reason == reason
    assert str(caught.value).startswith(f"Ollama llama3.2 at {server.url}: ")


@pytest.mark.slow
def test_each_question_has_a_connection_of_its_own_which_is_closed():
    with serving(*[chat_answer("x")] * 6) as server:

        async def thrice(client):
            for _ in range(3):
                await client.chat("p")

        client = OllamaChatClient(host=server.url)
        for _ in range(2):
            asyncio.run(thrice(client))
        assert len(server.connections) == 6  # so nothing that a server sends after an answer is taken for the next
        del client
        gc.collect()  # a socket left open would warn here, and warnings are errors


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"host": "ftp://x"}, r"reasoner.host: 'ftp://x' is not an address; give one like http://"),
        ({"host": "http://x:99999"}, "is not an address"),
        ({"host": "http://" + "a" * 64}, "is not an address"),
        ({"model": " "}, "reasoner.model: empty"),
        ({"timeout_s": 0}, "reasoner.timeout_s: 0 is not"),
        ({"temperature": -1}, "reasoner.temperature: -1 is not a number from 0"),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong, complaint):
    with pytest.raises(ConfigError, match=complaint):
        OllamaChatClient(**wrong)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("gpu01", "http://gpu01:11434"),
        ("http://gpu01", "http://gpu01:80"),
        ("https://me:secret@gpu01/ollama/", "https://gpu01:443/ollama"),
        ("[::1]", "http://[::1]:11434"),
    ],
)
def test_an_address_is_completed_as_ollama_does_and_shows_no_password(host, address):
    assert OllamaChatClient(host=host).host == address


def test_a_proxy_does_not_stand_between_us_and_this_machine(monkeypatch, nobody):
    monkeypatch.setenv("HTTP_PROXY", nobody)
    monkeypatch.setenv("http_proxy", nobody)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with serving(chat_answer("x")) as server:
        client = OllamaChatClient(host=server.url)
        client.check()
        assert chat(client).text == "x"


# -- checking ----------------------------------------------------------------------------------------


def test_a_check_keeps_the_digest_and_the_servers_version():
    with serving(tags=models("llama3.2:1b", "llama3.2:latest")) as server:
        client = OllamaChatClient("llama3.2", server.url)
        client.check()
    assert (client.digest, client.server_version) == ("digest of llama3.2:latest", "0.99")


@pytest.mark.parametrize("version", [raw(404, b"no such page"), as_json(200, ["0.99"])])
def test_a_server_that_does_not_tell_its_version_still_passes(version):
    with serving() as server:
        server.gets["/api/version"] = version
        client = OllamaChatClient(host=server.url)
        client.check()
    assert client.server_version == ""


def test_a_server_that_is_not_there_fails_the_check_in_one_line_that_says_what_to_do(nobody):
    line = rf"^reasoner.host: {nobody} does not answer \(connection refused\): start it with 'ollama serve', or "
    with pytest.raises(ConfigError, match=line + "set reasoner.kind=rule$"):
        OllamaChatClient(host=nobody).check()


def test_a_missing_model_fails_the_check_with_what_there_is():
    with serving(tags=models("phi3:latest", "gemma:2b")) as server:
        line = r"^reasoner.model: 'x' is not on the server \(it has: gemma:2b, phi3:latest\): 'ollama pull x'$"
        with pytest.raises(ConfigError, match=line):
            OllamaChatClient("x", server.url).check()


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        (late, r"no answer within 0\.2 s"),
        (as_json(500, {"error": "x"}), "status 500"),
        (raw(200, b"<html>"), "not an Ollama"),
        (as_json(200, {"data": []}), "not an Ollama"),
    ],
)
def test_a_server_that_answers_wrongly_fails_the_check(tags, said):
    with serving(tags=tags) as server, pytest.raises(ConfigError, match=rf"does not answer \(.*{said}"):
        OllamaChatClient(host=server.url, timeout_s=0.2).check()
