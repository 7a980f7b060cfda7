"""A validation in words: the table, the verdict, what breaks without what."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final

from prism_mesa.errors import counted
from prism_mesa.studies.validation.rows import LEAST_PERSONS, Row, least_rounds
from prism_mesa.studies.validation.targets import CASCADES, SOURCES, Role
from prism_mesa.studies.validation.validation import Validation
from prism_mesa.studies.validation.variants import STRAW, VARIANTS

HEAD: Final = ("target", "role", "real", "simulated", "95 % interval", "allowed", "seeds inside", "verdict")

CARRIED: Final = "†"

ROLES: Final[Mapping[Role, str]] = {
    "fitted": "fitted",
    "given": "given",
    "other": "same data",
    "predicted": "predicted",
}
"""What roles are called in the table; `same data`: another statistic of data of which something was fitted or given."""


def number(value: float) -> str:
    """Return a number with three digits that count; a dash for none.

    >>> [number(0.001973), number(2.2449), number(51.9), number(float("nan"))]
    ['0.00197', '2.24', '51.9', '-']
    """
    if not isfinite(value):
        return "-"
    return f"{value:.3g}" if abs(value) >= 1e-4 or not value else f"{value:.2e}"


FAR: Final = 1.5
"""A mean that is inside and lies by more than this factor off the real value is told as a multiple of it."""

OWN_RANGES: Final = "Allowed ranges are PRISM's own, not intervals of the data"


def is_far(row: Row) -> bool:
    """Return whether a mean lies by more than a factor of 1.5 off the real value."""
    return isfinite(row.ratio) and not 1 / FAR <= row.ratio <= FAR


def verdict(row: Row) -> str:
    """Return whether a row is inside, in a word; why it does not apply, if it does not."""
    if row.why_not:
        return f"not applicable: {row.why_not}"
    if row.inside is None:
        return f"informs: {number(row.ratio)} times the real" if isfinite(row.ratio) else "informs"
    times = f", {number(row.ratio)} times the real" if row.inside and is_far(row) else ""
    return ("inside" if row.inside else "outside") + times


def cells(row: Row, marked: bool) -> tuple[str, ...]:
    """Return a row of the table as texts, in the order of `HEAD`; a dagger marks a carried value, if it is to."""
    target = row.target
    between = f"{number(row.low)} to {number(row.high)}" if isfinite(row.low) else "-"
    allowed = f"{number(target.low)} to {number(target.high)}" if isfinite(target.low) else "-"
    seeds = f"{row.share_inside:.0%}" if isfinite(row.share_inside) else "-"
    real = number(row.real) + (CARRIED if marked and not row.computed else "")
    simulated = number(row.simulated) + (f" (in {row.n} of {row.of} seeds)" if 0 < row.n < row.of else "")
    return target.told, ROLES[target.role], real, simulated, between, allowed, seeds, verdict(row)


def is_marked(rows: Sequence[Row]) -> bool:
    """Return whether carried values are marked: where others were computed."""
    return any(row.computed for row in rows)


def joint(found: Validation) -> str:
    """Return the verdict on all targets together, from one set of parameters."""
    inside, seeds = found.judged - len(found.outside), counted(len(found.seeds), "seed")
    left = sum(bool(row.why_not) for row in found.rows if row.target.required)
    told = f"{inside} of {found.judged} targets inside, jointly, from one set of parameters, as means over {seeds}"
    told += " (one seed: no interval)" if len(found.seeds) == 1 else ""
    told += f"; {left} not applicable to this world" if left else ""
    if not found.judged:
        takes = f"at least {LEAST_PERSONS} agents and {least_rounds(found.config)} rounds"
        return f"no target applies to this world: nothing is validated ({seeds}); it takes {takes}"
    told += f"; of those inside {_roles(found)}" if inside else ""
    return told + ("" if found.passed else f". Outside: {', '.join(row.target.told for row in found.outside)}")


def _roles(found: Validation) -> str:
    """Return how many of the targets inside are of which role."""
    counts = {role: sum(row.inside is True and row.target.role == role for row in found.rows) for role in ROLES}
    return ", ".join(f"{n} {ROLES[role]}" for role, n in counts.items() if n)


USED: Final[Mapping[Role, str]] = {
    "fitted": "fitted to",
    "given": "given",
    "other": "same data, another statistic",
    "predicted": "predicted",
}
"""What stands before the data of each role."""


def data_used(found: Validation) -> dict[Role, str]:
    """Return by role the data, and of what parameters were not fitted to, which statistics; all rows count."""
    named: dict[Role, dict[str, list[str]]] = {role: {} for role in USED}
    for row in found.rows:
        named[row.target.role].setdefault(row.target.source, []).append(row.target.told)

    def told(role: Role, source: str) -> str:
        one, statistics = SOURCES[source], ", ".join(named[role][source])
        return f"{one.title} ({one.what if role in ('fitted', 'given') else statistics})"

    return {role: "; ".join(told(role, source) for source in sources) or "none" for role, sources in named.items()}


def broken(found: Validation, rows: Sequence[Row]) -> list[Row]:
    """Return the targets that a variant misses and the full model reaches."""
    reached = {row.target.measure for row in found.rows if row.inside}
    return [row for row in rows if row.fails and row.target.measure in reached]


def variant_lines(found: Validation, name: str) -> list[str]:
    """Return what is off in a variant, what breaks by it, and how often it reshares beside the full model."""
    lost = broken(found, found.variants[name])
    cascades = [row for row in found.variants[name] if row.target.measure in CASCADES and row.inside is not None]
    told = (
        ", ".join(f"{row.target.told} {number(row.simulated)}" for row in lost) or "nothing that the full model meets"
    )
    missed = (
        f" (of {len(cascades)} targets of cascades {sum(row.fails for row in cascades)} outside)" if cascades else ""
    )
    rate = f"reshares per impression: {number(found.rates[name])} times the full model's, {_matched(found, name)}"
    return [VARIANTS[name].told, f"breaks: {told}{missed}", rate]


def _matched(found: Validation, name: str) -> str:
    """Return whether a variant was run at the full model's rate of reshares, and how."""
    match, rate = found.matches.get(name), found.rates[name]
    if match is None:
        return "not matched: the change of rates is part of the pattern"
    at = f"threshold {match.threshold:g}"
    if match.found and 1 / STRAW <= rate <= STRAW:
        return f"matched ({at})"
    return f"NOT matched, so no fair comparison ({at}: {match.ratio:.2f} times where it was looked for)"


def table_lines(rows: Sequence[Row]) -> list[str]:
    """Return the table as lines of equal columns."""
    texts = [HEAD, *(cells(row, is_marked(rows)) for row in rows)]
    widths = [max(len(line[place]) for line in texts) for place in range(len(HEAD) - 1)]
    lines = ["  ".join([*(t.ljust(w) for t, w in zip(line, widths, strict=False)), line[-1]]) for line in texts]
    return [*lines, f"{CARRIED} carried by PRISM; the other real values are computed"] if is_marked(rows) else lines


def validation_lines(found: Validation) -> list[str]:
    """Return what the command prints."""
    lines = [*table_lines(found.rows), "", joint(found), f"{OWN_RANGES} (the report says of each where it comes from)"]
    lines += ["", *(f"{USED[role] + ':':<13} {told}" for role, told in data_used(found).items())]
    if found.variants:
        for name in found.variants:
            told, *others = variant_lines(found, name)
            lines += ["", f"{name}: {told}", *(f"  {line}" for line in others)]
    lines += ["", *(f"note: {note}" for note in found.notes)] if found.notes else []
    return [*lines, "", f"report: {found.path / 'report.md'}"]
