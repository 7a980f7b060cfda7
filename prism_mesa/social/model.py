"""`SocialModel`: the simulated platform as a Mesa model.

A round, which is one `step()`:

1. publish: agents post with their own rate; scheduled posts appear; last round's replies and reshares
   become visible.
2. rank: each agent who will be there gets its feed, of posts it has not seen, from what stands now.
3. open: idle agents that come online (own activity) get `feed_ready`; the others stay idle.
4. ticks: in each, every agent that is not idle fires at most one trigger; open choices are asked.
5. commit: replies and reshares get their words (`content`); likes, replies and reshares reach the posts'
   counters and cascades.
6. collect: the DataCollector and the recorder get the round's rows.
7. close: `round_ends` brings every active agent to IDLE.

Agents see the platform as it stood when the round opened and do not meet within it, so the result depends
neither on their order nor on which answer arrives first.
"""

from collections import Counter, deque
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import mesa
import numpy as np
import numpy.typing as npt

from prism_mesa.deliberation import Notebook
from prism_mesa.domain import Post
from prism_mesa.errors import ChartError, counted, one_line
from prism_mesa.params import FROM_PARAMS, model_params
from prism_mesa.reasoner import AnyReasoner, Reasoner, make_reasoner
from prism_mesa.social.behavior import FEED_READY, IDLE, ROUND_ENDS, chosen_chart
from prism_mesa.social.content.writer import write, writer_of
from prism_mesa.social.mesa_agents import PopulationModel
from prism_mesa.social.params import SocialParams
from prism_mesa.social.round.choices import PendingAnswers
from prism_mesa.social.round.collect import RoundRecorder, collect, make_datacollector, record_moves
from prism_mesa.social.round.engagements import Engagements, open_round
from prism_mesa.social.round.feed import rank_feeds
from prism_mesa.social.round.guard_faults import GuardWarnings, checked, require_agent_fields
from prism_mesa.social.round.prompt_interests import PromptInterests
from prism_mesa.social.round.publish import commit, publish
from prism_mesa.social.round.shortfalls import shortfall, unlearned
from prism_mesa.social.round.ticks import fire_and_wait, run_ticks
from prism_mesa.social.round.walk_tables import WalkTables
from prism_mesa.social.state.chunks import trim_heap
from prism_mesa.social.state.clock import Clock
from prism_mesa.social.state.events import Events
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.social.state.outcomes import Outcomes
from prism_mesa.social.state.population import NO_POST, History, Rows
from prism_mesa.social.state.posts import Posts, matches, relevance_of
from prism_mesa.social.state.sampling import recorded_agents
from prism_mesa.social.warnings import warn
from prism_mesa.social.without_effect import keys_without_effect
from prism_mesa.social.world.archetypes import Archetypes, make_archetypes
from prism_mesa.social.world.build import StartingWorld, make_world
from prism_mesa.statechart import STATES, Statechart
from prism_mesa.streams import Streams

MANY: Final = 300_000
"""Agents from which on the memory of a round counts."""


