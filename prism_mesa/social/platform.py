"""`Platform`: everything that a round reads and writes, without Mesa or agent objects.

`start_platform` makes a platform, and `round.run_round` runs a round. A copy (`copy.deepcopy`) is a branch, which
continues like the original.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.arrays import Floats, Int32, Ints, Rows, UInt8
from prism_mesa.deliberation import Notebook
from prism_mesa.domain import AgentState, Post
from prism_mesa.errors import DataError, format_count, one_line
from prism_mesa.kernels.utility import NO_MARKS, Tastes, TasteTables, utilities
from prism_mesa.reasoner import AnyReasoner, RuleReasoner
from prism_mesa.snapshot import Plain, Restorable, restore_object, take_snapshot
from prism_mesa.social.params import SocialParams
from prism_mesa.social.round.feeds import Depths
from prism_mesa.social.round.walk_tables import WalkBufferPool, WalkTables
from prism_mesa.social.state.act_state import ActState
from prism_mesa.social.state.events import Clock, Engagements, Events, PendingAnswers
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.social.state.feeds import Feeds
from prism_mesa.social.state.groups import GroupCounts, Groups, assign_groups
from prism_mesa.social.state.odds import Homophily, Odds
from prism_mesa.social.state.opinions import Opinions
from prism_mesa.social.state.outcomes import Outcomes
from prism_mesa.social.state.population import IDENTITY_COLUMNS, NO_POST, History
from prism_mesa.social.state.posts import Posts, similarities, to_relevance
from prism_mesa.social.state.relations import Relations
from prism_mesa.social.state.sampling import RecordedAgents
from prism_mesa.social.state.session_worth import SessionWorth
from prism_mesa.social.state.topics import UNIT_LENGTH
from prism_mesa.social.world.accounts import account_kinds, read_conditions
from prism_mesa.social.world.build import KEPT_COLUMNS, StartingWorld, world_to_keep
from prism_mesa.social.world.llms import assign_llms, make_archetypes
from prism_mesa.statechart import Statechart
from prism_mesa.streams import Streams

if TYPE_CHECKING:
    from prism_mesa.llm import LLMClient

type Writer = LLMClient | None
"""The LLM that writes texts, if any."""
_POSTS_PER_AGENT: Final = 4
"""Posts per agent for which memory is reserved at the start."""


class RoundRecorder(Protocol):
    """Receives a platform's records.

    A recorder may have a method ``wants(table) -> bool``. If it returns False for `rounds`, `ticks`, `transitions`,
    `impressions`, `engagements`, `follows` or `churn`, the platform skips that table.
    """

    def write(self, table: str, columns: Mapping[str, npt.NDArray[Any] | pd.Categorical]) -> None:
        """Append rows to a table of `social.tables`, with its columns in order."""


class AgentObjects(Protocol):
    """The agents as objects, for guards and actions in Python and for agents with scripts."""

    @property
    def has_scripts(self) -> bool:
        """Whether any agent has a script."""

    def agent(self, row: int) -> Any:
        """Return the agent of a row."""

    def copy_for(self, platform: Any) -> "AgentObjects":
        """Return agent objects for a copy of the platform."""

    def update_presence(self, rows: Sequence[int]) -> None:
        """Update the objects of agents that have joined or left."""

    def step_scripts(self) -> None:
        """Run a tick of the agents with scripts."""


class Platform(Restorable):
    """The state of a simulated platform.

    Attributes:
        params: The parameters of this round; `configured` holds the parameters of the run.
        charts: The chart of the agents, then the chart of each kind of account (`accounts`).
        kind: The index in `charts` of the agents that act now; `chart` and `tables` are theirs.
        writer, recorder: The LLM that writes texts, and the recorder; each may be None.
        agent_objects: The agents as objects; `population` holds them as columns.
        network: The current follows. `first_network` has the follows at the start; `drawn_network` also includes
            agents that wait to join.
        first_agents: Checksums of the agents' columns at the start.
        attributes, topics: The declared attributes, and the topics of texts.
        schedule: Posts from a file and seeded posts, with their rounds; `seeded` describes the seeded posts.
        archetypes: Clusters of agents, if the LLM answers for clusters.
        feeds, posts, history: The settings of feeds, all posts so far, and the last transitions of agents.
        exposure: The roots that each agent has read, except those that `depths` covers (see `roots_read`). With
            `feed.repeats`, the roots that the agent has engaged with.
        depths: How far each agent has read into each round, if chronological feeds need this.
        copies: With `feed.repeats`, the posts that each agent has read.
        read_roots: With `feed.repeats`, the roots of these posts, one entry per impression.
        engagements, relations: Likes and reshares so far; mutes, blocks and reports so far.
        act_state: The agents that interventions treat, and the posts and accounts that they have met.
        session_worth: What the last sessions of agents were worth to them, with `agents.returns`.
        marks: The labels and frictions of this round, until its commit.
        group_counts: Impressions and engagements by group of agents, for bridging feeds.
        opinions: Stances before the first round, and your own rule of influence.
        liked: The last likes by tools of each agent: row -> (round, tick, post).
        notebook, outcomes, recorded: Notes of agents, running totals, and the recorded agents.
        time_of_day: Converts round and tick to time.
        round: The current or last round, from 0; -1 before the first round.
        tick: 0 opens the round; ``params.ticks_per_round + 1`` closes it.
        first_of_round: Id of the first post that this round added.
        pending: Agents that wait for an LLM's answer.
        leaving: Rows of agents removed since the last round opened, in order.
        counts: Counts of this round by name; `totals` holds the counts of the run.
        sources: Number of open choices by the source of the answer.
        written: Number of texts requested from the LLM, by outcome (`written`, `budget`, `failed`).
        kind_counts: Number of agents of each kind in each state at the end of each tick of this round, shape (kinds,
            ticks, states); `tick_counts` are their sums.
        agent_ticks: Sums of `tick_counts` over the run, shape (states,).
        row_by_row_guards: Guards that were evaluated agent by agent.
    """

    saved_fields = tuple(
        "population posts history exposure depths copies read_roots engagements group_counts relations act_state "
        "session_worth opinions liked notebook outcomes recorded round tick first_of_round events pending "
        "leaving counts totals sources written kind_counts agent_ticks row_by_row_guards notes".split()
    )
    agent_objects: AgentObjects

    def __init__(
        self,
        params: SocialParams,
        streams: Streams,
        charts: Sequence[Statechart],
        reasoner: AnyReasoner,
        world: StartingWorld,
        writer: Writer = None,
        recorder: RoundRecorder | None = None,
    ) -> None:
        n, self.round, self.kind = len(world.population), -1, 0
        self.params, self.configured, self.streams = params, params, streams
        self.reasoner, self.writer, self.recorder = reasoner, writer, recorder
        self.walk_buffers, self.depths = WalkBufferPool(), Depths()
        self.attributes, self.population, self.topics = world.attributes, world.population, world.topics
        kinds = account_kinds(params) + 1
        self._first_account, self._account_kinds = n - len(kinds), np.concatenate([[0], kinds, [0]])
        self.set_charts(charts)
        has_joined = world.population.has_joined
        self.drawn_network = world.network
        self.network = self.first_network = world.network if has_joined.all() else world.network.subnetwork(has_joined)
        self.first_agents = world.population.checksums()
        self.schedule, self.seeded, self.notes = world.schedule, world.seeded, world.notes
        self.population.state[:] = self.initial_codes(np.arange(n))
        self.posts = Posts(world.corpus, world.topics, params.feed.velocity_window, room=_POSTS_PER_AGENT * n)
        self.posts.reserve(world.schedule.text_id)
        self.attributes.attach_to(self.posts, self.population)
        self.opinions = Opinions(params.opinions, world.attributes.schema)
        self._apply_settings()
        self.group_counts = GroupCounts(self.feeds.n_groups)
        self.history = History(n, params.statechart.max_history_depth)
        self.exposure, self.outcomes = Exposure(n), Outcomes(n)
        self.copies, self.read_roots = (Exposure(n if params.feed.repeats else 0) for _ in range(2))
        self.engagements, self.relations, self.act_state = Engagements(), Relations(), ActState()
        self.marks, self.session_worth = NO_MARKS, SessionWorth()
        self.liked: dict[int, deque[tuple[int, int, int]]] = {}
        self.notebook = Notebook(params.deliberation.notes)
        self.recorded = RecordedAgents(params.records, n, streams)
        n = reasoner.n_archetypes
        self.archetypes = make_archetypes(self.population, self.llms, n, self.topics) if n else None
        round_length = timedelta(minutes=params.clock.round_minutes)
        self.time_of_day = Clock(params.clock.start.astimezone(UTC), round_length, params.ticks_per_round)
        self.tick, self.first_of_round = 0, 0
        self.events, self.pending, self.leaving = Events(), PendingAnswers(), dict[int, None]()
        self.counts, self.totals, self.sources, self.written = (Counter[str]() for _ in range(4))
        self.kind_counts = np.zeros((len(charts), params.ticks_per_round, len(self.states)), np.int64)
        self.agent_ticks = np.zeros(len(self.states), np.int64)
        self.row_by_row_guards: set[str] = set()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a branch, without a recorder and with new agent objects."""
        branch = type(self).__new__(type(self))
        memo[id(self)] = branch
        state = vars(self) | {"recorder": None}
        vars(branch).update((name, deepcopy(value, memo)) for name, value in state.items() if name != "agent_objects")
        branch.agent_objects = memo.get(id(self.agent_objects)) or self.agent_objects.copy_for(branch)
        return branch

    def snapshot(self) -> dict[str, Plain]:
        """Return what the rounds so far have changed, and the usage of LLMs; call this between two rounds."""
        state, unchanged = super().snapshot(), self._unchanged_columns()
        state["population"] = {key: column for key, column in state["population"].items() if key not in unchanged}
        return state | {
            "first_network": self.drawn_network.checksum,
            "first_agents": self.first_agents,
            "network": self.network.snapshot() if self.network is not self.first_network else None,
            "charts": [chart.snapshot() for chart in self.charts],
            "sizes": [*self.tick_counts.shape, self.history.depth],
            "asked": [take_snapshot(part) for part in self._llm_users()],
        }

    def world_to_keep(self) -> dict[str, Plain] | None:
        """Return the drawn world if drawing it is slow and no agent has changed since."""
        is_unchanged = self._unchanged_columns() >= {*KEPT_COLUMNS}
        return world_to_keep(self.params, self.drawn_network, self.population) if is_unchanged else None

    def _unchanged_columns(self) -> set[str]:
        checksums = self.population.checksums()
        return {name for name, checksum in self.first_agents.items() if checksums[name] == checksum}

    def restore(self, data: Mapping[str, Plain]) -> None:
        """Restore a snapshot into a platform with the same parameters, before its first round.

        Raises:
            DataError: If the snapshot belongs to another platform.
        """
        if data["first_network"] != self.drawn_network.checksum:
            raise DataError("the network differs from the run's: has network.edges changed since?")
        if data["first_agents"] != self.first_agents:
            raise DataError("the agents differ from the run's: has agents.profiles changed since?")
        if data["sizes"] != [*self.tick_counts.shape, self.history.depth]:
            raise DataError("ticks_per_round or statechart.max_history_depth differs from the run's")
        if not data["population"].keys() | self._unchanged_columns() >= {*IDENTITY_COLUMNS}:
            raise DataError("the agents differ from the run's: they were changed before its first round")
        notes = self.notes
        super().restore(data)
        self.notes += tuple(note for note in notes if note not in self.notes)  # of settings that begin later
        if data["network"] is not None:
            self.network = replace(self.first_network)
            self.network.restore(data["network"])
        self._apply_settings()
        for chart, state in zip(self.charts, data["charts"], strict=True):
            chart.restore(state)
        for part, state in zip(self._llm_users(), data["asked"], strict=True):
            restore_object(part, state)

    def _llm_users(self) -> tuple[AnyReasoner | Writer, ...]:
        """Return the reasoner and the writer, each replaced by None if it has no state."""
        from prism_mesa.reasoner import DistilledReasoner  # slow to import

        stateless = (NoneType, RuleReasoner, DistilledReasoner)
        return tuple(None if type(part) in stateless else part for part in (self.reasoner, self.writer))

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.status_text}>"

    @property
    def status_text(self) -> str:
        """Number of agents, round, seed and reasoner, for messages."""
        agents = format_count(int(self.population.present.sum()), "agent")
        rounds, label = f"round {self.round + 1} of {self.params.rounds}", self.reasoner.label
        return f"{agents}, {rounds}, seed {self.params.seed}, decided by {label}"

    def set_charts(self, charts: Sequence[Statechart]) -> None:
        """Set the chart of the agents and of each kind of account, and make their tables."""
        triggers = tuple(dict.fromkeys(trigger for chart in charts for trigger in chart.triggers))
        self.charts = tuple(chart if len(charts) == 1 else chart.with_settings(triggers=triggers) for chart in charts)
        conditions = [{}, *(read_conditions(account) for account in self.configured.accounts)]
        pairs = zip(self.charts, conditions, strict=True)
        self.tables_by_kind = tuple(WalkTables(chart, self.attributes.schema, engages) for chart, engages in pairs)

    @property
    def chart(self) -> Statechart:
        """The chart of the agents that act now."""
        return self.charts[self.kind]

    @property
    def states(self) -> tuple[AgentState, ...]:
        """All states of agents, by code; those of the agents' chart include those of accounts."""
        states: tuple[AgentState, ...] = self.charts[0].members
        return states

    @property
    def tables(self) -> WalkTables:
        """The tables of `chart`."""
        return self.tables_by_kind[self.kind]

    @property
    def is_complete(self) -> bool:
        """Whether the walk never needs a chart itself."""
        return all(tables.is_complete for tables in self.tables_by_kind)

    @contextmanager
    def acting(self, kind: int) -> Iterator[None]:
        """Let agents of one kind act within the block."""
        self.kind, before = kind, self.kind
        try:
            yield
        finally:
            self.kind = before

    def kinds(self, rows: Rows) -> Rows:
        """Return the kind of each agent."""
        if len(self.charts) == 1:
            return np.zeros(len(rows), np.int64)
        places = np.clip(rows - self._first_account + 1, 0, len(self._account_kinds) - 1)
        return np.asarray(self._account_kinds[places])

    def chart_of(self, row: int) -> Statechart:
        """Return the chart of an agent."""
        return self.charts[int(self.kinds(np.array([row]))[0])]

    def by_kind(self, rows: Rows) -> Iterator[tuple[int, slice | Rows]]:
        """Yield each kind of agents among `rows`, and their places in `rows`."""
        if len(self.charts) == 1:
            yield 0, slice(None)
            return
        kinds = self.kinds(rows)
        yield from ((kind, np.flatnonzero(kinds == kind)) for kind in np.unique(kinds).tolist())

    def initial_codes(self, rows: Rows) -> Rows:
        """Return the initial state of each agent."""
        return np.array([chart.initial.code for chart in self.charts])[self.kinds(rows)]

    def count_states(self, rows: Rows) -> Ints:
        """Return the number of agents of each kind in each state, shape (kinds, 1, states)."""
        n = len(self.states)
        codes = self.kinds(rows) * n + self.population.state[rows]
        return np.bincount(codes, minlength=len(self.charts) * n).reshape(-1, 1, n)

    @property
    def tick_counts(self) -> Ints:
        """Number of agents in each state at the end of each tick of this round, shape (ticks, states)."""
        return np.asarray(self.kind_counts.sum(axis=0))

    def end_events(self) -> None:
        """Copy uncommitted events, so that the buffers that hold them can be reused or released."""
        walks = self.events
        for events in (walks.impressions, walks.engagements, walks.moves, walks.given_up):
            events[:] = [tuple(map(np.copy, columns)) for columns in events]
        self.walk_buffers.end_round(len(self.population))

    def change_settings(self) -> None:
        """Apply interventions that begin or end with this round."""
        if any(self.round in (act.at, act.until) for act in self.params.interventions):
            old_attribute = self.params.feed.attribute
            self._apply_settings()
            if self.params.feed.attribute != old_attribute:
                self.group_counts = GroupCounts(self.feeds.n_groups)

    @property
    def groups(self) -> Groups | None:
        """The groups of agents for bridging feeds, if any."""
        if self.params.feed.attribute is None:
            return None
        index, attribute = self.attributes.schema.agent_attribute(self.params.feed.attribute)
        return Groups(assign_groups(attribute, self.population.attributes[:, index]), self.group_counts)

    def _apply_settings(self) -> None:
        self.params = self.configured.for_round(self.round)
        self.llms = assign_llms(self.reasoner, self.params.reasoner, self.attributes, self.streams)
        self.feeds = Feeds(self.configured, self.params, self.round, self.attributes.schema)
        schema, round_hours = self.attributes.schema, self.params.clock.round_minutes / 60
        homophily = Homophily(self.params.agents.homophily, schema)
        self.odds = Odds(self.params.utility, self.streams, round_hours, homophily, schema)
        has_appeal = self.params.utility.appeal_sigma and self.params.utility.sensitivity
        self.posts.draw_appeal = self.odds.draw_appeal if has_appeal else None

    @property
    def half_band(self) -> float:
        """Half the width of an agent's band."""
        return self.params.agents.band / 2

    @property
    def glances(self) -> int:
        """Maximum number of posts that a scrolling agent passes in a tick."""
        return 1 if self.tables.no_glance_reason else self.params.feed.glances

    def trigger_code(self, trigger: str) -> int:
        """Return a trigger's index in the chart, or -1."""
        return self.tables.triggers.get(trigger, -1)

    @property
    def clock(self) -> int:
        """Round and tick as one number."""
        return self.time_of_day.tick_number(max(self.round, 0), self.tick)

    @property
    def hours(self) -> float:
        """Simulated hours from the start of the run to the start of this round."""
        return max(self.round, 0) * self.params.clock.round_minutes / 60

    @property
    def now(self) -> datetime:
        """Simulated time, in UTC."""
        return self.time_of_day.time_at(self.clock)

    def records(self, table: str) -> bool:
        """Return whether the recorder wants a table."""
        wants: Callable[[str], bool] = getattr(self.recorder, "wants", lambda _: True)
        return self.recorder is not None and wants(table)

    def move_mask(self) -> UInt8:
        """Return whether each agent's transitions are recorded; an array of length 1 applies to all agents."""
        if not self.records("transitions"):
            return np.zeros(1, np.uint8)
        mask = self.recorded["transitions"]
        return np.ones(1, np.uint8) if mask is None else mask.view(np.uint8)

    def records_moves(self, row: int) -> bool:
        """Return whether an agent's transitions are recorded."""
        mask = self.recorded["transitions"]
        return self.records("transitions") and (mask is None or bool(mask[row]))

    def post(self, post_id: int, reader: int) -> Post | None:
        """Return a post as the agent of row `reader` sees it; None for `NO_POST`."""
        return None if post_id == NO_POST else self.views(np.array([reader]), np.array([post_id]))[0]

    def views(self, readers: Rows, posts: Rows) -> list[Post]:
        """Return each post as its reader sees it."""
        authors = [self.population.names[author] for author in self.posts.author[posts].tolist()]
        similarities = self.similarities(readers, posts)
        values = to_relevance(similarities).tolist(), self.utilities(readers, posts, similarities).tolist()
        stored = self.posts.attributes[posts], self.population.attributes[self.posts.author[posts]]
        return self.attributes.fill_views(self.posts.views(posts, authors, *values), *stored)

    def utilities(
        self, readers: Rows, posts: Rows, similarities: Rows, tastes: tuple[Tastes, TasteTables] | None = None
    ) -> Floats:
        """Return the utility of each post to its reader, given their similarities; by default by the tastes of now."""
        if not self.odds.params.sensitivity:
            return np.asarray(to_relevance(similarities))
        utility = np.empty(len(posts), np.float64)
        agent, post, match = (np.ascontiguousarray(column, np.int64) for column in (readers, posts, similarities))
        utilities(agent, post, match, UNIT_LENGTH, self.posts.table, *(tastes or self.tastes), utility)
        return utility

    def log_odds(self, reader: int, post: int) -> dict[str, float]:
        """Return the log-odds in the utility of a post to a reader, by name."""
        state = self.posts, self.network, self.population.attributes, self.read_roots, self.marks
        return self.odds.explain(max(self.round, 0), reader, post, *state)

    def roots_read(self, row: int) -> Int32:
        """Return the roots that an agent has read or written and that feeds can still show, ascending."""
        passed = self.depths.passed_roots(np.array([row]), self.network, self.posts, max(self.round, 0))
        return np.union1d(self.exposure.agent_roots(row), passed.roots)

    @property
    def tastes(self) -> tuple[Tastes, TasteTables]:
        """The parameters and arrays of utility in this round."""
        tables = self.odds.tables(self.posts, self.network, self.population.attributes, self.read_roots, self.marks)
        return self.odds.tastes(max(self.round, 0)), tables

    def similarities(self, readers: Rows, posts: Rows) -> npt.NDArray[np.int16]:
        """Return the similarity of each reader's interests and its post's topics, as whole numbers."""
        return similarities(self.population.interests[readers], self.posts.vectors(posts))
