"""The rows of a study's journal: what stands in them is checked where they are read, as anybody may have made them."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, TypeGuard, get_args

from prism_mesa.studies.engines.job import Ending

_LARGEST: Final = 2**63 - 1


@dataclass(frozen=True)
class Row:
    """A row of the table `runs` of one journal: a run, as one driver knows it.

    Attributes:
        at: When it was written (seconds of the epoch).
        measures: By name: what stands for the code that took it, its value, and when it was taken.
        config: With `data` and `code` of what its condition was made (see `Identity`).
    """

    run: str
    at: float
    ending: str
    reason: str
    attempts: int
    measures: dict[str, tuple[str, float | None, float]]
    facts: dict[str, Any]
    config: str
    data: str
    code: str
    told: str
    kept: bool


def require_tables(fetch: Callable[[str], Iterable[Any]]) -> None:
    """Check that what is read as a table is one: a view of that name may be a query that never ends.

    `fetch` returns the rows of a query.

    Raises:
        sqlite3.DatabaseError: If not.
    """
    fetch("pragma trusted_schema = off")
    for (name,) in fetch("select name from sqlite_master where name in ('runs', 'rows') and type != 'table'"):
        raise sqlite3.DatabaseError(f"{name} is no table")


COLUMNS: Final = tuple(field.name for field in fields(Row))


def read_row(values: Sequence[Any]) -> Row:
    """Return a row, once it is known to hold what a driver writes.

    Raises:
        ValueError: If it holds anything else; the line names the column.
    """
    given = dict(zip(COLUMNS, values, strict=True))
    for name in ("run", "ending", "reason", "measures", "facts", "config", "data", "code", "told"):
        _require(_is_text(given[name]), name)
    for name, check in (("at", _is_number), ("attempts", _is_count), ("kept", _is_count)):
        _require(check(given[name]), name)
    _require(given["ending"] in get_args(Ending.__value__), "ending")
    measures, facts = _mapping(given["measures"], "measures"), _mapping(given["facts"], "facts")
    for name, taken in measures.items():
        _require(isinstance(taken, list) and len(taken) == 3, f"measures: {name}")
        version, value, at = taken
        _require(_is_text(version) and (value is None or _is_number(value)) and _is_number(at), f"measures: {name}")
    for name, is_right in _FACTS.items():
        _require(name not in facts or is_right(facts[name]), f"facts: {name}")
    return Row(
        **given
        | {"measures": {name: tuple(taken) for name, taken in measures.items()}, "facts": facts}
        | {"kept": bool(given["kept"])}
    )


def _require(is_right: bool, column: str) -> None:
    if not is_right:
        raise ValueError(f"{column}: is none that a driver writes")


def _mapping(text: str, column: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{column}: {error}") from None
    _require(isinstance(values, dict) and all(_is_text(name) for name in values), column)
    return dict(values)


def _is_text(value: object) -> bool:
    """Return whether it is a text without half of a surrogate pair, which no file takes."""
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_number(value: object) -> bool:
    """Return whether it is a number that a float holds; those that are none (NaN) and without end are."""
    return isinstance(value, float) or (_is_whole(value) and abs(value) <= _LARGEST)


def _is_count(value: object) -> bool:
    return _is_whole(value) and 0 <= value <= _LARGEST


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(_is_text(one) for one in value)


def _is_counts(value: object) -> bool:
    return isinstance(value, Mapping) and all(_is_text(name) and _is_count(n) for name, n in value.items())


def _or_none(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or check(value)


_FACTS: Final[dict[str, Callable[[object], bool]]] = {
    **dict.fromkeys(("cpu_s", "model_cpu_s", "wall_s", "peak_memory_mb"), _or_none(_is_number)),
    **dict.fromkeys(("open", "fallback", "calls", "tokens"), _or_none(_is_count)),
    **dict.fromkeys(("signal", "decided_by"), _or_none(_is_text)),
    "by_source": _is_counts,
    "notes": _is_texts,
    "collected": _is_texts,
}
"""Of each fact that is read whether it is one."""
