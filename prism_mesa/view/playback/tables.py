"""The tables of a finished run, read when first needed, as arrays in which each round is a slice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.domain import POST_KINDS
from prism_mesa.errors import DataError, PrismError, counted, format_error
from prism_mesa.llm.ledger import Ledger
from prism_mesa.runs.archive import RunRecords
from prism_mesa.runs.config import Config
from prism_mesa.runs.recorded import recorded_config
from prism_mesa.runs.run_files import LEDGER, has_table, read_column_names, read_table
from prism_mesa.social.behavior import build_chart, chosen_chart
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.tables import ROUNDS
from prism_mesa.social.world.build import make_network
from prism_mesa.statechart import STATES, Statechart
from prism_mesa.streams import Streams
from prism_mesa.view.page.source import Floats, Follows, Ints, PostColumns

STATE_CODES: Final[Mapping[Any, int]] = {state.value: state.code for state in STATES}
_KEPT_NETWORKS: Final = 2
_OF_AGENTS: Final = ("id", "interests", "activity", "post_rate", "engagement_threshold", "followers", "followees")
_OF_TRANSITIONS: Final = ("round", "tick", "agent", "post", "from_state", "to_state", "trigger", "open")


@dataclass(frozen=True)
class RoundRows:
    """Rows of a table by round: those of round r stand at ``starts[r]`` to ``starts[r + 1]``.

    Attributes:
        columns: Columns by name, all of one length.
    """

    starts: Ints
    columns: Mapping[str, npt.NDArray[Any]]

    def of(self, round_: int) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of one round; they are empty before the first."""
        here = slice(self.starts[round_], self.starts[round_ + 1]) if round_ >= 0 else slice(0)
        return {name: column[here] for name, column in self.columns.items()}


def read_with(run_dir: str | Path, table: str, needed: Sequence[str]) -> pd.DataFrame:
    """Return a table with all its columns.

    Raises:
        DataError: If it cannot be read, or lacks a needed column.
    """
    return read_table(
        run_dir, table, [*needed, *(name for name in read_column_names(run_dir, table) if name not in needed)]
    )


