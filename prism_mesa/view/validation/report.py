"""The report of a validation: a verdict and tables for the terminal, and a page of Markdown with figures."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Final

from prism_mesa.errors import format_count, printable
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.studies.folder import write_text
from prism_mesa.studies.measures.catalogue import find_measure
from prism_mesa.studies.validation.targets import CASCADES, RANGE_ORIGINS, SOURCES, Role
from prism_mesa.studies.validation.validation import EXPLANATORY, MIN_PERSONS, TargetRow, Validation, min_rounds
from prism_mesa.studies.validation.variants import FULL, MAX_RATIO, VARIANTS
from prism_mesa.view.plots.files import to_png
from prism_mesa.view.study.numbers import NO_VALUE, significant
from prism_mesa.view.validation.figures import validation_figures

HEADERS: Final = ("target", "role", "real", "simulated", "95 % interval", "allowed", "seeds inside", "verdict")
DAGGER: Final = "†"
FAR_FACTOR: Final = 1.5
"""Means that are inside but differ from the real value by more than this factor are listed in the report."""
RANGES_NOTE: Final = "Allowed ranges are PRISM's own, not intervals of the data"
ROLES: Final[Mapping[Role, str]] = {
    "fitted": "fitted",
    "given": "given",
    "other": "same data",
    "predicted": "predicted",
}
"""Names of roles in the table; `same data` marks another statistic of data that were fitted or given."""
_ROLE_HEADINGS: Final[Mapping[Role, str]] = {**ROLES, "fitted": "fitted to", "other": "same data, another statistic"}


def _is_far(row: TargetRow) -> bool:
    """Return whether a mean differs from the real value by more than a factor of 1.5."""
    return isfinite(row.ratio) and not 1 / FAR_FACTOR <= row.ratio <= FAR_FACTOR


def _verdict(row: TargetRow) -> str:
    if row.exclusion_reason:
        return f"not applicable: {row.exclusion_reason}"
    times = f"{significant(row.ratio)} times the real"
    if row.inside is None:
        return f"informs: {times}" if isfinite(row.ratio) else "informs"
    return "outside" if not row.inside else f"inside, {times}" if _is_far(row) else "inside"


def _table_rows(rows: Sequence[TargetRow]) -> list[tuple[str, ...]]:
    """Return the rows of the table in the order of `HEADERS`; if values were computed, shipped values have a dagger."""
    dagger = DAGGER if _has_computed(rows) else ""
    return [
        (
            row.target.label,
            ROLES[row.target.role],
            significant(row.real) + ("" if row.computed else dagger),
            significant(row.simulated) + (f" (in {row.n} of {row.n_seeds} seeds)" if 0 < row.n < row.n_seeds else ""),
            _range_text(row.low, row.high),
            _range_text(row.target.low, row.target.high),
            f"{row.share_inside:.0%}" if isfinite(row.share_inside) else NO_VALUE,
            _verdict(row),
        )
        for row in rows
    ]


def _range_text(low: float, high: float) -> str:
    return f"{significant(low)} to {significant(high)}" if isfinite(low) else NO_VALUE


def _has_computed(rows: Sequence[TargetRow]) -> bool:
    """Return whether any real value was computed, so that values shipped with PRISM must be marked."""
    return any(row.computed for row in rows)


def joint_verdict(validation: Validation) -> str:
    """Return the verdict on all targets together, from one set of parameters."""
    n_met, seeds = validation.judged - len(validation.outside), format_count(len(validation.seeds), "seed")
    if not validation.judged:
        needs = f"at least {MIN_PERSONS} agents and {min_rounds(validation.config)} rounds"
        return f"no target applies to this world: nothing is validated ({seeds}); a validation takes {needs}"
    not_applicable = sum(bool(row.exclusion_reason) for row in validation.rows if row.target.required)
    text = f"{n_met} of {validation.judged} targets inside, jointly, from one set of parameters, as means over {seeds}"
    text += " (one seed: no interval)" if len(validation.seeds) == 1 else ""
    text += f"; {not_applicable} not applicable to this world" if not_applicable else ""
    counts = {role: sum(row.inside is True and row.target.role == role for row in validation.rows) for role in ROLES}
    roles = ", ".join(f"{n} {ROLES[role]}" for role, n in counts.items() if n)
    text += f"; of those inside {roles}" if n_met else ""
    return text + ("" if validation.passed else f". Outside: {', '.join(r.target.label for r in validation.outside)}")


def data_used(validation: Validation) -> dict[str, str]:
    """Return the data of each role by heading, with the statistics that were not used for fitting."""
    labels: dict[Role, dict[str, list[str]]] = {role: {} for role in ROLES}
    for row in validation.rows:
        labels[row.target.role].setdefault(row.target.source, []).append(row.target.label)
    data = {}
    for role, by_source in labels.items():
        is_input = role in ("fitted", "given")
        sources = ((SOURCES[name], ", ".join(names)) for name, names in by_source.items())
        texts = [f"{source.title} ({source.description if is_input else names})" for source, names in sources]
        data[_ROLE_HEADINGS[role]] = "; ".join(texts) or "none"
    return data


def broken_rows(validation: Validation, rows: Sequence[TargetRow]) -> list[TargetRow]:
    """Return the targets that a variant misses and the full model meets."""
    met_measures = {row.target.measure for row in validation.rows if row.inside}
    return [row for row in rows if row.fails and row.target.measure in met_measures]


def variant_lines(validation: Validation, name: str) -> list[str]:
    """Return lines on what a variant turns off, the targets that it breaks, and its relative rate of reshares."""
    rows = validation.variants[name]
    broken = [f"{row.target.label} {significant(row.simulated)}" for row in broken_rows(validation, rows)]
    breaks = ", ".join(broken) or "no target that the full model meets"
    cascades = [row for row in rows if row.target.measure in CASCADES and row.inside is not None]
    if cascades:
        breaks += f" ({sum(row.fails for row in cascades)} of {len(cascades)} targets of cascades are outside)"
    times = f"{significant(validation.rates[name])} times the full model's, {_match_text(validation, name)}"
    return [VARIANTS[name].label, f"breaks: {breaks}", f"reshares per impression: {times}"]


def _match_text(validation: Validation, name: str) -> str:
    """Return whether and how a variant was matched to the full model's rate of reshares."""
    match = validation.matches.get(name)
    if match is None:
        return "not matched: the change of rates is part of the pattern"
    if match.is_close and 1 / MAX_RATIO <= validation.rates[name] <= MAX_RATIO:
        return f"matched (threshold {match.threshold:g})"
    closest = f"threshold {match.threshold:g}: {match.ratio:.2f} times in the search"
    return f"NOT matched, so the comparison is not fair ({closest})"


