"""Whose instrument a clause is about, and against which nations."""

from collections.abc import Sequence

from prism_mesa.economy.policy_text.clauses import Clause
from prism_mesa.economy.policy_text.lexicon import VERBS
from prism_mesa.economy.policy_text.refusals import UnclearPolicyError, not_understood, quoted
from prism_mesa.errors import did_you_mean


def refuse_foreign(clause: Clause, nation: str) -> None:
    """Refuse to set the instruments of another nation.

    Raises:
        UnclearPolicyError: With reason `foreign`.
    """
    if clause.has("between"):  # "trade between Canada and Sweden"
        if clause.has("unknown") or nation in {name for name, _ in roles(clause)}:
            raise not_understood(clause.tokens)
        raise UnclearPolicyError("foreign", f"{quoted(clause.tokens)}: that is for others to decide")
    for name, role in roles(clause):
        if role == "owner" and name != nation:
            message = f"{quoted(clause.tokens)}: that is for {name} to decide; {nation} sets only its own instruments"
            raise UnclearPolicyError("foreign", message)


def refuse_any_target(clause: Clause, nation: str) -> None:
    """Refuse another nation, or goods, in a clause about instruments that have no target.

    Raises:
        UnclearPolicyError: If there are any.
    """
    refuse_foreign(clause, nation)
    others = any(name != nation for name, _ in roles(clause))
    if others or clause.has("everyone", "vague", "stranger", "product", "imports", "all_imports", "trade", "block"):
        raise not_understood(clause.tokens)


def targets_of(clause: Clause, nation: str, nations: Sequence[str]) -> list[str]:
    """Return the nations that a tariff or a sanction is set against, in the order of the text.

    Raises:
        UnclearPolicyError: If it names none, or anything but nations.
    """
    refuse_foreign(clause, nation)
    there_are = f"there are {', '.join(nations)}"
    for token in clause.tokens:
        if token.kind in {"vague", "stranger"}:
            message = f"{token.text!r} is no nation here: {there_are}.{did_you_mean(token.text, nations)}"
            raise UnclearPolicyError("nation", message)
        if token.kind == "product":
            message = f"tariffs and sanctions are on all trade with a nation, not on {token.text!r} alone"
            raise UnclearPolicyError("product", message)
    named = list(dict.fromkeys(name for name, role in roles(clause) if role == "target"))
    astray = any(not role for _, role in roles(clause)) or clause.has("part")
    if astray or (named and clause.has("everyone")) or (not named and clause.has("unknown")):
        raise not_understood(clause.tokens)
    if not named and clause.has("everyone", "all_imports"):
        named = [name for name in nations if name != nation]
    if not named:
        raise UnclearPolicyError("nation", f"{quoted(clause.tokens)} names no nation: {there_are}")
    return named


def roles(clause: Clause) -> list[tuple[str, str]]:
    """Return the nations of a clause, each as a `target`, an `owner` of an instrument, or neither (empty)."""
    return [(token.text, _role(clause, at)) for at, token in enumerate(clause.tokens) if token.kind == "nation"]


def _role(clause: Clause, at: int) -> str:
    """Return whether the nation at a place is a `target`, an `owner` of an instrument, or neither (empty)."""
    before = [token.kind for token in clause.tokens[:at] if token.kind not in {"filler", "more", "new"}]
    if before and before[-1] in {"on", "from", "to", "and", "nation", "sanction", "block", "trade"}:
        return "target"
    subject = not before and clause.has(*VERBS)
    return "owner" if subject or clause.tokens[at].unit == "owner" or before[-1:] in (["of"], ["in"]) else ""
