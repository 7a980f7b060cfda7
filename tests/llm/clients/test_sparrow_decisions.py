"""A small decision model with its own server, sparrow-decider: its answers are recorded as it gives them."""

import asyncio
import json
import socket
import subprocess
import sys
import time

import pytest

from prism_mesa.errors import OracleError
from prism_mesa.llm import Ledger, OllamaChatClient, OpenAIChatClient
from prism_mesa.llm.decision import Decision
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, ReasonerParams, make_reasoner
from prism_mesa.reasoner.prompt import decision_form
from prism_mesa.statechart import AgentState

sparrow = pytest.importorskip("sparrow_decider")


@pytest.fixture(scope="module")
def host():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from sparrow_decider.cli import main; main()", "serve", "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1"
        server.terminate()


def test_its_decisions_are_recorded_as_it_gives_them(host, tmp_path):
    options = (AgentState.COMPOSING, AgentState.SCROLLING)
    who = [Persona(name, interests) for name, interests in (("Ann", ("rain",)), ("Bo", ("football",)))]
    asks = [PlacedQuestion(Question(one, AgentState.EVALUATING, "decides", options), agent=0) for one in who]
    own = ReasonerParams(kind="openai", model="nano", host=host, answer="decision", decision_orders=2)
    with Ledger(tmp_path / "l.sqlite") as ledger, make_reasoner(own) as reasoner:
        reasoner.record(ledger, "run")
        answers = reasoner.answer(asks)
        stored = {one.key: one for one in ledger.answers()}
    decider = sparrow.Decider.load()
    for answer in answers:
        one = stored[answer.key]
        told = json.loads(one.raw)
        form = decision_form(options, 2)
        said = [decider.ask(one.prompt, {"answer": form.question(order)})["answer"] for order in told["asked"]]
        shares = [[given["probabilities"][name] for given in said] for name in ("composing", "scrolling")]
        assert answer.probabilities == pytest.approx([sum(pair) / 2 for pair in shares], abs=1e-3)
        assert told["said"][0]["model"] == decider.name
    assert (reasoner.usage["calls"], reasoner.usage["prompt_tokens"]) == (4, 0)


def test_its_score_is_read_and_its_refusal_named(host):
    client = OpenAIChatClient("nano", host)
    form = Decision(("not urgent", "soon", "now"), "How urgent?", scale=True)
    reply = asyncio.run(form.ask(client, "The house is on fire."))
    assert sum(form.read(reply.text)) == pytest.approx(1)
    with pytest.raises(OracleError, match="at least 2") as caught:
        asyncio.run(client.decide("x", {"type": "choice", "instructions": "?", "criteria": {"only": None}}))
    assert caught.value.reason == "http-422"


def test_it_is_asked_as_an_ollama_server_too(host):
    form = Decision(("yes", "no"), "Does it rain?")
    reply = asyncio.run(form.ask(OllamaChatClient("nano", host.removesuffix("/v1"), keep_alive="5m"), "It rains."))
    assert sum(form.read(reply.text)) == pytest.approx(1)
