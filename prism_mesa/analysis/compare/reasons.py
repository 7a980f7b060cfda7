"""Explain the first difference of two runs: what the agent or nation did in each run, and why."""

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
from prism_mesa.runs.run_files import has_table, read_batches, read_table

MAX_AGENTS: Final = 20_000
"""The largest run, in agents, that is repeated for an explanation."""
_MAX_POSTS: Final = 4
_MOVES: Final = ("round", "agent", "tick", "trigger", "from_state", "to_state")
_UNCOMPARED: Final = ("feed_ready", "round_ends")


@dataclass(frozen=True)
class Reasons:
    """The explanation of each run in lines, or why there is none."""

    base: tuple[str, ...]
    other: tuple[str, ...]


def reasons(base: Path, other: Path, divergence: Divergence, *, trust: bool = False) -> Reasons:
    """Return the explanation of a divergence in both runs."""
    return Reasons(*(tuple(_explain_run(run, divergence, trust)) for run in (base, other)))


def _explain_run(run: Path, divergence: Divergence, trust: bool) -> list[str]:
    if not (divergence.of_nations and divergence.who) and divergence.agent is None:
        return [f"table {divergence.table} does not name an agent"]
    try:
        if divergence.of_nations:
            return list(decision_lines(run, divergence.who, divergence.round))
        return _explain_agent(run, divergence, trust)
    except PrismError as error:
        return [f"cannot be explained: {error}"]


def _explain_agent(run: Path, divergence: Divergence, trust: bool) -> list[str]:
    row, round_ = divergence.agent or 0, divergence.round
    agents = (read_run(run).manifest.config or {}).get("agents")
    n = agents.get("n") if isinstance(agents, dict) else None
    if isinstance(n, int) and n > MAX_AGENTS:
        command = f"prism why {in_command(run)} {row} {round_}"
        return [f"a run of {n:,} agents takes long to repeat: {command}"]
    ids = read_table(run, "agents", ["id"])["id"] if has_table(run, "agents") else []
    explanation = why(run, str(ids[row]) if row < len(ids) else str(row), round_, trust=trust)
    if not _moves_as_recorded(run, explanation, row, round_):
        return [f"cannot be explained: repeated, agent {row} acts differently in round {round_} than recorded"]
    tick = divergence.tick or 0
    lines = list(moment_lines(explanation, tick))
    if divergence.table == "impressions":
        lines += _posts_read(run, explanation, divergence)
    if not lines and explanation.shown is not None:
        feed = counted(explanation.shown.n_feed, "post")
        return [f"at tick {tick} of round {round_} it does nothing: it is online, with {feed} in its feed"]
    return lines


def _posts_read(run: Path, explanation: Explanation, divergence: Divergence) -> list[str]:
    agent = explanation.agent
    rows = _agent_rows(run, "impressions", ("round", "agent", "tick", "post"), agent.row, divergence.round)
    numbers = [number for tick, number in rows if tick == divergence.tick]
    lines = []
    for number in numbers[:_MAX_POSTS]:
        post = agent.model.post(number, agent.row) if 0 <= number < len(agent.model.posts) else None
        details = ""
        if post is not None:
            text = textwrap.shorten(plain(post.words or post.text, 400), 70, placeholder=" ...")
            details = f' by {plain(post.author_name, NAME_CAP)}, "{text}" (relevance {post.relevance:.3f})'
        lines.append(f"  it reads post {number}{details}")
    return lines + ([f"  and {len(numbers) - _MAX_POSTS} more posts"] if len(numbers) > _MAX_POSTS else [])


def _moves_as_recorded(run: Path, explanation: Explanation, row: int, round_: int) -> bool:
    """Return whether the moves of a repeated agent equal its recorded moves; True if none were recorded."""
    recorded = _agent_rows(run, "transitions", _MOVES, row, round_) if has_table(run, "transitions") else []
    if explanation.shown is None or not recorded:
        return True
    repeated = [
        (move.tick, move.trigger, move.state.value, move.target.value)
        for move in explanation.shown.moves
        if move.target is not None and move.trigger not in _UNCOMPARED
    ]
    return repeated == [move for move in recorded if move[1] not in _UNCOMPARED]


def _agent_rows(run: Path, table: str, columns: Sequence[str], row: int, round_: int) -> list[tuple[Any, ...]]:
    """Return the rows of an agent in a round, without the columns `round` and `agent`."""
    rows: list[tuple[Any, ...]] = []
    for batch in read_batches(run, table, columns):
        rounds = batch.column("round")
        if not batch.num_rows or (pc.max(rounds).as_py() or 0) < round_:
            continue
        if (pc.min(rounds).as_py() or 0) > round_:
            break
        matches = batch.filter(pc.and_(pc.equal(rounds, round_), pc.equal(batch.column("agent"), row)))
        rows += [tuple(values[name] for name in columns[2:]) for values in matches.to_pylist()]
    return rows
