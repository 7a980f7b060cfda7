"""What diverged first between two runs, and which of their tables are equal.

Tables are read in parts, side by side, up to their first difference. Where a table holds the rows of some agents only
(`records.*`), those of agents that both runs recorded are compared.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from prism_mesa.analysis.compare.moments import STARTS, TIMED, Moment, in_words, moment_of
from prism_mesa.analysis.compare.rows import DifferentRows, Row, first_difference, same_bytes
from prism_mesa.errors import DataError
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.runs.records.table_checks import RUN_TABLES
from prism_mesa.runs.run_files import columns_of, has_table, read_manifest, read_table

_AGENTS: Final = "agents"
_QUARTER: Final = "quarter"


@dataclass(frozen=True)
class Divergence:
    """The first thing that happened otherwise, in one table.

    Attributes:
        table: The table.
        round: The round or quarter.
        tick: The tick; None where the table has none.
        agent: Row of the agent; None where it is of nobody, or of a nation.
        who: The name of the agent or nation; empty if there is none.
        columns: In which the rows differ.
        base: The row on one side; None where there is none at this moment.
        other: That on the other side.
        moment: When it happened, to order by.
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
        """When, who and in which table, in words."""
        quarter = (self.base or self.other or {}).get(_QUARTER)
        told = [
            f"quarter {self.round}{f' ({quarter})' if quarter else ''}" if self.of_nations else f"round {self.round}"
        ]
        told += [] if self.tick is None else [f"tick {self.tick}"]
        if self.agent is not None:
            told.append(f"agent {self.agent}{f' ({self.who})' if self.who else ''}")
        elif self.who:
            told.append(self.who)
        return ", ".join([*told, f"table {self.table}"])

    @property
    def of_nations(self) -> bool:
        """Whether it is of a run of nations."""
        return bool(TIMED[self.table].nation)

    @property
    def sides(self) -> tuple[str, str]:
        """What each side has there, in words."""
        return in_words(self.table, self.base, self.columns), in_words(self.table, self.other, self.columns)


@dataclass(frozen=True)
class TableCompared:
    """What came of comparing a table.

    Attributes:
        table: Its name.
        equal: Whether all that was compared is equal; None if nothing could be.
        told: Where it differs, or why it could not be compared, in words.
        note: What else is to be known: that it is a sample.
        divergence: Its first difference, if its rows happen at a time.
    """

    table: str
    equal: bool | None
    told: str = ""
    note: str = ""
    divergence: Divergence | None = None


@dataclass(frozen=True)
class Divergences:
    """What two runs have in common, table by table.

    Attributes:
        tables: All tables that either has.
        start: In what their agents differ before the first round, in words; empty if in nothing, or if it is not known.
    """

    tables: tuple[TableCompared, ...]
    start: str

    @property
    def first(self) -> Divergence | None:
        """The earliest of all; None if there is none."""
        found = [one.divergence for one in self.tables if one.divergence is not None]
        return min(found, key=lambda one: one.moment, default=None)

    @property
    def equal(self) -> bool:
        """Whether every table that both have is equal."""
        return all(one.equal is not False for one in self.tables)


def divergences(base: Path, other: Path, rounds: int, *, whole: bool) -> Divergences:
    """Return what diverged first between two runs.

    Args:
        base: The folder of one run.
        other: That of another, of the same system.
        rounds: How many rounds are compared, from the first.
        whole: Whether both runs have exactly these; else tables of whole runs are left out.

    Raises:
        DataError: If a table cannot be read.
    """
    sides = _Sides(base, other, rounds, whole)
    names = [name for name in RUN_TABLES if has_table(base, name) or has_table(other, name)]
    return Divergences(tuple(_compared(sides, name) for name in names), _start(sides))


