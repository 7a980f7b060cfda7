"""The stand-in as a server: the rest of the protocol, slots, and its life."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import ollama
import pytest
import stand_in
from stand_in import (
    StandIn,
    choose_by_hash,
)
from stand_in.__main__ import main
from stand_in_clients import SCHEMA, WHICH, ask, ask_all, client_of, plain, until

from prism_mesa.economy.model import EconomyModel

# -- the rest of the protocol ------------------------------------------------------------------------


def test_models_are_listed_shown_and_loaded_on_first_use():
    with StandIn(models=("llama3.2", "phi3:mini")) as server:
        with client_of(server) as client:
            assert [entry.model for entry in client.list().models] == ["llama3.2:latest", "phi3:mini"]
            assert all(len(entry.digest) == 64 for entry in client.list().models)
            assert client.show("llama3.2").capabilities == ["completion"]
            assert client.ps().models == []
            client.chat("LLama3.2", WHICH)
            [running] = client.ps().models
            assert (running.model, running.context_length, running.size_vram) == ("llama3.2:latest", 4096, 0)
            assert client.generate("llama3.2", "", keep_alive=0).done_reason == "unload"
            assert client.ps().models == []
            assert client.chat("phi3:mini", []).done_reason == "load"
        assert plain("GET", server, "/api/version").json() == {"version": "0.35.0-stand-in"}
        assert plain("GET", server, "/").text == "Ollama is running"
        assert plain("HEAD", server, "/api/tags").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "error"),
    [
        ("POST", "/api/chat", b"", 400, "missing request body"),
        ("POST", "/api/chat", b"{oops", 400, "invalid character 'o' looking for beginning of value"),
        ("POST", "/api/chat", b"[1]", 400, "json: cannot unmarshal body into Go value of type dict"),
        ("POST", "/api/chat", b"{}", 400, "model is required"),
        ("POST", "/api/show", b"{}", 400, "model is required"),
        ("POST", "/api/generate", b"{}", 404, "model '' not found"),
        ("POST", "/api/chat", b'{"model": "gemma"}', 404, "model 'gemma' not found"),
        ("POST", "/api/show", b'{"model": "gemma"}', 404, "model 'gemma' not found"),
        (
            "POST",
            "/api/chat",
            b'{"model": "llama3.2", "top_logprobs": 21}',
            400,
            "top_logprobs must be between 0 and 20",
        ),
        ("POST", "/api/chat", b'{"model": "llama3.2", "think": true}', 400, '"llama3.2" does not support thinking'),
        ("POST", "/api/chat", b'{"model": "llama3.2", "format": "xml"}', 500, r'invalid format: "\"xml\""; expected '),
        ("GET", "/api/chat", b"", 405, None),
        ("GET", "/v1/models", b"", 404, None),
    ],
)
def test_what_ollama_refuses_is_refused_in_its_words(server, method, path, content, status, error):
    reply = plain(method, server, path, content=content)
    assert reply.status_code == status
    assert error is None or reply.json()["error"].startswith(error)


def test_requests_may_come_in_pieces_and_several_at_once(server):
    body = json.dumps({"model": "llama3.2", "messages": WHICH, "stream": False}).encode()
    request = b"POST /api/chat HTTP/1.1\r\nHost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        for piece in (request[:9], request[9:60], request[60:] + request + request):
            connection.sendall(piece)
            time.sleep(0.01)
        received = b""
        while received.count(b'"done": true') < 3:
            received += connection.recv(65536)
    assert received.count(b"HTTP/1.1 200 OK") == 3


# -- slots -------------------------------------------------------------------------------------------


def test_slots_are_never_exceeded_and_all_are_used():
    with StandIn(slots=3, latency=0.005) as server:
        assert all(reply.done for reply in ask_all(server, 60))
        assert (server.n_requests, server.max_busy) == (60, 3)


def test_beyond_the_queue_a_request_is_turned_away_at_once():
    replies = []
    with StandIn(slots=2, queue=3, fault=lambda number, body: "timeout" if number <= 2 else None) as server:
        thread = threading.Thread(target=lambda: replies.extend(ask_all(server, 10)))
        thread.start()
        until(lambda: server.n_requests == 10)
        assert (server.max_busy, server.n_waiting) == (2, 3)
        server.release()
        thread.join()
    busy = [reply for reply in replies if isinstance(reply, ollama.ResponseError)]
    assert len(busy) == 5
    assert {error.status_code for error in busy} == {503}
    assert busy[0].error == "server busy, please try again.  maximum pending requests exceeded"


@pytest.mark.slow
def test_two_hundred_questions_through_four_slots_all_get_their_answers():
    with StandIn(latency=0.01) as server:
        replies = ask_all(server, 200, max_connections=8)
        assert server.max_busy == 4
    for i, reply in enumerate(replies):
        assert reply.message.content == choose_by_hash({"prompt": f"{i}?", "format": SCHEMA}).text


def test_latency_may_depend_on_the_request():
    seen = []

    def latency(number, body):
        seen.append((number, body["messages"][0]["content"]))
        return 0.001

    with StandIn(latency=latency) as server:
        ask(server, "a")
        ask(server, "b")
    assert seen == [(1, "a"), (2, "b")]


def test_a_client_that_gives_up_frees_its_slot():
    with StandIn(slots=1, latency=30) as server:
        with client_of(server, 0.1) as client, pytest.raises(httpx.ReadTimeout):
            client.chat("llama3.2", WHICH)
        server.latency = 0
        assert ask(server).done


def test_a_client_that_gives_up_frees_its_place_in_the_queue():
    with StandIn(slots=1, queue=1, latency=0.4) as server:
        first = threading.Thread(target=ask, args=(server,))
        first.start()
        until(lambda: server.n_requests == 1)
        with client_of(server, 0.1) as client, pytest.raises(httpx.ReadTimeout):
            client.chat("llama3.2", WHICH)
        until(lambda: server.n_requests == 2 and server.n_waiting == 0)
        assert ask(server).done
        first.join()
        assert (server.n_requests, server.max_busy) == (3, 1)


# -- its life ----------------------------------------------------------------------------------------


def test_a_server_dies_with_its_requests_and_comes_back_at_the_same_address():
    with StandIn(slots=1, latency=30) as server:
        url = server.url
        replies = []
        thread = threading.Thread(target=lambda: replies.extend(ask_all(server, 3)))
        thread.start()
        until(lambda: server.n_requests == 3)
        server.stop()
        thread.join()
        assert {type(reply) for reply in replies} <= {httpx.RemoteProtocolError, httpx.ReadError}
        with pytest.raises(ConnectionError, match="Failed to connect"):
            ask(server)
        with pytest.raises(httpx.ConnectError):
            ask(server, stream=True)
        server.latency = 0
        server.start()
        assert server.url == url
        assert ask(server).done
        assert server.n_requests == 4


def test_nothing_is_left_after_it(server):
    assert ask(server).done
    server.stop()
    server.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "stand-in"]
    with pytest.raises(ConnectionError):
        ask(server)


@pytest.mark.slow
def test_the_command_says_how_to_use_it_and_ends_on_ctrl_c():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = os.environ | {"PYTHONPATH": str(Path(stand_in.__file__).parents[1])}
    command = [sys.executable, "-m", "stand_in", "--port", str(port), "--latency-ms", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        line = process.stdout.readline()
        with ollama.Client(f"http://127.0.0.1:{port}", timeout=5, trust_env=False) as client:
            assert client.chat("llama3.2", WHICH).done
        process.send_signal(2)
        try:
            assert (process.wait(20), process.stderr.read()) == (0, "")
        finally:
            process.kill()
    assert f"prism run reasoner.kind=ollama reasoner.host=http://127.0.0.1:{port} reasoner.model=llama3.2" in line


@pytest.mark.parametrize("settings", [{}, {"economy_deliberate": True}, {"economy_domain": "trade"}], ids=str)
def test_it_answers_nations_with_policies_that_are_read(server, settings):
    ollama_at = {"reasoner_kind": "ollama", "reasoner_host": server.url, "reasoner_model": "llama3.2"}
    model = EconomyModel(economy_policy="llm", rng=1, **ollama_at, **settings)
    model.run_for(2)
    model.close()
    assert model.read_by["answer"] + model.read_by["parser"] == 10
    assert model.totals["not_understood"] == 0
    assert model.totals["accepted"] >= 3


def test_a_question_that_names_no_instruments_is_not_answered_with_a_policy(client):
    schema = {"type": "object", "properties": {"action": {"type": "string"}}, "required": ["action"]}
    said = client.chat("llama3.2", WHICH, format=schema).message.content
    assert json.loads(said)["action"] in {"yes", "no"}


def test_the_command_says_when_the_port_is_taken(server, capsys):
    assert main(["--port", str(server.port)]) == 2
    assert "Take another --port" in capsys.readouterr().err
