"""An agent of a platform: a view of one row of the population."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from numbers import Real
from operator import attrgetter
from typing import Any, Final, Self, overload

import numpy as np

from prism_mesa.arrays import Int32, Rows, UInt16
from prism_mesa.domain import ACTIONS, BIG_FIVE, ActionName, AgentState, Post
from prism_mesa.errors import AgentError, StateTypeError, format_count, one_line
from prism_mesa.llm.text import clean_text
from prism_mesa.markup import card_html, chip_html, facts_html, fold_html, html_or_repr, table_html
from prism_mesa.reasoner import Question, make_question
from prism_mesa.social.behavior import ABANDONS, COMPOSING, IDLE, IS_INTERESTED, SEES_POST, SHOULD_ENGAGE, next_trigger
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.acts import must_ask
from prism_mesa.social.round.choices import ask_single
from prism_mesa.social.round.columns import AgentColumns, PostColumns
from prism_mesa.social.round.effects import (
    apply_effects,
    give_up,
    note_engagement,
    pass_posts,
    read_next,
    rollback_on_error,
)
from prism_mesa.social.round.follow_rules import BLOCK, FOLLOW, MUTE, REPORT, SCRIPT, UNBLOCK, UNFOLLOW, UNMUTE
from prism_mesa.social.round.follows import absence, note_decision, other_row
from prism_mesa.social.round.questions import personalities, questions, to_archetype
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.population import NO_ACTION, NO_POST, Population, pack_move, unpack_move
from prism_mesa.social.state.posts import WORDS_CAP
from prism_mesa.statechart import TIMEOUT, Statechart, StateTransition, Transition, export_agent

_FIELDS_IN_PROMPTS: Final = (
    "name interests personality traits propensities low_threshold high_threshold engagement_threshold state_history"
).split()
"""Fields that questions to the LLM mention."""
_MAX_POSTS: Final = 8
"""Number of posts of the feed that a notebook shows."""


def require_whole_number(name: str, value: Any, minimum: int) -> int:
    """Return `value` as an int; raise AgentError if it is not a whole number or does not fit its column."""
    if not isinstance(value, int | np.integer) or not minimum <= value < 2**31:
        raise AgentError(f"SocialAgent.{name}: {value!r} is not a whole number from {minimum}")
    return int(value)


def make_number_property(
    name: str, meaning: str, low: float, high: float, *, is_whole: bool, column: Callable[[Population], Any]
) -> property:
    """Return a property over a column of numbers from `low` to `high`."""

    def read(agent: Any) -> float:
        value = column(agent._platform.population)[agent.row]
        return int(value) if is_whole else float(value)

    def write(agent: Any, value: float) -> None:
        if is_whole:
            value = require_whole_number(name, value, int(low))
        if not isinstance(value, Real) or not low <= float(value) <= high:
            raise AgentError(f"SocialAgent.{name}: {value!r} is not in {low:g}..{high:g}")
        column(agent._platform.population)[agent.row] = float(value)

    return property(read, write, doc=meaning)


class HistoryView(Sequence[StateTransition]):
    """A view of an agent's history, of which the platform keeps the latest entries."""

    def __init__(self, platform: Platform, row: int) -> None:
        self._platform, self._row = platform, row

    def append(self, value: StateTransition) -> None:
        """Record a transition at the tick nearest to its timestamp, with the `post_id` of its context."""
        self._platform.history.record(np.array([self._row]), *self._columns(value))

    def check(self, value: StateTransition) -> None:
        """Raise AgentError if `append` would raise it."""
        self._columns(value)

    def _columns(self, value: StateTransition) -> tuple[UInt16, Int32, Rows]:
        platform = self._platform
        trigger = platform.trigger_code(value.trigger)
        if trigger < 0:
            raise AgentError(f"SocialAgent.state_history: {value.trigger!r} is not a trigger of {platform.chart.name}")
        post = (value.context or {}).get("post_id")
        post = post if isinstance(post, int | np.integer) else NO_POST
        move = pack_move(trigger, value.from_state.code, value.to_state.code)
        clock = np.array([platform.time_of_day.nearest_tick(value.timestamp)], np.int32)
        return np.array([move], np.uint16), clock, np.array([post], np.int32)

    def _entries(self) -> list[StateTransition]:
        platform = self._platform
        entries = []
        for move, clock, post in platform.history.entries(self._row):
            trigger, source, target = unpack_move(move, platform.states)
            context = None if post == NO_POST else {"post_id": post}
            name = platform.chart.triggers[trigger]
            entries.append(StateTransition(source, target, name, platform.time_of_day.time_at(clock), context))
        return entries

    def __len__(self) -> int:
        history = self._platform.history
        return min(int(history.count[self._row]), history.limit(self._row))

    @overload
    def __getitem__(self, index: int) -> StateTransition: ...
    @overload
    def __getitem__(self, index: slice) -> list[StateTransition]: ...
    def __getitem__(self, index: int | slice) -> StateTransition | list[StateTransition]:
        return self._entries()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._entries())


