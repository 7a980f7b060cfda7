"""Clients of the stand-in."""

import asyncio
import time

import httpx
import ollama

from prism_mesa.reasoner.prompt import answer_schema
from prism_mesa.statechart import AgentState

OPTIONS = (AgentState.COMPOSING, AgentState.SCROLLING, AgentState.ENGAGING_LIKE, AgentState.ENGAGING_REPLY)


SCHEMA = answer_schema(OPTIONS)


WHICH = [{"role": "user", "content": "Which?"}]


def client_of(server, timeout=5.0, kind=ollama.Client, **given):
    """Return a real client; without certificates, as reading them takes longer than most tests."""
    return kind(server.url, timeout=timeout, trust_env=False, verify=False, **given)


def async_client_of(server, timeout=5.0, **given):
    return client_of(server, timeout, ollama.AsyncClient, **given)


def plain(method, server, path, **given):
    """Return the reply to a request that the `ollama` package would not send."""
    return httpx.request(method, server.url + path, trust_env=False, verify=False, timeout=5, **given)


def ask(server, prompt="Which?", **given):
    with client_of(server) as client:
        reply = client.chat("llama3.2", [{"role": "user", "content": prompt}], format=SCHEMA, **given)
        return list(reply) if given.get("stream") else reply


def ask_all(server, n, max_connections=None):
    """Ask n questions at once; return the states, or the exceptions."""

    async def run():
        limits = httpx.Limits(max_connections=max_connections)
        async with async_client_of(server, 20, limits=limits) as client:
            chats = [client.chat("llama3.2", [{"role": "user", "content": f"{i}?"}], format=SCHEMA) for i in range(n)]
            return await asyncio.gather(*chats, return_exceptions=True)

    return asyncio.run(run())


def until(condition):
    """Wait for what another thread does."""
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end, "it did not happen within 5 s"
        time.sleep(0.005)
