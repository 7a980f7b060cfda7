"""The page's source for a finished run, read from its tables."""

# ruff: noqa: D102 - `Source` documents the methods

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from prism_mesa.analysis.explain.report import report_lines
from prism_mesa.analysis.explain.why import why
from prism_mesa.arrays import Floats, Mask, UInt8
from prism_mesa.domain import ACTIONS, POST_KINDS, AgentState
from prism_mesa.errors import format_error
from prism_mesa.llm.text import clean_text
from prism_mesa.runs.config import Config
from prism_mesa.view.page import source as page_source
from prism_mesa.view.playback.tables import PlaybackTables, RoundRows

_NUMERIC_COLUMNS: Final = {
    "followers": "followers",
    "followees": "followed",
    "activity": "chance of coming online in a round",
    "post_rate": "chance of posting in a round",
    "engagement_threshold": "minimum utility for engaging",
}
"""Columns of `agents` by which agents can be coloured, with labels for the scale."""
_MAX_TEXT: Final = 2_000
_NO_ROWS: Final = pd.DataFrame(columns=["tick", "agent", "post", "action"])
_UPDATE_S: Final = 0.5  # seconds between progress updates of a repeated run
_TABLES_NOTE: Final = (
    "The tables have the agent's actions but not the reasons. To explain the actions, the run can be repeated from "
    "its ledger up to this round, without an LLM."
)


