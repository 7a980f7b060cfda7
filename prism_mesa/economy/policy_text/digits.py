"""How numbers and units are written, and number words as digits."""

import re

_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen""".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_VALUES = {word: value for value, word in enumerate(_SMALL)} | {word: 20 + 10 * i for i, word in enumerate(_TENS)}
_PARTS = {"half": 0.5, "halves": 0.5, "quarter": 0.25, "quarters": 0.25, "tenth": 0.1, "tenths": 0.1}

NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+|,[0-9]{1,2}(?![0-9]))?|\.[0-9]+)"
UNIT = (
    r"(?:(?:basis points?|bps?|b\.p\.|(?:percentage|percent|per cent|pct|%) ?(?:points?|pts?)|points?|pts?|ppts?|pps?"
    r"|p\.p\.|%|percent|per cent|pct)(?![^\W_]))"
)
OF_GDP = (
    r"(?: of)?(?: (?:the|our|its|their|a|annual|nominal|national|total|current|nation's|country's|year's))*"
    r" (?:gdp|gross domestic product)\b"
)
_SPELLED = re.compile(rf"\b(?:({'|'.join(_TENS)})(?: ({'|'.join(_SMALL[1:10])}))?|({'|'.join(_SMALL)}))\b", re.I)
_HUNDRED = re.compile(r"\b(?:([0-9]{1,3}) |an? )hundred\b(?: and ([0-9]{1,2})\b)?", re.I)
_MINUS = re.compile(r"\b(?:minus|negative) (?=[0-9.])", re.I)
_FRACTION = re.compile(r"(?<![0-9./])(?:([0-9]{1,9}) )?([0-9]{1,9}) ?[/\u2044] ?([0-9]{1,9})(?![0-9./])")
_PART = re.compile(
    rf"\b(?:([0-9]+) and an? |([0-9]+) and (?=1 )|an? )?(?:([0-9]+) )?({'|'.join(_PARTS)})"
    rf"(?= (?:of )?(?:an? |1 )?(?:full )?{UNIT})",
    re.I,
)
_POINT = re.compile(rf"\b([0-9]+) point ([0-9](?: [0-9])*)(?= ?{UNIT})", re.I)
_ONE = re.compile(
    r"\ban? (?:full |single |whole )?(?=(?:(?:basis|percentage|percent|per cent) )?point\b|per ?cent\b)", re.I
)


def in_digits(text: str) -> str:
    """Return `text` with its number words, and parts of a unit such as "a quarter of a point", as decimal numbers."""
    text = _SPELLED.sub(lambda m: str(sum(_VALUES[word.lower()] for word in m.groups() if word)), text)
    text = _POINT.sub(lambda m: f"{m[1]}.{m[2].replace(' ', '')}", text)
    text = _HUNDRED.sub(lambda m: str(100 * int(m[1] or 1) + int(m[2] or 0)), text)
    text = _FRACTION.sub(lambda m: repr(int(m[1] or 0) + int(m[2]) / int(m[3])) if int(m[3]) else m[0], text)
    text = _PART.sub(lambda m: repr(float(m[1] or m[2] or 0) + float(m[3] or 1) * _PARTS[m[4].lower()]), text)
    return _MINUS.sub("-", _ONE.sub("1 ", text))


def number(text: str) -> float:
    """Return the number that `text`, which matches `NUMBER` with a sign or not, writes; infinite if it is too long."""
    text = text.replace(" ", "")
    thousands = re.fullmatch(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?", text)
    return float(text.replace(",", "" if thousands else "."))
