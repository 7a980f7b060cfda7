"""How a text falls into clauses, and which of them say what is done. It never reads a size or a target."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from prism_mesa.economy.policy import AGAINST_NATIONS, LEVERS, Lever
from prism_mesa.economy.words.lexicon import DIRECTED, VERBS
from prism_mesa.economy.words.refusals import not_understood
from prism_mesa.economy.words.tokens import Token

NAMES = frozenset({"nation", "everyone", "vague", "stranger"})
JUSTIFYING = ("why", "purpose", "aside")
"""What opens a clause that says why something is done, what for, or instead of what."""

_EMPTY = frozenset({"filler", "on", "and"})
_LIMITS = ("condition", "schedule", "alternative", "hedged")
_SKIPPED = frozenset({"filler", "now", "on", "from", "imports", "trade", "and"})
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
    def begins_ing(self) -> bool:
        """Whether it begins like "reducing"."""
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

    @property
    def holds(self) -> bool:
        """Whether this says to leave an instrument, or all, as it is."""
        moves = self.has("size", "number", "remove", "block", "do", "more", "new", *DIRECTED)
        odd = self.has("unknown", "stranger", "outcome", "trade")
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
    justifies = ""  # the kind of justification that goes on, before what is done or behind it
    found = clauses(sentence)
    for clause, following in zip(found, [*found[1:], None], strict=True):
        if justifies and _resumes(clause, first=not said):
            if justifies == "aside" and clause.begins_ing:  # "instead of raising taxes, cutting spending, ..."
                raise not_understood(clause.tokens)
            justifies = ""
        if clause.opens in JUSTIFYING or (said and clause.is_consequence):
            justifies = clause.opens
        # "Fight inflation by raising rates ..." is said by what follows, "stimulus through roads" is not.
        leads = following is not None and following.opens == "means" and not (clause.is_whole and following.is_detail)
        if not (justifies or leads or (said and clause.is_detail)):
            said.append(clause)
        elif (clause.is_whole and clause.opens not in {"why", "aside"}) or clause.has(*_LIMITS, *["negation"] * leads):
            raise not_understood(clause.tokens)
    said = [clause for clause in said if clause.opens == "financed" or any(t.kind not in _EMPTY for t in clause.tokens)]
    if said and said[0].opens == "financed":
        raise not_understood(said[0].tokens)
    return said


def _resumes(clause: Clause, *, first: bool) -> bool:
    """Return whether a clause behind a justification says again what is done."""
    acts = clause.is_whole or (first and clause.has(*VERBS))
    return clause.after_comma and bool(clause.levers) and acts


def _opening(sentence: Sequence[Token], at: int) -> str:
    """Return the kind of clause that begins at a token, or an empty string if the clause before goes on."""
    token = sentence[at]
    following = next((t for t in sentence[at + 1 :] if t.kind != "filler"), None)
    if token.kind in {*JUSTIFYING, "financed", "means"}:
        return token.kind
    if token.kind == "on" and at == 0 and token.text.lower() == "with":  # "With inflation at 9%, raise ..."
        return "why"
    if token.kind == "by" and following and following.kind in VERBS:
        return "means"
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
    for kinds in (NAMES, AGAINST_NATIONS, frozenset(LEVERS) - AGAINST_NATIONS, frozenset({"part"})):
        if before.kind in kinds and after.kind in kinds:
            return True
    return False