def validation_lines(validation: Validation) -> list[str]:
    """Return the lines that the command prints."""
    texts = [HEADERS, *_table_rows(validation.rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in texts]
    if _has_computed(validation.rows):
        lines.append(f"{DAGGER} shipped with PRISM; the other real values are computed")
    lines += ["", joint_verdict(validation), f"{RANGES_NOTE} (the report gives the source of each)", ""]
    lines += [f"{f'{heading}:':<13} {data}" for heading, data in data_used(validation).items()]
    for name in validation.variants:
        label, *effects = variant_lines(validation, name)
        lines += ["", f"{name}: {label}", *(f"  {line}" for line in effects)]
    lines += ["", *(f"note: {note}" for note in validation.notes)] if validation.notes else []
    return [*lines, "", f"report: {validation.path / 'report.md'}"]


def write_report(validation: Validation) -> Path:
    """Write report.md and its figures into the folder of a validation; return the page."""
    make_folder(validation.path / "figures")
    for name, figure in validation_figures(validation).items():
        (validation.path / "figures" / f"{name}.png").write_bytes(to_png(figure))
    page = validation.path / "report.md"
    write_text(page, markdown(validation))
    return page


def markdown(validation: Validation) -> str:
    """Return the report as Markdown."""
    computed = "computed from the data by the estimators that measured the runs"
    origin = f"{computed}; those with {DAGGER} come with PRISM" if _has_computed(validation.rows) else "from PRISM"
    distant = [row for row in validation.rows if row.inside and _is_far(row)]
    times = ", ".join(f"{row.target.label} {significant(row.ratio)} times" for row in distant)
    captions = _captions(validation)
    parts = [
        f"# {validation.path.name}",
        f"**{joint_verdict(validation)}.**",
        _table(HEADERS, _table_rows(validation.rows)),
        f"*Real* values are {origin}. Intervals are for the mean over seeds; *seeds inside* is the share of seeds "
        "whose value is allowed. *Same data* marks another statistic of data that were fitted or given.",
        *([f"**Inside, but more than {FAR_FACTOR:g} times off the real value:** {times}."] if distant else []),
        *(f"**{heading.capitalize()}:** {data}." for heading, data in data_used(validation).items()),
        *(_picture(name, captions[name]) for name in ("cascades", "rhythms", "shapes")),
        "## Shapes of cascades and related measures",
        _measures_table(validation),
    ]
    if validation.variants:
        parts += ["## What each variant breaks"]
        parts += [_picture("variants", captions["variants"])] if validation.judged else []
        lines = {name: "; ".join(variant_lines(validation, name)) for name in validation.variants}
        parts.append("\n".join(f"- `{name}`: {text}." for name, text in lines.items()))
        for name, rows in validation.variants.items():
            parts += [f"### {name}", f"{VARIANTS[name].label}.", _table(HEADERS, _table_rows(rows))]
    targets = [row.target for row in validation.rows if row.target.required]
    seeds = f"{validation.seeds[0]} to {validation.seeds[-1]}"
    parts += [
        "## Sources of the allowed ranges",
        f"{RANGES_NOTE}: they say what PRISM regards as close enough.",
        "\n".join(f"- {target.label}: {RANGE_ORIGINS[target.measure]}." for target in targets),
        "## Sources",
        "\n".join(f"- {source.title}: {source.description}. {source.reference}." for source in SOURCES.values()),
        "## Runs",
        f"Seeds {seeds}; every run's measures are in `runs.parquet`, its curves in `curves.parquet`.",
        *(f"- {printable(note)}" for note in validation.notes),
    ]
    return "\n\n".join(parts) + "\n"


def _picture(name: str, caption: str) -> str:
    return f"![{caption}](figures/{name}.png)\n\n{caption}"


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headers, ["---"] * len(headers), *rows))


