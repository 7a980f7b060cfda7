"""The tables of a finished run, read once and sorted by round."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.arrays import Floats, Mask, Rows
from prism_mesa.domain import POST_KINDS, SHARE, STATES, states_in
from prism_mesa.errors import DataError, PrismError, format_count, format_error
from prism_mesa.llm.ledger import Ledger
from prism_mesa.runs.archive import RunRecords
from prism_mesa.runs.config import Config
from prism_mesa.runs.recorded import recorded_config
from prism_mesa.runs.run_files import LEDGER, has_table, read_column_names, read_table
from prism_mesa.social.behavior import build_chart, configure_chart
from prism_mesa.social.params.accounts import ACCOUNT
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.tables import ROUNDS
from prism_mesa.social.world.accounts import own_charts
from prism_mesa.social.world.build import make_network
from prism_mesa.statechart import Statechart
from prism_mesa.streams import Streams
from prism_mesa.view.page.source import Follows, PostColumns

_MAX_CACHED_NETWORKS: Final = 2
_AGENT_COLUMNS: Final = ("id", "interests", "activity", "post_rate", "engagement_threshold", "followers", "followees")
_TRANSITION_COLUMNS: Final = ("round", "tick", "agent", "post", "from_state", "to_state", "trigger", "open")


@dataclass(frozen=True)
class RoundRows:
    """Rows of a table, sorted by round; rows ``starts[r]`` to ``starts[r + 1]`` belong to round r."""

    starts: Rows
    rows: pd.DataFrame

    def in_round(self, round_: int) -> pd.DataFrame:
        """Return the rows of one round; no rows before the first."""
        return self.rows.iloc[self.starts[round_] : self.starts[round_ + 1]] if round_ >= 0 else self.rows.iloc[:0]


def read_full_table(run_dir: str | Path, table: str, required: Sequence[str]) -> pd.DataFrame:
    """Return a table with all its columns; raise a DataError if it cannot be read or lacks a required column."""
    return read_table(run_dir, table, list(dict.fromkeys((*required, *read_column_names(run_dir, table)))))


class PlaybackTables(RunRecords):
    """The tables of a run for its playback; see `RunRecords`.

    If the run's folder is trusted (see `runs.trust`), the network and the chart are made from its configuration.

    Attributes:
        states: The states of agents, by code.
        transitions: States are codes. This and the next two tables are None if they were not recorded.
        churn: None if agents did not join or leave.
        explanations: Explanations that the user asked for, by the agent's row and the round.
        explanation_notes: The progress of an explanation, or why there is none.
        explaining: The row and the round that are being explained, or None.

    Raises:
        DataError: If a table is damaged.
    """

    def __init__(self, run_dir: str | Path) -> None:
        super().__init__(run_dir)
        self._charts = {"": build_chart()}  # PRISM's chart, unless the configuration can be used
        if not isinstance(self.config, str):
            chart = configure_chart(self.config.statechart, asks_action=self.config.reasoner.asks_action)
            self._charts = {"": chart, **own_charts(self.config)}
        self.round_columns = self._read_rounds()
        self.agents = read_full_table(run_dir, "agents", _AGENT_COLUMNS)
        self.transitions = self._read_by_round("transitions", _TRANSITION_COLUMNS)
        self.impressions = self._read_by_round("impressions", ("round", "tick", "agent", "post"))
        self.engagements = self._read_by_round("engagements", ("round", "agent", "post", "action"))
        has_churn = has_table(run_dir, "churn")
        self.churn = read_table(run_dir, "churn", ["round", "agent", "event"]) if has_churn else None
        self._events = self._read_events()
        self._networks: dict[tuple[int, int], Follows] = {}
        self.explanations: dict[tuple[int, int], tuple[str, ...]] = {}
        self.explanation_notes: dict[tuple[int, int], str] = {}
        self.explaining: tuple[int, int] | None = None

    @cached_property
    def config(self) -> Config | str:
        """The run's configuration, or the reason why it is not used."""
        try:
            return recorded_config(self.run_dir)
        except PrismError as error:
            return format_error(error)

    def chart(self, row: int) -> Statechart:
        """Return the chart of an agent."""
        account = self.agents[ACCOUNT][row] if ACCOUNT in self.agents else ""
        return self._charts.get(account, self._charts[""])

    def _read_rounds(self) -> dict[str, Floats]:
        available, required = read_column_names(self.run_dir, "rounds"), ("round", "open", "fallback")
        names = [column.name for column in ROUNDS.columns if column.name in (*available, *required)]
        self.states = states_in(available)
        names += [SHARE + state.value for state in self.states[len(STATES) :]]
        rows = read_table(self.run_dir, "rounds", names)
        if len(rows) < self.rounds:
            counts = f"{len(rows)} rows of {format_count(self.rounds, 'completed round')}"
            raise DataError(f"{self.run_dir}: table 'rounds' is damaged: {counts}")
        return {name: rows[name].to_numpy(np.float64)[: self.rounds] for name in names}

    def _read_by_round(self, table: str, columns: Sequence[str]) -> RoundRows | None:
        if not has_table(self.run_dir, table):
            return None
        rows = read_table(self.run_dir, table, columns)
        for column, limit in (("agent", self.n_agents), ("post", len(self.posts))):
            values = rows[column].to_numpy()
            self._check_rows(table, column, np.maximum(values, 0) if column == "post" else values, limit)
        rows = rows[rows["round"] < self.rounds].sort_values("round", kind="stable")
        for name in rows.columns.intersection(["from_state", "to_state"]):
            codes = {state.value: state.code for state in self.states}
            rows[name] = rows[name].astype(object).map(codes).fillna(0).astype(np.uint8)
        return RoundRows(np.searchsorted(rows["round"], np.arange(self.rounds + 1)), rows)

    @cached_property
    def post_columns(self) -> PostColumns:
        """All posts, in the order in which they were written."""
        posts, ids = self.posts, np.arange(len(self.posts))
        kinds = {kind: code for code, kind in enumerate(POST_KINDS)}
        kind = np.array([kinds.get(name, 0) for name in posts.kind], np.uint8)
        root = ids.copy()
        for post in np.flatnonzero(posts.kind == "reshare"):  # parents come first
            root[post] = root[posts.parent[post]]
        return PostColumns(posts.author, kind, posts.parent, root, posts.written)

    @cached_property
    def asked_rows(self) -> pd.DataFrame | str:
        """The rows of the ledger's table `asked` (choices meant for an LLM), or the reason why they are missing.

        Columns are `round`, `source`, `reason` (why the LLM did not answer) and `tokens`.
        """
        if not (self.run_dir / LEDGER).is_file():
            return "the run's folder has no ledger of answers"
        try:
            with Ledger(self.run_dir / LEDGER, read_only=True) as ledger:
                rows = ledger.asked()
                answers = ledger.answers() if rows else ()
                tokens = {answer.key: answer.prompt_tokens + answer.completion_tokens for answer in answers}
        except PrismError as error:
            return format_error(error)
        cells = [(row.round, row.source, row.reason, (row.source == "llm") * tokens.get(row.key, 0)) for row in rows]
        return pd.DataFrame(cells, columns=["round", "source", "reason", "tokens"])

    @cached_property
    def first_network(self) -> tuple[FollowNetwork | None, str]:
        """The network before the first round (None if unknown), and a note."""
        config = self.config
        if isinstance(config, str):
            return None, f"who follows whom is not in the tables, and the configuration is not used: {config}"
        try:
            counts = f"the tables have {format_count(self.n_agents, 'agent')}, the configuration"
            if config.network.edges is None and config.agents.n > self.n_agents:  # check before making a large network
                raise DataError(f"{counts} {config.agents.n:,}")
            network = make_network(config, Streams(config.seed))
            n_new = self.n_agents - network.n_agents
            if n_new < 0:
                raise DataError(f"{counts} {network.n_agents:,}")
        except (PrismError, OSError, MemoryError) as error:
            return None, f"who follows whom is unknown: {format_error(error)}"
        if not n_new:
            return network, ""
        indptr, close = (np.append(ptr, np.full(n_new, ptr[-1])) for ptr in (network.indptr, network.close_indptr))
        note = f"{counts} {network.n_agents:,}: the first follows of the other agents are unknown"
        return replace(network, indptr=indptr, close_indptr=close), note

    def follows(self, round_: int) -> Follows:
        """Return who follows whom in a round; the same object as before unless follows changed."""
        n_events = int(np.searchsorted(self._events["round"], round_, side="left")) if len(self._events["round"]) else 0
        has_joined = self._joined_round <= round_
        key = n_events, int(has_joined.sum())
        if key not in self._networks:
            while len(self._networks) >= _MAX_CACHED_NETWORKS:
                self._networks.pop(next(iter(self._networks)))
            self._networks[key] = self._follows_after(n_events, has_joined)
        return self._networks[key]

    def _follows_after(self, n_events: int, has_joined: Mask) -> Follows:
        """Return the follows between agents that have joined, after the first `n_events` events."""
        network = self.first_network[0]
        if network is None:
            return Follows(np.zeros(0, np.int32), np.zeros(0, np.int32), self.agents["followers"].to_numpy())
        network = network if has_joined.all() else network.subnetwork(has_joined)
        if n_events:
            keys, begins = (self._events[name][:n_events][::-1] for name in ("key", "begins"))
            keys, last = np.unique(keys, return_index=True)
            begins, exists = begins[last], network.contains(keys >> 32, keys & 0xFFFFFFFF)
            network = network.with_changes(keys[begins & ~exists], keys[~begins & exists])
        src, dst = network.edges()
        return Follows(src.copy(), dst, network.n_followers)

    def _read_events(self) -> dict[str, npt.NDArray[Any]]:
        """Return events of follows in order: round, key ``agent << 32 | followed``, and whether the follow begins."""
        if not has_table(self.run_dir, "follows"):
            return {"round": np.zeros(0, np.int64), "key": np.zeros(0, np.int64), "begins": np.zeros(0, np.bool_)}
        rows = read_table(self.run_dir, "follows", ["round", "agent", "other", "event"])
        for column in ("agent", "other"):
            self._check_rows("follows", column, rows[column].to_numpy(), self.n_agents)
        event = rows["event"].astype(object).to_numpy()
        agent, other = (rows[name].to_numpy(np.int64) for name in ("agent", "other"))
        index = np.flatnonzero(np.isin(event, ("follow", "unfollow", "block")))
        blocks = np.flatnonzero(event == "block")  # a block ends follows in both directions
        key = np.concatenate([(agent << 32 | other)[index], (other << 32 | agent)[blocks]])
        index = np.concatenate([index, blocks])
        round_ = rows["round"].to_numpy()[index]
        order = np.lexsort((index, round_))
        return {"round": round_[order], "key": key[order], "begins": (event == "follow")[index][order]}

    @cached_property
    def _joined_round(self) -> Rows:
        """The round in which each agent joined; -1 for agents that were present from the start."""
        first = np.where(self.users, -1, self.rounds)
        if self.churn is not None:
            joins = self.churn[self.churn["event"] == "join"]
            first[joins["agent"].to_numpy()] = joins["round"].to_numpy()
        return first
