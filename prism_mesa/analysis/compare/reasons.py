"""Why something diverged: what `why` tells of that agent or nation at that moment, on each side."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc

from prism_mesa.analysis.compare.divergence import Divergence
from prism_mesa.analysis.explain.economy import decision_lines
from prism_mesa.analysis.explain.report import moment_lines
from prism_mesa.analysis.explain.why import Explanation, why
from prism_mesa.errors import PrismError, counted, in_command
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.run_files import batches_of, has_table, read_table

MOST_AGENTS: Final = 20_000
"""Agents of a run that is repeated to tell why; with more of them that takes longer than all else."""


@dataclass(frozen=True)
class Reasons:
    """Why each side did what it did, line by line; or why that cannot be told."""

    base: tuple[str, ...]
    other: tuple[str, ...]


def reasons(base: Path, other: Path, found: Divergence, *, trust: bool = False) -> Reasons:
    """Return why something diverged, as far as it can be told."""
    return Reasons(*(tuple(_of_side(run, found, trust)) for run in (base, other)))


def _of_side(run: Path, found: Divergence, trust: bool) -> list[str]:
    if not (found.of_nations and found.who) and found.agent is None:
        return [f"table {found.table} does not say whose doing it is"]
    try:
        if found.of_nations:
            return list(decision_lines(run, found.who, found.round))
        return _of_agent(run, found, trust)
    except PrismError as error:
        return [f"cannot be told: {error}"]


def _of_agent(run: Path, found: Divergence, trust: bool) -> list[str]:
    row, round_ = found.agent or 0, found.round
    agents, more = read_run(run).manifest.config or {}, f"prism why {in_command(run)} {row} {round_}"
    n = agents.get("agents", {}).get("n") if isinstance(agents.get("agents"), dict) else None
    if isinstance(n, int) and n > MOST_AGENTS:
        return [f"not asked for in a run of {n:,} agents, which would be repeated: {more}"]
    explanation = why(run, _id_of(run, row), round_, trust=trust)
    if not _is_as_recorded(run, explanation, row, round_):
        return [f"cannot be told: repeated from its folder, agent {row} does not do in round {round_} what is recorded"]
    tick = found.tick or 0
    lines = list(moment_lines(explanation, tick))
    if found.table == "impressions":
        lines += _read_by(run, explanation, found)
    if not lines and explanation.shown is not None:
        feed = counted(explanation.shown.feed, "post")
        return [f"at tick {tick} of round {round_} nothing happens with it: it is online, with {feed} in its feed"]
    return lines


def _id_of(run: Path, row: int) -> str:
    """Return what names an agent for `why`: its id, which comes before its row."""
    ids = read_table(run, "agents", ["id"])["id"] if has_table(run, "agents") else []
    return str(ids[row]) if row < len(ids) else str(row)


def _read_by(run: Path, explanation: Explanation, found: Divergence) -> list[str]:
    """Return the first posts that an agent read at the moment, in words."""
    rows = _rows_of_agent(run, "impressions", ("round", "agent", "tick", "post"), explanation.agent.row, found.round)
    posts = [post for tick, post in rows if tick == found.tick]
    told = [f"  it reads post {post}{_about(explanation, post)}" for post in posts[:_MOST_POSTS]]
    return told + ([f"  and {len(posts) - _MOST_POSTS} more posts"] if len(posts) > _MOST_POSTS else [])


def _about(explanation: Explanation, number: int) -> str:
    agent = explanation.agent
    post = agent.model.post(number, agent.row) if 0 <= number < len(agent.model.posts) else None
    if post is None:
        return ""
    text = textwrap.shorten(plain(post.words or post.text, 400), 70, placeholder=" ...")
    return f' by {plain(post.author_name, NAME_CAP)}, "{text}" (relevance {post.relevance:.3f})'


_MOST_POSTS: Final = 4
_MOVES: Final = ("round", "agent", "tick", "trigger", "from_state", "to_state")


def _is_as_recorded(run: Path, explanation: Explanation, row: int, round_: int) -> bool:
    """Return whether an agent that was repeated moved as its run recorded; where nothing is recorded, it did."""
    recorded = _recorded_moves(run, row, round_)
    shown = explanation.shown
    if shown is None or not recorded:
        return True
    repeated = [
        (move.tick, move.trigger, move.state.value, move.target.value)
        for move in shown.moves
        if move.target is not None and move.trigger != "feed_ready"
    ]
    kept = [one for one in recorded if one[1] not in ("feed_ready", "round_ends")]
    return repeated == kept


def _recorded_moves(run: Path, row: int, round_: int) -> list[tuple[Any, ...]]:
    """Return tick, trigger, and the states before and after, of what an agent did in a round."""
    return _rows_of_agent(run, "transitions", _MOVES, row, round_) if has_table(run, "transitions") else []


def _rows_of_agent(run: Path, table: str, columns: Sequence[str], row: int, round_: int) -> list[tuple[Any, ...]]:
    """Return what a table says of an agent in a round: the columns after `round` and `agent`."""
    found: list[tuple[Any, ...]] = []
    for batch in batches_of(run, table, columns):
        rounds = batch.column("round")
        if not batch.num_rows or (pc.max(rounds).as_py() or 0) < round_:
            continue
        if (pc.min(rounds).as_py() or 0) > round_:
            break
        own = batch.filter(pc.and_(pc.equal(rounds, round_), pc.equal(batch.column("agent"), row)))
        found += [tuple(one[name] for name in columns[2:]) for one in own.to_pylist()]
    return found
