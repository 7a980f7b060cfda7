"""How a text falls into clauses, and which of them say what is done."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from prism_mesa.economy.policy import AGAINST_NATIONS, LEVERS, Lever
from prism_mesa.economy.policy_text.lexicon import AIMS, DIRECTED, VERBS
from prism_mesa.economy.policy_text.refusals import not_understood
from prism_mesa.economy.policy_text.tokens import Token

NAMES = frozenset({"nation", "everyone", "vague", "stranger"})
JUSTIFYING = ("why", "purpose", "focus", "follow", "aside")
"""What opens a clause that says why something is done, what for, what comes of it, or instead of what."""

_EMPTY = frozenset({"filler", "on", "and"})
_LIMITS = ("condition", "schedule", "alternative", "hedged", "jest")
_ACTING = (*DIRECTED, "size", "number", "hold", "same", "remove", "block", "set")
_FOLLOWING = frozenset({*LEVERS, *DIRECTED}) | frozenset(
    "outcome tight by to at of in on and from part more new borrow spend trade is hold filler size number".split()
)
"""What a clause may be of that says what comes of a measure: "This will reduce inflation to 2%"."""
_FOCUS = frozenset("focus part outcome of in on and filler unknown size number".split())
_SKIPPED = frozenset({"filler", "now", "on", "from", "imports", "trade", "and", "one_tax", "tax_rate"})
_LEVEL_STARTS = frozenset("size number filler nation all_imports imports everyone vague of range money absurd".split())
"""What stands after "to" if a level or a target follows; before anything else "to" begins a purpose."""


@dataclass
class Clause:
    """A stretch of a sentence with one thing to say, the kind of the token that begins it, and that token's text."""

    opens: str
    opener: str = ""
    after_comma: bool = False
    tokens: list[Token] = field(default_factory=list)

    def has(self, *kinds: str) -> bool:
        """Return whether any token is of one of some kinds."""
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
        """Whether a measure may be read out of this clause alone."""
        return bool(self.levers) and self.has("size", "number", "remove", "lift", "drop", "embargo", "block")

    @property
    def is_past(self) -> bool:
        """Whether this says what was done: "we raised rates", not "rates are raised"."""
        said = [token.text.lower() for token in self.tokens]
        pasts = [at for at, token in enumerate(self.tokens) if token.kind == "past"]
        return any({"be", "is", "are", "being"}.isdisjoint(said[max(0, at - 4) : at]) for at in pasts)

    @property
    def is_consequence(self) -> bool:
        """Whether this is what a measure leads to: "..., reducing inflation"."""
        ing = bool(self.tokens) and self.tokens[0].text.lower().endswith("ing")
        return self.opener == "," and ing and self.has("outcome") and not self.levers

    @property
    def is_detail(self) -> bool:
        """Whether this says only what is spent on: "through infrastructure investment"."""
        kinds = {token.kind for token in self.tokens} - {"filler", "and", "new"}
        return self.opens == "means" and bool(kinds) and kinds <= {"spending", "part"}

    @property
    def says_same_size(self) -> bool:
        """Whether "the same" is a size: "and taxes by the same", "and the same for taxes"."""
        kinds = [token.kind for token in self.tokens if token.kind != "filler"]
        bare = not self.has("hold") and any(token.text.lower() == "the same" for token in self.tokens)
        return bare or ("by", "same") in pairwise(kinds)

    @property
    def keeps(self) -> bool:
        """Whether anything in it says to leave things as they are."""
        return self.has("hold", "same") and not self.says_same_size

    @property
    def holds(self) -> bool:
        """Whether this says to leave an instrument, or all, as it is."""
        kinds = [token.kind for token in self.tokens]
        if self.has("hold") and self.has("same") and ("of", "size") in pairwise(kinds):
            kinds.remove("size")  # "maintain the policy rate at its current level of 2%"
        moves = bool({"size", "number", "remove", "block", "do", "more", "new", *DIRECTED}.intersection(kinds))
        moves = moves or self.says_same_size
        odd = self.has("unknown", "stranger", "outcome", "trade", "odd", "jest") or self.is_past
        alone = [token.kind for token in self.tokens] == ["hold"]
        return not (moves or odd) and (self.has("same") or (self.has("hold") and bool(self.levers)) or alone)


def sentences(terms: Iterable[Token]) -> Iterator[list[Token]]:
    """Yield the terms between full stops, without empty sentences."""
    sentence: list[Token] = []
    for token in [*terms, Token("stop", ".")]:
        if token.kind != "stop":
            sentence.append(token)
        elif sentence:
            yield sentence
            sentence = []


