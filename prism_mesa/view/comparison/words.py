"""A comparison of runs in words: what a terminal shows, and what the page shares with it."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, isnan
from typing import Any, Final

from prism_mesa.errors import counted, shortened
from prism_mesa.studies.comparison.comparison import RunComparison
from prism_mesa.studies.statistics.significance import ALPHA
from prism_mesa.view.study.blocks import plain
from prism_mesa.view.study.numbers import NOTHING, interval, significant

SHOWN: Final = 12
"""Measures that are shown where nobody asks for all."""
_MOST_SETTINGS: Final = 12
_LABEL: Final = 36
_SETTING: Final = 120
_ONE_PAIR: Final = "one pair: no intervals; with more seeds there are: prism compare BASE... --with OTHER..."

type Row = Mapping[str, Any]


def side_labels(found: RunComparison) -> tuple[str, str]:
    """Return what tells the sides apart: the one setting in which they differ, else the names of their folders."""
    settings = [row for row in found.settings.to_dict("records") if " " not in row["key"]]  # keys, not facts
    if len(settings) == 1:
        told = [f"{settings[0]['key']}={_value(settings[0][side])}" for side in ("base", "other")]
        if all(len(one) <= _LABEL for one in told):
            return told[0], told[1]
    first, second = (shortened(plain(name), _LABEL) for name in found.names)
    return first, second


def in_short(found: RunComparison) -> str:
    """Return how many runs were compared, and over how many rounds."""
    n, what = len(found.pairs.base), "quarter" if found.pairs.of_nations else "round"
    seeds = [str(seed) for seed in found.pairs.seeds]
    told = f"seed {seeds[0]}" if n == 1 else f"seeds {', '.join(seeds[:8])}{', ...' if n > 8 else ''}"
    return f"{counted(n, 'pair')} ({told}), {counted(found.pairs.rounds, what)}"


def settings_lines(found: RunComparison) -> list[str]:
    """Return in what the settings differ, a line each."""
    rows = found.settings.to_dict("records")
    told = [f"{row['key']}: {_value(row['base'])} | {_value(row['other'])}" for row in rows[:_MOST_SETTINGS]]
    if len(rows) > _MOST_SETTINGS:
        told.append(f"and {len(rows) - _MOST_SETTINGS} more (comparison.json has all)")
    for side, one in found.branched.items():
        told.append(f"the {side} is a branch of {plain(one.run)} from round {one.round} on")
    return told or ["all the same"]


def divergence_lines(found: RunComparison) -> list[str]:
    """Return what diverged first and what each side had there, a line each."""
    first, tables = found.first_divergence, found.divergences[found.diverged]
    start = [f"from the start: {tables.start}"] if tables.start else []
    if first is None:
        if found.equal:
            return [*start, "nothing: equal in every table that both have"]
        return [*start, "nothing that happens at a time; but tables of whole runs differ"]
    of = f" (seed {found.pairs.seeds[found.diverged]})" if len(found.pairs.base) > 1 else ""
    base, other = first.sides
    return [*start, f"{first.where}{of}", f"base:  {base}", f"other: {other}"]


def reason_lines(found: RunComparison) -> list[str]:
    """Return why each side did what it did, a line each; nothing if nobody asked."""
    if found.reasons is None:
        return []
    sides = (("base:  ", found.reasons.base), ("other: ", found.reasons.other))
    return [
        f"{name if not place else ' ' * 7}{line.strip()}" for name, lines in sides for place, line in enumerate(lines)
    ]


def table_lines(found: RunComparison) -> list[str]:
    """Return which tables are equal, and where others differ, of the pair that diverged first."""
    tables = found.divergences[found.diverged].tables
    equal = [one.table for one in tables if one.equal]
    lines = [f"equal: {', '.join(equal)}"] if equal else []
    lines += [f"{one.table}: {plain(one.told)}" for one in tables if not one.equal]
    return lines + [f"{one.table} {one.note}" for one in tables if one.note]


def rounds_line(found: RunComparison) -> str:
    """Return how many rounds differ in any column."""
    apart = found.rounds[~found.rounds["equal"] & found.rounds["difference"].notna()]
    what = "quarters" if found.pairs.of_nations else "rounds"
    if apart.empty:
        return f"equal in all {found.pairs.rounds:,} {what}"
    return f"{apart['round'].nunique():,} of {found.pairs.rounds:,} {what} differ, the first is {apart['round'].min()}"


HEADS: Final = ("measure", "base", "other", "difference", "95 % interval", "change")


def measure_cells(row: Row) -> tuple[str, ...]:
    """Return a measure's row as texts, in the order of `HEADS`; its change is in percent of base."""
    change = row["change"]
    rise = NOTHING if isnan(change) else f"{change:+.1%}" if isfinite(change) else NOTHING
    return (
        str(row["measure"]),
        significant(row["base"], 4),
        significant(row["other"], 4),
        signed(row["difference"]),
        interval_of(row),
        rise,
    )


