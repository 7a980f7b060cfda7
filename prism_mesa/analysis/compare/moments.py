"""Where in time the rows of a run's tables stand, which columns are settled then, and what a row says in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from prism_mesa.analysis.compare.rows import Row
from prism_mesa.errors import shortened
from prism_mesa.llm.text import plain
from prism_mesa.social.state.agent_fields import AGENT_FIELDS

type Moment = tuple[float, float, float, int]
"""Round, tick, agent, and the place of the table: what is seen comes before what is done about it."""


@dataclass(frozen=True)
class Timed:
    """A table whose rows happen at a time.

    Attributes:
        place: Its place among those of the same moment.
        agent: The column of the agent; empty: its rows are of nobody.
        nation: The column of the nation, in words; empty: none.
        tick: When in a round, where there is no column `tick`.
        settled: Columns that are known when the row happens; empty: all are.
    """

    place: int
    agent: str = ""
    nation: str = ""
    tick: float = 0.0
    settled: tuple[str, ...] = ()


_WRITTEN: Final = (
    *("post", "round", "written", "author", "kind", "parent", "root", "topic", "text", "comment"),
    *("media_type", "media_description"),
)
TIMED: Final[Mapping[str, Timed]] = {
    "posts": Timed(0, "author", settled=_WRITTEN),
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
"""Columns of `agents` that are settled before the first round."""


def moment_of(table: str, row: Row) -> Moment:
    """Return when a row of one of `TIMED` happens; what it does not say comes last."""
    own = TIMED[table]
    agent = row.get(own.agent) if own.agent else inf
    tick = row.get("tick", own.tick)
    known = [inf if one is None else float(one) for one in (row.get("round"), tick, agent)]
    return known[0], known[1], known[2], own.place


_DOES: Final = {"like": "likes", "reply": "replies to", "reshare": "reshares"}


def in_words(table: str, row: Row | None, columns: Sequence[str]) -> str:
    """Return what a row says, in a few words.

    Args:
        table: Its table.
        row: The row, or None if there is none.
        columns: Those in which it differs from the other side's.
    """
    if row is None:
        return "reads nothing more at this tick" if table == "impressions" else "nothing"
    match table:
        case "impressions":
            return f"reads post {row.get('post')}"
        case "transitions":
            about = "" if row.get("post") in (-1, None) else f" (post {row['post']})"
            state = f"{row.get('from_state')} -> {row.get('to_state')}"
            return f"{state}, on '{row.get('trigger')}'{about}{', open' if row.get('open') else ''}"
        case "engagements":
            return f"{_DOES.get(str(row.get('action')), row.get('action'))} post {row.get('post')}"
        case "posts":
            what = f"post {row.get('post')}, a {row.get('kind')} by agent {row.get('author')}"
            rest = [name for name in columns if name not in ("post", "kind", "author")]
            return f"{what}: {_values(row, rest)}" if rest else what
        case "churn":
            return f"{row.get('event')} as the round opens"
        case "decisions":
            return f'wants "{_short(row.get("action"))}": {row.get("outcome")}'
        case _:
            return _values(row, columns)


_MOST_COLUMNS: Final = 6


def _values(row: Row, columns: Sequence[str]) -> str:
    told = ", ".join(f"{name} {_short(row.get(name))}" for name in columns[:_MOST_COLUMNS])
    more = len(columns) - _MOST_COLUMNS
    return f"{told}, and {more} more" if more > 0 else told


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return shortened(plain(str(value), 400), 90)
