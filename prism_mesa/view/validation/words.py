"""A validation as text: the table, the verdict, and what each variant breaks."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final

from prism_mesa.errors import counted
from prism_mesa.studies.validation.targets import CASCADES, SOURCES, Role
from prism_mesa.studies.validation.validation import LEAST_PERSONS, Row, Validation, least_rounds
from prism_mesa.studies.validation.variants import STRAW, VARIANTS

HEAD: Final = ("target", "role", "real", "simulated", "95 % interval", "allowed", "seeds inside", "verdict")

CARRIED: Final = "†"

ROLES: Final[Mapping[Role, str]] = {
    "fitted": "fitted",
    "given": "given",
    "other": "same data",
    "predicted": "predicted",
}
"""Names of roles in the table; `same data`: another statistic of data that were fitted or given."""


def number(value: float) -> str:
    """Format a number with three significant digits; a dash if it is missing.

    >>> [number(0.001973), number(2.2449), number(51.9), number(float("nan"))]
    ['0.00197', '2.24', '51.9', '-']
    """
    if not isfinite(value):
        return "-"
    return f"{value:.3g}" if abs(value) >= 1e-4 or not value else f"{value:.2e}"


FAR: Final = 1.5
"""If a mean is inside but off the real value by more than this factor, the report gives the factor."""

OWN_RANGES: Final = "Allowed ranges are PRISM's own, not intervals of the data"


def is_far(row: Row) -> bool:
    """Return whether a mean differs from the real value by more than a factor of 1.5."""
    return isfinite(row.ratio) and not 1 / FAR <= row.ratio <= FAR


def verdict(row: Row) -> str:
    """Return whether a row is inside, as a word, or why it does not apply."""
    if row.why_not:
        return f"not applicable: {row.why_not}"
    if row.inside is None:
        return f"informs: {number(row.ratio)} times the real" if isfinite(row.ratio) else "informs"
    times = f", {number(row.ratio)} times the real" if row.inside and is_far(row) else ""
    return ("inside" if row.inside else "outside") + times


def cells(row: Row, marked: bool) -> tuple[str, ...]:
    """Return a row of the table as texts, in the order of `HEAD`; a dagger marks a carried value if asked for."""
    target = row.target
    between = f"{number(row.low)} to {number(row.high)}" if isfinite(row.low) else "-"
    allowed = f"{number(target.low)} to {number(target.high)}" if isfinite(target.low) else "-"
    seeds = f"{row.share_inside:.0%}" if isfinite(row.share_inside) else "-"
    real = number(row.real) + (CARRIED if marked and not row.computed else "")
    simulated = number(row.simulated) + (f" (in {row.n} of {row.of} seeds)" if 0 < row.n < row.of else "")
    return target.label, ROLES[target.role], real, simulated, between, allowed, seeds, verdict(row)


def is_marked(rows: Sequence[Row]) -> bool:
    """Return whether to mark carried values, which is so if others were computed."""
    return any(row.computed for row in rows)


def joint(validation: Validation) -> str:
    """Return the verdict on all targets together, from one set of parameters."""
    inside, seeds = validation.judged - len(validation.outside), counted(len(validation.seeds), "seed")
    if not validation.judged:
        needs = f"at least {LEAST_PERSONS} agents and {least_rounds(validation.config)} rounds"
        return f"no target applies to this world: nothing is validated ({seeds}); it takes {needs}"
    not_applicable = sum(bool(row.why_not) for row in validation.rows if row.target.required)
    text = f"{inside} of {validation.judged} targets inside, jointly, from one set of parameters, as means over {seeds}"
    text += " (one seed: no interval)" if len(validation.seeds) == 1 else ""
    text += f"; {not_applicable} not applicable to this world" if not_applicable else ""
    text += f"; of those inside {_roles(validation)}" if inside else ""
    return text + ("" if validation.passed else f". Outside: {', '.join(r.target.label for r in validation.outside)}")


def _roles(validation: Validation) -> str:
    """Return the number of targets inside, by role."""
    counts = {role: sum(row.inside is True and row.target.role == role for row in validation.rows) for role in ROLES}
    return ", ".join(f"{n} {ROLES[role]}" for role, n in counts.items() if n)


USED: Final[Mapping[Role, str]] = {
    "fitted": "fitted to",
    "given": "given",
    "other": "same data, another statistic",
    "predicted": "predicted",
}
"""What stands before the data of each role."""


def data_used(validation: Validation) -> dict[Role, str]:
    """Return the data by role, with the statistics that were not used for fitting."""
    statistics: dict[Role, dict[str, list[str]]] = {role: {} for role in USED}
    for row in validation.rows:
        statistics[row.target.role].setdefault(row.target.source, []).append(row.target.label)
    used: dict[Role, str] = {}
    for role, by_source in statistics.items():
        parts = []
        for name, names in by_source.items():
            source = SOURCES[name]
            parts.append(f"{source.title} ({source.what if role in ('fitted', 'given') else ', '.join(names)})")
        used[role] = "; ".join(parts) or "none"
    return used


def broken(validation: Validation, rows: Sequence[Row]) -> list[Row]:
    """Return the targets that a variant misses and the full model meets."""
    reached = {row.target.measure for row in validation.rows if row.inside}
    return [row for row in rows if row.fails and row.target.measure in reached]


def variant_lines(validation: Validation, name: str) -> list[str]:
    """Return what a variant turns off, what this breaks, and its rate of reshares against the full model's."""
    rows = validation.variants[name]
    lost = [f"{row.target.label} {number(row.simulated)}" for row in broken(validation, rows)]
    breaks = ", ".join(lost) or "nothing that the full model meets"
    cascades = [row for row in rows if row.target.measure in CASCADES and row.inside is not None]
    if cascades:
        breaks += f" (of {len(cascades)} targets of cascades {sum(row.fails for row in cascades)} outside)"
    times = f"{number(validation.rates[name])} times the full model's, {_matched(validation, name)}"
    return [VARIANTS[name].label, f"breaks: {breaks}", f"reshares per impression: {times}"]


def _matched(validation: Validation, name: str) -> str:
    """Return how a variant was matched to the full model's rate of reshares, if it was."""
    match, rate = validation.matches.get(name), validation.rates[name]
    if match is None:
        return "not matched: the change of rates is part of the pattern"
    at = f"threshold {match.threshold:g}"
    if match.is_close and 1 / STRAW <= rate <= STRAW:
        return f"matched ({at})"
    return f"NOT matched, so no fair comparison ({at}: {match.ratio:.2f} times where it was looked for)"


def table_lines(rows: Sequence[Row]) -> list[str]:
    """Return the table as aligned lines."""
    texts = [HEAD, *(cells(row, is_marked(rows)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in texts]
    return [*lines, f"{CARRIED} carried by PRISM; the other real values are computed"] if is_marked(rows) else lines


def validation_lines(validation: Validation) -> list[str]:
    """Return the lines that the command prints."""
    ranges = f"{OWN_RANGES} (the report says of each where it comes from)"
    lines = [*table_lines(validation.rows), "", joint(validation), ranges, ""]
    lines += [f"{USED[role] + ':':<13} {data}" for role, data in data_used(validation).items()]
    for name in validation.variants:
        off, *others = variant_lines(validation, name)
        lines += ["", f"{name}: {off}", *(f"  {line}" for line in others)]
    lines += ["", *(f"note: {note}" for note in validation.notes)] if validation.notes else []
    return [*lines, "", f"report: {validation.path / 'report.md'}"]
