"""One moment of a finished run, read from its tables for playback."""

# ruff: noqa: D102 - `Source` documents the methods

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.analysis.explain.report import report_lines
from prism_mesa.analysis.explain.why import why
from prism_mesa.domain import ACTIONS, POST_KINDS
from prism_mesa.llm.text import plain
from prism_mesa.runs.config import Config
from prism_mesa.statechart import STATES, AgentState, Statechart
from prism_mesa.view.page import source as on_show
from prism_mesa.view.playback.tables import PlaybackTables

_NUMBERS: Final = {
    "followers": "followers",
    "followees": "followed",
    "activity": "chance of coming online in a round",
    "post_rate": "chance of posting in a round",
    "engagement_threshold": "utility from which it engages",
}
"""Columns of `agents` by which agents can be coloured, and what the numbers are."""
_LONGEST_TEXT: Final = 2_000
_HOW_TOLD: Final = (
    "What it did, as the tables have it. What it weighed is in none: the run can be repeated from its ledger, up to "
    "this round and without an LLM, to tell it."
)


class RecordedSource(on_show.Source):
    """A finished run at one round. It never changes.

    Args:
        tables: The run's tables, shared by all its moments.
        at: The round; -1 for before the first.
    """

    def __init__(self, tables: PlaybackTables, at: int) -> None:
        self.tables = tables
        self._at = max(-1, min(at, tables.rounds - 1))

    def at_round(self, round_: int) -> "RecordedSource":
        """Return the moment of the nearest completed round."""
        return RecordedSource(self.tables, round_)

    @property
    def run(self) -> object:
        return self.tables

    @property
    def title(self) -> str:
        return plain(self.tables.run_dir.resolve().name, 120)

    @cached_property
    def facts(self) -> tuple[tuple[str, str], ...]:
        tables, manifest = self.tables, self.tables.run.manifest
        config, planned = tables.config, manifest.planned
        facts = [("agents", f"{tables.n_agents:,}")]
        if isinstance(config, Config):
            facts += [("feed", config.feed.mode), ("band", f"{config.agents.band:g}"), ("content", config.content)]
        facts += [("decided by", plain(manifest.decided_by, 200)), ("seed", str(manifest.seed))]
        if manifest.status != "done" or planned != tables.rounds:
            facts.append(("status", f"{manifest.status} after {tables.rounds} of {planned} rounds"))
        if isinstance(config, str):
            facts.append(("configuration", f"not used: {config}"))
        elif tables.network_note:
            facts.append(("network", tables.network_note))
        return tuple(facts)

    @property
    def rounds(self) -> int:
        return self.tables.rounds

    @property
    def at(self) -> int:
        return self._at

    @property
    def n_agents(self) -> int:
        return self.tables.n_agents

    @property
    def chart(self) -> Statechart:
        return self.tables.chart

    def round_columns(self) -> Mapping[str, on_show.Floats]:
        return {name: column[: self._at + 1] for name, column in self.tables.round_columns.items()}

    def states(self) -> npt.NDArray[np.uint8]:
        states = np.full(self.n_agents, AgentState.IDLE.code, np.uint8)
        transitions = self.tables.transitions
        if transitions is not None:
            rows = transitions.of(self._at)
            states = on_show.most_done(states, rows["agent"], rows["to_state"])
        states[~self._known] = on_show.NOT_THERE
        return states

    @cached_property
    def _known(self) -> npt.NDArray[np.bool_]:
        """Which agents are present in the round with recorded transitions."""
        tables = self.tables
        if tables.transitions is None:
            return np.zeros(self.n_agents, np.bool_)
        known = tables.users.copy()
        if "recorded_transitions" in tables.agents:
            known &= tables.agents["recorded_transitions"].to_numpy(np.bool_)
        if tables.comings is None:
            return known
        rows = tables.comings
        agents, is_there = rows["agent"].to_numpy(), rows["event"].isin(("join", "back")).to_numpy()
        first, at_first = np.unique(agents, return_index=True)
        here = np.ones(self.n_agents, np.bool_)
        here[first] = ~is_there[at_first]  # agents that join were absent before
        so_far = rows["round"].to_numpy() <= self._at
        here[agents[so_far]] = is_there[so_far]  # an agent's last transition counts
        return known & here

    def follows(self) -> on_show.Follows:
        return self.tables.follows(self._at)

    def attributes(self) -> Mapping[str, on_show.AgentAttribute]:
        agents, config = self.tables.agents, self.tables.config
        columns = {
            name: on_show.AgentAttribute(agents[name].to_numpy(np.float64), unit=unit)
            for name, unit in _NUMBERS.items()
        }
        columns["first interest"] = _coded([str(interests or "").split(";")[0] for interests in agents["interests"]])
        declared = config.attributes if isinstance(config, Config) else {}
        for name in agents.columns.intersection(list(declared), sort=False):
            column = agents[name]
            is_number = column.dtype.kind in "iufb"
            columns[name] = on_show.AgentAttribute(column.to_numpy(np.float64)) if is_number else _coded(list(column))
        return columns

    def posts(self) -> on_show.PostColumns:
        every = self.tables.post_columns
        n = int(np.searchsorted(every.round, self._at, side="right"))
        return on_show.PostColumns(every.author[:n], every.kind[:n], every.parent[:n], every.root[:n], every.round[:n])

    def post_text(self, post: int) -> str:
        posts = self.tables.posts
        if posts.kind[post] == "post":
            return plain(posts.says(post), _LONGEST_TEXT)
        origin = posts.origin(int(posts.parent[post]))
        quoted = str(posts.kind[post]), self.agent_name(int(posts.author[origin])), posts.says(origin)
        return plain(on_show.with_quote(posts.words(post), *quoted), _LONGEST_TEXT)

    def agent_name(self, row: int) -> str:
        return plain(self.tables.names[row], 120)

    def find_agent(self, text: str) -> int:
        return self.tables.find_row(text.strip())

    def agent(self, row: int) -> on_show.AgentOnShow:
        moves = tuple(self._moves(row))
        note = "" if self.tables.impressions is not None else "What it read was not recorded."
        return on_show.AgentOnShow(
            row=row,
            name=self.agent_name(row),
            agent_id=plain(str(self.tables.agents["id"].iloc[row]), 120),
            profile=tuple(self._profile(row)),
            state=next((move.target for move in reversed(moves) if move.trigger != "round_ends"), AgentState.IDLE),
            feed=tuple(self._read(row)),
            feed_note=note or "What it read, in that order; what else its feed held, the reasons below tell.",
            moves=moves,
            why=self.tables.told.get((row, self._at)) or tuple(on_show.moves_lines(moves, self.post_text)),
            why_note=self._why_note(row, moves),
            ask=self._ask(row, moves),
        )

    def _why_note(self, row: int, moves: Sequence[on_show.AgentMove]) -> str:
        if self._at < 0:
            return "Nothing has happened yet."
        if not self._known[row]:
            return "It is not on the platform in this round, or its moves were not recorded."
        if not moves:
            return f"It did not come online in round {self._at}."
        tables, key = self.tables, (row, self._at)
        return tables.telling.get(key) or tables.untold.get(key, "" if key in tables.told else _HOW_TOLD)

    def _ask(self, row: int, moves: Sequence[on_show.AgentMove]) -> str:
        tables, key = self.tables, (row, self._at)
        if not moves or key in tables.told or key in tables.telling:
            return ""
        return f"Why? Repeat the run to round {self._at}{' once more' if key in tables.untold else ''}"

    def explain(self, row: int, on_round: Callable[[int], None] | None = None) -> tuple[str, ...]:
        """Return what an agent did in the round and why, as lines.

        No table holds the values of guards and the odds of answers, so the run is replayed from its ledger up to the
        round, without an LLM. This takes as long as those rounds.

        Raises:
            PrismError: If the run cannot be replayed, or its folder is not trusted enough.
        """
        return tuple(report_lines(why(self.tables.run_dir, str(row), max(self._at, 0), on_round=on_round)))

    def _profile(self, row: int) -> Iterator[tuple[str, str]]:
        tables = self.tables
        yield "interests", plain(", ".join(tables.interests(row)), 300)
        yield "character", plain(tables.character(row), 300)
        follows = self.follows()
        yield "followers", f"{int(follows.followers[row]):,}"
        mine = self.posts().author == row
        for code, kind in enumerate(POST_KINDS):
            count = int((mine & (self.posts().kind == code)).sum())
            yield {"post": "posts", "reply": "replies", "reshare": "reshares"}.get(kind, kind), f"{count} so far"
        agent = tables.agents.iloc[row]
        yield "comes online", f"with probability {agent['activity']:.3g} a round"
        yield "engages", f"from a utility of {agent['engagement_threshold']:.3g}"

    def _moves(self, row: int) -> Iterator[on_show.AgentMove]:
        if self.tables.transitions is None:
            return
        rows = _of_agent(self.tables.transitions.of(self._at), row)
        for place in np.argsort(rows["tick"], kind="stable"):
            source, target = (STATES[rows[name][place]] for name in ("from_state", "to_state"))
            trigger = plain(str(rows["trigger"][place]), 80)
            tick, post, is_open = int(rows["tick"][place]), int(rows["post"][place]), bool(rows["open"][place])
            yield on_show.AgentMove(tick, trigger, source, target, post, is_open)

    def _read(self, row: int) -> Iterator[on_show.FeedPost]:
        """Yield the posts that an agent read in the round, in the order of reading."""
        if self.tables.impressions is None:
            return
        read = _of_agent(self.tables.impressions.of(self._at), row)
        done = self._done(row)
        for place, post in enumerate(read["post"][np.argsort(read["tick"], kind="stable")].tolist(), start=1):
            author = self.agent_name(int(self.tables.posts.author[post]))
            kind = str(self.tables.posts.kind[post])
            acts = ", ".join(done.get(post, ()))
            yield on_show.FeedPost(place, post, author, self.post_text(post), kind, was_read=True, did=acts)

    def _done(self, row: int) -> dict[int, list[str]]:
        if self.tables.engagements is None:
            return {}
        done: dict[int, list[str]] = {}
        rows = _of_agent(self.tables.engagements.of(self._at), row)
        for post, action in zip(rows["post"].tolist(), rows["action"].tolist(), strict=True):
            if action in ACTIONS:
                done.setdefault(post, []).append(action)
        return done

    def oracle(self) -> on_show.OracleOnShow:
        columns, asked = self.round_columns(), self.tables.asked
        n_open, n_fallback = (int(columns[name].sum()) for name in ("open", "fallback"))
        label = plain(self.tables.run.manifest.decided_by, 200)
        opened = on_show.Spent("open choices", n_open)
        if isinstance(asked, str):
            notes = (f"Who answered is not known: {asked}.",)
            return on_show.OracleOnShow(label, None, (opened, on_show.Spent("fallbacks", n_fallback)), notes=notes)
        asked = asked[asked["round"] <= self._at]
        sources = _counts(asked["source"])
        if by_rule := max(n_open - sum(sources.values()), 0):
            sources["rule"] = by_rule
        spent = [opened, on_show.Spent("fallbacks", n_fallback)]
        if tokens := int(asked["tokens"].sum()):
            spent += [on_show.Spent("calls of the LLM", sources.get("llm", 0)), on_show.Spent("tokens", tokens)]
        return on_show.OracleOnShow(label, sources, spent, _counts(asked.loc[asked["reason"] != "", "reason"]))


def _of_agent(rows: Mapping[str, npt.NDArray[Any]], row: int) -> dict[str, npt.NDArray[Any]]:
    is_agent = rows["agent"] == row
    return {name: column[is_agent] for name, column in rows.items()}


def _coded(cells: Sequence[object]) -> on_show.AgentAttribute:
    """Return a column of strings as an attribute, names in alphabetical order; blank means unknown."""
    texts = ["" if cell is None or cell != cell else plain(str(cell), 80) for cell in cells]
    names = sorted({text for text in texts if text})
    codes = {name: float(code) for code, name in enumerate(names)}
    return on_show.AgentAttribute(np.array([codes.get(text, np.nan) for text in texts]), tuple(names))


def _counts(cells: pd.Series) -> dict[str, int]:
    return {plain(str(name), 120): int(n) for name, n in cells.value_counts().sort_index().items()}


def open_recorded(run_dir: Any) -> RecordedSource:
    """Return a finished run at its last round.

    Raises:
        DataError: If there is no such run, it simulates nations, or it is damaged.
    """
    tables = PlaybackTables(run_dir)
    tables.check()
    return RecordedSource(tables, tables.rounds - 1)
