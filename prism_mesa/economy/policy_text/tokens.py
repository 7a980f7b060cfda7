"""How a text is cut into terms: phrases of the lexicon, sizes, nations."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from math import isfinite
from typing import NamedTuple

from prism_mesa.economy.policy_text.digits import NUMBER, OF_GDP, UNIT, in_digits, number
from prism_mesa.economy.policy_text.lexicon import LEXICON, LONGEST


class Token(NamedTuple):
    """One term of a text.

    Attributes:
        kind: What the term does: a lever, a key of the lexicon, or `size`, `number`, `nation`, `unknown`, ...
        text: As written; of a nation its name as configured.
        number: Of a `size`: the number as written; a `number` stands alone, without a unit.
        unit: Of a `size`: `points`, `bp` (basis points), `percent`, `gdp` (percent of GDP), `whole` (parts of what is
            there: a half is 0.5). Of a `nation`: `owner` if written with 's.
    """

    kind: str
    text: str
    number: float = 0.0
    unit: str = ""


_QUARTER = r"(?:20[0-9]{2}[ :,-]{0,2}Q[1-4]|Q[1-4],? (?:of )?20[0-9]{2})"
_NOW = (
    rf"\b(?:(?:in|for|during|effective|starting|beginning)(?: in)? )?{_QUARTER}|"
    r"\b(?:(?:over|in|for|during|within|starting|beginning)(?: in)? (?:the |a |1 )?"
    r"(?:next |coming |following |current )?quarter"
    r"|(?:this|next) quarter|this (?:year|month)|(?:effective )?immediately|now|today|at once|right away"
    r"|with immediate effect)\b"
)
_SCHEDULE = (
    rf"\b{_QUARTER} ?(?:to|through|until|till|and|or|[-,\u2013]) ?{_QUARTER}"
    rf"|\b(?:until|till|by|through|from|after|before|since) {_QUARTER}|"
    r"\b(?:(?:each|every|per) (?:quarter|month|year|week|meeting)|gradual(?:ly)?|phased?|step by step"
    r"|in (?:steps|stages|phases)|annually|yearly|quarterly|monthly|temporar(?:y|ily)|later|eventually|next year"
    r"|a (?:year|month)|(?:over|for|within|during|in|by|across|through) (?:the )?(?:next |coming |following )?"
    rf"(?:{NUMBER} |several |a few |few )?(?:years?|months?|weeks?|quarters|decades?)"
    rf"|(?:in|by|from|until|starting) (?:the year )?20[0-9]{{2}}(?![0-9.,]*[0-9]| ?{UNIT}))\b"
)
_RANGE = rf"{NUMBER} ?{UNIT}? ?[-\u2013\u2014~] ?{NUMBER}(?: ?{UNIT})?|\b(?:by|of) {NUMBER} to {NUMBER}"
_DEMONYMS = {
    "American": "United States|United States of America|USA|US",
    "British": "United Kingdom|UK|Great Britain|Britain",
    "Canadian": "Canada",
    "Australian": "Australia",
    "Swedish": "Sweden",
    "Norwegian": "Norway",
    "Danish": "Denmark",
    "German": "Germany",
    "French": "France",
    "Italian": "Italy",
    "Spanish": "Spain",
    "Japanese": "Japan",
    "Chinese": "China",
    "Indian": "India",
    "Mexican": "Mexico",
    "Brazilian": "Brazil",
    "Russian": "Russia",
    "Korean": "Korea|South Korea",
}
_SIZE = (
    rf"(?P<sign>(?<![\w%])[+-] ?)?(?P<amount>{NUMBER})(?: ?of)?(?P<one>(?: (?:an?|1|full|single)){{0,3}}) ?"
    rf"(?P<unit>{UNIT})(?P<gdp>{OF_GDP})?"
)


def _nation_patterns(names: Sequence[str]) -> dict[str, str]:
    """Return patterns of the nations' names and, for those of several words, initials; each with its nation."""
    patterns: dict[str, str] = {}
    initials: dict[str, list[str]] = {}
    for name in sorted(filter(str.strip, names), key=len, reverse=True):
        # Short names ("A", "Us") are words too: only their own spelling counts.
        patterns[re.escape(name) if len(name) > 3 else f"(?-i:{re.escape(name)})"] = name
        first = [word[0] for word in name.split() if word[0].isupper()]
        if len(first) > 1:
            initials.setdefault("".join(first), []).append(name)
    for demonym, meant_by in _DEMONYMS.items():
        patterns |= {f"(?-i:{demonym})": name for name in meant_by.split("|") if name in names}
    for letters, meant in initials.items():
        if len(meant) == 1 and letters not in names:
            dotted = r"\.".join(map(re.escape, letters))
            patterns[rf"(?-i:{re.escape(letters)}|{dotted}(?:\.|\b))"] = meant[0]
    return patterns


