"""Find the first difference between two runs, table by table.

Both runs are read in parts, up to the first difference. If a run recorded a table for only some agents (`records.*`),
the comparison covers the agents that both runs recorded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from prism_mesa.analysis.compare.rows import DifferentRows, Row, first_difference, has_same_bytes
from prism_mesa.domain import ACTIONS, BIG_FIVE
from prism_mesa.errors import DataError, shorten
from prism_mesa.llm.text import NAME_CAP, clean_text
from prism_mesa.runs.records.table_checks import RUN_TABLES
from prism_mesa.runs.run_files import has_table, read_column_names, read_manifest, read_table
from prism_mesa.social.state.agent_fields import AGENT_FIELDS

type Moment = tuple[float, float, float, int]
"""Round, tick, agent and `TimedTable.order`; impressions come before actions."""


@dataclass(frozen=True)
class TimedTable:
    """A table whose rows have a time.

    Attributes:
        order: The position among tables with rows at the same time.
        nation: The column of the nation's name, if any.
        tick: The tick of all rows, if there is no column `tick`.
        fixed_columns: The columns that do not change after the row is written; empty means all.
    """

    order: int
    agent: str = ""
    nation: str = ""
    tick: float = 0.0
    fixed_columns: tuple[str, ...] = ()


_FIXED_POST_COLUMNS: Final = (
    *("post", "round", "written", "author", "kind", "parent", "root", "topic", "text", "comment"),
    *("media_type", "media_description"),
)
TIMED_TABLES: Final[Mapping[str, TimedTable]] = {
    "posts": TimedTable(0, "author", fixed_columns=_FIXED_POST_COLUMNS),
    "impressions": TimedTable(1, "agent"),
    "transitions": TimedTable(2, "agent"),
    "engagements": TimedTable(3, "agent"),
    "thoughts": TimedTable(4, "agent"),
    "notes": TimedTable(5, "agent"),
    "ticks": TimedTable(6),
    "rounds": TimedTable(7, tick=inf),
    "churn": TimedTable(8, "agent", tick=-1.0),  # before the first tick
    "decisions": TimedTable(0, nation="nation"),
    "reasoning": TimedTable(1, nation="agent_id"),
    "verdicts": TimedTable(2, nation="nation"),
    "trade": TimedTable(3, nation="importer"),
    "indicators": TimedTable(4, nation="nation"),
}
CONSTANT_COLUMNS: Final = ("id", "name", "interests", *BIG_FIVE, *AGENT_FIELDS, *ACTIONS, "scripted")
"""Columns of `agents` that never change."""


def row_moment(table: str, row: Row) -> Moment:
    """Return the moment of a row; missing values sort last."""
    timed_table = TIMED_TABLES[table]
    agent = row.get(timed_table.agent) if timed_table.agent else inf
    values = (row.get("round"), row.get("tick", timed_table.tick), agent)
    round_, tick, agent = (inf if value is None else float(value) for value in values)
    return round_, tick, agent, timed_table.order


_VERBS: Final = {"like": "likes", "reply": "replies to", "reshare": "reshares"}


def row_text(table: str, row: Row | None, columns: Sequence[str]) -> str:
    """Describe a row, or a missing row (None); `columns` are the columns that differ from the other run."""
    if row is None:
        return "reads no more posts at this tick" if table == "impressions" else "nothing"
    match table:
        case "impressions":
            return f"reads post {row.get('post')}"
        case "transitions":
            post_note = "" if row.get("post") in (-1, None) else f" (post {row['post']})"
            state = f"{row.get('from_state')} -> {row.get('to_state')}"
            return f"{state}, on '{row.get('trigger')}'{post_note}{', open' if row.get('open') else ''}"
        case "engagements":
            return f"{_VERBS.get(str(row.get('action')), row.get('action'))} post {row.get('post')}"
        case "posts":
            post_text = f"post {row.get('post')}, a {row.get('kind')} by agent {row.get('author')}"
            other_columns = [name for name in columns if name not in ("post", "kind", "author")]
            return f"{post_text}: {_values_text(row, other_columns)}" if other_columns else post_text
        case "churn":
            return f"{row.get('event')} as the round opens"
        case "decisions":
            return f'wants "{_value_text(row.get("action"))}": {row.get("outcome")}'
        case _:
            return _values_text(row, columns)


_MAX_COLUMNS: Final = 6


def _values_text(row: Row, columns: Sequence[str]) -> str:
    text = ", ".join(f"{name} {_value_text(row.get(name))}" for name in columns[:_MAX_COLUMNS])
    n_more = len(columns) - _MAX_COLUMNS
    return f"{text}, and {n_more} more" if n_more > 0 else text


def _value_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return shorten(clean_text(str(value), 400), 90)


_AGENTS: Final = "agents"
type Filter = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class Divergence:
    """The first difference between two runs in one table.

    Attributes:
        tick: None if the table has no ticks.
        agent: Row of the agent; None for rows without an agent, and for nations.
        base, other: The row of each run; None if it has no row at this moment.
    """

    table: str
    round: int
    tick: int | None
    agent: int | None
    name: str
    columns: tuple[str, ...]
    base: Row | None
    other: Row | None
    moment: Moment

    @property
    def location(self) -> str:
        """The time, the agent or nation, and the table, as text."""
        quarter = (self.base or self.other or {}).get("quarter")
        parts = [f"{'quarter' if self.is_economy else 'round'} {self.round}{f' ({quarter})' if quarter else ''}"]
        parts += [] if self.tick is None else [f"tick {self.tick}"]
        if self.agent is not None:
            parts.append(f"agent {self.agent}{f' ({self.name})' if self.name else ''}")
        elif self.name:
            parts.append(self.name)
        return ", ".join([*parts, f"table {self.table}"])

    @property
    def is_economy(self) -> bool:
        """Whether the runs simulate nations."""
        return bool(TIMED_TABLES[self.table].nation)

    @property
    def row_texts(self) -> tuple[str, str]:
        """The row of each run as text."""
        return row_text(self.table, self.base, self.columns), row_text(self.table, self.other, self.columns)


@dataclass(frozen=True)
class TableComparison:
    """The comparison of a table in two runs.

    Attributes:
        equal: Whether the tables are equal; None if they cannot be compared.
        difference: The first difference as text, or why the tables cannot be compared.
        note: Which part of the tables was compared; empty for whole tables.
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
        start: How the agents differ before the first round; empty if they are equal or this is unknown.
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


