"""Trace an agent's actions and their reasons while its run is repeated."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, get_args

import numpy as np

from prism_mesa.analysis.explain.feed import FeedReasons, explain_feed
from prism_mesa.analysis.explain.follows import Influence, influences, relations, turns
from prism_mesa.domain import ACTIONS, POST_KINDS, Post
from prism_mesa.llm import StoredAnswer
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.reasoner import Answer, Question, Reasoner
from prism_mesa.reasoner.oracle import read_reason
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import SEES_POST
from prism_mesa.social.content.activity import ActivityKind
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round.choices import ask_alone, choice_draws
from prism_mesa.social.round.presence import chances_online, draws_of_coming
from prism_mesa.social.state.population import NO_POST
from prism_mesa.social.state.posts import POST
from prism_mesa.social.state.texts import NO_TEXT
from prism_mesa.statechart import AgentState, Transition

_ACTIVITIES: Final = get_args(ActivityKind.__value__)


@dataclass
class Move:
    """A trigger that was fired on the agent, and its effect.

    Attributes:
        considered: The candidate transitions, with the value of the guard and the values that it read.
        draw: The keyed draw in [0, 1) that decided an open choice.
        stored: The LLM's answer in the ledger, if any.
        action_draw: The draw of the pending action, if the agent began composing.
        words: The words that the agent added to a reply or reshare.
        log_odds: The terms of the post's utility beside relevance (`Platform.log_odds`).
        place: An explanation of the post's place in the feed.
    """

    tick: int
    state: AgentState
    waited: int
    trigger: str
    post: Post | None
    considered: list[tuple[Transition, str, dict[str, Any]]]
    target: AgentState | None = None
    question: Question | None = None
    answer: Answer | None = None
    draw: float = 0.0
    stored: StoredAnswer | None = None
    action: str | None = None
    action_draw: float = 0.0
    words: str = ""
    log_odds: dict[str, float] = field(default_factory=dict)
    place: str = ""

    @property
    def reason(self) -> str:
        """The LLM's reason for its choice (`reasoner.reason`); empty if there is none."""
        return "" if self.stored is None else read_reason(self.stored.raw)


@dataclass(frozen=True)
class ActivityByTool:
    """An action by a tool while the agent wrote; a new post has `action` "post" and `post` -1."""

    action: ActivityKind
    post: int
    words: str


@dataclass(frozen=True)
class Thought:
    """A row of the table `thoughts`: a thought, a tool call, a text or an error."""

    tick: int
    action: str
    event: str
    text: str

    @property
    def activity(self) -> ActivityByTool | None:
        """The activity of a successful call of an acting tool, if it is one."""
        call = json.loads(self.text) if self.event == "tool" else {}
        if not call or call["tool_name"] not in _ACTIVITIES or not call["result"]["ok"]:
            return None
        parameters = call["parameters"]
        words = parameters.get("text", parameters.get("comment", ""))
        return ActivityByTool(call["tool_name"], int(float(parameters.get("post", NO_POST))), str(words))


@dataclass
class AgentRound:
    """An agent's actions and thoughts in a round.

    Attributes:
        feed: The number of posts in the feed.
        passed: Ticks in which the agent scrolled past posts, with the ids of the posts.
        reasons: An explanation of the feed; None if the agent was offline.
    """

    round: int
    online_draw: float
    online_chance: float
    came_online: bool = False
    feed: int = 0
    posted: list[str] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    passed: list[tuple[int, list[int]]] = field(default_factory=list)
    thoughts: list[Thought] = field(default_factory=list)
    reasons: FeedReasons | None = None

    @property
    def by_tool(self) -> list[ActivityByTool]:
        """Its activities by tools."""
        return [activity for thought in self.thoughts if (activity := thought.activity) is not None]

    @property
    def engaged(self) -> list[str]:
        """Its engagements by moves: like, reply, reshare."""
        names = {AgentState(f"engaging_{action}"): action for action in ACTIONS}
        return [names[move.target] for move in self.moves if move.target in names and move.target is not move.state]


def folded[T](things: Sequence[T], kind: Callable[[T], object], most: int = 4) -> Iterator[tuple[list[T], int]]:
    """Yield parts of a sequence in order, with immediate repetitions folded into a count.

    >>> [("".join(part), n) for part, n in folded("xababab", str)]
    [('x', 1), ('ab', 3)]
    """
    kinds, at = [kind(thing) for thing in things], 0
    while at < len(things):
        length, times = 1, 1
        for size in range(1, most + 1):
            n = 1
            while kinds[at : at + size] == kinds[at + n * size : at + (n + 1) * size]:
                n += 1
            if n > 1 and n * size > length * times:
                length, times = size, n
        yield list(things[at : at + length]), times
        at += length * times