def clauses(sentence: Sequence[Token]) -> list[Clause]:
    """Return all clauses of a sentence in order."""
    found = [Clause("start")]
    for at, token in enumerate(sentence):
        if opens := _opening(sentence, at):
            last = found[-1]
            comma = token.text == "," or (not last.tokens and last.after_comma)
            if not last.tokens and last.opens in {"start", "and"}:
                found.pop()
            found.append(Clause(opens, token.text, comma))
        elif token.kind != "now":
            found[-1].tokens.append(token)
    return found


def decided(sentence: Sequence[Token]) -> list[Clause]:
    """Return the clauses of a sentence that say what is done, without those that say why or what for.

    Raises:
        UnclearPolicyError: (not plain) If a clause may be either.
    """
    said: list[Clause] = []
    dropped: list[Clause] = []
    justifies = ""  # the kind of justification that goes on, before what is done or behind it
    found = clauses(sentence)
    for clause, following in zip(found, [*found[1:], None], strict=True):
        if justifies and _resumes(clause, first=not said):
            justifies = ""
        if clause.opens in JUSTIFYING:
            justifies = clause.opens
        elif said and clause.is_consequence:
            justifies = "purpose"
        # "Fight inflation by raising rates ..." is said by what follows, "stimulus through roads" is not.
        leads = following is not None and following.opens == "means" and not (clause.is_whole and following.is_detail)
        if not (justifies or leads or (said and clause.is_detail)):
            said.append(clause)
        elif hides(clause, justifies or ("follow" if leads else "")):
            raise not_understood(clause.tokens)
        else:
            dropped.append(clause)
    sized = any(clause.has("size", "number") for clause in said)
    for clause in dropped:  # "Raise rates to fight inflation by 1 point"
        if said and not sized and clause.opens == "purpose" and clause.has("by") and clause.has("size"):
            raise not_understood(clause.tokens)
    said = [clause for clause in said if clause.opens == "financed" or any(t.kind not in _EMPTY for t in clause.tokens)]
    if said and said[0].opens == "financed":
        raise not_understood(said[0].tokens)
    return said


def hides(clause: Clause, justifies: str) -> bool:
    """Return whether a clause that is dropped may say something that is done, or take back what is.

    Args:
        clause: The clause.
        justifies: One of `JUSTIFYING`, or empty.
    """
    if clause.has(*_LIMITS) or (clause.levers and clause.has(*_ACTING)):
        return True
    if (clause.has("size") and not clause.has("outcome")) or (clause.opens == "and" and clause.has("odd", *NAMES)):
        return True
    if justifies == "focus":
        return any(token.kind not in _FOCUS for token in clause.tokens)
    if justifies != "follow":
        return False
    moves_nothing = clause.has("outcome") or not clause.has(*_ACTING)
    known = all(token.kind in _FOLLOWING or token.text.lower() in AIMS for token in clause.tokens)
    return not (moves_nothing and known)


def _resumes(clause: Clause, *, first: bool) -> bool:
    """Return whether a clause behind a justification says again what is done."""
    acts = clause.is_whole or (first and clause.has(*VERBS))
    return clause.after_comma and bool(clause.levers) and acts


def _opening(sentence: Sequence[Token], at: int) -> str:
    """Return the kind of clause that begins at a token, or an empty string if the clause before goes on."""
    token = sentence[at]
    if token.kind in {*JUSTIFYING, "financed", "means"}:
        return token.kind
    if token.kind == "on" and at == 0 and token.text.lower() == "with":  # "With inflation at 9%, raise ..."
        return "why"
    if token.kind == "by":
        following = next((t for t in sentence[at + 1 :] if t.kind != "filler"), None)
        return "means" if following and following.kind in VERBS else ""
    if token.kind == "to" and at + 1 < len(sentence) and sentence[at + 1].kind not in _LEVEL_STARTS:
        return "purpose"
    if token.kind == "and":
        before = next((t for t in reversed(sentence[:at]) if t.kind not in _SKIPPED), None)
        after = next((t for t in sentence[at + 1 :] if t.kind not in _SKIPPED), None)
        goes_on = _kin(before, after) or (token.text == "," and after and after.kind in {"by", "at"})
        return "" if goes_on else "and"
    return ""


def _kin(before: Token | None, after: Token | None) -> bool:
    """Return whether "and" between two tokens makes one list: of nations, of instruments, or of purposes."""
    if before is None or after is None:
        return False
    if before.kind == "part" and after.kind == "unknown":  # "on roads and bridges"
        return True
    for kinds in (NAMES, AGAINST_NATIONS, frozenset(LEVERS) - AGAINST_NATIONS, frozenset({"part"})):
        if before.kind in kinds and after.kind in kinds:
            return True
    return False
