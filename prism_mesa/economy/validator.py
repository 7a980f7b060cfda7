"""The validator, which checks measure by measure whether a nation can carry out its policy."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from prism_mesa.economy.params import LimitsParams
from prism_mesa.economy.policy import (
    AGAINST_NATIONS,
    UNITS,
    Lever,
    Measure,
    Policy,
    find_repeats,
    level_after,
    level_before,
    spell_out,
)
from prism_mesa.economy.world import World
from prism_mesa.errors import did_you_mean
from prism_mesa.markup import card_html, html_or_repr, table_html

type Check = Literal["target", "bounds", "feasibility", "conflict", "conservation"]

_LEVEL_TOLERANCE: Final = 1e-9
"""Tolerance for an instrument at its limit."""
_BUDGET_TOLERANCE: Final = 1e-6
"""Tolerance for a deficit or a debt at its limit."""
_DISPLAY_TOLERANCE: Final = 0.051
"""Tolerance between borrowing and budget, percent of GDP, because prompts show levels with one decimal."""


class Verdict(BaseModel):
    """The result of a check; `measure` is an index into the policy's measures, or -1 for the whole policy."""

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
        """Whether every check passed; if not, the policy has no effect."""
        return all(verdict.passed for verdict in self.verdicts)

    @property
    def reason(self) -> str:
        """Why the policy is rejected; empty if it is accepted."""
        return "; ".join(verdict.reason for verdict in self.verdicts if not verdict.passed)

    @html_or_repr
    def _repr_html_(self) -> str:
        marks = {True: "\u2713", False: "\u2717"}
        rows = [("all" if v.measure < 0 else v.measure, v.check, marks[v.passed], v.reason) for v in self.verdicts]
        table = table_html(("measure", "check", "passed", "why"), rows) if rows else ""
        return card_html("judgement", "accepted" if self.accepted else "rejected", table)


def judge(policy: Policy, world: World, row: int, names: Sequence[str], limits: LimitsParams) -> Judgement:
    """Judge the policy of the nation at `row`; `world` is the world before the policy."""
    verdicts: list[Verdict] = []
    for i, measure in enumerate(policy.measures):
        fault = _target_fault(measure, row, names)
        target = "its own instrument" if measure.target is None else f"{measure.target} is another nation"
        verdicts.append(Verdict(measure=i, check="target", passed=not fault, reason=fault or target))
        if not fault:
            old, new = level_before(world, row, measure, names), level_after(world, row, measure, names)
            move = (i, measure.lever, old, new, limits)
            verdicts += [_check_step(*move), _check_level(*move)]
    verdicts += _conflicts(policy, world, row, names, limits)
    if all(verdict.passed for verdict in verdicts) and policy.measures:
        verdicts += _budget(policy, world, row, names, limits)
    return Judgement(verdicts=tuple(verdicts))


def _target_fault(measure: Measure, row: int, names: Sequence[str]) -> str:
    if measure.unit not in UNITS[measure.lever]:
        return f"a {spell_out(measure.lever)} is not set in {spell_out(measure.unit)}"
    if measure.lever not in AGAINST_NATIONS:
        fault = f"{spell_out(measure.lever)} is a nation's own: it has no target, not {measure.target!r}"
        return "" if measure.target is None else fault
    if measure.target == names[row]:
        return f"a {measure.lever} against oneself"
    others = [name for name in names if name != names[row]]
    if measure.target not in others:
        suggestion = did_you_mean(measure.target or "", others)
        return f"no nation {measure.target!r} (there are: {', '.join(others) or 'no others'}).{suggestion}"
    return ""


def _level_range(lever: Lever, limits: LimitsParams) -> tuple[float, float, float]:
    """Return the lowest and the highest level of an instrument, and its largest step in a quarter."""
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


def _check_step(i: int, lever: Lever, old: float, new: float, limits: LimitsParams) -> Verdict:
    step, (_, _, max_step) = new - old, _level_range(lever, limits)
    passed = abs(step) <= max_step + _LEVEL_TOLERANCE
    reason = f"{spell_out(lever)} {old:.2f} -> {new:.2f}, a step of {step:+.2f}"
    reason += "" if passed else f": no more than {max_step:g} in a quarter"
    return Verdict(measure=i, check="bounds", passed=passed, reason=reason)


