"""Reads a free-text policy into a typed one, or says why not. It never guesses a size, a target, or an instrument."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from math import isclose
from typing import Literal, NamedTuple

from prism_mesa.economy.policy import AGAINST_NATIONS, LEVERS, Lever, Measure, Policy, Unit
from prism_mesa.economy.words import DIRECTED, LEXICON, VERBS, Token, is_about, tokens
from prism_mesa.errors import did_you_mean

MAX_LENGTH = 500
_INSTRUMENTS = "the policy rate, government spending, taxes, tariffs, trade sanctions, and debt"


class UnclearPolicyError(ValueError):
    """A text that is not read as a policy.

    Attributes:
        reason: One word for the records.
        plain: Whether it is plain what is wrong with the text. If not, the text was not understood, and somebody who
            reads better may be asked what it says.
    """

    def __init__(self, reason: str, message: str, *, plain: bool = True) -> None:
        super().__init__(message)
        self.reason = reason
        self.plain = plain


def _unclear(part: Iterable[Token]) -> UnclearPolicyError:
    return UnclearPolicyError("unclear", f"not understood: {_quoted(part)}", plain=False)


def _quoted(part: Iterable[Token]) -> str:
    """Return the first words of a part in quotation marks; a phrase that became two tokens is said once."""
    said = [token.text for token in part]
    once = [text for text, before in zip(said, ["", *said], strict=False) if text != before]
    return repr(" ".join(once)[:80])


# ---- the text as a whole ---------------------------------------------------------------------------------------------

_OUTCOMES = r"(?:inflation|unemployment|gdp|growth|prices|the economy|output|demand|it|they)"
_WHOLE: tuple[tuple[str, str, str], ...] = (
    (
        "injection",
        r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,60}\b(?:previous|prior|above|instructions?|rules|prompt)\b"
        r"|\b(?:system|assistant|user|developer)\s*:|\bsystem prompt\b|\blanguage model\b|\bas an ai\b|\byou are\b"
        r"|\b(?:respond|reply|answer|output) (?:with|only)\b|[{}<>\[\]\\`|=_^@#]|://|/\*|\(\)",
        "speaks to its reader or is code: write the policy as one plain sentence",
    ),
    (
        "question",
        r"\?|^(?:should|shall|could|can|would|will|do|does|is|are) (?:we|i|you|they|the government)\b"
        r"|\bwhat (?:if|about)\b",
        "asks a question: write what is done",
    ),
    (
        "condition",
        r"\b(?:if|unless|provided that|providing that|assuming|supposing|in case|in the event|as long as|so long as"
        r"|depending on|depends on|conditional on|contingent on|subject to|as needed|as necessary)\b"
        rf"|\bshould (?:the )?{_OUTCOMES}\b|^should (?!be\b)|[,.;] should (?!be\b)",
        "depends on a condition: write what is done now",
    ),
)


def _cleaned(text: str) -> str:
    """Return `text` in plain characters and single spaces.

    Raises:
        UnclearPolicyError: With reason `empty`, `long` or `control`.
    """
    if len(text) > MAX_LENGTH:
        raise UnclearPolicyError("long", f"has {len(text)} characters: write at most {MAX_LENGTH}")
    # "2½" would become "21/2".
    plain = unicodedata.normalize("NFKC", re.sub(r"(?<=\d)(?=[¼½¾⅐-⅞])", " ", text)).translate(_PLAIN)
    plain = re.sub(r"(?:^|\n)\s*(?:[-*•]|\d+[.)])\s+", "\n. ", plain)  # lists become sentences
    plain = " ".join(re.sub(r"(?<=[A-Za-z0-9%])-(?=[A-Za-z])|(?<=[A-Za-z])-(?=[0-9])", " ", plain).split())
    if not plain.strip(". "):
        raise UnclearPolicyError("empty", "says nothing")
    if any(unicodedata.category(character).startswith("C") for character in plain):
        raise UnclearPolicyError("control", "holds control characters")
    return plain


_PLAIN = str.maketrans("\u2212\u2018\u2019", "-''", '\u201c\u201d"*')


def _refuse_whole(text: str) -> None:
    for reason, pattern, message in _WHOLE:
        if found := re.search(pattern, text, re.IGNORECASE):
            raise UnclearPolicyError(reason, f"{message} ({found[0].strip()!r})")


# ---- parts -----------------------------------------------------------------------------------------------------------


@dataclass
class _Part:
    """A stretch of a sentence with one thing to say, the kind of the token that begins it, and that token's text."""

    opens: str
    opener: str = ""
    after_comma: bool = False
    tokens: list[Token] = field(default_factory=list)

    def has(self, *kinds: str) -> bool:
        return any(token.kind in kinds for token in self.tokens)

    @property
    def levers(self) -> list[Lever]:
        """The instruments that are named, in order; a stop of trade is a sanction."""
        named: list[Lever] = [lever for token in self.tokens for lever in LEVERS if token.kind == lever]
        if not named and self.has("trade") and self.has("block", "remove"):
            return ["sanction"]
        return list(dict.fromkeys(named))

    @property
    def is_whole(self) -> bool:
        """Whether a measure may be read out of this part alone."""
        return bool(self.levers) and self.has("size", "number", "remove", "lift", "drop", "embargo", "block")

    @property
    def begins_ing(self) -> bool:
        return bool(self.tokens) and self.tokens[0].text.lower().endswith("ing")

    @property
    def is_consequence(self) -> bool:
        """Whether this is what a measure leads to: "..., reducing inflation"."""
        return self.opener == "," and self.begins_ing and self.has("outcome") and not self.levers

    @property
    def is_detail(self) -> bool:
        """Whether this says only what is spent on: "through infrastructure investment"."""
        kinds = {token.kind for token in self.tokens} - {"filler", "and", "new"}
        return self.opens == "means" and bool(kinds) and kinds <= {"spending", "part"}