class PlaybackTables(RunRecords):
    """The tables of a run for its playback; see `RunRecords`.

    The network and the chart are made from the configuration if the run's folder is trusted (see `runs.trust`). No
    round is computed again.

    Attributes:
        told: Explanations that were asked for, by the agent's row and the round.
        telling: Progress of explanations in the making.
        untold: Why an explanation could not be made.
    """

    def __init__(self, run_dir: str | Path) -> None:
        super().__init__(run_dir)
        self._networks: dict[tuple[int, int], Follows] = {}
        self.told: dict[tuple[int, int], tuple[str, ...]] = {}
        self.telling: dict[tuple[int, int], str] = {}
        self.untold: dict[tuple[int, int], str] = {}

    def check(self) -> None:
        """Read everything that the page shows, so that damage is reported before anything is drawn.

        Raises:
            DataError: If a table is damaged.
        """
        columns = self.round_columns["round"]
        if len(columns) < self.rounds:
            counts = f"{len(columns)} rows of {counted(self.rounds, 'completed round')}"
            raise DataError(f"{self.run_dir}: table 'rounds' is damaged: {counts}")
        self.agents, self.users, self.post_columns  # noqa: B018 - each is read once, and kept
        self.transitions, self.impressions, self.engagements, self.comings, self._events  # noqa: B018

    @cached_property
    def config(self) -> Config | str:
        """The run's configuration, or the reason why it is not used."""
        try:
            return recorded_config(self.run_dir)
        except PrismError as error:
            return format_error(error)

    @cached_property
    def chart(self) -> Statechart:
        """The chart of the run, or PRISM's if it is unknown."""
        config = self.config
        if isinstance(config, str):
            return build_chart()
        return chosen_chart(config.statechart, asks_action=config.reasoner.asks_action)

    @cached_property
    def agents(self) -> pd.DataFrame:
        """The table `agents`."""
        return read_with(self.run_dir, "agents", _OF_AGENTS)

    @cached_property
    def round_columns(self) -> dict[str, Floats]:
        """The columns of the table `rounds`."""
        have, needed = read_column_names(self.run_dir, "rounds"), ("round", "open", "fallback")
        names = [column.name for column in ROUNDS.columns if column.name in (*have, *needed)]
        rows = read_table(self.run_dir, "rounds", names)
        return {name: rows[name].to_numpy(np.float64)[: self.rounds] for name in names}

    @cached_property
    def transitions(self) -> RoundRows | None:
        """The table `transitions`, states as codes. This and the next two tables are None if they were not recorded."""
        return self._by_round("transitions", _OF_TRANSITIONS)

    @cached_property
    def impressions(self) -> RoundRows | None:
        """The table `impressions`."""
        return self._by_round("impressions", ("round", "tick", "agent", "post"))

    @cached_property
    def engagements(self) -> RoundRows | None:
        """The table `engagements`."""
        return self._by_round("engagements", ("round", "agent", "post", "action"))

    def _by_round(self, table: str, columns: Sequence[str]) -> RoundRows | None:
        if not has_table(self.run_dir, table):
            return None
        rows = read_table(self.run_dir, table, columns)
        for column, most in (("agent", self.n_agents), ("post", len(self.posts))):
            values = rows[column].to_numpy()
            self._check_rows(table, column, np.maximum(values, 0) if column == "post" else values, most)
        rows = rows[rows["round"] < self.rounds].sort_values("round", kind="stable")
        made: dict[str, npt.NDArray[Any]] = {}
        for name in rows:
            if name in ("from_state", "to_state"):
                made[name] = rows[name].astype(object).map(STATE_CODES).fillna(0).to_numpy(np.uint8)
            elif rows[name].dtype == "category":
                made[name] = np.array(rows[name].cat.categories.astype(str))[rows[name].cat.codes]
            else:
                made[name] = rows[name].to_numpy()
        starts = np.searchsorted(made["round"], np.arange(self.rounds + 1))
        return RoundRows(starts, made)

    @cached_property
    def post_columns(self) -> PostColumns:
        """All posts, numbered in the order in which they were written."""
        posts, ids = self.posts, np.arange(len(self.posts))
        kinds = {kind: code for code, kind in enumerate(POST_KINDS)}
        kind = np.array([kinds.get(name, 0) for name in posts.kind], np.uint8)
        root = ids.copy()
        for post in np.flatnonzero(posts.kind == "reshare"):  # parents come first
            root[post] = root[posts.parent[post]]
        return PostColumns(posts.author, kind, posts.parent, root, posts.written)

    @cached_property
    def asked(self) -> pd.DataFrame | str:
        """The rows of the ledger's table `asked` (who answered the choices meant for an LLM), or why there are none.

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
    def _drawn(self) -> tuple[FollowNetwork | None, str]:
        """The network before the first round, or None, with a note."""
        config = self.config
        if isinstance(config, str):
            return None, f"who follows whom is not in the tables, and is not made again: {config}"
        try:
            return self._made_network(config)
        except (PrismError, OSError, MemoryError) as error:
            return None, f"who follows whom is not known: {format_error(error)}"

    def _made_network(self, config: Config) -> tuple[FollowNetwork, str]:
        """Return the network of a configuration, with a note.

        Raises:
            PrismError: If there is none, or it has more agents than the tables.
        """
        counts = f"the tables have {counted(self.n_agents, 'agent')}, the configuration"
        if config.network.edges is None and config.agents.n > self.n_agents:  # checked before making a large network
            raise DataError(f"{counts} {config.agents.n:,}")
        network = make_network(config, Streams(config.seed))[0]
        more = self.n_agents - network.n_agents
        if more < 0:
            raise DataError(f"{counts} {network.n_agents:,}")
        if not more:
            return network, ""
        indptr, close = (np.append(ends, np.full(more, ends[-1])) for ends in (network.indptr, network.close_indptr))
        note = f"{counts} {network.n_agents:,}: with whom the others began is not in the tables"
        return replace(network, indptr=indptr, close_indptr=close), note

    @property
    def network_note(self) -> str:
        """A note on the network; may be empty."""
        return self._drawn[1]

    def follows(self, round_: int) -> Follows:
        """Return who follows whom in a round; the same object until follows change."""
        n_events = int(np.searchsorted(self._events["round"], round_, side="left")) if len(self._events["round"]) else 0
        here = self._first_round <= round_
        key = n_events, int(here.sum())
        if key not in self._networks:
            while len(self._networks) >= _KEPT_NETWORKS:
                self._networks.pop(next(iter(self._networks)))
            self._networks[key] = self._follows_after(n_events, here)
        return self._networks[key]

    def _follows_after(self, n_events: int, here: npt.NDArray[np.bool_]) -> Follows:
        """Return the drawn follows between agents who have joined, with the first events."""
        network = self._drawn[0]
        if network is None:
            return Follows(np.zeros(0, np.int32), np.zeros(0, np.int32), self.agents["followers"].to_numpy())
        network = network if here.all() else network.among(here)
        if n_events:
            keys, begins = (self._events[name][:n_events][::-1] for name in ("key", "begins"))
            keys, last = np.unique(keys, return_index=True)
            begins, is_there = begins[last], network.holds(keys >> 32, keys & 0xFFFFFFFF)
            network = network.changed(keys[begins & ~is_there], keys[~begins & is_there])
        src, dst = network.edges()
        return Follows(src.copy(), dst, network.n_followers)

    @cached_property
    def _events(self) -> dict[str, npt.NDArray[Any]]:
        """Events that began or ended follows, in order: the round, ``agent << 32 | followed``, and whether it began."""
        if not has_table(self.run_dir, "follows"):
            return {"round": np.zeros(0, np.int64), "key": np.zeros(0, np.int64), "begins": np.zeros(0, np.bool_)}
        rows = read_table(self.run_dir, "follows", ["round", "agent", "other", "event"])
        for column in ("agent", "other"):
            self._check_rows("follows", column, rows[column].to_numpy(), self.n_agents)
        event = rows["event"].astype(object).to_numpy()
        agent, other = (rows[name].to_numpy(np.int64) for name in ("agent", "other"))
        there = np.isin(event, ("follow", "unfollow", "block"))
        back = event == "block"  # it ends follows both ways
        round_ = np.concatenate([rows["round"].to_numpy()[there], rows["round"].to_numpy()[back]])
        key = np.concatenate([(agent << 32 | other)[there], (other << 32 | agent)[back]])
        begins = np.concatenate([(event == "follow")[there], np.zeros(back.sum(), np.bool_)])
        place = np.concatenate([np.flatnonzero(there), np.flatnonzero(back)])
        order = np.lexsort((place, round_))
        return {"round": round_[order], "key": key[order], "begins": begins[order]}

    @cached_property
    def comings(self) -> "pd.DataFrame | None":
        """The table `churn`; None if no agent joined or left."""
        if not has_table(self.run_dir, "churn"):
            return None
        return read_table(self.run_dir, "churn", ["round", "agent", "event"])

    @cached_property
    def _first_round(self) -> Ints:
        """The first round in which each agent follows and is followed: -1, or when a waiting agent joined."""
        first = np.where(self.users, -1, self.rounds)
        if self.comings is not None:
            joins = self.comings[self.comings["event"] == "join"]
            first[joins["agent"].to_numpy()] = joins["round"].to_numpy()
        return first