def interval_of(row: Row) -> str:
    """Return the interval of a difference; a dash where there is none."""
    if isnan(row["low"]) or isnan(row["high"]):
        return NOTHING
    return (
        f"[{significant(row['low'])}, {significant(row['high'])}]"
        if row["low"] < row["high"]
        else interval(row["low"], row["high"], 3)
    )


def signed(value: float) -> str:
    """Return a difference with its sign."""
    told = significant(value)
    return f"+{told}" if value > 0 else told


def shown_measures(found: RunComparison, *, show_all: bool = False) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of the measures that differ most, and what became of the others, in words."""
    rows = [{str(key): value for key, value in row.items()} for row in found.measures.to_dict("records")]
    apart = [row for row in rows if not row["equal"]]
    equal = len(rows) - len(apart)
    shown = apart if show_all else apart[:SHOWN]
    rest = [f"{len(apart) - len(shown)} more differ (--all shows them)"] if len(shown) < len(apart) else []
    rest += [f"{counted(equal, 'measure')} {'is' if equal == 1 else 'are'} equal"] if equal else []
    return shown, ", ".join(rest)


def comparison_lines(found: RunComparison, *, show_all: bool = False) -> Iterator[str]:
    """Yield what a terminal shows of a comparison."""
    base, other = found.names
    yield f"base        {plain(base)}"
    yield f"other       {plain(other)}"
    yield f"compared    {in_short(found)}"
    yield from _under("settings", settings_lines(found))
    yield from _under("diverged", divergence_lines(found))
    yield from _under("why", reason_lines(found))
    yield from _under("tables", table_lines(found))
    yield from _under("rounds", [rounds_line(found)])
    yield from _under("note", list(found.notes))
    shown, rest = shown_measures(found, show_all=show_all)
    several = len(found.pairs.base) > 1
    if shown:
        by = "standardised" if several else "relative"
        yield ""
        yield f"other less base, the largest {by} differences first"
        yield from _aligned([measure_cells(row) for row in shown], several)
    if rest:
        yield rest
    yield _sure(found) if several else _ONE_PAIR


def _sure(found: RunComparison) -> str:
    """Return how many measures differ for sure, of so many that were compared."""
    alone = int((found.measures["p"] < ALPHA).sum())
    together = int((found.measures["p_holm"] < ALPHA).sum())
    return (
        f"intervals, each on its own, exclude 0 for {alone:,} measures; after Holm's correction over all "
        f"{found.measures['p'].count():,}, {together:,} differ"
    )


def _under(name: str, lines: Sequence[str]) -> Iterator[str]:
    for place, line in enumerate(lines):
        yield f"{'' if place else name:<12}{plain(line)}"


def _aligned(rows: Sequence[tuple[str, ...]], several: bool) -> Iterator[str]:
    """Yield rows as columns, names at the left and numbers at the right; of one pair without intervals."""
    kept = [place for place, head in enumerate(HEADS) if several or head != "95 % interval"]
    cells = [tuple(row[place] for place in kept) for row in (HEADS, *rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(kept))]
    for row in cells:
        yield "  ".join(
            cell.ljust(width) if not place else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()


def _value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return shortened(plain(str(_given(value))), _SETTING)


def _given(value: Any) -> Any:
    """Return a value without the keys of its groups that are left out: what an intervention sets has to be seen."""
    if isinstance(value, list):
        return [_given(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _given(one) for key, one in value.items() if one is not None}
    return value