def _measures_table(validation: Validation) -> str:
    """Return means over seeds of measures without targets, with a column for the configuration and for each variant."""
    arms = (FULL, *validation.variants)
    means = validation.runs.groupby("arm")[list(EXPLANATORY)].mean()
    numbers = {name: [significant(float(means.loc[arm, name])) for arm in arms] for name in EXPLANATORY}
    rows = [(f"`{name}`", find_measure(name).unit, *cells) for name, cells in numbers.items()]
    return _table(("measure", "unit", *arms), rows)


def _captions(validation: Validation) -> dict[str, str]:
    exponent = next(row for row in validation.rows if row.target.measure == "post_tail_10")
    real, simulated = significant(exponent.real), significant(exponent.simulated)
    dashed = ", the variants dashed" if validation.variants else ""
    return {
        "cascades": f"Cascades of at least a size: real (black), simulated (mean and range of seeds){dashed}. "
        f"Exponents from 10: real {real}, simulated {simulated}. Right: shapes of large cascades: real "
        "(black line), allowed (grey), mean and range of seeds, variants as squares; a missing mark means too "
        "few large cascades.",
        "rhythms": "Hours of the day, in UTC or on agents' own clocks; the least active agents' share of all activity; "
        f"reactions up to a delay; windows of use with each activity (without variants){dashed}.",
        "shapes": "Depth, breadth and structural virality by size of cascades, and children per node at each hop: "
        f"simulated only{dashed}.",
        "variants": "Targets that the configuration and its variants miss: signs for means above or below the allowed "
        "range, larger if farther outside; no sign: inside.",
    }
