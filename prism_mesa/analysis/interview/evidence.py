"""Compare an answer with an agent's records, by names, rounds and shared words, and limit answers to these records.

The small embedded LLM must name one of the agent's activities (`ConstrainedRecall`); otherwise it rambles.
"""

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from pydantic import BaseModel, Field, JsonValue, create_model

from prism_mesa.deliberation import Example, ReasoningResult
from prism_mesa.llm.text import NAME_CAP, clean_text
from prism_mesa.runs.archive import AgentSnapshot
from prism_mesa.social.content.activity import Activity
from prism_mesa.social.state.topics import STOP_WORDS, split_words

MIN_SHARED_WORDS: Final = 3  # content words that an answer and an activity must share
_MAX_SHORT_WORD: Final = 4
_ROUNDS: Final = re.compile(r"\brounds?\s+#?(\d+(?:\s*(?:,|&|-|and|or|to)+\s*\d+)*)", re.IGNORECASE)


def content_words(text: str) -> set[str]:
    """Return the lowercase words of more than four letters in a text, except stop words.

    >>> sorted(content_words("There is more to Cooking than that pan."))
    ['cooking']
    """
    return {word for word in split_words(text) if len(word) > _MAX_SHORT_WORD} - STOP_WORDS


def mentioned_rounds(answer: str) -> set[int]:
    """Return the rounds that an answer mentions by number.

    >>> sorted(mentioned_rounds("In round 3, and rounds 5 and 7; 4 posts"))
    [3, 5, 7]
    """
    return {int(number) for numbers in _ROUNDS.findall(answer) for number in re.findall(r"\d+", numbers)[:100]}


def find_references(answer: str, activities: Sequence[Activity]) -> list[Activity]:
    """Return the activities that an answer refers to, oldest first.

    An activity counts if the answer names the round ("round 7") or the post's author in full, or shares at least three
    content words with the post or the agent's own words. It does not count if another activity has the same evidence
    and more.

    This shows where an answer may come from, not whether it is right: "I never replied to Ada Lopez" refers to a reply
    to her, common words refer to many posts, and a paraphrase refers to none.
    """
    words, rounds = content_words(answer), mentioned_rounds(answer)
    evidence = [_evidence(activity, answer, words, rounds) for activity in activities]
    return [
        activity
        for activity, evidence_set in zip(activities, evidence, strict=True)
        if evidence_set and not any(evidence_set < other for other in evidence)
    ]


def _evidence(activity: Activity, answer: str, words: set[str], rounds: set[int]) -> frozenset[str]:
    """Return the evidence in an answer for an activity: its round, the author's name, and shared words."""
    shared_words = words & content_words(f"{activity.text} {activity.words}")
    names = {f"by {name}" for name in (activity.author, activity.quotes) if contains_name(name, answer)}
    round_evidence = {f"round {activity.round}"} if activity.round in rounds else set()
    return frozenset(names | round_evidence | (shared_words if len(shared_words) >= MIN_SHARED_WORDS else set()))


def find_unrecorded(answer: str, snapshot: AgentSnapshot, names: Iterable[str]) -> list[str]:
    """Return the rounds and users that an answer mentions but the agent's activities and notes do not.

    Such a claim may still be true, because agents also read posts without reacting. Other claims are not checked.
    `names` are the names of all users in the run.
    """
    activities, notes = snapshot.activities, " ".join(snapshot.notes)
    known_text = " ".join([notes, *(f"{a.author} {a.quotes} {a.text} {a.words}" for a in activities)])
    rounds = mentioned_rounds(answer) - {activity.round for activity in activities} - mentioned_rounds(notes)
    mentioned = {name for name in names if contains_name(name, answer)} - {snapshot.name}
    unknown = [name for name in sorted(mentioned) if not contains_name(name, known_text)]
    return [*(f"round {number}" for number in sorted(rounds)), *unknown]


def contains_name(name: str, text: str) -> bool:
    """Return whether a text contains a full name; always False for names without letters, such as numbers."""
    if name not in text or not any(map(str.isalpha, name)):
        return False
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


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