class PlatformAgent:
    """A user of a platform: its properties, what it sees, and what it can do; `SocialAgent` is the Mesa version.

    Attributes that the configuration declares are also Python attributes of the agent (docs/attributes.md).

    To follow, mute or block another agent, pass that agent or its row. The decision takes effect when the round is
    committed, even if `network.dynamics` is fixed; `social.round.follows` resolves conflicts.

    Args:
        platform: The platform.
        row: The agent's row in the population.
    """

    def __init__(self, platform: Platform, row: int) -> None:
        self._linked_platform = platform
        self.row = row

    @property
    def _platform(self) -> Platform:
        return self._linked_platform

    @property
    def _is_initialised(self) -> bool:
        return "_linked_platform" in self.__dict__

    def __getattr__(self, name: str) -> Any:
        """Return a declared attribute (`attributes`)."""
        if not name.startswith("_") and self._is_initialised:
            schema = self._platform.attributes.schema
            if name in schema.agents:
                index, attribute = schema.agent_attribute(name)
                return attribute.value(float(self._platform.population.attributes[self.row, index]))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; the value of a declared attribute goes to its column.

        Raises:
            AgentError: If a declared attribute does not allow the value.
        """
        schema = self._platform.attributes.schema if self._is_initialised else None
        if schema is None or name not in schema.agents:
            super().__setattr__(name, value)
            return
        index, attribute = schema.agent_attribute(name)
        try:
            self._platform.population.attributes[self.row, index] = attribute.number(value)
        except ValueError as error:
            raise AgentError(f"{type(self).__name__}.{name}: {error}") from None

    @one_line
    def __repr__(self) -> str:
        post = int(self._platform.population.current_post[self.row])
        status = f"{self.state.value}{'' if post == NO_POST else f' post {post}'}"
        if self.has_left:
            status = absence(self._platform, self.row)
        return f"<{type(self).__name__} {self.row} {self.name!r}: {status}>"

    @html_or_repr
    def _repr_html_(self) -> str:
        ticks, state, current_post = self.ticks_in_state, self.state, self.current_post
        task = "" if current_post is None else f" on post {current_post.post_id}"
        facts = {
            "state": chip_html(state.color, f"{state.value}{task}, for {format_count(ticks, 'tick')}"),
            "interests": ", ".join(self.interests),
            "personality": self.personality,
            "open choices": f"{self.low_threshold:.3f} to {self.high_threshold:.3f} of utility",
            "each round": f"online with probability {self.activity:.2g}, posts with {self.post_rate:.2g}",
            "engagements": ", ".join(f"{name} {share:.0%}" for name, share in self.propensities.items()),
        }
        feed = self.feed
        rows = []
        for post in feed[:_MAX_POSTS]:
            author = post.author_name if post.kind == "post" else f"{post.author_name} ({post.kind})"
            n_engagements = post.likes + post.replies + post.reshares
            rows.append((post.post_id, author, f"{post.utility:.2f}", n_engagements, post.text))
        table = table_html(("post", "by", "utility", "engagements", "text"), rows)
        unread = fold_html(f"feed: {len(feed)} unread", table) if feed else "nothing unread in its feed"
        remark = f"row {self.row}, id {self.agent_id}{', absent' if self.has_left else ''}"
        return card_html("agent", self.name, facts_html(facts.items()), unread, remark=remark)

    @property
    def has_left(self) -> bool:
        """Whether the agent was removed, has left, or has not joined yet (`agents.churn`)."""
        return self.row in self._platform.leaving or not self._platform.population.present[self.row]

    def _require_present(self, action: str) -> None:
        if not self._platform.population.present[self.row]:
            raise AgentError(f"SocialAgent.{action}: agent {self.row} {absence(self._platform, self.row)}")

    def follow(self, other: Any) -> bool:
        """Follow another agent, and return whether this is a new follow.

        Raises:
            AgentError: If `other` is absent or is the agent itself, or if one of the two agents has blocked the other.
        """
        return self._decide("follow", other, FOLLOW)

    def unfollow(self, other: Any) -> bool:
        """Unfollow another agent, and return whether a follow ended; a close tie ends too."""
        return self._decide("unfollow", other, UNFOLLOW)

    def mute(self, other: Any) -> bool:
        """Mute another agent, and return whether this is a new mute.

        Feeds no longer show that agent's posts or reshares of these posts. A follow stays.
        """
        return self._decide("mute", other, MUTE)

    def unmute(self, other: Any) -> bool:
        """Unmute another agent, and return whether a mute ended; feeds show later posts of that agent again."""
        return self._decide("unmute", other, UNMUTE)

    def block(self, other: Any) -> bool:
        """Block another agent, and return whether this is a new block.

        Follows between the two agents end, and each is hidden from the other, as if muted.
        """
        return self._decide("block", other, BLOCK)

    def unblock(self, other: Any) -> bool:
        """Unblock another agent, and return whether a block ended.

        Each of the two agents sees later posts of the other, unless a mute or a second block hides them. Follows that
        the block ended do not come back.
        """
        return self._decide("unblock", other, UNBLOCK)

    def report(self, post: Post) -> bool:
        """Report a post, and return whether this is a new report; reports are only recorded and counted."""
        method_name = f"{type(self).__name__}.report"
        self._require_post(post, "report")
        other = other_row(self._platform, self.row, post.author, method_name)
        return note_decision(self._platform, self.row, other, REPORT, SCRIPT, post.post_id)

    def _decide(self, method: str, other: Any, event: int) -> bool:
        method_name = f"{type(self).__name__}.{method}"
        if isinstance(other, PlatformAgent):
            if other._platform is not self._platform:
                raise AgentError(f"{method_name}: {other!r} is an agent of another platform")
            other = other.row
        if isinstance(other, bool) or not isinstance(other, int | np.integer):
            raise AgentError(f"{method_name}: {other!r} is not an agent: pass an agent or its row")
        other = other_row(self._platform, self.row, int(other), method_name)
        return note_decision(self._platform, self.row, other, event, SCRIPT)

    def _require_post(self, post: object, action: str) -> None:
        if not isinstance(post, Post) or not 0 <= post.post_id < len(self._platform.posts):
            raise AgentError(f"SocialAgent.{action}: {post!r} is not a post of this platform (see feed, read)")

    def step(self) -> None:
        """Run one tick: count it, and fire the agent's trigger. An idle or absent agent does nothing."""
        if self.state is not IDLE and self._platform.population.present[self.row]:
            with self._acting():
                self._step()

    def _step(self) -> None:
        platform, state, post = self._platform, self.state, self.current_post
        self.ticks_in_state += 1
        if self.ticks_in_state >= platform.chart.timeout_threshold(self):
            self.fire(TIMEOUT, post)
            return
        trigger = next_trigger(platform.chart, platform.tables.claim_condition, state, self, post)
        may_pass_posts = trigger == SEES_POST in platform.tables.triggers and platform.glances > 1
        if trigger is not None and not (may_pass_posts and not pass_posts(platform, self.row)):
            self.fire(trigger, self.next_post if trigger == SEES_POST else post)

    def fire(self, trigger: str, context: Any = None) -> AgentState | None:
        """Fire a trigger, ask the reasoner if the choice is open, and apply the transition's effects.

        Guards read `context` as ``F.post``. The default is the current post, or for `sees_post` the next post.

        Returns:
            The new state, or None if nothing happened.
        """
        self._require_present("fire")
        with self._acting():
            return self._fire(trigger, context)

    def _fire(self, trigger: str, context: Any) -> AgentState | None:
        platform, source = self._platform, self.state
        if context is None:
            context = self.next_post if trigger == SEES_POST else self.current_post
        outcome, guards = platform.chart.select(self, trigger, context)
        if isinstance(outcome, Transition) and outcome.target and isinstance(context, Post):
            choices = outcome.target.resembled is COMPOSING and platform.tables.open_options(trigger, source)
            outcome = choices if choices and must_ask(platform, self.row, context.post_id) else outcome
        was_open = isinstance(outcome, tuple)
        if isinstance(outcome, tuple):
            choice = self._ask(trigger, outcome, context)
            outcome = None if choice is None else platform.chart.resolve_key(source, trigger, choice, guards)
        if outcome is None or outcome.target is None:
            return None
        is_about_post = trigger != ABANDONS and outcome.target is not source and isinstance(context, Post)
        if is_about_post and give_up(platform, self.row, context.post_id, outcome.target):
            return self.fire(ABANDONS, context)
        with rollback_on_error(platform, self.row) if outcome.action is not None else nullcontext():
            platform.chart.take(outcome, self, context)
        apply_effects(platform, self.row, platform.trigger_code(trigger), source, outcome.target, was_open=was_open)
        target: AgentState = outcome.target
        return target

    @property
    def chart(self) -> Statechart:
        """The agent's chart: that of its account, or else that of all agents."""
        return self._platform.chart_of(self.row)

    def _acting(self) -> AbstractContextManager[None]:
        return self._platform.acting(int(self._platform.kinds(self._rows)[0]))

    def _ask(self, trigger: str, options: tuple[AgentState, ...], context: Any) -> AgentState | None:
        if len(options) == 1:
            return options[0]
        return ask_single(self._platform, self.row, self._question(trigger, options, context)).choice

    def _question(self, trigger: str, options: tuple[AgentState, ...], context: Any) -> Question:
        agents = AgentColumns(self._platform, self._rows)
        subclasses = type(self).__mro__[: type(self).__mro__.index(PlatformAgent)]
        has_own_prompt = any(name in vars(base) for base in subclasses for name in _FIELDS_IN_PROMPTS)
        if has_own_prompt or not (context is None or isinstance(context, Post)):
            return to_archetype(make_question(self, self.state, trigger, options, context), agents)
        posts = PostColumns(self._platform, self._rows, np.array([getattr(context, "post_id", NO_POST)]))
        return questions(agents, posts, [trigger], [options])[0]

    @property
    def feed(self) -> list[Post]:
        """The unread posts of this round's feed, best first."""
        population = self._platform.population
        unread = population.feed[self.row, int(population.n_read[self.row]) : int(population.n_feed[self.row])].tolist()
        return [post for post_id in unread if (post := self._platform.post(post_id, self.row)) is not None]

    def read(self) -> Post | None:
        """Read the next post of the feed and return it; None at the end. This counts as an impression."""
        if not self.n_unread:
            return None
        read_next(self._platform, self.row)
        return self.current_post

    def like(self, post: Post) -> bool:
        """Like a post, and return whether this is a new like; an agent likes each root at most once in a run.

        The like is counted when the round is committed.
        """
        return self._engage(post, "like")

    def reply(self, post: Post, text: str = "") -> bool:
        """Reply to a post, and return whether this is a new reply.

        Without `text`, the setting `content` supplies the words. The reply appears in the next round. An agent answers
        each post at most once a round; a later call with `text` only adds words to a reply without words.
        """
        return self._engage(post, "reply", text)

    def reshare(self, post: Post, comment: str = "") -> bool:
        """Reshare a post, and return whether this is a new reshare.

        Without `comment`, the setting `content` supplies the words. The reshare appears in the next round. An agent
        reshares each root at most once in a run.
        """
        return self._engage(post, "reshare", comment)

    def write(self, text: str) -> None:
        """Write a post; it appears in the next round."""
        self._require_present("write")
        if not isinstance(text, str) or not text.strip():
            raise AgentError(f"SocialAgent.write: {text!r} is not a non-empty string")
        self._platform.events.written.append((self.row, text))

    def _engage(self, post: Post, action: ActionName, text: str = "") -> bool:
        self._require_post(post, action)
        self._require_present(action)
        words = clean_text(text, WORDS_CAP) if isinstance(text, str) else ""
        if text != "" and not words:
            raise AgentError(f"SocialAgent.{action}: {text!r} is not a non-empty string; leave it out to add no words")
        return note_engagement(self._platform, self.row, post.post_id, ACTIONS.index(action), words)

    def is_interested(self, post: Any) -> bool:
        """Return whether the post lies above the agent's band."""
        return bool(IS_INTERESTED(self, post))

    def should_engage(self, post: Any) -> bool:
        """Return whether the post interests the agent, or is viral and inside its band."""
        return bool(SHOULD_ENGAGE(self, post))

    def to_dict(self) -> dict[str, Any]:
        """Return id, state, ticks in this state, and history as JSON values."""
        return export_agent(self)

    @property
    def _rows(self) -> Rows:
        return np.array([self.row])

    @property
    def now(self) -> datetime:
        """Simulated time."""
        return self._platform.now

    @property
    def moment(self) -> str:
        """Round and tick as a string: `round 3, tick 2`."""
        return f"round {self._platform.round}, tick {self._platform.tick}"

    @property
    def agent_id(self) -> str:
        """The agent's id in your files, as in the edge list."""
        return self._platform.population.ids[self.row]

    @property
    def name(self) -> str:
        """The agent's name in prompts."""
        return self._platform.population.names[self.row]

    @name.setter
    def name(self, value: str) -> None:
        self._platform.population.names[self.row] = str(value)

    @property
    def interests(self) -> list[str]:
        """Names of the topics closest to the agent's interests, closest first."""
        return list(self._platform.topics.interest_names(self._platform.population.interests[[self.row]])[0])

    @property
    def personality(self) -> str:
        """The Big Five in words, and the attributes that prompts mention."""
        return personalities(self._platform, self._rows)[0]

    @property
    def traits(self) -> dict[str, float]:
        """Big Five on 1..5."""
        return dict(zip(BIG_FIVE, self._platform.population.traits[self.row].tolist(), strict=True))

    @property
    def propensities(self) -> dict[ActionName, float]:
        """Shares of like, reply and reshare among the agent's engagements; they sum to 1."""
        return dict(zip(ACTIONS, self._platform.population.propensities[self.row].tolist(), strict=True))

    @property
    def states(self) -> dict[str, AgentState]:
        """The state in each chart by its name, as chart agents have it: the platform's has none."""
        return {"": self.state}

    def tick(self) -> None:
        """Do the same as `step`, under the name that chart agents have for it."""
        self.step()

    @property
    def state(self) -> AgentState:
        """The agent's state."""
        state: AgentState = self._platform.states[int(self._platform.population.state[self.row])]
        return state

    @state.setter
    def state(self, value: AgentState) -> None:
        if not isinstance(value, AgentState):
            advice = f"write AgentState({value!r})"
            if isinstance(value, list | tuple):
                advice = "it is an open choice: let the oracle choose one state, and call chart.apply with it"
            raise StateTypeError(f"SocialAgent.state: {value!r} is not an AgentState; {advice}")
        self._platform.population.state[self.row] = self.chart.codes[self.chart.find_state(value, "SocialAgent.state")]

    @property
    def low_threshold(self) -> float:
        """Utility below which the agent ignores a post."""
        return float(self.engagement_threshold) - self._platform.half_band

    @property
    def high_threshold(self) -> float:
        """Utility above which the agent engages."""
        return float(self.engagement_threshold) + self._platform.half_band

    @property
    def pending_action(self) -> ActionName | None:
        """The engagement that the agent is composing."""
        code = int(self._platform.population.pending_action[self.row])
        return None if code == NO_ACTION else ACTIONS[code]

    @pending_action.setter
    def pending_action(self, value: ActionName | None) -> None:
        if value is not None and value not in ACTIONS:
            raise AgentError(f"SocialAgent.pending_action: {value!r} is not one of {', '.join(ACTIONS)}, None")
        self._platform.population.pending_action[self.row] = NO_ACTION if value is None else ACTIONS.index(value)

    @property
    def scripted(self) -> bool:
        """Whether Mesa schedules the agent because its class has a script."""
        return bool(self._platform.population.scripted[self.row])

    @property
    def n_unread(self) -> int:
        """Number of unread posts of the feed."""
        return int(self._platform.population.n_feed[self.row]) - int(self._platform.population.n_read[self.row])

    @property
    def current_post(self) -> Post | None:
        """The post that the agent is evaluating or engaging with."""
        return self._platform.post(int(self._platform.population.current_post[self.row]), self.row)

    @property
    def next_post(self) -> Post | None:
        """The next unread post of the feed."""
        population, row = self._platform.population, self.row
        return self._platform.post(int(population.feed[row, population.n_read[row]]), row) if self.n_unread else None

    @property
    def max_history_depth(self) -> int:
        """Maximum number of entries in `state_history`: 0 to `statechart.max_history_depth`, the default."""
        return self._platform.history.limit(self.row)

    @max_history_depth.setter
    def max_history_depth(self, value: int) -> None:
        history = self._platform.history
        if require_whole_number("max_history_depth", value, 0) > history.depth:
            key = f"statechart.max_history_depth={history.depth}"
            raise AgentError(f"SocialAgent.max_history_depth: {value} is above {key}: raise that key")
        history.set_limit(self.row, int(value))

    @property
    def state_history(self) -> HistoryView:
        """The latest transitions, oldest first."""
        return HistoryView(self._platform, self.row)

    ticks_in_state = make_number_property(
        "ticks_in_state",
        "Ticks since the last transition, from 0.",
        *(0, 2**31 - 1),
        is_whole=True,
        column=attrgetter("ticks_in_state"),
    )