def _check_level(i: int, lever: Lever, old: float, new: float, limits: LimitsParams) -> Verdict:
    """Check whether an instrument's new level is allowed; a level outside the range may move towards the range."""
    lowest, highest, _ = _level_range(lever, limits)
    passed = min(lowest, old) - _LEVEL_TOLERANCE <= new <= max(highest, old) + _LEVEL_TOLERANCE
    reason = f"{spell_out(lever)} can stand at {new:.2f}"
    if not passed:
        bound = f"the lowest is {lowest:g}" if new < lowest else f"the highest is {highest:g}"
        bound_note = " (the zero lower bound)" if lever == "policy_rate" and new < lowest == 0 else ""
        reason = f"{spell_out(lever)} of {new:.2f}: {bound}{bound_note}"
    elif lever == "debt":
        passed = new <= max(old, limits.highest_debt)
        reason = f"debt {old:.1f} -> {new:.1f} % of GDP"
        reason += "" if passed else f": nobody lends beyond {limits.highest_debt:g}"
    return Verdict(measure=i, check="feasibility", passed=passed, reason=reason)


def _conflicts(policy: Policy, world: World, row: int, names: Sequence[str], limits: LimitsParams) -> Iterator[Verdict]:
    conflicts = []
    repeated = find_repeats(policy.measures)
    tariff_targets = {measure.target for measure in policy.measures if measure.lever == "tariff" and measure.size > 0}
    for i, measure in enumerate(policy.measures):
        if i in repeated:
            target = f" on {measure.target}" if measure.target else ""
            conflicts.append((i, f"{spell_out(measure.lever)}{target} is set twice"))
        is_double = measure.lever == "sanction" and measure.target in tariff_targets & set(names)
        if is_double and level_after(world, row, measure, names) >= 100:
            conflicts.append((i, f"a tariff on {measure.target}, with which all trade is stopped"))
    n_distinct = len({(m.lever, m.how, m.size, m.unit) if m.target else (m.lever, str(m)) for m in policy.measures})
    if n_distinct > limits.measures:
        conflicts.append((-1, f"{n_distinct} measures: no more than {limits.measures} in a quarter"))
    for i, reason in conflicts:
        yield Verdict(measure=i, check="conflict", passed=False, reason=reason)
    if not conflicts and len(policy.measures) > 1:
        yield Verdict(measure=-1, check="conflict", passed=True, reason="the measures do not contradict each other")


def _budget(policy: Policy, world: World, row: int, names: Sequence[str], limits: LimitsParams) -> Iterator[Verdict]:
    changes = {m.lever: level_after(world, row, m, names) - level_before(world, row, m, names) for m in policy.measures}
    spending, taxes, debt = (changes.get(lever, 0.0) for lever in ("spending", "taxes", "debt"))
    passed, reason = True, "what is spent beyond what is taken in is borrowed"
    if "debt" in changes and policy.sets_budget:
        passed = abs(debt - (spending - taxes)) <= _DISPLAY_TOLERANCE
        reason = f"spending {spending:+.2f} less taxes {taxes:+.2f} "
        reason += f"{'is' if passed else 'is not'} borrowing {debt:+.2f} (percent of GDP)"
    yield Verdict(measure=-1, check="conservation", passed=passed, reason=reason)
    increase = spending - taxes if policy.sets_budget else debt
    deficit = float(world.deficit[row]) + increase
    passed, reason = True, f"a deficit of {deficit:.1f} % of GDP can be financed"
    if increase > _LEVEL_TOLERANCE and deficit > limits.highest_deficit + _BUDGET_TOLERANCE:
        passed = False
        reason = f"a deficit of {deficit:.1f} % of GDP: nobody finances more than {limits.highest_deficit:g}"
    elif increase > _LEVEL_TOLERANCE and world.debt[row] + increase > limits.highest_debt + _BUDGET_TOLERANCE:
        passed = False
        reason = f"debt of {world.debt[row]:.0f} % of GDP: nobody lends for new deficits beyond {limits.highest_debt:g}"
    yield Verdict(measure=-1, check="feasibility", passed=passed, reason=reason)
