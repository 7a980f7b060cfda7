"""Questions for an oracle."""

import math

from prism_mesa.domain import Post
from prism_mesa.llm import Completion
from prism_mesa.reasoner import Persona, Question
from prism_mesa.statechart import AgentState

C, S, REST = AgentState.COMPOSING, AgentState.SCROLLING, AgentState.RESTING


def question(options=(C, S), **persona):
    who = Persona(**({"name": "Ann", "interests": ("art",)} | persona))
    return Question(who, AgentState.EVALUATING, "decides", options, Post(text="Rain again"))


class Logged:
    """An LLM that tells log-probabilities: for each place of its answer, token -> probability."""

    name = "logged"

    def __init__(self, *places, text="A"):
        self.decoding = {"temperature": 0, "max_tokens": 16}
        self.digest, self.label = "d7", "Logged at home"
        self.places, self.text = places, text
        self.asked = []

    async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
        self.asked.append((prompt, schema, seed_offset, top_logprobs))
        told = tuple(
            tuple((token, math.log(p) if p else -math.inf) for token, p in place.items()) for place in self.places
        )
        return Completion(self.text, 90, 1, 5.0, told)
