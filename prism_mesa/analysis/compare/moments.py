"""The time of each row in a run's tables, and the row as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from prism_mesa.analysis.compare.rows import Row
from prism_mesa.errors import shorten
from prism_mesa.llm.text import clean_text
from prism_mesa.social.state.agent_fields import AGENT_FIELDS

type Moment = tuple[float, float, float, int]
"""Round, tick, agent and `TimedTable.order`; impressions come before actions."""


@dataclass(frozen=True)
class TimedTable:
    """A table whose rows have a time.

    Attributes:
        order: The position among tables with rows at the same time.
        agent: The column of the agent, if any.
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
CONSTANT_COLUMNS: Final = (
    *("id", "name", "interests", "extraversion", "agreeableness", "conscientiousness", "neuroticism", "openness"),
    *(*AGENT_FIELDS, "like", "reply", "reshare", "scripted"),
)
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