class RecordedSource(page_source.Source):
    """A finished run at one round (-1: before the first); all rounds' sources share `tables`. It never changes."""

    def __init__(self, tables: PlaybackTables, round_: int) -> None:
        self.run = self.tables = tables
        self.title = clean_text(tables.run_dir.resolve().name, 120)
        self.rounds, self.chart = tables.rounds, tables.chart
        self._round = max(-1, min(round_, tables.rounds - 1))

    def at_round(self, round_: int) -> "RecordedSource":
        """Return the source of the nearest completed round."""
        return RecordedSource(self.tables, round_)

    @cached_property
    def facts(self) -> tuple[tuple[str, str], ...]:
        tables, manifest = self.tables, self.tables.run.manifest
        config, planned = tables.config, manifest.planned_rounds
        facts = [("agents", f"{tables.n_agents:,}")]
        if isinstance(config, Config):
            facts += [("feed", config.feed.mode), ("band", f"{config.agents.band:g}"), ("content", config.content)]
        facts += [("decided by", clean_text(manifest.decided_by, 200)), ("seed", str(manifest.seed))]
        if manifest.status != "done" or planned != tables.rounds:
            facts.append(("status", f"{manifest.status} after {tables.rounds} of {planned} rounds"))
        if isinstance(config, str):
            facts.append(("configuration", f"not used: {config}"))
        elif note := tables.first_network[1]:
            facts.append(("network", note))
        return tuple(facts)

    @property
    def round(self) -> int:
        return self._round

    @property
    def n_agents(self) -> int:
        return self.tables.n_agents

    def round_columns(self) -> Mapping[str, Floats]:
        return {name: column[: self._round + 1] for name, column in self.tables.round_columns.items()}

    def states(self) -> UInt8:
        states = np.full(self.n_agents, AgentState.IDLE.code, np.uint8)
        transitions = self.tables.transitions
        if transitions is not None:
            rows = transitions.in_round(self._round)
            states = page_source.most_active_states(states, rows["agent"].to_numpy(), rows["to_state"].to_numpy())
        states[~self._is_known] = page_source.ABSENT
        return states

    @cached_property
    def _is_known(self) -> Mask:
        """Whether each agent is present in the round and has recorded transitions."""
        tables = self.tables
        if tables.transitions is None:
            return np.zeros(self.n_agents, np.bool_)
        is_known = tables.users.copy()
        if "recorded_transitions" in tables.agents:
            is_known &= tables.agents["recorded_transitions"].to_numpy(np.bool_)
        if tables.churn is None:
            return is_known
        rows = tables.churn
        agents, is_arrival = rows["agent"].to_numpy(), rows["event"].isin(("join", "back")).to_numpy()
        first, first_row = np.unique(agents, return_index=True)
        present = np.ones(self.n_agents, np.bool_)
        present[first] = ~is_arrival[first_row]  # an agent whose first event is an arrival was absent before
        so_far = rows["round"].to_numpy() <= self._round
        present[agents[so_far]] = is_arrival[so_far]  # the last event of an agent decides
        return is_known & present

    def follows(self) -> page_source.Follows:
        return self.tables.follows(self._round)

    def attributes(self) -> Mapping[str, page_source.AgentAttribute]:
        agents, config = self.tables.agents, self.tables.config
        columns = {
            name: page_source.AgentAttribute(agents[name].to_numpy(np.float64), unit=unit)
            for name, unit in _NUMERIC_COLUMNS.items()
        }
        columns["first interest"] = _encoded([str(interests or "").split(";")[0] for interests in agents["interests"]])
        declared = config.attributes if isinstance(config, Config) else {}
        for name in agents.columns.intersection(list(declared), sort=False):
            column = agents[name]
            is_number = column.dtype.kind in "iufb"
            columns[name] = (
                page_source.AgentAttribute(column.to_numpy(np.float64)) if is_number else _encoded(list(column))
            )
        return columns

    def posts(self) -> page_source.PostColumns:
        columns = self.tables.post_columns
        n = int(np.searchsorted(columns.round, self._round, side="right"))
        return page_source.PostColumns(**{name: column[:n] for name, column in vars(columns).items()})

    def post_text(self, post: int) -> str:
        posts = self.tables.posts
        if posts.kind[post] == "post":
            return clean_text(posts.shown_text(post), _MAX_TEXT)
        origin = posts.origin(int(posts.parent[post]))
        quote_parts = str(posts.kind[post]), self.agent_name(int(posts.author[origin])), posts.shown_text(origin)
        return clean_text(page_source.with_quote(posts.words(post), *quote_parts), _MAX_TEXT)

    def agent_name(self, row: int) -> str:
        return clean_text(self.tables.names[row], 120)

    def find_agent(self, text: str) -> int:
        return self.tables.find_row(text.strip())

    def agent(self, row: int) -> page_source.AgentDetails:
        moves, tables = tuple(self._moves(row)), self.tables
        note = "The posts that the agent read, in order. The explanation names the other posts of its feed."
        why_note, ask_label = self._why_note_and_label(row, moves)
        return page_source.AgentDetails(
            row=row,
            name=self.agent_name(row),
            agent_id=clean_text(str(tables.agents["id"].iloc[row]), 120),
            profile=tuple(self._profile(row)),
            state=next((move.target for move in reversed(moves) if move.trigger != "round_ends"), AgentState.IDLE),
            feed=tuple(self._read_posts(row)),
            feed_note="The posts that the agent read were not recorded." if tables.impressions is None else note,
            moves=moves,
            why=tables.explanations.get((row, self._round)) or tuple(page_source.move_lines(moves, self.post_text)),
            why_note=why_note,
            ask_label=ask_label,
        )

    def _why_note_and_label(self, row: int, moves: Sequence[page_source.AgentMove]) -> tuple[str, str]:
        """Return a note on the explanation of the agent's round, and the label of the button that requests it."""
        tables, key = self.tables, (row, self._round)
        if self._round < 0:
            return "Nothing has happened yet.", ""
        if not self._is_known[row]:
            return "The agent is not on the platform in this round, or its transitions were not recorded.", ""
        if not moves:
            return f"The agent did not come online in round {self._round}.", ""
        note = tables.explanation_notes.get(key)
        if key in tables.explanations or key == tables.explaining:
            return note or "", ""
        return note or _TABLES_NOTE, f"Why? Repeat the run to round {self._round}{' once more' if note else ''}"

    def explain_now(self, row: int, on_change: Callable[[], None]) -> None:
        """Explain an agent in another thread; one at a time, because an explanation keeps a core busy."""
        key = row, self._round
        if key not in self.tables.explanations and self.tables.explaining is None:
            self.tables.explaining, self.tables.explanation_notes[key] = key, "The run is being repeated ..."
            on_change()
            threading.Thread(target=self.explain, args=(row, on_change), daemon=True).start()

    def explain(self, row: int, on_change: Callable[[], None]) -> None:
        """Explain what an agent did in the round, and store the explanation, or why it failed, in `tables`.

        No table holds the values of guards and the odds of answers, so the run is replayed from its ledger up to the
        round, without an LLM. This takes as long as those rounds.
        """
        tables, key, last_update = self.tables, (row, self._round), time.monotonic()

        def on_round(done: int) -> None:
            nonlocal last_update
            if time.monotonic() - last_update > _UPDATE_S:
                last_update = time.monotonic()
                tables.explanation_notes[key] = f"The run is being repeated: round {done - 1} of {self._round} ..."
                on_change()

        try:
            explanation = why(tables.run_dir, str(row), self._round, on_round=on_round)
            tables.explanations[key] = tuple(report_lines(explanation))
            tables.explanation_notes.pop(key, None)
        except Exception as error:  # a user's guard or action may raise anything; the page must survive it
            tables.explanation_notes[key] = f"No explanation: {format_error(error)}"
        finally:
            tables.explaining = None
            on_change()

    def _profile(self, row: int) -> Iterator[tuple[str, str]]:
        tables = self.tables
        yield "interests", clean_text(", ".join(tables.interests(row)), 300)
        yield "character", clean_text(tables.character(row), 300)
        follows = self.follows()
        yield "followers", f"{int(follows.followers[row]):,}"
        is_author = self.posts().author == row
        for code, kind in enumerate(POST_KINDS):
            count = int((is_author & (self.posts().kind == code)).sum())
            yield {"post": "posts", "reply": "replies", "reshare": "reshares"}.get(kind, kind), f"{count} so far"
        agent = tables.agents.iloc[row]
        yield "comes online", f"with probability {agent['activity']:.3g} a round"
        yield "engages", f"from a utility of {agent['engagement_threshold']:.3g}"

    def _moves(self, row: int) -> Iterator[page_source.AgentMove]:
        for move in self._agent_rows(self.tables.transitions, row).sort_values("tick", kind="stable").itertuples():
            source, target = (self.tables.states[code] for code in (move.from_state, move.to_state))
            trigger = clean_text(str(move.trigger), 80)
            yield page_source.AgentMove(int(move.tick), trigger, source, target, int(move.post), bool(move.open))

    def _read_posts(self, row: int) -> Iterator[page_source.FeedPost]:
        """Yield the posts that an agent read in the round, in reading order."""
        engagements = self._agent_rows(self.tables.engagements, row)
        impressions = self._agent_rows(self.tables.impressions, row).sort_values("tick", kind="stable")
        for index, post in enumerate(impressions["post"].tolist(), start=1):
            author, kind = self.agent_name(int(self.tables.posts.author[post])), str(self.tables.posts.kind[post])
            actions = engagements.loc[engagements["post"] == post, "action"]
            acts = ", ".join(action for action in actions if action in ACTIONS)
            yield page_source.FeedPost(index, post, author, self.post_text(post), kind, was_read=True, engagements=acts)

    def _agent_rows(self, table: RoundRows | None, row: int) -> pd.DataFrame:
        """Return an agent's rows of the round; no rows if the table was not recorded."""
        rows = _NO_ROWS if table is None else table.in_round(self._round)
        return rows[rows["agent"] == row]

    def oracle(self) -> page_source.OracleDetails:
        columns, rows = self.round_columns(), self.tables.asked_rows
        n_open, n_fallback = (int(columns[name].sum()) for name in ("open", "fallback"))
        label = clean_text(self.tables.run.manifest.decided_by, 200)
        spent: dict[str, tuple[float, float | None]] = {"open choices": (n_open, None), "fallbacks": (n_fallback, None)}
        if isinstance(rows, str):
            return page_source.OracleDetails(label, None, spent, notes=(f"Who answered is unknown: {rows}.",))
        rows = rows[rows["round"] <= self._round]
        sources = _counts(rows["source"])
        if by_rule := max(n_open - sum(sources.values()), 0):
            sources["rule"] = by_rule
        if tokens := int(rows["tokens"].sum()):
            spent |= {"calls of the LLM": (sources.get("llm", 0), None), "tokens": (tokens, None)}
        return page_source.OracleDetails(label, sources, spent, _counts(rows.loc[rows["reason"] != "", "reason"]))


def _encoded(cells: Sequence[object]) -> page_source.AgentAttribute:
    """Return a column of strings as an attribute, with names in alphabetical order; empty strings are unknown."""
    texts = [None if cell is None or cell != cell else clean_text(str(cell), 80) or None for cell in cells]
    codes, names = pd.factorize(np.array(texts, object), sort=True)
    return page_source.AgentAttribute(np.where(codes < 0, np.nan, codes), tuple(names))


def _counts(cells: pd.Series) -> dict[str, int]:
    return {clean_text(str(name), 120): int(n) for name, n in cells.value_counts().sort_index().items()}


def open_recorded(run_dir: Any) -> RecordedSource:
    """Return a finished run at its last round; a missing or damaged run, or nations, raises a DataError."""
    tables = PlaybackTables(run_dir)
    return RecordedSource(tables, tables.rounds - 1)
