"""The time and the text of rows of a run's tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from prism_mesa.analysis.compare.rows import Row
from prism_mesa.errors import shortened
from prism_mesa.llm.text import plain
from prism_mesa.social.state.agent_fields import AGENT_FIELDS

type Moment = tuple[float, float, float, int]
"""Round, tick, agent and position of the table; impressions come before actions."""


@dataclass(frozen=True)
class Timed:
    """A table whose rows have a time.

    Attributes:
        place: The position among the tables with rows at the same moment.
        agent: The column of the agent, if any.
        nation: The column of the nation's name, if any.
        tick: The tick of all rows if the table has no column `tick`.
        fixed: Columns that do not change after the row is written; empty: all.
    """

    place: int
    agent: str = ""
    nation: str = ""
    tick: float = 0.0
    fixed: tuple[str, ...] = ()


_WRITTEN: Final = (
    *("post", "round", "written", "author", "kind", "parent", "root", "topic", "text", "comment"),
    *("media_type", "media_description"),
)
TIMED: Final[Mapping[str, Timed]] = {
    "posts": Timed(0, "author", fixed=_WRITTEN),
    "impressions": Timed(1, "agent"),
    "transitions": Timed(2, "agent"),
    "engagements": Timed(3, "agent"),
    "thoughts": Timed(4, "agent"),
    "notes": Timed(5, "agent"),
    "ticks": Timed(6),
    "rounds": Timed(7, tick=inf),
    "churn": Timed(8, "agent", tick=-1.0),  # as a round opens
    "decisions": Timed(0, nation="nation"),
    "reasoning": Timed(1, nation="agent_id"),
    "verdicts": Timed(2, nation="nation"),
    "trade": Timed(3, nation="importer"),
    "indicators": Timed(4, nation="nation"),
}
STARTS: Final = (
    *("id", "name", "interests", "extraversion", "agreeableness", "conscientiousness", "neuroticism", "openness"),
    *(*AGENT_FIELDS, "like", "reply", "reshare", "scripted"),
)
"""Columns of `agents` that never change."""


def moment(table: str, row: Row) -> Moment:
    """Return the moment of a row; missing values come last."""
    timed = TIMED[table]
    agent = row.get(timed.agent) if timed.agent else inf
    values = (row.get("round"), row.get("tick", timed.tick), agent)
    round_, tick, agent = (inf if value is None else float(value) for value in values)
    return round_, tick, agent, timed.place


_VERBS: Final = {"like": "likes", "reply": "replies to", "reshare": "reshares"}


def row_text(table: str, row: Row | None, columns: Sequence[str]) -> str:
    """Describe a row or its absence; `columns` are those that differ from the other run."""
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
            title = f"post {row.get('post')}, a {row.get('kind')} by agent {row.get('author')}"
            other_columns = [name for name in columns if name not in ("post", "kind", "author")]
            return f"{title}: {_values(row, other_columns)}" if other_columns else title
        case "churn":
            return f"{row.get('event')} as the round opens"
        case "decisions":
            return f'wants "{_short(row.get("action"))}": {row.get("outcome")}'
        case _:
            return _values(row, columns)


_MAX_COLUMNS: Final = 6


def _values(row: Row, columns: Sequence[str]) -> str:
    text = ", ".join(f"{name} {_short(row.get(name))}" for name in columns[:_MAX_COLUMNS])
    more = len(columns) - _MAX_COLUMNS
    return f"{text}, and {more} more" if more > 0 else text


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return shortened(plain(str(value), 400), 90)