_SKIPPED = frozenset({"filler", "now", "on", "from", "imports", "trade"})
_NAMES = frozenset({"nation", "everyone", "vague", "stranger"})
_LEVEL_STARTS = frozenset(
    {
        "size",
        "number",
        "filler",
        "nation",
        "all_imports",
        "imports",
        "everyone",
        "vague",
        "of",
        "range",
        "money",
        "absurd",
    }
)
"""What stands after "to" if a level or a target follows; before anything else "to" begins a purpose."""


def _kin(before: Token | None, after: Token | None) -> bool:
    """Return whether "and" between two tokens makes one list: of nations, of instruments, or of purposes."""
    if before is None or after is None:
        return False
    for kinds in (_NAMES, AGAINST_NATIONS, frozenset(LEVERS) - AGAINST_NATIONS, frozenset({"part"})):
        if before.kind in kinds and after.kind in kinds:
            return True
    return False


_JUSTIFYING = ("why", "purpose", "aside")


def _opening(sentence: Sequence[Token], at: int) -> str:
    """Return the kind of part that begins at a token, or an empty string if the part before goes on."""
    token = sentence[at]
    following = next((t for t in sentence[at + 1 :] if t.kind != "filler"), None)
    if token.kind in {*_JUSTIFYING, "financed", "means"}:
        return token.kind
    if token.kind == "on" and at == 0 and token.text.lower() == "with":  # "With inflation at 9%, raise ..."
        return "why"
    if token.kind == "by" and following and following.kind in VERBS:
        return "means"
    if token.kind == "to" and at + 1 < len(sentence) and sentence[at + 1].kind not in _LEVEL_STARTS:
        return "purpose"
    if token.kind == "and":
        before = next((t for t in reversed(sentence[:at]) if t.kind not in _SKIPPED and t.kind != "and"), None)
        after = next((t for t in sentence[at + 1 :] if t.kind not in _SKIPPED and t.kind != "and"), None)
        goes_on = _kin(before, after) or (token.text == "," and after and after.kind in {"by", "at"})
        return "" if goes_on else "and"
    return ""


def _parts(sentence: Sequence[Token]) -> list[_Part]:
    parts = [_Part("start")]
    for at, token in enumerate(sentence):
        if opens := _opening(sentence, at):
            last = parts[-1]
            comma = token.text == "," or (not last.tokens and last.after_comma)
            if not last.tokens and last.opens in {"start", "and"}:
                parts.pop()
            parts.append(_Part(opens, token.text, comma))
        elif token.kind != "now":
            parts[-1].tokens.append(token)
    return parts


def _sentences(terms: Iterable[Token]) -> Iterator[list[Token]]:
    sentence: list[Token] = []
    for token in [*terms, Token("stop", ".")]:
        if token.kind != "stop":
            sentence.append(token)
        elif sentence:
            yield sentence
            sentence = []


