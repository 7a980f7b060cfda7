"""The validator: computes whether a nation can do what it decided, item by item."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Literal

from pydantic import BaseModel, ConfigDict

from prism_mesa.economy.instruments import level_after, level_of
from prism_mesa.economy.params import LimitsParams
from prism_mesa.economy.policy import AGAINST_NATIONS, ROUNDING, UNITS, Lever, Measure, Policy, in_words, repeated
from prism_mesa.economy.world import World
from prism_mesa.errors import did_you_mean
from prism_mesa.markup import card_of, shown_or_plain, table_of

type Check = Literal["target", "bounds", "feasibility", "conflict", "conservation"]

_LAST_DIGIT = 1e-9
"""By how much an instrument may go beyond a limit: sums are exact to no more."""

_TINY = 1e-6
"""The rounding of a computer's sums: a deficit of 15.000000001 is one of 15."""


class Verdict(BaseModel):
    """What one check says.

    Attributes:
        measure: Which measure it is about, from 0; -1 for the policy as a whole.
        reason: In words, with the numbers.
    """

    model_config = ConfigDict(frozen=True)

    measure: int
    check: Check
    passed: bool
    reason: str


class Judgement(BaseModel):
    """All verdicts on a policy."""

    model_config = ConfigDict(frozen=True)

    verdicts: tuple[Verdict, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether every check passed; if not, nothing of the policy is done."""
        return all(verdict.passed for verdict in self.verdicts)

    @property
    def reason(self) -> str:
        """Why it is rejected; empty if it is not."""
        return "; ".join(verdict.reason for verdict in self.verdicts if not verdict.passed)

    @shown_or_plain
    def _repr_html_(self) -> str:
        rows = [
            ("all" if one.measure < 0 else one.measure, one.check, "\u2713" if one.passed else "\u2717", one.reason)
            for one in self.verdicts
        ]
        table = table_of(("measure", "check", "passed", "why"), rows) if rows else ""
        return card_of("judgement", "accepted" if self.accepted else "rejected", table)


def judge(policy: Policy, world: World, row: int, names: Sequence[str], limits: LimitsParams) -> Judgement:
    """Return the verdicts on a nation's policy, as the world stands.

    Args:
        policy: What is to be done.
        world: The world before it.
        row: Whose policy it is.
        names: Names of all nations.
        limits: What is possible.
    """
    found: list[Verdict] = []
    for i, measure in enumerate(policy.measures):
        target = _target(i, measure, row, names)
        found.append(target)
        if target.passed:
            now, after = level_of(world, row, measure, names), level_after(world, row, measure, names)
            found += [check(i, measure.lever, now, after, limits) for check in (_bounds, _feasible)]
    found += _conflicts(policy, world, row, names, limits)
    if all(verdict.passed for verdict in found) and policy.measures:
        found += [_conservation(policy, world, row, names), _deficit(policy, world, row, names, limits)]
    return Judgement(verdicts=tuple(found))


def _target(i: int, measure: Measure, row: int, names: Sequence[str]) -> Verdict:
    """Return whether a measure acts on what it can: a tariff on another nation, taxes on nobody else's."""

    def said(reason: str = "", *, passed: bool = False) -> Verdict:
        return Verdict(measure=i, check="target", passed=passed, reason=reason)

    if measure.unit not in UNITS[measure.lever]:
        return said(f"a {in_words(measure.lever)} is not set in {in_words(measure.unit)}")
    if measure.lever not in AGAINST_NATIONS:
        if measure.target is not None:
            return said(f"{in_words(measure.lever)} is a nation's own: it has no target, not {measure.target!r}")
        return said("its own instrument", passed=True)
    others = [name for name in names if name != names[row]]
    if measure.target == names[row]:
        return said(f"a {measure.lever} against oneself")
    if measure.target not in others:
        near = did_you_mean(measure.target or "", others)
        return said(f"no nation {measure.target!r} (there are: {', '.join(others) or 'no others'}).{near}")
    return said(f"{measure.target} is another nation", passed=True)


def _limits_of(lever: Lever, limits: LimitsParams) -> tuple[float, float, float]:
    """Return where an instrument can stand, lowest and highest, and its largest step in a quarter."""
    match lever:
        case "policy_rate":
            return limits.lower_bound, limits.highest_rate, limits.rate_step
        case "spending" | "taxes":
            return 0.0, limits.highest_budget, limits.budget_step
        case "debt":
            return -inf, inf, limits.borrowing_step
        case "tariff":
            return 0.0, limits.highest_tariff, limits.tariff_step
        case "sanction":
            return 0.0, 100.0, inf


def _bounds(i: int, lever: Lever, now: float, after: float, limits: LimitsParams) -> Verdict:
    """Return whether the step from where an instrument stands is one that can be made in a quarter."""
    step, (_, _, most) = after - now, _limits_of(lever, limits)
    passed = abs(step) <= most + _LAST_DIGIT
    reason = f"{in_words(lever)} {now:.2f} -> {after:.2f}, a step of {step:+.2f}"
    if not passed:
        reason += f": no more than {most:g} in a quarter"
    return Verdict(measure=i, check="bounds", passed=passed, reason=reason)


def _feasible(i: int, lever: Lever, now: float, after: float, limits: LimitsParams) -> Verdict:
    """Return whether an instrument can stand where it would be set."""
    low, high, _ = _limits_of(lever, limits)
    reason = f"{in_words(lever)} can stand at {after:.2f}"
    # what began outside, or came there by growth, may come nearer
    passed = min(low, now) - _LAST_DIGIT <= after <= max(high, now) + _LAST_DIGIT
    if not passed:
        bound = f"the lowest is {low:g}" if after < low else f"the highest is {high:g}"
        zero = " (the zero lower bound)" if lever == "policy_rate" and after < low == 0 else ""
        reason = f"{in_words(lever)} of {after:.2f}: {bound}{zero}"
    elif lever == "debt":
        passed = after <= max(now, limits.highest_debt)
        reason = f"debt {now:.1f} -> {after:.1f} % of GDP"
        reason += "" if passed else f": nobody lends beyond {limits.highest_debt:g}"
    return Verdict(measure=i, check="feasibility", passed=passed, reason=reason)


def _conflicts(policy: Policy, world: World, row: int, names: Sequence[str], limits: LimitsParams) -> Iterator[Verdict]:
    """Yield whether the measures go together."""
    clashes = []
    twice = repeated(policy.measures)
    for i, measure in enumerate(policy.measures):
        if i in twice:
            of = f" on {measure.target}" if measure.target else ""
            clashes.append((i, f"{in_words(measure.lever)}{of} is set twice"))
        stops = measure.lever == "sanction" and measure.target in names
        if stops and level_after(world, row, measure, names) >= 100 and _taxed(policy, measure):
            clashes.append((i, f"a tariff on {measure.target}, with which all trade is stopped"))
    distinct = len({(m.lever, m.how, m.size, m.unit) if m.target else (m.lever, str(m)) for m in policy.measures})
    if distinct > limits.measures:
        clashes.append((-1, f"{distinct} measures: no more than {limits.measures} in a quarter"))
    for i, reason in clashes:
        yield Verdict(measure=i, check="conflict", passed=False, reason=reason)
    if not clashes and len(policy.measures) > 1:
        yield Verdict(measure=-1, check="conflict", passed=True, reason="the measures do not contradict each other")


def _taxed(policy: Policy, sanction: Measure) -> bool:
    return any(m.lever == "tariff" and m.target == sanction.target and m.size > 0 for m in policy.measures)


def _changes(policy: Policy, world: World, row: int, names: Sequence[str]) -> dict[Lever, float]:
    """Return by how much each part of the budget changes, percent of GDP."""
    return {
        measure.lever: level_after(world, row, measure, names) - level_of(world, row, measure, names)
        for measure in policy.measures
        if measure.lever in ("spending", "taxes", "debt")
    }


def _beyond_taxes(change: Mapping[Lever, float]) -> float:
    return change.get("spending", 0.0) - change.get("taxes", 0.0)


def _conservation(policy: Policy, world: World, row: int, names: Sequence[str]) -> Verdict:
    """Return whether the budget adds up: what is borrowed is what is spent beyond what is taken in."""
    change = _changes(policy, world, row, names)
    if "debt" not in change or not policy.sets_budget:
        reason = "what is spent beyond what is taken in is borrowed"
        return Verdict(measure=-1, check="conservation", passed=True, reason=reason)
    needed = _beyond_taxes(change)
    passed = abs(change["debt"] - needed) <= ROUNDING
    reason = f"spending {change.get('spending', 0.0):+.2f} less taxes {change.get('taxes', 0.0):+.2f} "
    reason += f"{'is' if passed else 'is not'} borrowing {change['debt']:+.2f} (percent of GDP)"
    return Verdict(measure=-1, check="conservation", passed=passed, reason=reason)


def _deficit(policy: Policy, world: World, row: int, names: Sequence[str], limits: LimitsParams) -> Verdict:
    """Return whether the deficit of the next year can be financed."""
    change = _changes(policy, world, row, names)
    wider = _beyond_taxes(change) if policy.sets_budget else change.get("debt", 0.0)
    deficit = float(world.deficit[row]) + wider
    passed, reason = True, f"a deficit of {deficit:.1f} % of GDP can be financed"
    if wider > _LAST_DIGIT and deficit > limits.highest_deficit + _TINY:
        passed, reason = (
            False,
            f"a deficit of {deficit:.1f} % of GDP: nobody finances more than {limits.highest_deficit:g}",
        )
    elif wider > _LAST_DIGIT and world.debt[row] + wider > limits.highest_debt + _TINY:
        passed = False
        reason = f"debt of {world.debt[row]:.0f} % of GDP: nobody lends for new deficits beyond {limits.highest_debt:g}"
    return Verdict(measure=-1, check="feasibility", passed=passed, reason=reason)
