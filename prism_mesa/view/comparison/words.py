"""A comparison of runs as text, for the terminal and the page."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final

from prism_mesa.errors import format_count, shorten
from prism_mesa.studies.comparison.comparison import RunComparison
from prism_mesa.studies.statistics.significance import ALPHA
from prism_mesa.view.study.blocks import plain
from prism_mesa.view.study.numbers import NO_VALUE, interval, significant

INTERVAL: Final = "95 % interval"
HEADERS: Final = ("measure", "base", "other", "difference", INTERVAL, "change")
_MAX_MEASURES: Final = 12
_MAX_SETTINGS: Final = 12
_LABEL_LETTERS: Final = 36
_SETTING_LETTERS: Final = 120

type Row = Mapping[str, Any]


def side_labels(comparison: RunComparison) -> tuple[str, str]:
    """Return labels of the sides: the setting that differs if there is only one, else the names of the folders."""
    # keys of facts have blanks
    settings = [row for row in comparison.settings.to_dict("records") if " " not in row["key"]]
    if len(settings) == 1:
        base, other = (f"{settings[0]['key']}={_as_text(settings[0][side])}" for side in ("base", "other"))
        if max(len(base), len(other)) <= _LABEL_LETTERS:
            return base, other
    base, other = (shorten(plain(name), _LABEL_LETTERS) for name in comparison.names)
    return base, other


def summary_line(comparison: RunComparison) -> str:
    """Return a line with the numbers of pairs and rounds."""
    n, unit = len(comparison.pairs.base), comparison.pairs.base[0].unit
    seeds = [str(seed) for seed in comparison.pairs.seeds]
    seeds_text = f"seed {seeds[0]}" if n == 1 else f"seeds {', '.join(seeds[:8])}{', ...' if n > 8 else ''}"
    return f"{format_count(n, 'pair')} ({seeds_text}), {format_count(comparison.pairs.rounds, unit)}"


def settings_lines(comparison: RunComparison) -> list[str]:
    """Return a line for each setting that differs."""
    rows = comparison.settings.to_dict("records")
    lines = [f"{row['key']}: {_as_text(row['base'])} | {_as_text(row['other'])}" for row in rows[:_MAX_SETTINGS]]
    if len(rows) > _MAX_SETTINGS:
        lines.append(f"and {len(rows) - _MAX_SETTINGS} more (comparison.json has all)")
    for side, branch in comparison.branched.items():
        lines.append(f"the {side} is a branch of {plain(branch.run)} from round {branch.round} on")
    return lines or ["all the same"]


def divergence_lines(comparison: RunComparison) -> list[str]:
    """Return lines on the first divergence, with the value on each side."""
    first, tables = comparison.first_divergence, comparison.divergences[comparison.diverged_pair]
    start_lines = [f"from the start: {tables.start}"] if tables.start else []
    if first is None:
        tables_differ = "no event diverges, but tables of whole runs differ"
        return [*start_lines, "nothing: equal in every table that both have" if comparison.equal else tables_differ]
    seed = f" (seed {comparison.pairs.seeds[comparison.diverged_pair]})" if len(comparison.pairs.base) > 1 else ""
    base, other = first.row_texts
    return [*start_lines, f"{first.location}{seed}", f"base:  {base}", f"other: {other}"]


def reason_lines(comparison: RunComparison) -> list[str]:
    """Return lines that explain the behaviour of each side; none without `reasons`."""
    if comparison.reasons is None:
        return []
    sides = (("base:", comparison.reasons.base), ("other:", comparison.reasons.other))
    return [f"{'' if index else name:<7}{line.strip()}" for name, lines in sides for index, line in enumerate(lines)]


def table_lines(comparison: RunComparison) -> list[str]:
    """Return lines on which tables of the first diverging pair are equal, and on where the others differ."""
    tables = comparison.divergences[comparison.diverged_pair].tables
    equal = [table.table for table in tables if table.equal]
    lines = [f"equal: {', '.join(equal)}"] if equal else []
    lines += [f"{table.table}: {plain(table.difference)}" for table in tables if not table.equal]
    return lines + [f"{table.table} {table.note}" for table in tables if table.note]


def rounds_line(comparison: RunComparison) -> str:
    """Return a line with the number of rounds that differ in any column."""
    differing = comparison.rounds[~comparison.rounds["equal"] & comparison.rounds["difference"].notna()]
    units = f"{comparison.pairs.rounds:,} {comparison.pairs.base[0].unit}s"
    if differing.empty:
        return f"equal in all {units}"
    return f"{differing['round'].nunique():,} of {units} differ, the first is {differing['round'].min()}"


def measure_cells(row: Row, *, has_intervals: bool) -> tuple[str, ...]:
    """Return a measure's cells in the order of `HEADERS`; the interval if `has_intervals`, the change in % of base."""
    low, high = row["low"], row["high"]
    limits = f"[{significant(low)}, {significant(high)}]" if low < high else interval(low, high, 3)
    return (
        str(row["measure"]),
        significant(row["base"], 4),
        significant(row["other"], 4),
        f"{'+' if row['difference'] > 0 else ''}{significant(row['difference'])}",
        *([limits] if has_intervals else []),
        f"{row['change']:+.1%}" if isfinite(row["change"]) else NO_VALUE,
    )


