"""Reasoners under limits, and what they are asked."""

import asyncio
import json
from collections import Counter
from hashlib import sha256

from prism_mesa.domain import Post
from prism_mesa.errors import OracleError
from prism_mesa.llm import Completion
from prism_mesa.reasoner import Persona, PlacedQuestion, Question
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING


MOST_SAID = 20


FREE = ("refused", "busy", "http-400")


def ask(name, *, relevance=0.5, low=0.4, high=0.6, **place):
    persona = Persona(name, low=low, high=high)
    return PlacedQuestion(
        Question(persona, AgentState.EVALUATING, "decides", (C, S), Post(text="x", relevance=relevance)), **place
    )


def dice(*parts):
    """Return a number below 2**16 that depends on nothing else."""
    return int.from_bytes(sha256(repr(parts).encode()).digest()[:2])


class Till:
    """An LLM that counts what it really took, by round, which is the first word of who asks.

    Fails as `fate` says of (name, attempt), answers after `wait` of them.
    """

    name = "till"

    def __init__(self, fate=lambda *_: "", wait=lambda *_: 0.0):
        self.decoding = {"max_tokens": MOST_SAID}
        self.fate, self.wait = fate, wait
        self.calls, self.tokens = Counter(), Counter()
        self.asked = []

    async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
        name = prompt.split("You are <<< ")[1].split(" >>>")[0]
        of_round = name.split()[0]
        self.calls[of_round] += 1
        self.asked.append(name)
        read, said = dice("read", name) % len(prompt.encode()) + 1, dice("said", name) % MOST_SAID + 1
        fate = self.fate(name, seed_offset)
        if fate not in FREE:
            self.tokens[of_round] += read + said
        await asyncio.sleep(self.wait(name, seed_offset))
        if fate and fate != "useless":
            raise OracleError(fate, "on purpose")
        chosen = (C, S)[dice("choice", name) % 2].value
        return Completion("Sure!" if fate else json.dumps({"next_state": chosen}), read, said)