def divergences(base: Path, other: Path, rounds: int, *, same_length: bool) -> Divergences:
    """Compare the first `rounds` of two runs of the same system; raise DataError if a table cannot be read.

    Tables without time are compared only with `same_length`, that is, if neither run has more rounds.
    """
    runs = _RunPair(base, other, rounds, same_length)
    names = [name for name in RUN_TABLES if has_table(base, name) or has_table(other, name)]
    return Divergences(tuple(_compare_table(runs, name) for name in names), _describe_start(runs))


@dataclass(frozen=True)
class _RunPair:
    base: Path
    other: Path
    rounds: int
    same_length: bool

    def both_have(self, table: str) -> bool:
        return has_table(self.base, table) and has_table(self.other, table)

    def columns(self, table: str) -> list[str]:
        """Return the known columns of a table that both runs have."""
        common_names = set(read_column_names(self.base, table)) & set(read_column_names(self.other, table))
        return [name for name in RUN_TABLES[table].names if name in common_names]

    def read(self, table: str, column: str) -> list[Any]:
        """Return a column of both runs."""
        return [read_table(run, table, [column])[column] for run in (self.base, self.other)]

    def compare(self, table: str, columns: Sequence[str], row_filter: Filter | None = None) -> DifferentRows | None:
        try:
            return first_difference(self.base, self.other, table, columns, row_filter)
        except (pa.ArrowException, ValueError) as error:  # DataError is a ValueError
            if isinstance(error, DataError):
                raise
            reason = next(iter(str(error).splitlines()), "it is damaged")
            raise DataError(f"table {table!r} of {self.base} and {self.other} cannot be compared: {reason}") from None


def _compare_table(runs: _RunPair, table: str) -> TableComparison:
    if not runs.both_have(table):
        incomplete_run = runs.other if has_table(runs.base, table) else runs.base
        return TableComparison(table, None, f"{incomplete_run.name} has none")
    if table not in TIMED_TABLES and not runs.same_length:
        return TableComparison(table, None, "is written for whole runs, and the runs have different rounds")
    note, subset = _compared_subset(runs, table)
    if subset is None and _recorded_share(runs.base, table) != _recorded_share(runs.other, table):
        return TableComparison(table, None, note)
    if has_same_bytes(runs.base, runs.other, table):
        return TableComparison(table, True, note=note)
    columns = runs.columns(table)
    fixed = (TIMED_TABLES[table].fixed_columns or columns) if table in TIMED_TABLES else ()
    fixed_columns = [name for name in columns if name in fixed]
    rows = runs.compare(table, fixed_columns, _make_filter(runs, table, subset)) if fixed_columns else None
    if rows is not None:
        difference = _make_divergence(runs, table, rows, fixed_columns)
        when = difference.location.removesuffix(f", table {table}")
        return TableComparison(table, False, f"differs from {when} on", note, difference)
    if len(fixed_columns) < len(columns) and runs.same_length:  # tables without time, and counters of posts
        rows = runs.compare(table, columns)
        return TableComparison(table, rows is None, "" if rows is None else _describe_difference(rows, columns))
    return TableComparison(table, True, note=note)


def _describe_difference(rows: DifferentRows, columns: Sequence[str]) -> str:
    if rows.base is None or rows.other is None:
        return f"one run has more than {rows.index:,} rows"
    differing_columns = _differing_columns(rows.base, rows.other, columns)
    left, right = (row_text("", row, differing_columns) for row in (rows.base, rows.other))
    return f"row {rows.index}: {left} | {right}"