def _said(sentence: Sequence[Token]) -> list[_Part]:
    """Return the parts of a sentence that say what is done, without those that say why or what for.

    Raises:
        UnclearPolicyError: (not plain) If a part may be either.
    """
    said: list[_Part] = []
    justifies = ""  # the kind of justification that goes on, before what is done or behind it
    parts = _parts(sentence)
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        if justifies and part.after_comma and part.levers and (part.is_whole or (not said and part.has(*VERBS))):
            if justifies == "aside" and part.begins_ing:  # "instead of raising taxes, cutting spending, ..."
                raise _unclear(part.tokens)
            justifies = ""
        if part.opens in _JUSTIFYING or (said and part.is_consequence):
            justifies = part.opens
        # "Fight inflation by raising rates ..." is said by what follows, "stimulus through roads" is not.
        leads = following is not None and following.opens == "means" and not (part.is_whole and following.is_detail)
        if not (justifies or leads or (said and part.is_detail)):
            said.append(part)
        elif (part.is_whole and part.opens not in {"why", "aside"}) or part.has(*_LIMITS, *["negation"] * leads):
            raise _unclear(part.tokens)
    said = [part for part in said if part.opens == "financed" or any(t.kind not in _EMPTY for t in part.tokens)]
    if said and said[0].opens == "financed":
        raise _unclear(said[0].tokens)
    return said


_EMPTY = frozenset({"filler", "on", "and"})
_LIMITS = ("condition", "schedule", "alternative", "hedged")


# ---- measures --------------------------------------------------------------------------------------------------------

_REFUSED: dict[str, str] = {
    "absurd": "is no size",
    "money": "is a sum of money: give sizes in percent of GDP",
    "negation": "says only what is not done: say what is done",
    "alternative": "leaves open which: decide for one",
    "hedged": "does not decide: say what is done",
    "condition": "depends on a condition: write what is done now",
    "schedule": "is a schedule: a decision is for one quarter, so say what is done now",
    "range": "is not one size: give one number",
}
_CODES = {"absurd": "number"}


def _refuse_part(part: _Part) -> None:
    for kind, message in _REFUSED.items():
        for token in part.tokens:
            if token.kind == kind:
                raise UnclearPolicyError(_CODES.get(kind, kind), f"{_quoted(part.tokens)}: {token.text!r} {message}")
    for token in part.tokens:
        if token.kind == "absent":
            raise UnclearPolicyError("instrument", f"{token.text!r} is no instrument here: there are {_INSTRUMENTS}")


def _no_lever(part: _Part) -> UnclearPolicyError:
    """Return why a part that names no instrument is refused."""
    said = _quoted(part.tokens)
    text = " ".join(token.text for token in part.tokens)
    if part.has("imports", "all_imports") and part.has("block", "remove"):
        message = (
            f"{said}: imports alone cannot be stopped: there are tariffs, and sanctions on all trade with a nation"
        )
        return UnclearPolicyError("instrument", message)
    if part.has("outcome"):
        return UnclearPolicyError("outcome", f"{said}: an outcome cannot be set, only instruments: {_INSTRUMENTS}")
    if part.has("size") or is_about(text, "economic"):
        return _unclear(part.tokens)
    return UnclearPolicyError("instrument", f"{said} names no instrument: there are {_INSTRUMENTS}")


def _read(part: _Part, inherited: str, nation: str, nations: Sequence[str]) -> list[Measure]:
    """Return the measures that one part says; none if it says to leave things as they are.

    `inherited` is the direction of the part before, `up`, `down` or empty: "raise taxes by 1% and spending by 2%".
    """
    _refuse_part(part)
    if part.opens == "financed" and set(part.levers) <= {"debt"}:
        return _financed(part)
    if _holds(part):
        _refuse_foreign(part, nation)
        return []
    levers = part.levers
    if not levers:
        raise _no_lever(part)
    against = {lever in AGAINST_NATIONS for lever in levers}
    if len(against) > 1 or part.has("outcome") or not _listed(part) or _breaks_off(part):
        raise _unclear(part.tokens)
    targets = _targets(part, nation, nations) if against == {True} else _own(part, nation)
    size = _size(part)
    if part.has("unknown") and (size or not part.has(*DIRECTED)):
        raise _unclear(part.tokens)
    moves = [(lever, *_move(lever, part, size, inherited)) for lever in levers]
    return [
        Measure(lever=lever, how=how, size=number, unit=unit, target=target)
        for lever, how, number, unit in moves
        for target in targets
    ]


