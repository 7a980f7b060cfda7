"""Other wordings of PRISM's corpus: an opening with the subject, and a remark."""

import json
from functools import cache, lru_cache
from importlib import resources
from typing import Final
from zlib import crc32

_STEPS: Final = (397, 443, 509, 569, 613, 673, 733, 787, 853, 907, 971, 1039)  # primes, so that steps reach all places


@lru_cache(maxsize=1 << 16)
def reworded(subject: str, topic: str, number: int) -> str:
    """Return a text about a subject, different for each number until all pairs are used."""
    openings, remarks = wordings()
    n = len(openings) * len(remarks[topic])
    begin = crc32(subject.encode())
    place = (begin + number * _STEPS[begin // n % len(_STEPS)]) % n
    words = f"{openings[place % len(openings)].format(subject)} {remarks[topic][place // len(openings)]}".rstrip()
    return words[0].upper() + words[1:]


@cache
def wordings() -> tuple[list[str], dict[str, list[str]]]:
    """Return openings with a place for a subject, and remarks by topic."""
    parts = json.loads((resources.files("prism_mesa.social.world") / "wordings.json").read_bytes())
    return parts["openings"], parts["remarks"]
