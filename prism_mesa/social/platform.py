"""`Platform`: all that a round reads and writes, and nothing else; it knows neither Mesa nor agents as objects.

`round` and `content` work on it, `start_platform` makes one, `round.run_round` runs a round of it. A copy of it
(`copy.deepcopy`) is a branch: it goes on like the original.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import InitVar, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.deliberation import Notebook
from prism_mesa.errors import DataError, counted, one_line
from prism_mesa.reasoner import AnyReasoner, RuleReasoner
from prism_mesa.snapshot import Plain, Restorable, bring_back, state_of
from prism_mesa.social.opinions.own import Opinions
from prism_mesa.social.own.feeds import Feeds
from prism_mesa.social.params import SocialParams
from prism_mesa.social.protocols import RoundRecorder, Scripts
from prism_mesa.social.reading.posts import Reading
from prism_mesa.social.round.feeds.depths import Depths
from prism_mesa.social.round.prompt_interests import PromptInterests
from prism_mesa.social.round.walk_rooms import WalkRooms
from prism_mesa.social.round.walk_tables import WalkTables
from prism_mesa.social.state.engagements import Engagements
from prism_mesa.social.state.events import Clock, Events, PendingAnswers
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.social.state.groups import GroupCounts, Groups, groups_of
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.odds import Homophily, Odds
from prism_mesa.social.state.outcomes import Outcomes
from prism_mesa.social.state.population import WHO_THEY_ARE, History, Population
from prism_mesa.social.state.posts import Posts
from prism_mesa.social.state.relations import Relations
from prism_mesa.social.state.sampling import Recorded, recorded_agents
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.archetypes import Archetypes, make_archetypes
from prism_mesa.social.world.attributes import AttributeSource
from prism_mesa.social.world.build import Schedule, StartingWorld
from prism_mesa.social.world.kept import KEPT, world_to_keep
from prism_mesa.social.world.llms import AgentLLMs, assign_llms
from prism_mesa.social.world.seeded import Seeded
from prism_mesa.statechart import STATES, Statechart
from prism_mesa.streams import Streams

if TYPE_CHECKING:
    from prism_mesa.llm import LLMClient

type Writer = LLMClient | None
"""Who writes texts, if anyone does."""
_POSTS_EACH: Final = 4
"""Posts of each agent for which there is room from the beginning."""


@dataclass(eq=False, repr=False)
class Platform(Restorable, Reading):
    """The state of a simulated platform.

    Attributes:
        params: All parameters.
        streams: Its keyed randomness.
        chart: The chart that all agents go by, and who counts what its guards did; `tables` are made from it.
        reasoner: Who answers open choices.
        scripts: Who has the agents as objects.
        writer: The LLM that writes texts, if any.
        recorder: Where records go, if anywhere.
        population: The agents, as columns.
        network: Who follows whom; `first_network` is that of the beginning, `drawn_network` also of those who wait.
        first_agents: Checksums of who the agents were at the beginning, by column.
        topics: What posts and interests are about.
        schedule: The posts that a file brings, or users place, and when.
        seeded: Those that users place.
        llms: The LLM of each agent if there are several.
        archetypes: Kinds of agents, where questions are asked for these.
        prompt_interests: Which interests questions tell.
        posts: All posts so far, as columns.
        history: What the agents did.
        exposure: Which roots they have read; where roots can be shown again, which they have engaged with.
        copies: Which posts they have read, where roots can be shown again; of no agents where not.
        met: The roots of these, each as often as they have read it.
        engagements: What they liked and reshared.
        group_counts: The same by groups of agents, as long as a feed goes by it.
        relations: Who has muted, blocked or reported whom.
        opinions: What they held before the first round, and a user's rule by which it moves.
        liked: Row -> likes by a tool, the last few: (round, tick, post).
        notebook: What they wrote down for themselves.
        outcomes: What the run has come to.
        recorded: Whose records are kept.
        time_of_day: From round and tick to a time.
        round: The round that runs, or has run, from 0; -1 before the first.
        tick: The tick in it; 0 as it opens, ``params.ticks_per_round + 1`` as it closes.
        first_of_round: The first post that this round added.
        events: What happened and is not committed.
        pending: Who waits for an answer.
        leaving: Rows of agents that were removed since the last round opened, in that order.
        counts: Numbers of this round; `totals` are those of the run.
        sources: Who answered how many open choices.
        written: What came of the texts that an LLM was to write.
        tick_counts: Agents in each state at the end of each tick of this round, shape (ticks, states).
        agent_ticks: Sums of these over the run, shape (states,).
        row_by_row_guards: Guards that were evaluated agent by agent.
        notes: What a user should know about how the input was taken.
    """

    changes = (
        *("population", "posts", "history", "exposure", "copies", "met", "engagements", "group_counts", "relations"),
        *("opinions", "liked", "notebook", "outcomes", "recorded", "round", "tick", "first_of_round", "events"),
        *("pending", "leaving", "counts", "totals", "sources", "written", "tick_counts", "agent_ticks"),
        *("row_by_row_guards", "notes"),
    )

    params: SocialParams
    streams: Streams
    chart: Statechart
    reasoner: AnyReasoner
    world: InitVar[StartingWorld]
    writer: Writer = None
    recorder: RoundRecorder | None = None
    scripts: Scripts = field(init=False)

    tables: WalkTables = field(init=False)
    population: Population = field(init=False)
    network: FollowNetwork = field(init=False)
    first_network: FollowNetwork = field(init=False)
    drawn_network: FollowNetwork = field(init=False)
    first_agents: dict[str, int] = field(init=False)
    topics: Topics = field(init=False)
    configured: SocialParams = field(init=False)
    attributes: AttributeSource = field(init=False)
    schedule: Schedule = field(init=False)
    seeded: Seeded = field(init=False)
    llms: AgentLLMs = field(init=False)
    archetypes: Archetypes | None = field(init=False, default=None)
    prompt_interests: PromptInterests = field(init=False)

    odds: Odds = field(init=False)
    feeds: Feeds = field(init=False)
    posts: Posts = field(init=False)
    history: History = field(init=False)
    exposure: Exposure = field(init=False)
    copies: Exposure = field(init=False)
    met: Exposure = field(init=False)
    engagements: Engagements = field(init=False, default_factory=Engagements)
    group_counts: GroupCounts = field(init=False)
    relations: Relations = field(init=False, default_factory=Relations)
    opinions: Opinions = field(init=False)
    liked: dict[int, deque[tuple[int, int, int]]] = field(init=False, default_factory=dict)
    notebook: Notebook = field(init=False)
    outcomes: Outcomes = field(init=False)
    recorded: Recorded = field(init=False)

    time_of_day: Clock = field(init=False)
    round: int = field(init=False, default=-1)
    tick: int = field(init=False, default=0)
    first_of_round: int = field(init=False, default=0)
    events: Events = field(init=False, default_factory=Events)
    pending: PendingAnswers = field(init=False, default_factory=PendingAnswers)
    leaving: dict[int, None] = field(init=False, default_factory=dict)

    counts: Counter[str] = field(init=False, default_factory=Counter)
    totals: Counter[str] = field(init=False, default_factory=Counter)
    sources: Counter[str] = field(init=False, default_factory=Counter)
    written: Counter[str] = field(init=False, default_factory=Counter)
    tick_counts: npt.NDArray[np.int64] = field(init=False)
    agent_ticks: npt.NDArray[np.int64] = field(init=False)
    row_by_row_guards: set[str] = field(init=False, default_factory=set)
    notes: tuple[str, ...] = field(init=False)

    def __post_init__(self, world: StartingWorld) -> None:
        params, n = self.params, len(world.population)
        self.configured = params
        self.rooms, self.depths = WalkRooms(), Depths()  # memory, and no state
        self.attributes = world.attributes
        self.go_by(self.chart)
        self.population, self.topics, self.drawn_network = world.population, world.topics, world.network
        here = world.population.has_joined
        self.network = self.first_network = world.network if here.all() else world.network.among(here)
        self.first_agents = world.population.checksums()
        self.schedule, self.seeded, self.notes = world.schedule, world.seeded, world.notes
        self.population.state[:] = self.chart.initial.code
        self.posts = Posts(world.corpus, world.topics, params.feed.velocity_window, room=_POSTS_EACH * n)
        self.posts.reserve(world.schedule.text_id)
        self.attributes.give_to(self.posts, self.population)
        self.opinions = Opinions(params.opinions, world.attributes.known)
        self._settle()
        self.group_counts = GroupCounts(self.feeds.n_groups)
        self.history = History(n, params.statechart.max_history_depth)
        self.exposure, self.outcomes = Exposure(n), Outcomes(n)
        self.copies, self.met = (Exposure(n if params.feed.repeats else 0) for _ in range(2))
        self.notebook = Notebook(params.deliberation.notes)
        self.recorded = recorded_agents(params.records, n, self.streams)
        if self.reasoner.n_archetypes:
            self.archetypes = make_archetypes(self.population, self.llms, self.reasoner.n_archetypes, self.topics)
        self.prompt_interests = PromptInterests(self.population, self.posts, self.topics, self.archetypes)
        length = timedelta(minutes=params.clock.round_minutes)
        self.time_of_day = Clock(params.clock.start.astimezone(UTC), length, params.ticks_per_round)
        self.tick_counts = np.zeros((params.ticks_per_round, len(STATES)), np.int64)
        self.agent_ticks = np.zeros(len(STATES), np.int64)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a branch: it records nowhere until it is given a recorder, and has its agents as objects anew."""
        branch = type(self).__new__(type(self))
        memo[id(self)] = branch
        own = vars(self) | {"recorder": None, "scripts": memo.get(id(self.scripts))}
        vars(branch).update((name, deepcopy(value, memo)) for name, value in own.items() if name != "scripts")
        branch.scripts = own["scripts"] or self.scripts.for_copy(branch)
        return branch

    def snapshot(self) -> dict[str, Plain]:
        """Return what the rounds so far have changed, between two rounds; of who decides, what it has spent."""
        found = super().snapshot()
        same = self._unchanged()
        found["population"] = {key: kept for key, kept in found["population"].items() if key not in same}
        network = self.network.snapshot() if self.network is not self.first_network else None
        first = {"first_network": self.drawn_network.checksum, "first_agents": self.first_agents}
        own = {"network": network, "chart": self.chart.snapshot(), "sizes": self._sizes()}
        return found | first | own | {"asked": [state_of(asked) for asked in self._asked()]}

    def _sizes(self) -> list[int]:
        """Return the lengths of arrays that parameters set, but for those of the network and the agents."""
        return [*self.tick_counts.shape, self.history.depth]

    def world_to_keep(self) -> dict[str, Plain] | None:
        """Return what was drawn of the world, if that is dear to make, and the agents are who they were."""
        is_same = self._unchanged() >= {*KEPT}
        return world_to_keep(self.params, self.drawn_network, self.population) if is_same else None

    def _unchanged(self) -> set[str]:
        """Return the columns of who the agents are that nobody has changed."""
        now = self.population.checksums()
        return {name for name, before in self.first_agents.items() if now[name] == before}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Bring back what `snapshot` returned into the platform of the same parameters, before its first round.

        Raises:
            DataError: If it is none of this platform.
        """
        if kept["first_network"] != self.drawn_network.checksum:
            raise DataError("the network is not that of the run: has network.edges changed since?")
        if kept["first_agents"] != self.first_agents:
            raise DataError("the agents are not those of the run: has agents.profiles changed since?")
        if kept["sizes"] != self._sizes():
            raise DataError("ticks_per_round and statechart.max_history_depth are not those of the run")
        if not kept["population"].keys() | self._unchanged() >= {*WHO_THEY_ARE}:
            raise DataError("the agents are not those of the run: they were changed before its first round")
        own = self.notes
        super().restore(kept)
        self.notes += tuple(said for said in own if said not in self.notes)  # settings that only begin later
        if kept["network"] is not None:
            self.network = replace(self.first_network)
            self.network.restore(kept["network"])
        self._settle()
        self.chart.restore(kept["chart"])
        for asked, spent in zip(self._asked(), kept["asked"], strict=True):
            bring_back(asked, spent)

    def _asked(self) -> tuple[AnyReasoner | Writer, ...]:
        """Return who decides and who writes, None for who is not there or never changes."""
        from prism_mesa.reasoner import DistilledReasoner  # not needed where nobody saves

        unchanging = (NoneType, RuleReasoner, DistilledReasoner)
        return tuple(None if type(asked) in unchanging else asked for asked in (self.reasoner, self.writer))

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.standing}>"

    @property
    def standing(self) -> str:
        """Agents, rounds, seed and who decides, in words."""
        agents, done = int(self.population.present.sum()), f"round {self.round + 1} of {self.params.rounds}"
        return f"{counted(agents, 'agent')}, {done}, seed {self.params.seed}, decided by {self.reasoner.label}"

    def go_by(self, chart: Statechart) -> None:
        """Let a chart rule, and make what is made from it."""
        self.chart, self.tables = chart, WalkTables(chart, self.attributes.known)

    def begin_events(self) -> None:
        """Use the memory of events again; what of them is not committed yet gets memory of its own."""
        for noted in (self.events.impressions, self.events.engagements, self.events.moves):
            noted[:] = [tuple(map(np.copy, part)) for part in noted]
        self.rooms.begin_round()

    def change_settings(self) -> None:
        """Let the settings hold that begin with this round (`interventions`)."""
        if any(self.round in (one.at, one.until) for one in self.params.interventions):
            before = self.params.feed.attribute
            self._settle()
            if self.params.feed.attribute != before:
                self.group_counts = GroupCounts(self.feeds.n_groups)

    @property
    def groups(self) -> Groups | None:
        """The groups of agents by which feeds go; None where there are none."""
        if self.params.feed.attribute is None:
            return None
        place, own = self.attributes.known.of_agents(self.params.feed.attribute)
        return Groups(groups_of(own, self.population.attributes[:, place]), self.group_counts)

    def _settle(self) -> None:
        """Let the settings of this round hold, and make what is made from them."""
        self.params = self.configured.at(self.round)
        self.llms = assign_llms(self.reasoner, self.params.reasoner, self.attributes, self.streams)
        self.feeds = Feeds(self.configured, self.params, self.round, self.attributes.known)
        homophily = Homophily(self.params.agents.homophily, self.attributes.known)
        self.odds = Odds(self.params.utility, self.streams, self.params.clock.round_minutes / 60, homophily)
        self.posts.draw_appeal = self.odds.draw_appeal

    @property
    def half_band(self) -> float:
        """Half the width of every agent's band of utility, around its threshold."""
        return self.params.agents.band / 2

    @property
    def glances(self) -> int:
        """Posts that a scrolling agent passes in a tick."""
        return 1 if self.tables.why_each else self.params.feed.glances

    def trigger_code(self, trigger: str) -> int:
        """Return a trigger's place in the chart, or -1."""
        return self.tables.triggers.get(trigger, -1)

    @property
    def clock(self) -> int:
        """Round and tick as one number."""
        return self.time_of_day.number(max(self.round, 0), self.tick)

    @property
    def hours(self) -> float:
        """Simulated hours from the beginning of the run to that of this round."""
        return max(self.round, 0) * self.params.clock.round_minutes / 60

    @property
    def now(self) -> datetime:
        """Simulated time, in UTC."""
        return self.time_of_day.at(self.clock)

    def records(self, table: str) -> bool:
        """Return whether rows of a table go anywhere."""
        wants: Callable[[str], bool] = getattr(self.recorder, "wants", lambda _: True)
        return self.recorder is not None and wants(table)

    def move_keeping(self) -> npt.NDArray[np.uint8]:
        """Return whose transitions are noted down for the recorder: one entry for each agent, or one for all."""
        if not self.records("transitions"):
            return np.zeros(1, np.uint8)
        mask = self.recorded["transitions"]
        return np.ones(1, np.uint8) if mask is None else mask.view(np.uint8)

    def keeps_moves(self, row: int) -> bool:
        """Return whether an agent's transitions are noted down."""
        mask = self.recorded["transitions"]
        return self.records("transitions") and (mask is None or bool(mask[row]))