def _listed(part: _Part) -> bool:
    """Return whether different instruments are a list, "taxes and spending", not "spending out of taxes"."""
    places = [at for at, token in enumerate(part.tokens) if token.kind in LEVERS]
    for one, other in pairwise(places):
        between = {token.kind for token in part.tokens[one + 1 : other]} - {"filler", "part"}
        if part.tokens[one].kind != part.tokens[other].kind and between != {"and"}:
            return False
    return True


def _breaks_off(part: _Part) -> bool:
    """Return whether a preposition has nothing, or another one, behind it: "by 2% of", "by to 3%"."""
    words = {"by", "to", "at", "of", "from"}
    kinds = [token.kind for token in part.tokens if token.kind != "filler"]
    return any(kind in words and after in words | {"end"} for kind, after in pairwise([*kinds, "end"]))


def _holds(part: _Part) -> bool:
    """Return whether a part says to leave an instrument, or all, as it is."""
    moves = part.has("size", "number", "remove", "block", "do", "more", "new", *DIRECTED)
    odd = part.has("unknown", "stranger", "outcome", "trade")
    alone = [token.kind for token in part.tokens if token.kind != "filler"] == ["hold"] and len(part.tokens) == 1
    return not moves and not odd and (part.has("same") or (part.has("hold") and bool(part.levers)) or alone)


def _financed(part: _Part) -> list[Measure]:
    """Return no measure for "financed by borrowing": what is spent and not taxed is borrowed anyway."""
    if not part.levers or part.has("size", "number", "unknown", "down", *_NAMES):
        raise _unclear(part.tokens)
    return []


# ---- whose, and against whom -----------------------------------------------------------------------------------------


def _role(part: _Part, at: int) -> str:
    """Return whether the nation at a place is a `target`, an `owner` of an instrument, or neither (empty)."""
    before = [token.kind for token in part.tokens[:at] if token.kind not in {"filler", "more", "new"}]
    if before and before[-1] in {"on", "from", "to", "and", "nation", "sanction", "block", "trade"}:
        return "target"
    subject = not before and part.has(*VERBS)
    return "owner" if subject or part.tokens[at].unit == "owner" or before[-1:] in (["of"], ["in"]) else ""


def _roles(part: _Part) -> list[tuple[str, str]]:
    return [(token.text, _role(part, at)) for at, token in enumerate(part.tokens) if token.kind == "nation"]


def _refuse_foreign(part: _Part, nation: str) -> None:
    for name, role in _roles(part):
        if role == "owner" and name != nation:
            message = f"{_quoted(part.tokens)}: that is for {name} to decide; {nation} sets only its own instruments"
            raise UnclearPolicyError("foreign", message)


def _own(part: _Part, nation: str) -> list[str | None]:
    """Return that instruments of one's own have no target."""
    _refuse_foreign(part, nation)
    if any(name != nation for name, _ in _roles(part)):
        raise _unclear(part.tokens)
    if part.has("everyone", "vague", "stranger", "product", "imports", "all_imports", "trade", "block"):
        raise _unclear(part.tokens)
    return [None]


def _targets(part: _Part, nation: str, nations: Sequence[str]) -> list[str | None]:
    """Return the nations that a tariff or a sanction is set against, in the order of the text."""
    _refuse_foreign(part, nation)
    there_are = f"there are {', '.join(nations)}"
    for token in part.tokens:
        if token.kind in {"vague", "stranger"}:
            message = f"{token.text!r} is no nation here: {there_are}.{did_you_mean(token.text, nations)}"
            raise UnclearPolicyError("nation", message)
        if token.kind == "product":
            message = f"tariffs and sanctions are on all trade with a nation, not on {token.text!r} alone"
            raise UnclearPolicyError("product", message)
    named: list[str | None] = list(dict.fromkeys(name for name, role in _roles(part) if role == "target"))
    astray = any(not role for _, role in _roles(part)) or part.has("part")
    if astray or (named and part.has("everyone")) or (not named and part.has("unknown")):
        raise _unclear(part.tokens)
    if not named and part.has("everyone", "all_imports"):
        named = [name for name in nations if name != nation]
    if not named:
        raise UnclearPolicyError("nation", f"{_quoted(part.tokens)} names no nation: {there_are}")
    return named


# ---- sizes -----------------------------------------------------------------------------------------------------------


