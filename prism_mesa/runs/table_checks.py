"""What each column of the tables of a run holds, and whether it does: a folder comes from anybody."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from prism_mesa.domain import ACTIONS, BIG_FIVE, POST_KINDS
from prism_mesa.errors import DataError, did_you_mean
from prism_mesa.statechart import STATES

type Kind = Literal["whole", "number", "truth", "text"]

_STATES: Final = " ".join(state.value for state in STATES)
_SHARES: Final = " ".join(f"share_{state.value}" for state in STATES)
_INDICATORS: Final = (
    "gdp gdp_growth output_gap inflation unemployment policy_rate lending_rate spending taxes deficit debt exports "
    "imports trade_balance exchange_rate"
)


def _columns(**names: str) -> dict[str, Kind]:
    """Return the kind of each column, of the columns of each kind."""
    kinds: tuple[Kind, ...] = ("whole", "number", "truth", "text")
    return {name: kind for kind in kinds for name in names.get(kind, "").split()}


COLUMNS: Final[Mapping[str, Mapping[str, Kind]]] = {
    "rounds": _columns(whole="round online posts impressions likes replies reshares open fallback", number=_SHARES),
    "ticks": _columns(whole=f"round tick {_STATES}"),
    "transitions": _columns(whole="round tick agent post", text="trigger from_state to_state", truth="open"),
    "impressions": _columns(whole="round tick agent post root"),
    "engagements": _columns(whole="round tick agent post root", text="action"),
    "posts": _columns(
        whole="post round written author parent root likes replies reshares impressions velocity",
        text="kind text comment media_type media_description",
    ),
    "cascades": _columns(whole="root size depth breadth", number="structural_virality", text="kind"),
    "agents": _columns(
        whole="agent timeout_threshold followers followees posts",
        number=" ".join(("engagement_threshold activity post_rate", *ACTIONS, *BIG_FIVE)),
        truth="scripted present recorded_transitions recorded_impressions recorded_engagements",
        text="id name interests",
    ),
    "thoughts": _columns(whole="round tick agent post", text="action event text"),
    "notes": _columns(whole="round tick agent importance", text="text"),
    "indicators": _columns(whole="round", number=f"{_INDICATORS} inflation_quarter", text="quarter nation"),
    "baselines": _columns(whole="round", number=_INDICATORS, text="nation policy"),
    "decisions": _columns(
        whole="round",
        number="confidence",
        text="quarter nation action read_by policy measures outcome reason reasoning reasoning_chain_id",
    ),
    "verdicts": _columns(whole="round measure", truth="passed", text="nation of check reason"),
    "trade": _columns(whole="round", number="imports tariff sanction", text="importer exporter"),
    "reasoning": _columns(
        whole="round", number="confidence", text="chain_id component agent_id prompt action reasoning thoughts"
    ),
    "nations": _columns(
        number="size natural_unemployment inflation_target neutral_rate trend_growth unemployment growth inflation "
        "policy_rate debt spending",
        text="name policy",
    ),
    "responses": _columns(
        whole="quarter", number="output_gap inflation unemployment policy_rate", text="nation follows"
    ),
}
"""Table -> what its columns hold. A run of another version may have fewer columns, or others."""
_BLANKS: Final = {("posts", name) for name in ("parent", "text", "comment", "media_type", "media_description")}
"""Where there may be nothing; `parent` in runs of version 0.1 only."""
_NAMES: Final = {
    ("posts", "kind"): POST_KINDS,
    ("cascades", "kind"): POST_KINDS,
    ("engagements", "action"): ACTIONS,
    ("decisions", "outcome"): ("accepted", "no_change", "rejected", "not_understood"),
}
_MAY_OVERFLOW: Final = ("indicators", "baselines", "trade")
"""Tables of economies that a policy, or none, may let run away: their numbers may be infinite, or none at all."""
_MOST: Final = 2**53
"""Of whole numbers; some were written as floats, which hold no others."""
_DAMAGED: Final = "(it is damaged, or another version wrote it)"


def check_columns(where: str, table: str, schema: pa.Schema, wanted: Sequence[str]) -> None:
    """Check that a table has some columns, each once, and that those that are known hold what they should.

    Args:
        where: The file, for errors.
        table: The table's name.
        schema: What it has.
        wanted: Columns that it must have.

    Raises:
        DataError: If not.
    """
    names = [str(name) for name in schema.names]
    for name in wanted:
        if name not in names:
            raise DataError(f"{where}: there is no column {name!r} {_DAMAGED}.{did_you_mean(name, names)}")
    for name, type_ in zip(names, schema.types, strict=True):
        if names.count(name) > 1:
            raise DataError(f"{where}: there are {names.count(name)} columns {name!r} {_DAMAGED}")
        kind = COLUMNS.get(table, {}).get(name)
        if kind is not None and not _is(type_, kind, blanks=(table, name) in _BLANKS):
            raise DataError(f"{where}: column {name!r} holds {_short(type_)}, not {_SAID[kind]} {_DAMAGED}")


_SAID: Final[Mapping[Kind, str]] = {
    "whole": "whole numbers",
    "number": "numbers",
    "truth": "true and false",
    "text": "texts",
}


def _short(value: object) -> str:
    return f"{value!s:.60}".replace("\n", " ")


def _is(type_: pa.DataType, kind: Kind, *, blanks: bool) -> bool:
    """Return whether a column of this type may hold what it should; texts may be codes into different ones."""
    if pa.types.is_null(type_):
        return blanks
    if kind == "text":
        of = type_.value_type if pa.types.is_dictionary(type_) else type_
        return bool(pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of))
    if kind == "truth":
        return bool(pa.types.is_boolean(type_))
    return bool(pa.types.is_integer(type_) or ((kind == "number" or blanks) and pa.types.is_floating(type_)))


def check_values(where: str, table: str, rows: pd.DataFrame) -> None:
    """Check what the columns of a table hold, whose types are checked: no blanks, and nothing out of range.

    Raises:
        DataError: If a cell holds something else; the message says which.
    """
    for name, kind in COLUMNS.get(table, {}).items():
        if name in rows:
            bad = np.flatnonzero(_bad(rows[name], kind, (table, name)))
            if len(bad):
                value = rows[name].iloc[bad[0]]
                told = "nothing" if pd.isna(value) else _short(repr(value) if isinstance(value, str) else value)
                raise DataError(f"{where}: row {bad[0]}, column {name!r}: cannot be {told} {_DAMAGED}")


def _bad(column: "pd.Series[Any]", kind: Kind, place: tuple[str, str]) -> Any:
    """Return which cells hold what they cannot."""
    if column.dtype in (np.int32, np.bool_):  # as nearly all are
        return []
    blank = column.isna().to_numpy(bool)
    if kind == "whole":
        numbers = column.to_numpy(np.float64, na_value=0.0)
        return (np.abs(numbers) > _MOST) | (numbers % 1 != 0) | (blank & (place not in _BLANKS))
    if kind == "number":
        if place[0] in _MAY_OVERFLOW:
            return []
        return ~np.isfinite(column.to_numpy(np.float64, na_value=np.nan))
    if place in _NAMES:
        return ~column.isin(_NAMES[place]).to_numpy(bool)
    return blank & (place not in _BLANKS)