def _differing_columns(base: Row, other: Row, columns: Sequence[str]) -> tuple[str, ...]:
    def is_nan(value: Any) -> bool:
        return isinstance(value, float) and isnan(value)

    return tuple(n for n in columns if base[n] != other[n] and not (is_nan(base[n]) and is_nan(other[n])))


def _make_divergence(runs: _RunPair, table: str, rows: DifferentRows, columns: Sequence[str]) -> Divergence:
    """Return the divergence at two different rows; it has only the earlier row if their times differ."""
    base, other = rows.base, rows.other
    moments = [row_moment(table, row) for row in (base, other) if row is not None]
    earliest = min(moments)
    if max(moments) != earliest and not (table == "posts" and moments[0][0] == moments[-1][0]):
        base, other = (row if row is not None and row_moment(table, row) == earliest else None for row in (base, other))
    timed_table = TIMED_TABLES[table]
    nation = timed_table.nation
    if nation and base is not None and other is not None and base.get(nation) != other.get(nation):
        other = None  # the order of nations differs
    differing_columns = _differing_columns(base, other, columns) if base is not None and other is not None else ()
    row: Mapping[str, Any] = base or other or {}
    round_, tick, agent_row, _ = earliest
    agent = int(agent_row) if timed_table.agent and isfinite(agent_row) else None
    name = str(row.get(nation, "")) if nation else _agent_name(runs, agent)
    return Divergence(
        table=table,
        round=int(round_) if isfinite(round_) else 0,
        tick=int(tick) if "tick" in row and isfinite(tick) else None,
        agent=agent,
        name=clean_text(name, NAME_CAP),
        columns=differing_columns,
        base=base,
        other=other,
        moment=earliest,
    )


def _agent_name(runs: _RunPair, agent: int | None) -> str:
    """Return an agent's name; empty if the name is unknown or differs between the runs."""
    if agent is None or not runs.both_have(_AGENTS):
        return ""
    names = {str(names.iloc[agent]) if 0 <= agent < len(names) else "" for names in runs.read(_AGENTS, "name")}
    return names.pop() if len(names) == 1 else ""


def _make_filter(runs: _RunPair, table: str, subset: pa.Array | None) -> Filter | None:
    if runs.same_length and subset is None:
        return None

    def row_filter(batch: pa.RecordBatch) -> pa.RecordBatch:
        mask = pc.less(batch.column("round"), runs.rounds)
        if subset is not None:
            names = batch.column(TIMED_TABLES[table].agent or TIMED_TABLES[table].nation)
            names = names.dictionary_decode() if pa.types.is_dictionary(names.type) else names
            mask = pc.and_(mask, pc.is_in(names, value_set=subset.cast(names.type)))
        return batch.filter(mask)

    return row_filter


def _compared_subset(runs: _RunPair, table: str) -> tuple[str, pa.Array | None]:
    """Return a note on the compared part of a table, and the agents or nations in it; None for all or if unknown."""
    if table in TIMED_TABLES and TIMED_TABLES[table].nation:
        if not runs.both_have("nations"):
            return "", None
        base, other = (names.astype(str).tolist() for names in runs.read("nations", "name"))
        common_names = [name for name in base if name in other]
        note = f"is compared for the nations that both have: {', '.join(common_names)}"
        return ("", None) if base == other else (note, pa.array(common_names, pa.string()))
    if min(_recorded_share(runs.base, table), _recorded_share(runs.other, table)) >= 1:
        return "", None
    column = f"recorded_{table}"
    if not runs.both_have(_AGENTS) or column not in runs.columns(_AGENTS):
        return "has only some agents, and the run does not say which", None
    masks = [mask.to_numpy(bool) for mask in runs.read(_AGENTS, column)]
    n = min(map(len, masks))
    rows = pa.array((masks[0][:n] & masks[1][:n]).nonzero()[0])
    return f"has only {len(rows):,} of {n:,} agents", rows


def _recorded_share(run: Path, table: str) -> float:
    recorded = read_manifest(run).get("recorded")
    facts = recorded.get(table) if isinstance(recorded, dict) else None
    share = facts.get("share") if isinstance(facts, dict) else None
    return float(share) if isinstance(share, int | float) else 1.0


def _describe_start(runs: _RunPair) -> str:
    if not runs.both_have(_AGENTS) or has_same_bytes(runs.base, runs.other, _AGENTS):
        return ""
    columns = [name for name in runs.columns(_AGENTS) if name in CONSTANT_COLUMNS]
    rows = runs.compare(_AGENTS, columns)
    if rows is None:
        return ""
    if rows.base is None or rows.other is None:
        return f"one run has more than {rows.index:,} agents"
    differing_columns = _differing_columns(rows.base, rows.other, columns)
    left, right = (row_text("", row, differing_columns[:1]) for row in (rows.base, rows.other))
    more_text = f", and {len(differing_columns) - 1} more columns" if len(differing_columns) > 1 else ""
    return f"agent {rows.index}: {left} | {right}{more_text}"