class _Size(NamedTuple):
    """A size as written; `after` is the word before it (`by`, `to`, `at` or empty), `start` the level it moves from."""

    number: float
    unit: str
    after: str
    start: float | None = None


def _word_before(part: _Part, at: int) -> str:
    for token in reversed(part.tokens[:at]):
        if token.kind not in {"filler", "of", "more", "new"}:
            return token.kind if token.kind in {"by", "to", "at", "from"} else ""
    return ""


def _size(part: _Part) -> _Size | None:
    """Return the one size of a part, or None if it has none.

    Raises:
        UnclearPolicyError: With reason `sizes` if there are several, or `unit` if the number has none.
    """
    sizes = [
        _Size(token.number, token.unit, _word_before(part, at))
        for at, token in enumerate(part.tokens)
        if token.kind in {"size", "number"}
    ]
    if not sizes:
        return None
    start = None
    if len(sizes) == 2 and (sizes[0].after, sizes[1].after) == ("from", "to"):
        start = sizes.pop(0).number
    if len(sizes) > 1 or sizes[0].after == "from":
        if part.has("unknown"):
            raise _unclear(part.tokens)
        raise UnclearPolicyError("sizes", f"{_quoted(part.tokens)} gives several sizes: give one")
    size = sizes[0]._replace(start=start)
    if not size.unit and size.number != 0:
        if part.has("unknown"):
            raise _unclear(part.tokens)
        raise UnclearPolicyError("unit", f"{_quoted(part.tokens)} gives a number without a unit: {_UNIT_EXAMPLES}")
    return size


_UNIT_EXAMPLES = "write 0.5 percentage points, 5%, or 1% of GDP"


def _direction(lever: Lever, part: _Part) -> int:
    """Return 1 for up, -1 for down, 0 if a part says neither."""
    if part.has("up", "lift"):
        return 1
    if part.has("down", "drop"):
        return -1
    implied = part.has("borrow", "stimulus", "more") or (part.has("new") and lever not in AGAINST_NATIONS)
    return 1 if implied else 0


def _refuse_odd_words(lever: Lever, part: _Part, size: _Size | None) -> None:
    """Refuse words that do not go together with an instrument, or with each other."""
    down, up = part.has("down", "drop"), part.has("up", "lift")
    odd = (
        (up and down)
        or (part.has("hold") and (up or down))
        or (part.has("tight") and lever in {"spending", "taxes", "debt"})  # a tighter budget is a smaller one
        or (part.has("stance") and (up or down) and not part.has("tight"))
        or (part.has("borrow") and (lever != "debt" or down or (size and size.after in {"to", "at"})))
        or (part.has("repay") and lever != "debt")
        or (part.has("remove") and size and not _stops_trade(part))
        or (part.has("ratio") and lever not in {"spending", "taxes", "debt"})
        or (part.has("part") and lever != "spending" and not part.has("borrow"))
        or (part.has("is") and not part.has(*VERBS))  # "tariffs are 10%" tells how things are
        or (part.has("block") and not _stops_trade(part))
    )
    if odd:
        raise _unclear(part.tokens)


def _stops_trade(part: _Part) -> bool:
    """Return whether trade itself is stopped, not sanctions on it."""
    return part.has("trade") and (part.has("block") or (part.has("remove") and not part.has("sanction")))


def _move(lever: Lever, part: _Part, size: _Size | None, inherited: str) -> tuple[Literal["by", "to"], float, Unit]:
    """Return how an instrument is moved, the number, and its unit."""
    _refuse_odd_words(lever, part, size)
    if size is None:
        return "to", _level_without_number(lever, part), "points"
    direction = _direction(lever, part)
    if not direction and size.after == "by":
        direction = {"up": 1, "down": -1}.get(inherited, 0)
    if size.after in {"to", "at"} or (not size.after and not direction and _sets_level(lever, part)):
        if size.start is not None and (size.number - size.start) * direction < 0:
            raise UnclearPolicyError("contradiction", f"{_quoted(part.tokens)} contradicts itself")
        return "to", *_converted(lever, size, part, level=True)
    number, unit = _converted(lever, size, part, level=False)
    if number < 0 and direction:
        raise UnclearPolicyError("contradiction", f"{_quoted(part.tokens)} contradicts itself: drop the minus sign")
    if number < 0 and size.after != "by":
        raise _unclear(part.tokens)
    if number > 0 and not direction:
        message = f"{_quoted(part.tokens)} says neither up nor down: write raise, cut, or set to"
        raise UnclearPolicyError("direction", message)
    return "by", number * (direction or 1), unit


