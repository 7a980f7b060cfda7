"""Questions of Ann and others, and who answers them."""

import json

from prism_mesa.domain import Post
from prism_mesa.reasoner import Persona, PlacedQuestion, Question
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING


POST = Post(text="Rain again", author_name="Bo")


def says(state):
    return json.dumps({"next_state": state.value})


def ask(name="Ann", *, options=(C, S), post=POST, **place):
    return PlacedQuestion(Question(Persona(name), AgentState.EVALUATING, "decides", options, post), **place)


class Script:
    """An LLM that says one thing after another and remembers what it was asked."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.prompts = []

    def __call__(self, prompt):
        self.prompts.append(prompt)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply
