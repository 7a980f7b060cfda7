"""Trace an agent's actions and their reasons while its run is repeated."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, get_args

import numpy as np

from prism_mesa.analysis.explain.feed import FeedReasons, explain_feed
from prism_mesa.analysis.explain.follows import Influence, churn_event_texts, follow_event_texts, read_influences
from prism_mesa.domain import ACTIONS, POST_KINDS, AgentState, Post
from prism_mesa.llm import StoredAnswer
from prism_mesa.llm.text import NAME_CAP, clean_text
from prism_mesa.reasoner import Answer, Question, Reasoner
from prism_mesa.reasoner.oracle import read_reason
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import ABANDONS, SEES_POST
from prism_mesa.social.content.activity import ActivityKind
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round.acts import giving_up_text
from prism_mesa.social.round.choices import ask_single, choice_draws
from prism_mesa.social.round.effects import action_shares
from prism_mesa.social.round.presence import online_draws, online_probabilities
from prism_mesa.social.state.population import NO_POST
from prism_mesa.social.state.posts import POST
from prism_mesa.social.state.texts import NO_TEXT
from prism_mesa.statechart import Transition

_ACTIVITIES: Final = get_args(ActivityKind.__value__)


@dataclass
class Move:
    """A trigger that fired for the agent, and its effect.

    Attributes:
        candidates: The candidate transitions, each with the result of its guard and the values that the guard read.
        draw: The keyed draw in [0, 1) that decided an open choice.
        stored_answer: The LLM's answer in the ledger, if any.
        action_draw: The draw of the pending action, if the agent began composing.
        action_shares: The actions from which it is drawn, and their shares.
        words: The words that the agent added to a reply or reshare.
        log_odds: The terms of the post's utility other than relevance (`Platform.log_odds`).
    """

    tick: int
    state: AgentState
    ticks_in_state: int
    trigger: str
    post: Post | None
    candidates: list[tuple[Transition, str, dict[str, Any]]]
    target: AgentState | None = None
    question: Question | None = None
    answer: Answer | None = None
    draw: float = 0.0
    stored_answer: StoredAnswer | None = None
    action: str | None = None
    action_draw: float = 0.0
    action_shares: dict[str, float] = field(default_factory=dict)
    words: str = ""
    log_odds: dict[str, float] = field(default_factory=dict)
    feed_note: str = ""
    given_up: str = ""

    @property
    def reason(self) -> str:
        """The LLM's reason for its choice (`reasoner.reason`); empty if there is none."""
        return "" if self.stored_answer is None else read_reason(self.stored_answer.raw)


@dataclass(frozen=True)
class ToolActivity:
    """An action through a tool, called while the agent wrote; for a new post, `action` is "post" and `post` is -1."""

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
    def activity(self) -> ToolActivity | None:
        """The activity, if this is a successful call of a tool that acts on the platform."""
        call = json.loads(self.text) if self.event == "tool" else {}
        if not call or call["tool_name"] not in _ACTIVITIES or not call["result"]["ok"]:
            return None
        parameters = call["parameters"]
        words = parameters.get("text", parameters.get("comment", ""))
        return ToolActivity(call["tool_name"], int(float(parameters.get("post", NO_POST))), str(words))


@dataclass
class AgentRound:
    """An agent's actions and thoughts in a round.

    Attributes:
        passed_posts: Ticks in which the agent scrolled past posts, with the ids of these posts.
        reasons: The explanation of the feed; None if the agent was offline.
    """

    round: int
    online_draw: float
    online_chance: float
    came_online: bool = False
    n_feed: int = 0
    new_posts: list[str] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    passed_posts: list[tuple[int, list[int]]] = field(default_factory=list)
    thoughts: list[Thought] = field(default_factory=list)
    reasons: FeedReasons | None = None

    @property
    def tool_activities(self) -> list[ToolActivity]:
        """The agent's activities through tools."""
        return [activity for thought in self.thoughts if (activity := thought.activity) is not None]

    @property
    def engagements(self) -> list[str]:
        """The likes, replies and reshares among the moves."""
        names = {AgentState(f"engaging_{action}"): action for action in ACTIONS}
        targets = [move.target.resembled for move in self.moves if move.target and move.target is not move.state]
        return [names[target] for target in targets if target in names]


def fold_repeats[T](items: Sequence[T], key: Callable[[T], object], max_size: int = 4) -> Iterator[tuple[list[T], int]]:
    """Yield the parts of a sequence in order, with the number of times that each is repeated immediately.

    >>> [("".join(part), n) for part, n in fold_repeats("xababab", str)]
    [('x', 1), ('ab', 3)]
    """
    keys, start = [key(item) for item in items], 0
    while start < len(items):
        length, n_times = 1, 1
        for size in range(1, max_size + 1):
            n = 1
            while keys[start : start + size] == keys[start + n * size : start + (n + 1) * size]:
                n += 1
            if n > 1 and n * size > length * n_times:
                length, n_times = size, n
        yield list(items[start : start + length]), n_times
        start += length * n_times


class TracedAgent(SocialAgent):
    """An agent that acts as usual and records its reasons, and why its feed had or lacked `traced_post`.

    `follow_events`, `churn_events` and `influences` describe the agent's rows in `follows`, `churn` and `influences`.
    """

    def __init__(self, model: SocialModel, row: int, traced_post: int | None = None) -> None:
        self.traced_post = traced_post
        self.rounds: list[AgentRound] = []
        self.follow_events: list[tuple[bool, str]] = []
        self.churn_events: list[str] = []
        self.influences: list[Influence] = []
        self.thoughts: list[Thought] = []
        self._current_move: Move | None = None
        super().__init__(model, row)
        params = model.params
        is_moving = params.network.dynamics == "live" or params.has_churn or params.opinions.of is not None
        if model.writer is not None or is_moving:
            model.recorder = _Recorder(self)

    @property
    def llm(self) -> str:
        """The name of the agent's LLM if the run has several; otherwise empty."""
        [llm] = self.model.platform.llms.assigned_names(np.array([self.row]), self.model.population)
        return clean_text(llm, NAME_CAP)

    def step(self) -> None:
        """Start a new `AgentRound` at the first tick of a round, then step."""
        model = self.model
        if not self.rounds or self.rounds[-1].round != model.round:
            draw = float(online_draws(model.platform, np.array([self.row]))[0])
            chance = float(online_probabilities(model.platform)[self.row])
            n_feed = int(model.population.n_feed[self.row])
            self.rounds.append(AgentRound(model.round, draw, chance, self.state is not AgentState.IDLE, n_feed))
            if self.rounds[-1].came_online:
                self.rounds[-1].reasons = explain_feed(model, self.row, self.traced_post)
        n_read = int(model.population.n_read[self.row])
        n_moves_before = len(self.rounds[-1].moves)
        super().step()
        has_stopped = any(move.trigger == SEES_POST for move in self.rounds[-1].moves[n_moves_before:])
        end = int(model.population.n_read[self.row]) - has_stopped
        passed_posts = model.population.feed[self.row, n_read:end].tolist()
        if passed_posts:
            self.rounds[-1].passed_posts.append((model.tick, passed_posts))

    def fire(self, trigger: str, context: Any = None) -> AgentState | None:
        """Fire a trigger, and record the candidate transitions and the effect."""
        model = self.model
        candidates = self.chart.explain(self, trigger, context)
        post = context if isinstance(context, Post) else None
        # the clock advances before a trigger fires
        move = Move(model.tick, self.state, self.ticks_in_state, trigger, post, candidates)
        if trigger == ABANDONS and post is not None:
            move.given_up = giving_up_text(model.platform)
        self._current_move = move
        if trigger == SEES_POST and post is not None:
            self._current_move.log_odds = model.platform.log_odds(self.row, post.post_id)
            reasons = self.rounds[-1].reasons
            self._current_move.feed_note = "" if reasons is None else reasons.detailed_texts.get(post.post_id, "")
        target = super().fire(trigger, context)
        if self._current_move is not move:  # the agent gave up, which is a move of its own
            return target
        self._current_move.target = target
        if target is not None and target.resembled is AgentState.COMPOSING:
            self._current_move.action = self.pending_action
            draws = model.streams.uniform("action", self.row, round_=model.round, tick=model.tick)
            self._current_move.action_draw = float(draws[0])
            with self._acting():
                shares = action_shares(model.platform, self.row)
            total = sum(shares.values()) or 1.0
            self._current_move.action_shares = {ACTIONS[index]: share / total for index, share in shares.items()}
        self.rounds[-1].moves.append(self._current_move)
        return self._current_move.target

    def note_round(self) -> None:
        """After a round, record its posts and thoughts, and the words of replies and reshares."""
        thoughts, self.thoughts = self.thoughts, []
        round_, posts = self.model.round, self.model.posts
        if not self.rounds or self.rounds[-1].round != round_:
            return
        post_ids = np.flatnonzero((posts.round == round_) & (posts.kind == POST) & (posts.author == self.row))
        self.rounds[-1].thoughts, self.rounds[-1].new_posts = thoughts, posts.visible_texts(post_ids)
        written = np.flatnonzero((posts.written == round_) & (posts.author == self.row))
        columns = (posts.kind[written].tolist(), posts.parent[written].tolist(), posts.words[written].tolist())
        words_by_post = {(POST_KINDS[kind], parent): words for kind, parent, words in zip(*columns, strict=True)}
        for move in self.rounds[-1].moves:
            if move.target is not None and move.post is not None:
                words = words_by_post.get((move.target.value.removeprefix("engaging_"), move.post.post_id), NO_TEXT)
                move.words = "" if words == NO_TEXT else posts.texts[words]

    def _ask(self, trigger: str, options: tuple[AgentState, ...], context: Any) -> AgentState | None:
        if len(options) == 1 or self._current_move is None:
            return super()._ask(trigger, options, context)
        model = self.model
        codes = np.array([model.platform.trigger_code(trigger)])
        self._current_move.draw = float(choice_draws(model.platform, np.array([self.row]), codes, model.tick)[0])
        self._current_move.question = self._question(trigger, options, context)
        self._current_move.answer = ask_single(model.platform, self.row, self._current_move.question)
        if isinstance(model.reasoner, Reasoner) and model.reasoner.store.shared_ledger is not None:
            self._current_move.stored_answer = model.reasoner.store.shared_ledger.get(self._current_move.answer.key)
        return self._current_move.answer.choice


class _Recorder:
    def __init__(self, agent: TracedAgent) -> None:
        self.agent = agent

    def wants(self, table: str) -> bool:
        return table in ("thoughts", "follows", "churn", "influences")

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        agent = self.agent
        match table:
            case "follows":
                agent.follow_events += follow_event_texts(agent.model, agent.row, columns)
            case "churn":
                agent.churn_events += churn_event_texts(agent.model, agent.row, columns)
            case "influences":
                agent.influences += read_influences(agent.row, columns)
            case "thoughts":
                rows = np.flatnonzero(columns["agent"] == agent.row)
                values = (columns[name][rows].tolist() for name in ("tick", "action", "event", "text"))
                agent.thoughts += [Thought(*row) for row in zip(*values, strict=True)]