def _sets_level(lever: Lever, part: _Part) -> bool:
    """Return whether a size without "by" or "to" is a level: "a 10% tariff", "set a policy rate of 3%"."""
    return lever in AGAINST_NATIONS or part.has("set") or (lever == "policy_rate" and part.has("do"))


def _level_without_number(lever: Lever, part: _Part) -> float:
    """Return 100 for all trade stopped, 0 for tariffs or sanctions lifted; nothing else is a size without a number."""
    if lever in AGAINST_NATIONS and not part.has("up", "down", "unknown", "more"):
        if _stops_trade(part):
            return 100.0
        if part.has("remove", "lift", "drop"):
            return 0.0
        if part.has("embargo"):
            return 100.0
    example = "30% of trade" if lever == "sanction" else "0.5 percentage points or 1% of GDP"
    raise UnclearPolicyError("size", f"{_quoted(part.tokens)} does not say by how much: give a size, such as {example}")


def _converted(lever: Lever, size: _Size, part: _Part, *, level: bool) -> tuple[float, Unit]:
    """Return a size in a unit of the instrument.

    Raises:
        UnclearPolicyError: With reason `part` if it is a share of something that is not set on its own, or `unit`.
    """
    number = size.number / 100 if size.unit == "bp" else size.number
    if lever in AGAINST_NATIONS or lever == "policy_rate":
        if size.unit == "whole" and lever == "sanction" and level:
            return number * 100, "points"
        if size.unit in {"points", "bp", "percent"} or (level and number == 0):
            return number, "points"
    else:
        if part.has("part", "stimulus") and (level or size.unit != "gdp"):
            message = f"{_quoted(part.tokens)}: only all spending can be set: say by how many percent of GDP it changes"
            raise UnclearPolicyError("part", message)
        in_gdp = size.unit == "gdp" or (not level and size.unit in {"points", "bp"})
        if in_gdp or (level and part.has("ratio") and size.unit == "percent"):
            return number, "percent_of_gdp"
        if size.unit in {"percent", "whole"} and not (level or part.has("ratio", "borrow")):
            return number * 100 if size.unit == "whole" else number, "percent"
    raise UnclearPolicyError("unit", f"{_quoted(part.tokens)}: {lever.replace('_', ' ')} has {_UNITS_SAID[lever]}")


_IN_GDP = "a change in percent of GDP or in percent, and a level in percent of GDP"
_UNITS_SAID: dict[Lever, str] = {
    "policy_rate": "a size in percentage points",
    "tariff": "a size in percentage points",
    "sanction": "a size in percent of trade",
    "spending": _IN_GDP,
    "taxes": _IN_GDP,
    "debt": _IN_GDP,
}


# ---- the policy ------------------------------------------------------------------------------------------------------


def parse_policy(text: str, nation: str, nations: Sequence[str]) -> Policy:
    """Return the policy that `text` says, measures in its order; sizes stand as written, however absurd.

    >>> str(parse_policy("Raise rates by 50 basis points and cut taxes by 1% of GDP.", "Sweden", ["Sweden"]))
    'policy rate by +0.5 points, taxes by -1 % of GDP'

    Args:
        text: At most `MAX_LENGTH` characters.
        nation: Who acts.
        nations: All nations, `nation` included.

    Raises:
        UnclearPolicyError: (a ValueError) If the text says no policy, or not plainly.
    """
    cleaned = _cleaned(text)
    _refuse_whole(cleaned)
    measures: list[Measure] = []
    parts = 0
    terms = tokens(cleaned, nations)
    for sentence in _sentences(terms):
        inherited = ""
        for part in _said(sentence):
            measures += _read(part, inherited, nation, nations)
            inherited = "up" if part.has("up") else "down" if part.has("down") else inherited
            parts += 1
    if not parts:
        raise _no_lever(_Part("start", tokens=terms))
    _refuse_twice(measures)
    return Policy(measures=tuple(measures))


def _refuse_twice(measures: Sequence[Measure]) -> None:
    seen = set()
    for measure in measures:
        if (measure.lever, measure.target) in seen:
            message = f"moves one instrument twice ({measure}): say once where it goes"
            raise UnclearPolicyError("twice", message)
        seen.add((measure.lever, measure.target))


# ---- what another reader says ----------------------------------------------------------------------------------------


