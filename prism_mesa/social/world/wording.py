"""Other words for the texts of the corpus that comes with PRISM: an opening with the subject, and a remark."""

import json
from functools import cache, lru_cache
from importlib import resources
from math import gcd
from zlib import crc32


@lru_cache(maxsize=1 << 16)
def reworded(subject: str, topic: str, number: int) -> str:
    """Return one of the wordings of a subject: different ones for different numbers, until there are no more.

    The numbers go through all pairs of an opening and a remark in steps of one length. Where they begin, and that
    length, depend on the subject.
    """
    openings, remarks = wordings()
    n = len(openings) * len(remarks[topic])
    begin, steps = crc32(subject.encode()), _step_lengths(n)
    place = (begin + number * steps[begin // n % len(steps)]) % n
    words = f"{openings[place % len(openings)].format(subject)} {remarks[topic][place // len(openings)]}".rstrip()
    return words[0].upper() + words[1:]


@cache
def wordings() -> tuple[list[str], dict[str, list[str]]]:
    """Return openings with a place for a subject, and by topic the remarks that may follow."""
    parts = json.loads((resources.files("prism_mesa.social.world") / "wordings.json").read_bytes())
    return parts["openings"], parts["remarks"]


@cache
def _step_lengths(n: int) -> list[int]:
    """Return the lengths of steps, neither short nor long, that reach all of `n` places on a circle."""
    return [step for step in range(n // 4, 3 * n // 4) if gcd(step, n) == 1]