@dataclass(frozen=True)
class _Sides:
    base: Path
    other: Path
    rounds: int
    whole: bool

    def have(self, table: str) -> bool:
        return has_table(self.base, table) and has_table(self.other, table)

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table that both have and that this version knows."""
        both = set(columns_of(self.base, table)) & set(columns_of(self.other, table))
        return [name for name in RUN_TABLES[table].names if name in both]

    def first(
        self, table: str, columns: Sequence[str], only: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None
    ) -> DifferentRows | None:
        try:
            return first_difference(self.base, self.other, table, columns, only)
        except (pa.ArrowException, ValueError) as error:  # DataError is a ValueError
            if isinstance(error, DataError):
                raise
            told = next(iter(str(error).splitlines()), "it is damaged")
            raise DataError(f"table {table!r} of {self.base} and {self.other} cannot be compared: {told}") from None


def _compared(sides: _Sides, table: str) -> TableCompared:
    if not sides.have(table):
        lacks = sides.other if has_table(sides.base, table) else sides.base
        return TableCompared(table, None, f"{lacks.name} has none")
    if table not in TIMED and not sides.whole:
        return TableCompared(table, None, "is of whole runs, and one has other rounds, or a part of one")
    note, who = _sampled(sides, table)
    if who is None and _share(sides.base, table) != _share(sides.other, table):
        return TableCompared(table, None, note)
    if same_bytes(sides.base, sides.other, table):
        return TableCompared(table, True, note=note)
    columns = sides.columns(table)
    if table not in TIMED:
        return _of_whole_runs(sides, table, columns)
    settled = [name for name in columns if name in (TIMED[table].settled or columns)]
    rows = sides.first(table, settled, _only(sides, table, who))
    if rows is not None:
        found = _divergence(sides, table, rows, settled)
        return TableCompared(table, False, f"differs from {_when(found)} on", note, found)
    if len(settled) < len(columns) and sides.whole:  # counters of posts
        return _of_whole_runs(sides, table, columns)
    return TableCompared(table, True, note=note)


def _when(found: Divergence) -> str:
    return found.where.removesuffix(f", table {found.table}")


def _of_whole_runs(sides: _Sides, table: str, columns: Sequence[str]) -> TableCompared:
    rows = sides.first(table, columns)
    if rows is None:
        return TableCompared(table, True)
    if rows.base is None or rows.other is None:
        return TableCompared(table, False, f"one has more than {rows.place:,} rows")
    apart = _apart(rows.base, rows.other, columns)
    left, right = (in_words("", row, apart) for row in (rows.base, rows.other))
    return TableCompared(table, False, f"row {rows.place}: {left} | {right}")


def _apart(base: Row, other: Row, columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in columns if base[name] != other[name] and not _both_no_number(base[name], other[name]))


def _both_no_number(base: Any, other: Any) -> bool:
    return all(isinstance(one, float) and isnan(one) for one in (base, other))


def _divergence(sides: _Sides, table: str, rows: DifferentRows, columns: Sequence[str]) -> Divergence:
    """Return the earlier of two rows that differ, beside the other one if that is of the same moment."""
    base, other = rows.base, rows.other
    moments = [moment_of(table, row) for row in (base, other) if row is not None]
    moment = min(moments)
    if max(moments) != moment and not (table == "posts" and moments[0][0] == moments[-1][0]):
        base, other = (row if row is not None and moment_of(table, row) == moment else None for row in (base, other))
    own = TIMED[table]
    if own.nation and base is not None and other is not None and base.get(own.nation) != other.get(own.nation):
        other = None  # they stand in another order there
    apart = _apart(base, other, columns) if base is not None and other is not None else ()
    row: Mapping[str, Any] = base or other or {}
    agent = int(moment[2]) if own.agent and isfinite(moment[2]) else None
    name = str(row.get(own.nation, "")) if own.nation else _name(sides, agent)
    tick = int(moment[1]) if "tick" in row and isfinite(moment[1]) else None
    at = int(moment[0]) if isfinite(moment[0]) else 0
    return Divergence(table, at, tick, agent, plain(name, NAME_CAP), apart, base, other, moment)


def _name(sides: _Sides, agent: int | None) -> str:
    """Return what an agent is called; nothing if that is not known, or it is called otherwise on the other side."""
    if agent is None or not sides.have(_AGENTS):
        return ""
    names = [read_table(run, _AGENTS, ["name"])["name"] for run in (sides.base, sides.other)]
    found = {str(of.iloc[agent]) if 0 <= agent < len(of) else "" for of in names}
    return found.pop() if len(found) == 1 else ""


def _only(sides: _Sides, table: str, who: pa.Array | None) -> Callable[[pa.RecordBatch], pa.RecordBatch] | None:
    """Return what keeps the rows of the rounds that are compared, and of agents or nations that both have."""
    if sides.whole and who is None:
        return None

    def kept(batch: pa.RecordBatch) -> pa.RecordBatch:
        mask = pc.less(batch.column("round"), sides.rounds)
        if who is not None:
            names = batch.column(TIMED[table].agent or TIMED[table].nation)
            names = names.dictionary_decode() if pa.types.is_dictionary(names.type) else names
            mask = pc.and_(mask, pc.is_in(names, value_set=who.cast(names.type)))
        return batch.filter(mask)

    return kept


def _sampled(sides: _Sides, table: str) -> tuple[str, pa.Array | None]:
    """Return what is to be known of a table of which a part is compared, and the agents or nations of that part.

    These are None where all are, or where it is not known who is in a sample.
    """
    if table in TIMED and TIMED[table].nation:
        return _nations_of_both(sides)
    shares = [_share(run, table) for run in (sides.base, sides.other)]
    if min(shares) >= 1:
        return "", None
    column = f"recorded_{table}"
    if not sides.have(_AGENTS) or column not in sides.columns(_AGENTS):
        return "holds some agents only, and it is not known which", None
    masks = [read_table(run, _AGENTS, [column])[column].to_numpy(bool) for run in (sides.base, sides.other)]
    n = min(map(len, masks))
    both = masks[0][:n] & masks[1][:n]
    rows = pa.array(both.nonzero()[0])
    return f"holds {len(rows):,} of {n:,} agents: of the others nothing is known", rows


def _nations_of_both(sides: _Sides) -> tuple[str, pa.Array | None]:
    if not sides.have("nations"):
        return "", None
    names = [read_table(run, "nations", ["name"])["name"].astype(str).tolist() for run in (sides.base, sides.other)]
    if names[0] == names[1]:
        return "", None
    both = [name for name in names[0] if name in names[1]]
    return f"is compared for the nations that both have: {', '.join(both)}", pa.array(both, pa.string())


def _share(run: Path, table: str) -> float:
    """Return the share of agents whose rows a table holds; 1 where its manifest does not say."""
    recorded = read_manifest(run).get("recorded")
    own = recorded.get(table) if isinstance(recorded, dict) else None
    share = own.get("share") if isinstance(own, dict) else None
    return float(share) if isinstance(share, int | float) else 1.0


def _start(sides: _Sides) -> str:
    """Return in what the agents of two runs differ before the first round, in words."""
    if not sides.have(_AGENTS) or same_bytes(sides.base, sides.other, _AGENTS):
        return ""
    columns = [name for name in sides.columns(_AGENTS) if name in STARTS]
    rows = sides.first(_AGENTS, columns)
    if rows is None:
        return ""
    if rows.base is None or rows.other is None:
        return f"one has more than {rows.place:,} agents"
    apart = _apart(rows.base, rows.other, columns)
    left, right = (in_words("", row, apart[:1]) for row in (rows.base, rows.other))
    more = f", and {len(apart) - 1} more columns" if len(apart) > 1 else ""
    return f"agent {rows.place}: {left} | {right}{more}"
