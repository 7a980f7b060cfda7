"""Find the first difference between two runs, and compare their tables.

Tables are read side by side in parts, up to the first difference. If a run recorded a table for some agents only
(`records.*`), the agents that both runs recorded are compared.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from prism_mesa.analysis.compare.moments import STARTS, TIMED, Moment, moment, row_text
from prism_mesa.analysis.compare.rows import DifferentRows, Row, first_difference, same_bytes
from prism_mesa.errors import DataError
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.runs.records.table_checks import RUN_TABLES
from prism_mesa.runs.run_files import has_table, read_column_names, read_manifest, read_table

_AGENTS: Final = "agents"
type Filter = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class Divergence:
    """The first difference in one table.

    Attributes:
        round: The round or quarter.
        tick: None if the table has no ticks.
        agent: Row of the agent; None for rows without an agent, and for nations.
        who: Name of the agent or nation, if any.
        columns: The columns that differ.
        base: The row of the base run; None if it has no row at this moment.
        other: The row of the other run.
        moment: The time, for sorting.
    """

    table: str
    round: int
    tick: int | None
    agent: int | None
    who: str
    columns: tuple[str, ...]
    base: Row | None
    other: Row | None
    moment: Moment

    @property
    def where(self) -> str:
        """The time, agent and table, as text."""
        quarter = (self.base or self.other or {}).get("quarter")
        parts = [f"{'quarter' if self.of_nations else 'round'} {self.round}{f' ({quarter})' if quarter else ''}"]
        parts += [] if self.tick is None else [f"tick {self.tick}"]
        if self.agent is not None:
            parts.append(f"agent {self.agent}{f' ({self.who})' if self.who else ''}")
        elif self.who:
            parts.append(self.who)
        return ", ".join([*parts, f"table {self.table}"])

    @property
    def of_nations(self) -> bool:
        """Whether the runs are of nations."""
        return bool(TIMED[self.table].nation)

    @property
    def sides(self) -> tuple[str, str]:
        """The row of each run as text."""
        return row_text(self.table, self.base, self.columns), row_text(self.table, self.other, self.columns)


@dataclass(frozen=True)
class TableComparison:
    """The comparison of a table in two runs.

    Attributes:
        equal: Whether the compared parts are equal; None if they cannot be compared.
        difference: Where the first difference is, or why the table cannot be compared.
        note: The part of the table that was compared, if not all of it.
        divergence: The first difference, if the rows have a time.
    """

    table: str
    equal: bool | None
    difference: str = ""
    note: str = ""
    divergence: Divergence | None = None


@dataclass(frozen=True)
class Divergences:
    """The comparison of two runs, table by table.

    Attributes:
        tables: All tables of either run.
        start: How the agents differ before the first round; empty if they are equal, or if it is unknown.
    """

    tables: tuple[TableComparison, ...]
    start: str

    @property
    def first(self) -> Divergence | None:
        """The earliest difference, if any."""
        differences = [table.divergence for table in self.tables if table.divergence is not None]
        return min(differences, key=lambda difference: difference.moment, default=None)

    @property
    def equal(self) -> bool:
        """Whether all tables that both runs have are equal."""
        return all(table.equal is not False for table in self.tables)


def divergences(base: Path, other: Path, rounds: int, *, whole: bool) -> Divergences:
    """Compare the first `rounds` of two runs of the same system; raise DataError if a table cannot be read.

    Tables without time are compared only if both runs are `whole`, that is, have exactly these rounds.
    """
    sides = _Sides(base, other, rounds, whole)
    names = [name for name in RUN_TABLES if has_table(base, name) or has_table(other, name)]
    return Divergences(tuple(_compare_table(sides, name) for name in names), _start(sides))


@dataclass(frozen=True)
class _Sides:
    base: Path
    other: Path
    rounds: int
    whole: bool

    def have(self, table: str) -> bool:
        return has_table(self.base, table) and has_table(self.other, table)

    def columns(self, table: str) -> list[str]:
        """Return the known columns of a table that both runs have."""
        both = set(read_column_names(self.base, table)) & set(read_column_names(self.other, table))
        return [name for name in RUN_TABLES[table].names if name in both]

    def read(self, table: str, column: str) -> list[Any]:
        """Return a column of both runs."""
        return [read_table(run, table, [column])[column] for run in (self.base, self.other)]

    def find(self, table: str, columns: Sequence[str], row_filter: Filter | None = None) -> DifferentRows | None:
        try:
            return first_difference(self.base, self.other, table, columns, row_filter)
        except (pa.ArrowException, ValueError) as error:  # DataError is a ValueError
            if isinstance(error, DataError):
                raise
            reason = next(iter(str(error).splitlines()), "it is damaged")
            raise DataError(f"table {table!r} of {self.base} and {self.other} cannot be compared: {reason}") from None


def _compare_table(sides: _Sides, table: str) -> TableComparison:
    if not sides.have(table):
        incomplete_run = sides.other if has_table(sides.base, table) else sides.base
        return TableComparison(table, None, f"{incomplete_run.name} has none")
    if table not in TIMED and not sides.whole:
        return TableComparison(table, None, "is written for whole runs, and the runs have different rounds")
    note, subset = _sample(sides, table)
    if subset is None and _share(sides.base, table) != _share(sides.other, table):
        return TableComparison(table, None, note)
    if same_bytes(sides.base, sides.other, table):
        return TableComparison(table, True, note=note)
    columns = sides.columns(table)
    fixed_columns = [name for name in columns if name in (TIMED[table].fixed or columns)] if table in TIMED else []
    rows = sides.find(table, fixed_columns, _filter(sides, table, subset)) if fixed_columns else None
    if rows is not None:
        difference = _make_divergence(sides, table, rows, fixed_columns)
        when = difference.where.removesuffix(f", table {table}")
        return TableComparison(table, False, f"differs from {when} on", note, difference)
    if len(fixed_columns) < len(columns) and sides.whole:  # tables without time, and counters of posts
        rows = sides.find(table, columns)
        return (
            TableComparison(table, True)
            if rows is None
            else TableComparison(table, False, _describe_difference(rows, columns))
        )
    return TableComparison(table, True, note=note)


def _describe_difference(rows: DifferentRows, columns: Sequence[str]) -> str:
    if rows.base is None or rows.other is None:
        return f"one has more than {rows.index:,} rows"
    differing = _differing_columns(rows.base, rows.other, columns)
    return f"row {rows.index}: {row_text('', rows.base, differing)} | {row_text('', rows.other, differing)}"


def _differing_columns(base: Row, other: Row, columns: Sequence[str]) -> tuple[str, ...]:
    def is_nan(value: Any) -> bool:
        return isinstance(value, float) and isnan(value)

    return tuple(n for n in columns if base[n] != other[n] and not (is_nan(base[n]) and is_nan(other[n])))


def _make_divergence(sides: _Sides, table: str, rows: DifferentRows, columns: Sequence[str]) -> Divergence:
    """Return the earlier of two different rows; both rows if they have the same time."""
    base, other = rows.base, rows.other
    moments = [moment(table, row) for row in (base, other) if row is not None]
    earliest = min(moments)
    if max(moments) != earliest and not (table == "posts" and moments[0][0] == moments[-1][0]):
        base, other = (row if row is not None and moment(table, row) == earliest else None for row in (base, other))
    timed = TIMED[table]
    if timed.nation and base is not None and other is not None and base.get(timed.nation) != other.get(timed.nation):
        other = None  # the order of nations differs
    differing = _differing_columns(base, other, columns) if base is not None and other is not None else ()
    row: Mapping[str, Any] = base or other or {}
    round_, tick, agent_row, _ = earliest
    agent = int(agent_row) if timed.agent and isfinite(agent_row) else None
    name = str(row.get(timed.nation, "")) if timed.nation else _name(sides, agent)
    return Divergence(
        table=table,
        round=int(round_) if isfinite(round_) else 0,
        tick=int(tick) if "tick" in row and isfinite(tick) else None,
        agent=agent,
        who=plain(name, NAME_CAP),
        columns=differing,
        base=base,
        other=other,
        moment=earliest,
    )


def _name(sides: _Sides, agent: int | None) -> str:
    """Return the name of an agent; empty if it is unknown, or differs between the runs."""
    if agent is None or not sides.have(_AGENTS):
        return ""
    names = {str(names.iloc[agent]) if 0 <= agent < len(names) else "" for names in sides.read(_AGENTS, "name")}
    return names.pop() if len(names) == 1 else ""


def _filter(sides: _Sides, table: str, subset: pa.Array | None) -> Filter | None:
    if sides.whole and subset is None:
        return None

    def row_filter(batch: pa.RecordBatch) -> pa.RecordBatch:
        mask = pc.less(batch.column("round"), sides.rounds)
        if subset is not None:
            names = batch.column(TIMED[table].agent or TIMED[table].nation)
            names = names.dictionary_decode() if pa.types.is_dictionary(names.type) else names
            mask = pc.and_(mask, pc.is_in(names, value_set=subset.cast(names.type)))
        return batch.filter(mask)

    return row_filter


def _sample(sides: _Sides, table: str) -> tuple[str, pa.Array | None]:
    """Return a note on the compared part of a table, and its agents or nations; None if it has all, or is unknown."""
    if table in TIMED and TIMED[table].nation:
        if not sides.have("nations"):
            return "", None
        base, other = (names.astype(str).tolist() for names in sides.read("nations", "name"))
        both = [name for name in base if name in other]
        note = f"is compared for the nations that both have: {', '.join(both)}"
        return ("", None) if base == other else (note, pa.array(both, pa.string()))
    if min(_share(sides.base, table), _share(sides.other, table)) >= 1:
        return "", None
    column = f"recorded_{table}"
    if not sides.have(_AGENTS) or column not in sides.columns(_AGENTS):
        return "has only some agents, and the run does not say which", None
    masks = [mask.to_numpy(bool) for mask in sides.read(_AGENTS, column)]
    n = min(map(len, masks))
    rows = pa.array((masks[0][:n] & masks[1][:n]).nonzero()[0])
    return f"has only {len(rows):,} of {n:,} agents", rows


def _share(run: Path, table: str) -> float:
    recorded = read_manifest(run).get("recorded")
    facts = recorded.get(table) if isinstance(recorded, dict) else None
    share = facts.get("share") if isinstance(facts, dict) else None
    return float(share) if isinstance(share, int | float) else 1.0


def _start(sides: _Sides) -> str:
    """Describe the first difference between the agents of two runs before the first round."""
    if not sides.have(_AGENTS) or same_bytes(sides.base, sides.other, _AGENTS):
        return ""
    columns = [name for name in sides.columns(_AGENTS) if name in STARTS]
    rows = sides.find(_AGENTS, columns)
    if rows is None:
        return ""
    if rows.base is None or rows.other is None:
        return f"one has more than {rows.index:,} agents"
    differing = _differing_columns(rows.base, rows.other, columns)
    left, right = (row_text("", row, differing[:1]) for row in (rows.base, rows.other))
    more = f", and {len(differing) - 1} more columns" if len(differing) > 1 else ""
    return f"agent {rows.index}: {left} | {right}{more}"