def unsupported(policy: Policy, text: str, nation: str, nations: Sequence[str]) -> str:
    """Return why a policy that an LLM read out of a text is not what the text says, or ''.

    Every measure needs its instrument, direction, size and target in words of one sentence, reasons and purposes aside.
    Words that are nearly known ("rais") count here.
    """
    try:
        read = parse_policy(text, nation, nations)
    except UnclearPolicyError as error:
        if error.plain:
            return str(error)
        read = None
    terms = [_mended(token) for token in tokens(_cleaned(text), nations)]
    sentences = [_grounds(sentence) for sentence in _sentences(terms)]
    for measure in policy.measures:
        missing = [_missing(measure, parts, nation, nations) for parts in sentences] or ["a thing"]
        if all(missing):
            return f"{measure}: the text does not say {min(missing, key=len)}"
    if not policy.measures and not any(part.has("hold", "same") for parts in sentences for part in parts):
        return "the text does not say that all stays as it is"
    if read is not None and set(read.measures) != set(policy.measures):
        return f"the text says: {read}"
    return _left_out(policy, terms) if read is None else ""


def _mended(token: Token) -> Token:
    """Return the known word nearest to an unknown one, if it is near."""
    if token.kind != "unknown" or len(token.text) < 4:
        return token
    near = get_close_matches(token.text.lower(), LEXICON, n=1, cutoff=0.8)
    return token._replace(kind=LEXICON[near[0]][0]) if near else token


def _grounds(sentence: Sequence[Token]) -> list[_Part]:
    """Return the parts of a sentence but its reasons and purposes."""
    return [part for part in _parts(sentence) if part.opens not in _JUSTIFYING]


def _missing(measure: Measure, parts: Sequence[_Part], nation: str, nations: Sequence[str]) -> str:
    """Return what of a measure a sentence does not say, or ''."""
    said = _Part("start", tokens=[token for part in parts for token in part.tokens])
    if measure.lever not in said.levers:
        return f"the instrument ({measure.lever.replace('_', ' ')})"
    if (measure.target is None) != (measure.lever not in AGAINST_NATIONS):
        return "such a target"
    named = any(token.kind == "nation" and token.text == measure.target for token in said.tokens)
    everyone = said.has("everyone", "all_imports") and measure.target in nations and measure.target != nation
    if measure.target is not None and not (named or everyone):
        return f"the target ({measure.target})"
    if measure.how == "by" and measure.size and not _worded(measure, said):
        return "the direction"
    return "" if _in_text(measure, said, parts) else f"the size ({measure.size:g} {measure.unit.replace('_', ' ')})"


def _worded(measure: Measure, said: _Part) -> bool:
    up = said.has("up", "lift", "more", "new", "borrow", "stimulus")
    signed = any(token.kind == "size" and token.number < 0 for token in said.tokens)
    return up if measure.size > 0 else said.has("down", "drop") or signed


def _in_text(measure: Measure, said: _Part, parts: Sequence[_Part]) -> bool:
    """Return whether a sentence has the size of a measure, in any unit that the instrument may be given in."""
    level = measure.how == "to"
    if level and measure.lever in AGAINST_NATIONS:
        if measure.size == 0 and said.has("remove", "lift", "drop", "block"):
            return True
        if measure.size == 100 and said.has("embargo", "block", "remove"):
            return True
    return any(_is_size_of(measure, token, part) for part in parts for token in part.tokens)


def _is_size_of(measure: Measure, token: Token, said: _Part) -> bool:
    if token.kind not in {"size", "number"} or (not token.unit and token.number != 0):
        return False
    try:
        number, unit = _converted(measure.lever, _Size(token.number, token.unit, ""), said, level=measure.how == "to")
    except UnclearPolicyError:
        return False
    same = isclose(number, measure.size) or (measure.how == "by" and isclose(abs(number), abs(measure.size)))
    return same and unit == measure.unit


def _left_out(policy: Policy, terms: Sequence[Token]) -> str:
    """Return which part of a text, with an instrument and a size, no measure stands for, or ''."""
    for sentence in _sentences(terms):
        for part in _grounds(sentence):
            sizes = [token for token in part.tokens if token.kind == "size"]
            stated = [
                m for m in policy.measures if m.lever in part.levers and any(_is_size_of(m, t, part) for t in sizes)
            ]
            if part.levers and sizes and not stated:
                return f"the text also says {_quoted(part.tokens)}"
    return ""