class SocialModel(PopulationModel):
    """A social platform whose agents are statecharts; see the module's text for the order of a round.

    Args:
        config: All parameters, or nested values for them; by default those of `SocialParams`.
        scenario: A Mesa scenario; its attributes are parameters.
        rng: The seed (Mesa's name for it): a whole number, or text that holds one; an explicit None draws a
            fresh one, as Mesa does. Overrides `seed`.
        chart: A chart of your own, as an object; `statechart.chart` names one in a module.
        recorder: Where records go; None keeps only what the DataCollector holds.
        reasoner: Who answers open choices; None makes the one that the parameters name.
        params: Parameters by name: ``feed_mode="random"``, ``agents_n=100`` (dots written as _).

    Attributes:
        datacollector: Model reporters per round: `online`, `posts`, `impressions`, `likes`, `replies`,
            `reshares`, `open`, `fallback`, and `share_<state>`, the shares of agent-ticks; of all rounds so far
            (what ``mesa.batch_run`` returns is the last round): `total_posts`, `total_impressions`, `total_likes`,
            `total_replies`, `total_reshares`, `total_open`, `total_fallback`, `cascades` (their number),
            `cascade_mean_size`, `cascade_max_size`, `cascade_never_reshared` (their share), and `attention_gini`,
            the inequality between all agents of the impressions of what they wrote (see `outcomes.Outcomes`); table
            `ticks`: state counts at the end of each tick.

    Warns:
        NotedWarning: What of the input was left out, taken otherwise than it may have been meant, or is more than there
            can be; and which keys were set and have no effect. All stands in `notes` too.

    Raises:
        ConfigError: If a parameter is unknown or out of range.
        LLMFailureException: By `step`, if the reasoner's first 20 answers are all useless (see `Reasoner`).
    """

    def __init__(
        self,
        config: SocialParams | Mapping[str, Any] | None = None,
        *,
        scenario: mesa.experimental.scenarios.Scenario | None = None,
        rng: Any = FROM_PARAMS,
        chart: Statechart | None = None,
        recorder: RoundRecorder | None = None,
        reasoner: AnyReasoner | None = None,
        **params: Any,
    ) -> None:
        self.params = model_params(SocialParams, config, scenario, rng, params, "SocialModel")
        super().__init__(rng=self.params.seed)
        if scenario is not None:
            self.scenario = scenario
        self.streams = Streams(self.params.seed)
        self.round = -1
        self.tick = 0
        world = make_world(self.params, self.streams)
        self._make(world, chart)
        self.reasoner = reasoner or make_reasoner(self.params.reasoner)
        self._unlearned = unlearned(self.reasoner.batch_reasoner, self.tables.option_sets)
        self.notes += self._unlearned
        self.writer, why_not = writer_of(self.params, self.reasoner)
        self.notes += (why_not,) if why_not else ()
        self.written: Counter[str] = Counter()
        self._warned = False
        self.liked: dict[int, deque[tuple[int, int, int]]] = {}
        self.notebook = Notebook(self.params.deliberation.notes)
        self.archetypes: Archetypes | None = None
        if isinstance(self.reasoner, Reasoner):
            self.reasoner.begin()
        if self.reasoner.n_archetypes:
            people = self.population
            self.archetypes = make_archetypes(people.interests, people.traits, self.reasoner.n_archetypes, self.topics)
        self.prompt_interests = PromptInterests(self)
        self.recorder = recorder
        self.datacollector = make_datacollector()
        idle = keys_without_effect(self, world, given=reasoner is not None, chart_given=chart is not None)
        self.notes += idle
        for said in filter(None, (world.misfits, idle)):
            warn("; ".join(said))

    def _make(self, world: StartingWorld, chart: Statechart | None) -> None:
        self._go_by(self._own_chart(chart))
        self.guard_warnings = GuardWarnings()
        self.network, self.topics, self.schedule = world.network, world.topics, world.schedule
        self.population = world.population
        self.population.state[:] = self.chart.initial.code
        self.posts = Posts(world.corpus, world.topics, self.params.feed.velocity_window)
        self.history = History(len(self.population), self.params.statechart.max_history_depth)
        self.notes = world.notes
        self.time_of_day = Clock(
            self.params.clock.start.astimezone(UTC),
            timedelta(minutes=self.params.clock.round_minutes),
            self.params.ticks_per_round,
        )
        self.recorded = recorded_agents(self.params.records, len(self.population), self.streams)
        self.first_of_round = 0
        self.events = Events()
        self.exposure = Exposure(len(self.population))
        self.engagements = Engagements()
        self.counts: Counter[str] = Counter()
        self.totals: Counter[str] = Counter()
        self.sources: Counter[str] = Counter()
        self.row_by_row_guards: set[str] = set()
        self.agent_ticks = np.zeros(len(STATES), np.int64)
        self.round_row: dict[str, float] = {}
        self.outcomes = Outcomes(len(self.population))
        self.outcome_row: dict[str, float] = {}
        self.tick_counts = np.zeros((self.params.ticks_per_round, len(STATES)), np.int64)
        self.pending = PendingAnswers()

    def _own_chart(self, chart: Statechart | None) -> Statechart:
        """Return a chart, else that of the parameters, with the settings of this model and its own counts.

        Raises:
            ChartError: If its check finds an error; fields that agents may yet get are left to `require_agent_fields`.
        """
        asks_action = self.params.reasoner.asks_action
        return checked(chosen_chart(self.params.statechart, asks_action=asks_action, chart=chart))

    def _go_by(self, chart: Statechart) -> None:
        """Let a chart rule, and make all that is made from it."""
        self._chart = chart
        self.tables = WalkTables(chart)
        self._trigger_codes = {trigger: i for i, trigger in enumerate(chart.triggers)}

    @property
    def chart(self) -> Statechart:
        """The chart that all agents go by; another one can be set until agents have moved by it.

        What is set is copied, with this model's settings (`statechart.oracle_enabled`, `statechart.strict`). Agents in
        the initial state of the chart before go to that of the new one.

        Raises:
            ChartError: When it is set, if agents have moved, or the chart's check finds an error.
            ConfigError: When it is set, if a distilled model has learned nothing of what it leaves open.
        """
        return self._chart

    @chart.setter
    def chart(self, chart: Statechart) -> None:
        if self.round >= 0 or self.history.count.any() or self.events.moves:
            raise ChartError(
                "SocialModel.chart: agents have moved by the chart before, and their histories tell its triggers: "
                "make a model with it, SocialModel(chart=...)"
            )
        if not isinstance(chart, Statechart):
            raise ChartError(f"SocialModel.chart: {chart!r} is no Statechart")
        before, new = self._chart, self._own_chart(chart)
        left = unlearned(self.reasoner.batch_reasoner, WalkTables(new).option_sets)
        self._go_by(new)
        self.notes = tuple(note for note in self.notes if note not in self._unlearned) + left
        self._unlearned = left
        self.population.state[self.population.state == before.initial.code] = new.initial.code

    @one_line
    def __repr__(self) -> str:
        agents, done = int(self.population.present.sum()), f"round {self.round + 1} of {self.params.rounds}"
        who = f"seed {self.params.seed}, decided by {self.reasoner.label}"
        return f"<{type(self).__name__}: {counted(agents, 'agent')}, {done}, {who}>"

    def step(self) -> None:
        """Run one round.

        Raises:
            ChartError: As the first round opens, if a guard reads a field that no agent can have.
        """
        if self.round < 0:
            self.require_agent_fields()
        self.round += 1
        self.tick = 0
        self.counts.clear()
        self.remove_departed()
        open_round(self)
        publish(self)
        online = self._rank()
        fire_and_wait(self, FEED_READY, online)
        run_ticks(self)
        write(self)
        commit(self)
        collect(self)
        self._close()
        self.running = self.round + 1 < self.params.rounds
        self.guard_warnings.say(self.chart)
        if not self.running:
            self._warn_of_shortfall()

    def require_agent_fields(self) -> None:
        """Raise ChartError if a guard reads a field that no agent can have; agents with own ones have been made."""
        require_agent_fields(self.chart, self.made_agents, has_scripts=self.has_scripted_classes)

    def run_for(self, duration: float) -> None:
        """Run so many rounds. Guards that raise are warned of at the end, with their counts."""
        with self.guard_warnings.hold(self.chart):
            super().run_for(duration)

    def run_until(self, end_time: float) -> None:
        """Run until so many rounds are done in all. Guards that raise are warned of at the end, with their counts."""
        with self.guard_warnings.hold(self.chart):
            super().run_until(end_time)

    def run_model(self) -> None:
        """Run all rounds that are left. Guards that raise are warned of at the end, with their counts."""
        with self.guard_warnings.hold(self.chart):
            super().run_model()

    def _rank(self) -> Rows:
        """Rank feeds for those who will read one; return those who come online."""
        population = self.population
        idle = population.state == IDLE.code
        comes = self.streams.happens("online", population.activity, round_=self.round)
        online = np.flatnonzero(comes & idle & population.present)
        reads = np.flatnonzero(population.present & ((comes & idle) | ~idle | population.scripted))
        population.n_feed[:] = 0
        population.n_read[:] = 0
        world = (population, self.posts, self.exposure, self.network)
        rank_feeds(reads, *world, self.params.feed, self.streams, self.round, threads=self.params.threads)
        self.counts["online"] = len(online)
        return online

    def _close(self) -> None:
        self.tick = self.params.ticks_per_round + 1
        active = self.population.present & (self.population.state != IDLE.code)
        before = self.counts.copy()
        fire_and_wait(self, ROUND_ENDS, np.flatnonzero(active))
        self.totals.update(self.counts - before)  # a user's chart may leave a choice open here; the rows are written
        record_moves(self)
        if len(self.population) >= MANY:
            trim_heap()

    def post(self, post_id: int, reader: int) -> Post | None:
        """Return a post as the agent of row `reader` sees it; None for `NO_POST`."""
        if post_id == NO_POST:
            return None
        relevance = float(relevance_of(self.matches(np.array([reader]), np.array([post_id]))[0]))
        [view] = self.posts.views(np.array([post_id]), [self.population.names[self.posts.author[post_id]]], [relevance])
        return view

    def matches(self, readers: Rows, posts: Rows) -> npt.NDArray[np.int16]:
        """Return the similarity of each reader's interests and the topics of the post before it, as whole numbers."""
        return matches(self.population.interests[readers], self.posts.vectors(posts))

    def trigger_code(self, trigger: str) -> int:
        """Return a trigger's place in the chart, or -1."""
        return self._trigger_codes.get(trigger, -1)

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

    def close(self) -> None:
        """End the threads and connections of those who are asked; doing it twice does no harm.

        Here at the latest, and after the last of `rounds`, a NotedWarning says if too many answers were fallbacks.
        """
        for asked in (self.reasoner, self.writer):
            if asked is not None:
                asked.close()
        self.guard_warnings.say(self.chart)
        self._warn_of_shortfall()

    def _warn_of_shortfall(self) -> None:
        """Warn, once, if an LLM gave less than `reasoner.max_fallback_share` allows."""
        told = "" if self._warned else shortfall(self)
        if told:
            self._warned = True
            warn(told)

    def keeps_moves(self, row: int) -> bool:
        """Return whether an agent's transitions are noted down for a recorder."""
        keeps = self.move_keeping()
        return bool(keeps[row if len(keeps) > 1 else 0])

    def move_keeping(self) -> npt.NDArray[np.uint8]:
        """Return whose transitions are noted down: one entry for each agent, or one for all."""
        if self.recorder is None:
            return np.zeros(1, np.uint8)
        mask = self.recorded["transitions"]
        return np.ones(1, np.uint8) if mask is None else mask.view(np.uint8)