class TracedAgent(SocialAgent):
    """An agent that acts as usual and records why, and why the post `about` was shown or not.

    It also keeps rows of three tables: `decided` (see `relations`), `turns`, and influences on its opinion (`moved`).
    """

    def __init__(self, model: SocialModel, row: int, about: int | None = None) -> None:
        self.about = about
        self.rounds: list[AgentRound] = []
        self.decided: list[tuple[bool, str]] = []
        self.turns: list[str] = []
        self.moved: list[Influence] = []
        self.thoughts: list[Thought] = []
        self._now: Move | None = None
        super().__init__(model, row)
        params = model.params
        is_moving = params.network.dynamics == "live" or params.has_churn or params.opinions.of is not None
        if model.writer is not None or is_moving:
            model.recorder = _Recorder(self)

    @property
    def llm(self) -> str:
        """The name of the agent's LLM if there are several; else empty."""
        [llm] = self.model.platform.llms.of(np.array([self.row]), self.model.population)
        return plain(llm, NAME_CAP)

    def step(self) -> None:
        """Begin a round on its first tick, then step."""
        model = self.model
        if not self.rounds or self.rounds[-1].round != model.round:
            draw = float(draws_of_coming(model.platform, np.array([self.row]))[0])
            chance = float(chances_online(model.platform)[self.row])
            feed = int(model.population.n_feed[self.row])
            self.rounds.append(AgentRound(model.round, draw, chance, self.state is not AgentState.IDLE, feed))
            if self.rounds[-1].came_online:
                self.rounds[-1].reasons = explain_feed(model, self.row, self.about)
        read = int(model.population.n_read[self.row])
        before = len(self.rounds[-1].moves)
        super().step()
        stopped = any(move.trigger == SEES_POST for move in self.rounds[-1].moves[before:])
        passed = model.population.feed[self.row, read : int(model.population.n_read[self.row]) - stopped].tolist()
        if passed:
            self.rounds[-1].passed.append((model.tick, passed))

    def fire(self, trigger: str, context: Any = None) -> AgentState | None:
        """Fire a trigger, and note the considered transitions and the effect."""
        model = self.model
        considered = model.chart.considered(self, trigger, context)
        post = context if isinstance(context, Post) else None
        # the clock advances before a trigger fires
        self._now = Move(model.tick, self.state, self.ticks_in_state, trigger, post, considered)
        if trigger == SEES_POST and post is not None:
            self._now.log_odds = model.platform.log_odds(self.row, post.post_id)
            reasons = self.rounds[-1].reasons
            self._now.place = "" if reasons is None else reasons.in_full.get(post.post_id, "")
        self._now.target = super().fire(trigger, context)
        if self._now.target is AgentState.COMPOSING:
            self._now.action = self.pending_action
            drawn = model.streams.uniform("action", self.row, round_=model.round, tick=model.tick)
            self._now.action_draw = float(drawn[0])
        self.rounds[-1].moves.append(self._now)
        return self._now.target

    def note_round(self) -> None:
        """After a round, record its posts and thoughts, and the words of replies and reshares."""
        thoughts, self.thoughts = self.thoughts, []
        round_, posts = self.model.round, self.model.posts
        if not self.rounds or self.rounds[-1].round != round_:
            return
        shown = np.flatnonzero((posts.round == round_) & (posts.kind == POST) & (posts.author == self.row))
        self.rounds[-1].thoughts, self.rounds[-1].posted = thoughts, posts.shown(shown)
        written = np.flatnonzero((posts.written == round_) & (posts.author == self.row))
        columns = (posts.kind[written].tolist(), posts.parent[written].tolist(), posts.words[written].tolist())
        ids = {(POST_KINDS[kind], parent): words for kind, parent, words in zip(*columns, strict=True)}
        for move in self.rounds[-1].moves:
            if move.target is not None and move.post is not None:
                words = ids.get((move.target.value.removeprefix("engaging_"), move.post.post_id), NO_TEXT)
                move.words = "" if words == NO_TEXT else posts.texts[words]

    def _ask(self, trigger: str, options: tuple[AgentState, ...], context: Any) -> AgentState | None:
        if len(options) == 1 or self._now is None:
            return super()._ask(trigger, options, context)
        model = self.model
        codes = np.array([model.platform.trigger_code(trigger)])
        self._now.draw = float(choice_draws(model.platform, np.array([self.row]), codes, model.tick)[0])
        self._now.question = self._question(trigger, options, context)
        self._now.answer = ask_alone(model.platform, self.row, self._now.question)
        if isinstance(model.reasoner, Reasoner) and model.reasoner.store.shared is not None:
            self._now.stored = model.reasoner.store.shared.get(self._now.answer.key)
        return self._now.answer.choice


class _Recorder:
    def __init__(self, agent: TracedAgent) -> None:
        self.agent = agent

    def wants(self, table: str) -> bool:
        return table in ("thoughts", "follows", "churn", "influences")

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        agent = self.agent
        match table:
            case "follows":
                agent.decided += relations(agent.model, agent.row, columns)
            case "churn":
                agent.turns += turns(agent.model, agent.row, columns)
            case "influences":
                agent.moved += influences(agent.row, columns)
            case "thoughts":
                rows = np.flatnonzero(columns["agent"] == agent.row)
                values = (columns[name][rows].tolist() for name in ("tick", "action", "event", "text"))
                agent.thoughts += [Thought(*row) for row in zip(*values, strict=True)]
