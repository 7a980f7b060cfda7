"""Which of an agent's records an answer refers to, by names, rounds and shared words."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from prism_mesa.runs.archive import AgentSnapshot
from prism_mesa.social.content.activity import Activity
from prism_mesa.social.state.topics import STOP_WORDS, words_of

SHARED_WORDS: Final = 3
"""Content words that an answer and an activity must have in common."""
_SHORT: Final = 4
_ROUNDS: Final = re.compile(r"\brounds?\s+#?(\d+(?:\s*(?:,|&|-|and|or|to)+\s*\d+)*)", re.IGNORECASE)


def content_words(text: str) -> set[str]:
    """Return the words of more than four letters, in lowercase, without stop words.

    >>> sorted(content_words("There is more to Cooking than that pan."))
    ['cooking']
    """
    return {word for word in words_of(text) if len(word) > _SHORT} - STOP_WORDS


def rounds_said(answer: str) -> set[int]:
    """Return the rounds that an answer names by number.

    >>> sorted(rounds_said("In round 3, and rounds 5 and 7; 4 posts"))
    [3, 5, 7]
    """
    return {int(number) for found in _ROUNDS.findall(answer) for number in re.findall(r"\d+", found)[:100]}


def refers_to(answer: str, activities: Sequence[Activity]) -> list[Activity]:
    """Return the activities that an answer refers to, oldest first.

    Those are activities whose post's author is named in full, that share at least three content words with the answer
    (with the post or its own words), or whose round is said ("round 7"); but for those of which another activity
    has all that speaks for them, and more. It can tell what an answer may have come from. It cannot tell whether the
    answer is right: "I never replied to Ada Lopez" refers to a reply to her, words that stand in many posts refer to
    all of them, and what is told in other words refers to none.
    """
    words, rounds = content_words(answer), rounds_said(answer)
    found = [(activity, _evidence(activity, answer, words, rounds)) for activity in activities]
    some = [evidence for _, evidence in found if evidence]
    return [activity for activity, own in found if own and not any(own < other for other in some)]


def _evidence(activity: Activity, answer: str, words: set[str], rounds: set[int]) -> frozenset[str]:
    """Return what in an answer speaks for an activity: its round, the author's name, shared words."""
    shared = words & content_words(f"{activity.text} {activity.words}")
    named = {f"by {name}" for name in (activity.author, activity.quotes) if is_named(name, answer)}
    when = {f"round {activity.round}"} if activity.round in rounds else set()
    return frozenset(named | when | (shared if len(shared) >= SHARED_WORDS else set()))


def not_in_records(answer: str, snapshot: AgentSnapshot, names: Iterable[str]) -> list[str]:
    """Return rounds and users that an answer mentions and none of the agent's activities and notes does, in words.

    It can tell that there is no record of something. It cannot tell that it was made up: an agent also reads posts
    that it does nothing about. Of what is neither a round's number nor a user's full name it says nothing.

    Args:
        answer: What the agent said.
        snapshot: The agent.
        names: Of all users of the run.
    """
    known = " ".join(
        [*snapshot.notes, *(f"{one.author} {one.quotes} {one.text} {one.words}" for one in snapshot.activities)]
    )
    rounds = (
        rounds_said(answer)
        - {activity.round for activity in snapshot.activities}
        - rounds_said(" ".join(snapshot.notes))
    )
    others = {name for name in names if is_named(name, answer)} - {snapshot.name}
    return [
        *(f"round {number}" for number in sorted(rounds)),
        *(name for name in sorted(others) if not is_named(name, known)),
    ]


def is_named(name: str, text: str) -> bool:
    """Return whether a name stands in a text in full; a name without a letter, such as a number, never does."""
    if name not in text or not any(map(str.isalpha, name)):
        return False
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
