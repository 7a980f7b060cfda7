"""`Platform`: everything that a round reads and writes, without Mesa or agent objects.

`start_platform` makes one, and `round.run_round` runs a round. A copy (`copy.deepcopy`) is a branch that continues like
the original.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.deliberation import Notebook
from prism_mesa.domain import Post
from prism_mesa.errors import DataError, counted, one_line
from prism_mesa.kernels.utility import Tastes, TasteTables, utilities
from prism_mesa.reasoner import AnyReasoner, RuleReasoner
from prism_mesa.snapshot import Plain, Restorable, restore_object, take_snapshot
from prism_mesa.social.params import SocialParams
from prism_mesa.social.round.feeds import Depths
from prism_mesa.social.round.walk_tables import WalkBufferPool, WalkTables
from prism_mesa.social.state.events import Clock, Engagements, Events, PendingAnswers
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.social.state.feeds import Feeds
from prism_mesa.social.state.groups import GroupCounts, Groups, assign_groups
from prism_mesa.social.state.odds import Homophily, Odds
from prism_mesa.social.state.opinions import Opinions
from prism_mesa.social.state.outcomes import Outcomes
from prism_mesa.social.state.population import IDENTITY_COLUMNS, NO_POST, History, Rows
from prism_mesa.social.state.posts import Posts, matches, relevance_of
from prism_mesa.social.state.relations import Relations
from prism_mesa.social.state.sampling import Recorded
from prism_mesa.social.state.topics import UNIT_LENGTH
from prism_mesa.social.world.archetypes import make_archetypes
from prism_mesa.social.world.build import KEPT, StartingWorld, world_to_keep
from prism_mesa.social.world.llms import assign_llms
from prism_mesa.statechart import STATES, Statechart
from prism_mesa.streams import Streams

if TYPE_CHECKING:
    from prism_mesa.llm import LLMClient

type Writer = LLMClient | None
"""The LLM that writes texts, if any."""
_POSTS_PER_AGENT: Final = 4
"""Posts per agent for which memory is reserved at the start."""


class RoundRecorder(Protocol):
    """Takes a platform's records.

    If it has a method ``wants(table) -> bool``, a platform skips those of `rounds`, `ticks`, `transitions`,
    `impressions`, `engagements`, `follows` and `churn` for which it is False.
    """

    def write(self, table: str, columns: Mapping[str, npt.NDArray[Any] | pd.Categorical]) -> None:
        """Append rows to a table of `social.tables`, with its columns in order."""
        ...


class Scripts(Protocol):
    """The agents as objects: arguments of guards and actions in Python, and agents that act by a script."""

    @property
    def has_scripts(self) -> bool:
        """Whether any agent acts by a script."""
        ...

    def agent(self, row: int) -> Any:
        """Return the agent of a row."""
        ...

    def for_copy(self, platform: Any) -> "Scripts":
        """Return the agents of a copy of the platform."""
        ...

    def have_moved(self, rows: Sequence[int]) -> None:
        """Update after the agents of some rows have joined or left."""
        ...

    def step_scripts(self) -> None:
        """Run the tick of the agents that act by scripts."""
        ...


class Platform(Restorable):
    """The state of a simulated platform.

    Attributes:
        params: The parameters of this round; `configured` are those of the run.
        streams: Keyed random draws.
        chart: The chart of all agents; `tables` are made from it.
        reasoner, writer, recorder: The reasoner of open choices; the LLM that writes texts; the recorder (or None).
        scripts: The agents as objects; `population` has them as columns.
        network: The current follows; `first_network` has those of the start, and `drawn_network` also those of agents
            that wait to join.
        first_agents: Checksums of the agents' columns at the start.
        attributes, topics: The declared attributes, and the topics of texts.
        schedule: The posts from a file or placed by you (`seeded`), and their rounds.
        llms: The LLM of each agent if there are several.
        archetypes: Clusters of agents, if the LLM answers for clusters.
        odds: The parts of utility that are log-odds.
        feeds, posts, history: The settings of feeds, all posts so far, and the last transitions of agents.
        exposure: The roots that each agent has read, except those that `depths` cover (see `roots_read`). With
            `feed.repeats`, the roots that it has engaged with.
        depths: How far each agent has read into each round, where chronological feeds need it.
        copies: With `feed.repeats`, the posts that each agent has read.
        met: With `feed.repeats`, the roots of these posts, as often as they were read.
        engagements, relations: Likes and reshares, and mutes, blocks and reports so far.
        group_counts: Impressions and engagements by groups of agents, for bridging feeds.
        opinions: Stances before the first round, and your rule of influence.
        liked: Row -> the last likes by a tool: (round, tick, post).
        notebook, outcomes, recorded: Notes of agents, running totals, and the agents in the records.
        time_of_day: Converts round and tick to time.
        round: The round that runs or ran last, from 0; -1 before the first.
        tick: 0 opens the round; ``params.ticks_per_round + 1`` closes it.
        first_of_round: The first post that this round added.
        events: Events that are not committed yet.
        pending: Agents that wait for an LLM's answer.
        leaving: Rows of agents removed since the last round opened, in order.
        counts: Counts in this round by name; `totals` are those of the run.
        sources: Open choices by the source of the answer.
        written: Texts for the LLM to write, by outcome (`written`, `budget`, `failed`).
        tick_counts: Agents in each state at the end of each tick of this round, shape (ticks, states).
        agent_ticks: Their sums over the run, shape (states,).
        row_by_row_guards: Guards that were evaluated agent by agent.
        notes: Notes on how the input was read.
    """

    changes = (
        *("population", "posts", "history", "exposure", "depths", "copies", "met", "engagements", "group_counts"),
        *(
            "relations",
            "opinions",
            "liked",
            "notebook",
            "outcomes",
            "recorded",
            "round",
            "tick",
            "first_of_round",
            "events",
        ),
        *("pending", "leaving", "counts", "totals", "sources", "written", "tick_counts", "agent_ticks"),
        *("row_by_row_guards", "notes"),
    )
    scripts: Scripts

    def __init__(
        self,
        params: SocialParams,
        streams: Streams,
        chart: Statechart,
        reasoner: AnyReasoner,
        world: StartingWorld,
        writer: Writer = None,
        recorder: RoundRecorder | None = None,
    ) -> None:
        n, self.round = len(world.population), -1
        self.params, self.configured, self.streams = params, params, streams
        self.reasoner, self.writer, self.recorder = reasoner, writer, recorder
        self.walk_buffers, self.depths = WalkBufferPool(), Depths()
        self.attributes, self.population, self.topics = world.attributes, world.population, world.topics
        self.set_chart(chart)
        has_joined = world.population.has_joined
        self.drawn_network = world.network
        self.network = self.first_network = world.network if has_joined.all() else world.network.among(has_joined)
        self.first_agents = world.population.checksums()
        self.schedule, self.seeded, self.notes = world.schedule, world.seeded, world.notes
        self.population.state[:] = chart.initial.code
        self.posts = Posts(world.corpus, world.topics, params.feed.velocity_window, room=_POSTS_PER_AGENT * n)
        self.posts.reserve(world.schedule.text_id)
        self.attributes.give_to(self.posts, self.population)
        self.opinions = Opinions(params.opinions, world.attributes.known)
        self._apply_settings()
        self.group_counts = GroupCounts(self.feeds.n_groups)
        self.history = History(n, params.statechart.max_history_depth)
        self.exposure, self.outcomes = Exposure(n), Outcomes(n)
        self.copies, self.met = (Exposure(n if params.feed.repeats else 0) for _ in range(2))
        self.engagements, self.relations = Engagements(), Relations()
        self.liked: dict[int, deque[tuple[int, int, int]]] = {}
        self.notebook = Notebook(params.deliberation.notes)
        self.recorded = Recorded(params.records, n, streams)
        n_kinds = reasoner.n_archetypes
        self.archetypes = make_archetypes(self.population, self.llms, n_kinds, self.topics) if n_kinds else None
        round_length = timedelta(minutes=params.clock.round_minutes)
        self.time_of_day = Clock(params.clock.start.astimezone(UTC), round_length, params.ticks_per_round)
        self.tick, self.first_of_round = 0, 0
        self.events, self.pending, self.leaving = Events(), PendingAnswers(), dict[int, None]()
        self.counts, self.totals, self.sources, self.written = (Counter[str]() for _ in range(4))
        self.tick_counts = np.zeros((params.ticks_per_round, len(STATES)), np.int64)
        self.agent_ticks = np.zeros(len(STATES), np.int64)
        self.row_by_row_guards: set[str] = set()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a branch, without a recorder and with new agent objects."""
        branch = type(self).__new__(type(self))
        memo[id(self)] = branch
        state = vars(self) | {"recorder": None}
        vars(branch).update((name, deepcopy(value, memo)) for name, value in state.items() if name != "scripts")
        branch.scripts = memo.get(id(self.scripts)) or self.scripts.for_copy(branch)
        return branch

    def snapshot(self) -> dict[str, Plain]:
        """Return what the rounds so far have changed, and the usage of LLMs; call it between two rounds."""
        state, unchanged = super().snapshot(), self._unchanged()
        state["population"] = {key: column for key, column in state["population"].items() if key not in unchanged}
        return state | {
            "first_network": self.drawn_network.checksum,
            "first_agents": self.first_agents,
            "network": self.network.snapshot() if self.network is not self.first_network else None,
            "chart": self.chart.snapshot(),
            "sizes": self._sizes(),
            "asked": [take_snapshot(part) for part in self._llm_users()],
        }

    def _sizes(self) -> list[int]:
        return [*self.tick_counts.shape, self.history.depth]

    def world_to_keep(self) -> dict[str, Plain] | None:
        """Return the drawn world if it is slow to draw and no agent has been changed since."""
        is_same = self._unchanged() >= {*KEPT}
        return world_to_keep(self.params, self.drawn_network, self.population) if is_same else None

    def _unchanged(self) -> set[str]:
        checksums = self.population.checksums()
        return {name for name, checksum in self.first_agents.items() if checksums[name] == checksum}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Restore a snapshot into a platform of the same parameters, before its first round.

        Raises:
            DataError: If the snapshot belongs to another platform.
        """
        if kept["first_network"] != self.drawn_network.checksum:
            raise DataError("the network differs from the run's: has network.edges changed since?")
        if kept["first_agents"] != self.first_agents:
            raise DataError("the agents differ from the run's: has agents.profiles changed since?")
        if kept["sizes"] != self._sizes():
            raise DataError("ticks_per_round or statechart.max_history_depth differs from the run's")
        if not kept["population"].keys() | self._unchanged() >= {*IDENTITY_COLUMNS}:
            raise DataError("the agents differ from the run's: they were changed before its first round")
        notes = self.notes
        super().restore(kept)
        self.notes += tuple(note for note in notes if note not in self.notes)  # settings that begin later
        if kept["network"] is not None:
            self.network = replace(self.first_network)
            self.network.restore(kept["network"])
        self._apply_settings()
        self.chart.restore(kept["chart"])
        for part, state in zip(self._llm_users(), kept["asked"], strict=True):
            restore_object(part, state)

    def _llm_users(self) -> tuple[AnyReasoner | Writer, ...]:
        """Return the reasoner and the writer; None for those without state."""
        from prism_mesa.reasoner import DistilledReasoner  # slow to import

        stateless = (NoneType, RuleReasoner, DistilledReasoner)
        return tuple(None if type(part) in stateless else part for part in (self.reasoner, self.writer))

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.standing}>"

    @property
    def standing(self) -> str:
        """Number of agents, round, seed and reasoner as a string."""
        agents, done = int(self.population.present.sum()), f"round {self.round + 1} of {self.params.rounds}"
        return f"{counted(agents, 'agent')}, {done}, seed {self.params.seed}, decided by {self.reasoner.label}"

    def set_chart(self, chart: Statechart) -> None:
        """Use a chart from now on, and make its tables."""
        self.chart, self.tables = chart, WalkTables(chart, self.attributes.known)

    def begin_events(self) -> None:
        """Copy events that are not committed yet, so that their memory can be reused."""
        for events in (self.events.impressions, self.events.engagements, self.events.moves):
            events[:] = [tuple(map(np.copy, columns)) for columns in events]
        self.walk_buffers.begin_round()

    def change_settings(self) -> None:
        """Apply the interventions that begin or end with this round."""
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
        index, attribute = self.attributes.known.of_agents(self.params.feed.attribute)
        return Groups(assign_groups(attribute, self.population.attributes[:, index]), self.group_counts)

    def _apply_settings(self) -> None:
        self.params = self.configured.at(self.round)
        self.llms = assign_llms(self.reasoner, self.params.reasoner, self.attributes, self.streams)
        self.feeds = Feeds(self.configured, self.params, self.round, self.attributes.known)
        homophily = Homophily(self.params.agents.homophily, self.attributes.known)
        self.odds = Odds(self.params.utility, self.streams, self.params.clock.round_minutes / 60, homophily)
        self.posts.draw_appeal = self.odds.draw_appeal

    @property
    def half_band(self) -> float:
        """Half the width of an agent's band of utility."""
        return self.params.agents.band / 2

    @property
    def glances(self) -> int:
        """Number of posts that a scrolling agent passes in a tick."""
        return 1 if self.tables.why_each else self.params.feed.glances

    def trigger_code(self, trigger: str) -> int:
        """Return a trigger's index in the chart, or -1."""
        return self.tables.triggers.get(trigger, -1)

    @property
    def clock(self) -> int:
        """Round and tick as one number."""
        return self.time_of_day.number(max(self.round, 0), self.tick)

    @property
    def hours(self) -> float:
        """Simulated hours from the start of the run to the start of this round."""
        return max(self.round, 0) * self.params.clock.round_minutes / 60

    @property
    def now(self) -> datetime:
        """Simulated time, in UTC."""
        return self.time_of_day.at(self.clock)

    def records(self, table: str) -> bool:
        """Return whether the recorder wants a table."""
        wants: Callable[[str], bool] = getattr(self.recorder, "wants", lambda _: True)
        return self.recorder is not None and wants(table)

    def move_mask(self) -> npt.NDArray[np.uint8]:
        """Return whether each agent's transitions are recorded; a single entry stands for all agents."""
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
        matches = self.matches(readers, posts)
        values = relevance_of(matches).tolist(), self.utilities(readers, posts, matches).tolist()
        return self.attributes.shown(self.posts.views(posts, authors, *values), self.posts.attributes[posts])

    def utilities(self, readers: Rows, posts: Rows, matches: Rows) -> npt.NDArray[np.float64]:
        """Return the utility of each post to its reader, given their similarities."""
        if not self.odds.params.sensitivity:
            return np.asarray(relevance_of(matches))
        utility = np.empty(len(posts), np.float64)
        agent, post, match = (np.ascontiguousarray(column, np.int64) for column in (readers, posts, matches))
        utilities(agent, post, match, UNIT_LENGTH, self.posts.table, *self.tastes, utility)
        return utility

    def log_odds(self, reader: int, post: int) -> dict[str, float]:
        """Return the log-odds that a post has for a reader besides its relevance, by their source."""
        state = self.posts, self.network, self.population.attributes, self.met
        return self.odds.explain(max(self.round, 0), reader, post, *state)

    def roots_read(self, row: int) -> npt.NDArray[np.int32]:
        """Return the roots that an agent has read or written, as far as feeds can still show them, ascending."""
        passed = self.depths.listed(np.array([row]), self.network, self.posts, max(self.round, 0))
        return np.union1d(self.exposure.of(row), passed.roots)

    @property
    def tastes(self) -> tuple[Tastes, TasteTables]:
        """The parameters and arrays of utility in this round."""
        tables = self.odds.tables(self.network, self.population.attributes, self.met)
        return self.odds.tastes(max(self.round, 0)), tables

    def matches(self, readers: Rows, posts: Rows) -> npt.NDArray[np.int16]:
        """Return the similarity of each reader's interests and its post's topics, as whole numbers."""
        return matches(self.population.interests[readers], self.posts.vectors(posts))