for _field in AGENT_FIELDS.values():
    _doc, _range = f"{_field.meaning.capitalize()} ({_field.unit}).", (_field.low, _field.high)
    _property = make_number_property(_field.name, _doc, *_range, is_whole=_field.whole, column=attrgetter(_field.name))
    setattr(PlatformAgent, _field.name, _property)
for _index, _name in enumerate(BIG_FIVE):
    _doc, _column = f"{_name.capitalize()}, 1..5.", lambda population, index=_index: population.traits[:, index]
    setattr(PlatformAgent, _name, make_number_property(_name, _doc, 1, 5, is_whole=False, column=_column))


class PlainAgents:
    """Agent objects of a platform that runs without Mesa; they are made on demand and have no scripts."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    @property
    def has_scripts(self) -> bool:
        """Whether agents run their ticks one by one (`scheduler: mesa`)."""
        return self._platform.params.scheduler == "mesa"

    def agent(self, row: int) -> PlatformAgent:
        """Return the agent of a row."""
        return PlatformAgent(self._platform, row)

    def copy_for(self, platform: Platform) -> Self:
        """Return agent objects for a copy of the platform."""
        return type(self)(platform)

    def update_presence(self, rows: Sequence[int]) -> None:
        """Do nothing, because no object depends on which agents are present."""

    def step_scripts(self) -> None:
        """Run one tick of each present agent, in the order of rows."""
        for row in np.flatnonzero(self._platform.population.present).tolist():
            self.agent(row).step()