@lru_cache(maxsize=16)
def _scanner(names: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return the pattern of a raw token, and the patterns of the nations' names, each with its nation."""
    nations = _nation_patterns(names)
    kinds = {
        "schedule": _SCHEDULE,
        "now": _NOW,
        "nation": rf"(?<!\w)(?:the )?(?P<name>{'|'.join(nations) or '(?!)'})(?P<owner>'s?)?(?!\w)",
        "range": _RANGE,
        "absurd": r"[0-9][0-9.,]*e[+-]?[0-9]+",
        "size": _SIZE,
        "number": rf"(?<![\w%])[+-]?{NUMBER}|{NUMBER}",
        "word": r"(?:[a-z]\.){2,}|[^\W\d_]+(?:'[^\W\d_]+)?",
        "mark": r"\S",
    }
    return re.compile("|".join(f"(?P<{kind}>{p})" for kind, p in kinds.items()), re.IGNORECASE), nations


_MARKS = {",": "and", "&": "and", ":": "filler"} | dict.fromkeys(";.!", "stop") | dict.fromkeys("$€£¥", "money")


def _size(match: re.Match[str]) -> Token:
    amount = number((match["sign"] or "") + match["amount"])
    if not isfinite(amount):
        return Token("absurd", match[0])
    if match["one"] and abs(amount) > 1:  # "0.5 of a point" is a size, "5 a point" is not
        return Token("unknown", match[0])
    word = match["unit"].lower()
    unit = "bp" if word.startswith("b") else "percent" if word in {"%", "percent", "per cent", "pct"} else "points"
    if match["gdp"]:
        return Token("size", match[0], amount / 100 if unit == "bp" else amount, "gdp")
    return Token("size", match[0], amount, unit)


def _raw(text: str, names: tuple[str, ...]) -> list[Token]:
    """Return the tokens of `text` before phrases are looked up: each word is one token of the kind `word`."""
    scanner, nations = _scanner(names)
    raw: list[Token] = []
    for match in scanner.finditer(text):
        kind = match.lastgroup or ""
        if kind == "nation":
            name = next(name for pattern, name in nations.items() if re.fullmatch(pattern, match["name"], re.I))
            owner = match["owner"] or match["name"] in _DEMONYMS
            raw.append(Token("nation", name, unit="owner" if owner else ""))
        elif kind == "size":
            raw.append(_size(match))
        elif kind == "number":
            amount = number(match[0])
            raw.append(Token("number" if isfinite(amount) else "absurd", match[0], amount))
        else:
            raw.append(Token(_MARKS.get(match[0], "unknown") if kind == "mark" else kind, match[0]))
    return raw


def _phrase(raw: Sequence[Token], at: int) -> tuple[int, tuple[str, ...]]:
    """Return how many words the longest known phrase at a place has, and its kinds."""
    words = []
    for token in islice(raw, at, at + LONGEST):
        if token.kind != "word":
            break
        words.append(token.text.lower())
    for length in range(len(words), 0, -1):
        if (kinds := LEXICON.get(" ".join(words[:length]))) is not None:
            return length, kinds
    return 1, ("unknown",)


def _names(raw: Sequence[Token]) -> bool:
    """Return whether a name comes first: "everyone but Sweden"."""
    return bool(raw) and (raw[0].kind == "nation" or not {"vague", "everyone"}.isdisjoint(_phrase(raw, 0)[1]))


def _term(kind: str, text: str, before: str) -> Token:
    if kind.startswith("whole="):
        return Token("size", text, float(kind.removeprefix("whole=")), "whole")
    if kind == "unknown" and text[0].isupper() and before in {"on", "from", "and", "stranger"}:
        return Token("stranger", text)
    return Token(kind, text)


def tokens(text: str, names: Sequence[str]) -> list[Token]:
    """Return the terms of `text` in order; a word that is in no phrase of the lexicon is `unknown`.

    An unknown word in capitals after "on", "from" or "and" may be a name and is a `stranger`. White space is nowhere.

    >>> [token.kind for token in tokens("Raise taxes on Sweden by half a point", ["Sweden"])]
    ['up', 'taxes', 'on', 'nation', 'by', 'size']
    """
    raw = _raw(in_digits(text), tuple(names))
    terms: list[Token] = []
    at = 0
    while at < len(raw):
        if raw[at].kind != "word":
            terms.append(raw[at])
            at += 1
            continue
        length, kinds = _phrase(raw, at)
        if raw[at].text.lower() == "but" and _names(raw[at + 1 :]):
            kinds = ("odd",)
        said = " ".join(token.text for token in raw[at : at + length])
        terms.extend(_term(kind, said, terms[-1].kind if terms else "") for kind in kinds)
        at += length
    return terms
