"""Clients that functions play, and how they are asked."""

import asyncio
import json

import pytest
from pydantic import BaseModel

from prism_mesa.errors import LLMFailureException
from prism_mesa.llm import FunctionClient, LLMParams
from prism_mesa.llm.clients.event_loop import run_now


class Said(BaseModel):
    word: str


def says(word):
    return json.dumps({"word": word})


def nobody(prompt):
    raise AssertionError("nobody is to be asked")


def toy(function):
    """Return a function as an LLM; all of them have one name, so that their keys are equal."""
    return FunctionClient(function, "toy")


def one_after_another(*replies):
    """Return an LLM that says (or raises) one thing after another; its prompts are in `.prompts`."""
    left, prompts = list(replies), []

    def llm(prompt):
        prompts.append(prompt)
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    llm.prompts = prompts
    return llm


def quick(**given):
    return LLMParams(**({"kind": "python", "timeout_s": 60.0, "backoff_s": 0.001} | given))


def ask(client, prompt="What now?", form=Said, **more):
    return run_now(client.call_with_retry(prompt, form, **more))


def failure(client, prompt="What now?", form=Said, **more):
    """Return the failure that asking ends in."""
    with pytest.raises(LLMFailureException, match=r"gave the \w+ no usable answer|is useless") as caught:
        ask(client, prompt, form, **more)
    return caught.value


async def found_or_failed(client, prompts, **more):
    """Return what becomes of some prompts that are out at the same time."""
    work = (client.call_with_retry(prompt, Said, **more) for prompt in prompts)
    return await asyncio.gather(*work, return_exceptions=True)
