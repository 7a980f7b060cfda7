"""Limit the small embedded LLM to answers that name one of the agent's activities; otherwise it rambles."""

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pydantic import BaseModel, Field, JsonValue, create_model

from prism_mesa.deliberation import Example, ReasoningResult
from prism_mesa.llm.text import NAME_CAP, clean_text
from prism_mesa.social.content.activity import Activity

_PAST_VERBS: Final = {"post": "posted", "like": "liked", "reply": "replied to", "reshare": "reshared"}
_TEXT_WIDTH: Final = 90


class ConstrainedRecall(BaseModel):
    """An answer: what the agent did."""

    what: str


def _example(question: str, understanding: str, plan: str, answer: str) -> Example:
    thought = ReasoningResult(understanding=understanding, needs="They want to know what I did.", plan=plan)
    return Example(question, ConstrainedRecall(what=answer).model_dump_json(), thought)


EXAMPLES: Final = (
    _example(
        "What did you say about trams?",
        "They ask what I said about trams.",
        "Tell them what I replied.",
        "In round 2 I replied to Jo Lind (The new tram line opens on Monday.): I will believe it when I sit in it.",
    ),
    _example(
        "Did you like anything?",
        "They ask which posts I liked.",
        "Name the post.",
        "In round 1 I liked Ann Bo's post (Finally ran my first marathon, 42 kilometres in the rain.).",
    ),
)
"""Examples of thoughts and answers for an LLM that imitates examples."""
FREE_EXAMPLES: Final = tuple(
    replace(example, response=ConstrainedRecall.model_validate_json(example.response).what) for example in EXAMPLES
)


def make_recall_form(activities: Sequence[Activity]) -> type[ConstrainedRecall]:
    """Return a response type that allows one of the activities; without activities, only "I do not know."."""
    answers: list[JsonValue] = [*dict.fromkeys(map(first_person_text, activities))] or ["I do not know."]
    # this class name is a part of ledger keys, so it must never change
    return create_model(
        "Recollection", __base__=ConstrainedRecall, what=(str, Field(json_schema_extra={"enum": answers}))
    )


def first_person_text(activity: Activity) -> str:
    """Return an activity in the agent's words.

    >>> first_person_text(Activity(3, "reply", 17, "Ada Lopez", "Rain again.", "It suits me."))
    'In round 3 I replied to Ada Lopez (Rain again.): It suits me.'
    """
    texts = (clean_text(part, 400) for part in (activity.text, activity.words))
    text, words = (textwrap.shorten(part, _TEXT_WIDTH, placeholder=" ...") for part in texts)
    if activity.action == "post":
        return f"In round {activity.round} I posted: {text}"
    target_text = clean_text(activity.author, NAME_CAP) + ("" if activity.action == "reply" else "'s post")
    quotes = f"quoting {clean_text(activity.quotes, NAME_CAP)}: " if activity.quotes else ""
    sentence = f"In round {activity.round} I {_PAST_VERBS[activity.action]} {target_text} ({quotes}{text})"
    return sentence + (f": {words}" if words else ".")
