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
from prism_mesa.errors import PrismError, format_count, quote_path
from prism_mesa.llm.text import NAME_CAP, clean_text
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.run_files import has_table, read_batches, read_table

MAX_AGENTS: Final = 20_000
"""The largest run, in agents, that is repeated for an explanation."""
_MAX_POSTS: Final = 4
_MOVE_COLUMNS: Final = ("round", "agent", "tick", "trigger", "from_state", "to_state")
_UNCOMPARED_TRIGGERS: Final = ("feed_ready", "round_ends")


@dataclass(frozen=True)
class Reasons:
    """The lines that explain each run, or why the run cannot be explained."""

    base: tuple[str, ...]
    other: tuple[str, ...]


def explain_divergence(base: Path, other: Path, divergence: Divergence, *, trust: bool = False) -> Reasons:
    """Explain in both runs what led to a divergence."""
    return Reasons(*(tuple(_explain_run(run, divergence, trust)) for run in (base, other)))


def _explain_run(run: Path, divergence: Divergence, trust: bool) -> list[str]:
    if not (divergence.is_economy and divergence.name) and divergence.agent is None:
        return [f"table {divergence.table} does not name an agent"]
    try:
        if divergence.is_economy:
            return list(decision_lines(run, divergence.name, divergence.round))
        return _explain_agent(run, divergence, trust)
    except PrismError as error:
        return [f"cannot be explained: {error}"]


def _explain_agent(run: Path, divergence: Divergence, trust: bool) -> list[str]:
    row, round_ = divergence.agent or 0, divergence.round
    agents = (read_run(run).manifest.config or {}).get("agents")
    n_agents = agents.get("n") if isinstance(agents, dict) else None
    if isinstance(n_agents, int) and n_agents > MAX_AGENTS:
        command = f"prism why {quote_path(run)} {row} {round_}"
        return [f"a run of {n_agents:,} agents takes long to repeat; use: {command}"]
    ids = read_table(run, "agents", ["id"])["id"] if has_table(run, "agents") else []
    explanation = why(run, str(ids[row]) if row < len(ids) else str(row), round_, trust=trust)
    if not _repeats_recorded_moves(run, explanation, row, round_):
        return [f"cannot be explained: repeated, agent {row} acts differently in round {round_} than recorded"]
    tick = divergence.tick or 0
    lines = list(moment_lines(explanation, tick))
    if divergence.table == "impressions":
        lines += _post_lines(run, explanation, divergence)
    if not lines and explanation.reported_round is not None:
        feed = format_count(explanation.reported_round.n_feed, "post")
        return [f"at tick {tick} of round {round_} it does nothing: it is online, with {feed} in its feed"]
    return lines


def _post_lines(run: Path, explanation: Explanation, divergence: Divergence) -> list[str]:
    agent = explanation.agent
    agent_rows = _agent_rows(run, "impressions", ("round", "agent", "tick", "post"), agent.row, divergence.round)
    post_ids = [post_id for tick, post_id in agent_rows if tick == divergence.tick]
    lines = []
    for post_id in post_ids[:_MAX_POSTS]:
        post = agent.model.post(post_id, agent.row) if 0 <= post_id < len(agent.model.posts) else None
        post_text = ""
        if post is not None:
            text = textwrap.shorten(clean_text(post.words or post.text, 400), 70, placeholder=" ...")
            post_text = f' by {clean_text(post.author_name, NAME_CAP)}, "{text}" (relevance {post.relevance:.3f})'
        lines.append(f"  it reads post {post_id}{post_text}")
    return lines + ([f"  and {len(post_ids) - _MAX_POSTS} more posts"] if len(post_ids) > _MAX_POSTS else [])


def _repeats_recorded_moves(run: Path, explanation: Explanation, row: int, round_: int) -> bool:
    """Return whether an agent's repeated moves equal its recorded moves; True if none were recorded."""
    recorded = _agent_rows(run, "transitions", _MOVE_COLUMNS, row, round_) if has_table(run, "transitions") else []
    if explanation.reported_round is None or not recorded:
        return True
    repeated = [
        (move.tick, move.trigger, move.state.value, move.target.value)
        for move in explanation.reported_round.moves
        if move.target is not None and move.trigger not in _UNCOMPARED_TRIGGERS
    ]
    return repeated == [move for move in recorded if move[1] not in _UNCOMPARED_TRIGGERS]


def _agent_rows(run: Path, table: str, columns: Sequence[str], row: int, round_: int) -> list[tuple[Any, ...]]:
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
