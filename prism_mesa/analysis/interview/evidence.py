"""Compare an answer with an agent's records, by names, rounds and shared words."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

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
