"""Reads a free-text policy into a typed one, or says why not. What the text leaves open is an error."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from prism_mesa.economy.policy import AGAINST_NATIONS, LEVERS, Lever, Measure, Policy, repeated
from prism_mesa.economy.policy_text.clauses import NAMES, Clause, decided, sentences
from prism_mesa.economy.policy_text.lexicon import DIRECTED
from prism_mesa.economy.policy_text.refusals import INSTRUMENTS, UnclearPolicyError, not_understood, quoted
from prism_mesa.economy.policy_text.relevance import names_instrument
from prism_mesa.economy.policy_text.sizes import moves, size_of
from prism_mesa.economy.policy_text.standing import Standing, refuse_disagreement
from prism_mesa.economy.policy_text.targets import refuse_any_target, refuse_foreign, targets_of
from prism_mesa.economy.policy_text.texts import cleaned, refuse_whole
from prism_mesa.economy.policy_text.tokens import tokens

_REFUSED: dict[str, tuple[str, str]] = {
    "absurd": ("number", "is no size"),
    "money": ("money", "is a sum of money: give sizes in percent of GDP"),
    "negation": ("negation", "says only what is not done: say what is done"),
    "alternative": ("alternative", "leaves open which: decide for one"),
    "hedged": ("hedged", "does not decide: say what is done"),
    "condition": ("condition", "depends on a condition: write what is done now"),
    "schedule": ("schedule", "is a schedule: a decision is for one quarter, so say what is done now"),
    "range": ("range", "is not one size: give one number"),
    "absent": ("instrument", f"is no instrument here: there are {INSTRUMENTS}"),
}
"""What no measure is read out of: by the kind of a token, the reason and what is said of it. The first counts."""


def parse_policy(text: str, nation: str, nations: Sequence[str], standing: Standing | None = None) -> Policy:
    """Return the policy that `text` says, measures in its order; sizes stand as written, however absurd.

    >>> str(parse_policy("Raise rates by 50 basis points and cut taxes by 1% of GDP.", "Sweden", ["Sweden"]))
    'policy rate by +0.5 points, taxes by -1 % of GDP'

    Args:
        text: At most `MAX_LENGTH` characters.
        nation: Who acts.
        nations: All nations, `nation` included.
        standing: Where the nation's instruments stand. A text that says it too, as in "from 2% to 3%", has to say the
            same; with None it is refused.

    Raises:
        UnclearPolicyError: (a ValueError) If the text says no policy, or not plainly.
    """
    text = cleaned(text)
    refuse_whole(text)
    terms = tokens(text, nations)
    quarters = {"".join(filter(str.isdigit, term.text)) for term in terms if term.kind == "now" and "20" in term.text}
    if len(quarters) > 1:
        raise not_understood(terms)
    measures: list[Measure] = []
    held: set[Lever] = set()
    says_something = False
    for sentence in sentences(terms):
        inherited = ""
        for clause in decided(sentence):
            says_something = True
            found = _read(clause, inherited, nation, nations, standing)
            measures += found
            held |= set() if found or clause.opens == "financed" else set(clause.levers)
            inherited = "up" if clause.has("up") else "down" if clause.has("down") else inherited
    if not says_something:
        raise _no_lever(Clause("start", tokens=terms))
    if clash(held, measures):
        raise not_understood(terms)
    _refuse_twice(measures)
    return Policy(measures=tuple(measures))


def clash(held: Collection[Lever], measures: Sequence[Measure]) -> bool:
    """Return whether an instrument that is held is moved, or debt is held while anything is moved."""
    return any(measure.lever in held or "debt" in held for measure in measures)


def _read(
    clause: Clause, inherited: str, nation: str, nations: Sequence[str], standing: Standing | None
) -> list[Measure]:
    """Return the measures that one clause says; none if it says to leave things as they are.

    `inherited` is the direction of the clause before, `up`, `down` or empty: "raise taxes by 1% and spending by 2%".
    """
    _refuse_clause(clause)
    if clause.opens == "financed" and set(clause.levers) <= {"debt"}:
        _refuse_more_than_borrowing(clause)
        return []
    if clause.has("odd", "jest") or clause.is_past:
        raise not_understood(clause.tokens)
    if clause.holds:
        refuse_foreign(clause, nation)
        _refuse_other_level(clause, nation, nations, standing)
        return []
    levers = clause.levers
    if not levers:
        raise _no_lever(clause)
    against = {lever in AGAINST_NATIONS for lever in levers}
    if len(against) > 1 or clause.has("outcome") or not _listed(clause) or _breaks_off(clause):
        raise not_understood(clause.tokens)
    targets: Sequence[str | None] = [None]
    if against == {True}:
        targets = targets_of(clause, nation, nations)
    else:
        refuse_any_target(clause, nation)
    size = size_of(clause)
    if clause.has("unknown") and (size or not clause.has(*DIRECTED)):
        raise not_understood(clause.tokens)
    found = [
        Measure(lever=lever, how=how, size=number, unit=unit, target=target)
        for lever, how, number, unit in moves(clause, size, inherited)
        for target in targets
    ]
    for measure in found:
        refuse_disagreement(measure, size, clause, standing)
    return found


def _refuse_other_level(clause: Clause, nation: str, nations: Sequence[str], standing: Standing | None) -> None:
    """Refuse to hold an instrument where it does not stand: "at its current level of 2%"."""
    if (size := size_of(clause)) is None:
        return
    for lever in clause.levers:
        for target in targets_of(clause, nation, nations) if lever in AGAINST_NATIONS else [None]:
            held = Measure(lever=lever, how="to", size=size.level, unit="points", target=target)
            refuse_disagreement(held, size, clause, standing)


def _refuse_clause(clause: Clause) -> None:
    for kind, (reason, message) in _REFUSED.items():
        for token in clause.tokens:
            if token.kind == kind:
                said = repr(token.text) if kind == "absent" else f"{quoted(clause.tokens)}: {token.text!r}"
                raise UnclearPolicyError(reason, f"{said} {message}")


def _refuse_more_than_borrowing(clause: Clause) -> None:
    """Refuse what is more than "financed by borrowing", which is no measure: what is not taxed is borrowed anyway."""
    if not clause.levers or clause.has("size", "number", "unknown", "down", *NAMES):
        raise not_understood(clause.tokens)


def _no_lever(clause: Clause) -> UnclearPolicyError:
    """Return why a clause that names no instrument is refused."""
    said = quoted(clause.tokens)
    if clause.has("imports", "all_imports") and clause.has("block", "remove"):
        message = "imports alone cannot be stopped: there are tariffs, and sanctions on all trade with a nation"
        return UnclearPolicyError("instrument", f"{said}: {message}")
    if clause.has("outcome"):
        return UnclearPolicyError("outcome", f"{said}: an outcome cannot be set, only instruments: {INSTRUMENTS}")
    if clause.has("size") or names_instrument(" ".join(token.text for token in clause.tokens), "economic"):
        return not_understood(clause.tokens)
    return UnclearPolicyError("instrument", f"{said} names no instrument: there are {INSTRUMENTS}")


def _listed(clause: Clause) -> bool:
    """Return whether different instruments are a list, "taxes and spending", not "spending out of taxes"."""
    places = [at for at, token in enumerate(clause.tokens) if token.kind in LEVERS]
    for one, other in pairwise(places):
        between = {token.kind for token in clause.tokens[one + 1 : other]} - {"filler", "part", "one_tax", "tax_rate"}
        if clause.tokens[one].kind != clause.tokens[other].kind and between != {"and"}:
            return False
    return True


def _breaks_off(clause: Clause) -> bool:
    """Return whether a preposition has nothing, or another one, behind it: "by 2% of", "by to 3%"."""
    words = {"by", "to", "at", "of", "from"}
    kinds = [token.kind for token in clause.tokens if token.kind != "filler"]
    return any(kind in words and after in words | {"end"} for kind, after in pairwise([*kinds, "end"]))


def _refuse_twice(measures: Sequence[Measure]) -> None:
    for i in repeated(measures):
        raise UnclearPolicyError("twice", f"moves one instrument twice ({measures[i]}): say once where it goes")
