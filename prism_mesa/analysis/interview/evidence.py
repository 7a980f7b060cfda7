"""Match an answer with an agent's records by names, rounds and shared words."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from prism_mesa.runs.archive import AgentSnapshot
from prism_mesa.social.content.activity import Activity
from prism_mesa.social.state.topics import STOP_WORDS, words_of

SHARED_WORDS: Final = 3  # content words that an answer and an activity must share
_MAX_SHORT_WORD: Final = 4
_ROUNDS: Final = re.compile(r"\brounds?\s+#?(\d+(?:\s*(?:,|&|-|and|or|to)+\s*\d+)*)", re.IGNORECASE)


def content_words(text: str) -> set[str]:
    """Return the words of more than four letters, in lowercase, without stop words.

    >>> sorted(content_words("There is more to Cooking than that pan."))
    ['cooking']
    """
    return {word for word in words_of(text) if len(word) > _MAX_SHORT_WORD} - STOP_WORDS


def rounds_in(answer: str) -> set[int]:
    """Return the rounds that an answer mentions by number.

    >>> sorted(rounds_in("In round 3, and rounds 5 and 7; 4 posts"))
    [3, 5, 7]
    """
    return {int(number) for numbers in _ROUNDS.findall(answer) for number in re.findall(r"\d+", numbers)[:100]}


def refers_to(answer: str, activities: Sequence[Activity]) -> list[Activity]:
    """Return the activities that an answer refers to, oldest first.

    An activity counts if the answer names the post's author in full or the round ("round 7"), or shares at least three
    content words with the post or the agent's own words. It does not count if another activity has all of this evidence
    and more.
    This shows where an answer may come from, not whether it is right: "I never replied to Ada Lopez" refers to a reply
    to her, common words refer to many posts, and a paraphrase refers to none.
    """
    words, rounds = content_words(answer), rounds_in(answer)
    evidence = [_evidence(activity, answer, words, rounds) for activity in activities]
    return [
        activity
        for activity, evidence_set in zip(activities, evidence, strict=True)
        if evidence_set and not any(evidence_set < other for other in evidence)
    ]


def _evidence(activity: Activity, answer: str, words: set[str], rounds: set[int]) -> frozenset[str]:
    """Return the evidence in an answer for an activity: its round, the author's name, and shared words."""
    shared = words & content_words(f"{activity.text} {activity.words}")
    names = {f"by {name}" for name in (activity.author, activity.quotes) if is_named(name, answer)}
    rounds_named = {f"round {activity.round}"} if activity.round in rounds else set()
    return frozenset(names | rounds_named | (shared if len(shared) >= SHARED_WORDS else set()))


def not_in_records(answer: str, snapshot: AgentSnapshot, names: Iterable[str]) -> list[str]:
    """Return the rounds and users that an answer mentions, but the agent's activities and notes do not.

    Such a claim may still be true, because agents also read posts without reacting. Other claims are not checked.
    `names` holds all users of the run.
    """
    activities, notes = snapshot.activities, " ".join(snapshot.notes)
    known_text = " ".join([notes, *(f"{a.author} {a.quotes} {a.text} {a.words}" for a in activities)])
    rounds = rounds_in(answer) - {activity.round for activity in activities} - rounds_in(notes)
    mentioned = {name for name in names if is_named(name, answer)} - {snapshot.name}
    unknown = [name for name in sorted(mentioned) if not is_named(name, known_text)]
    return [*(f"round {number}" for number in sorted(rounds)), *unknown]


def is_named(name: str, text: str) -> bool:
    """Return whether a text contains a full name; names without letters, such as numbers, do not count."""
    if name not in text or not any(map(str.isalpha, name)):
        return False
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