def select_measures(comparison: RunComparison, *, show_all: bool = False) -> tuple[list[Row], str]:
    """Return the measures that differ most, and a sentence about the others."""
    measures = comparison.measures
    differing: list[Row] = measures[~measures["equal"].astype(bool)].to_dict("records")
    n_equal = len(measures) - len(differing)
    rows = differing if show_all else differing[:_MAX_MEASURES]
    others = [f"{len(differing) - len(rows)} more differ (--all shows them)"] if len(rows) < len(differing) else []
    others += [f"{format_count(n_equal, 'measure')} {'is' if n_equal == 1 else 'are'} equal"] if n_equal else []
    return rows, ", ".join(others)


def comparison_lines(comparison: RunComparison, *, show_all: bool = False) -> Iterator[str]:
    """Yield the lines of a comparison for the terminal."""
    sections = {
        **dict(zip(("base", "other"), ([name] for name in comparison.names), strict=True)),
        "compared": [summary_line(comparison)],
        "settings": settings_lines(comparison),
        "diverged": divergence_lines(comparison),
        "why": reason_lines(comparison),
        "tables": table_lines(comparison),
        "rounds": [rounds_line(comparison)],
        "note": list(comparison.notes),
    }
    for name, lines in sections.items():
        yield from (f"{'' if index else name:<12}{plain(line)}" for index, line in enumerate(lines))
    rows, others = select_measures(comparison, show_all=show_all)
    has_intervals = len(comparison.pairs.base) > 1
    if rows:
        yield ""
        yield f"other less base, the largest {'standardised' if has_intervals else 'relative'} differences first"
        headers = tuple(header for header in HEADERS if has_intervals or header != INTERVAL)
        yield from align_columns([headers, *(measure_cells(row, has_intervals=has_intervals) for row in rows)])
    if others:
        yield others
    if not has_intervals:
        yield "one pair: no intervals; add seeds for intervals: prism compare BASE... --with OTHER..."
        return
    n_single, n_corrected = (int((comparison.measures[p] < ALPHA).sum()) for p in ("p", "p_holm"))
    corrected = f"after Holm's correction over all {comparison.measures['p'].count():,}, {n_corrected:,} differ"
    yield f"single intervals exclude 0 for {n_single:,} measures; {corrected}"


def align_columns(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield rows as aligned columns: names on the left, numbers right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *numbers in rows:
        cells = (cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True))
        yield "  ".join([name.ljust(widths[0]), *cells]).rstrip()


def _as_text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return shorten(plain(_without_nulls(value)), _SETTING_LETTERS)


def _without_nulls(value: Any) -> Any:
    """Return a value without null keys, so that an intervention shows only the keys that it sets."""
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    if isinstance(value, Mapping):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return value
