"""What an agent did in a run and why: the run is repeated from its ledger with a `TracedAgent` over the agent's row.

The tables do not hold it; all of it follows from the configuration, the seed and the answers. No LLM is asked, and the
run's folder is only read. `analysis.explain.report` puts it into words.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np

from prism_mesa.analysis.explain.follows import DecisionAboutOther, decisions_about
from prism_mesa.domain import ACTIONS, POST_KINDS, Post
from prism_mesa.errors import DataError
from prism_mesa.llm import AskedRow, Ledger, StoredAnswer
from prism_mesa.reasoner import Answer, Question, Reasoner
from prism_mesa.runs.archive import row_of
from prism_mesa.runs.config import Config
from prism_mesa.runs.manifest import RecordedRun, read_run
from prism_mesa.runs.recorded import recorded_config
from prism_mesa.runs.rounds import as_before
from prism_mesa.runs.run_files import LEDGER
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
    """One trigger that was fired on the agent, and what came of it.

    Attributes:
        considered: The candidates, what each guard said, and the values that it read.
        options: What the guards left open, if anything.
        draw: The agent's keyed draw in [0, 1) by which an open choice, or the answer's probabilities, were decided.
        stored: The ledger's row of the answer, if an LLM gave it.
        action_draw: The draw by which the pending action was chosen, if COMPOSING was entered.
        words: What the agent says itself in a reply, or about what it reshares.
        log_odds: What a post that it reads has for it beside its relevance (`Platform.log_odds`).
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


@dataclass(frozen=True)
class ActivityByTool:
    """What an agent did by a tool, while it wrote: to a post, or (`action` "post", `post` -1) in one of its own."""

    action: ActivityKind
    post: int
    words: str


@dataclass(frozen=True)
class Thought:
    """What an agent thought, called or said while it wrote, or what did not work: a row of the table of thoughts."""

    tick: int
    action: str
    event: str
    text: str

    @property
    def activity(self) -> ActivityByTool | None:
        """What the agent did, if this is a call of a tool that does something, and it was carried out."""
        call = json.loads(self.text) if self.event == "tool" else {}
        if not call or call["tool_name"] not in _ACTIVITIES or not call["result"]["ok"]:
            return None
        given = call["parameters"]
        words = given.get("text", given.get("comment", ""))
        return ActivityByTool(call["tool_name"], int(float(given.get("post", NO_POST))), str(words))


@dataclass
class RoundOfAgent:
    """What an agent did in one round, and what it thought while it wrote, where an LLM wrote.

    Attributes:
        passed: Ticks in which it scrolled past posts, and how many these were.
    """

    round: int
    online_draw: float
    online_chance: float
    came_online: bool = False
    feed: int = 0
    posted: list[str] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    passed: list[tuple[int, int]] = field(default_factory=list)
    thoughts: list[Thought] = field(default_factory=list)

    @property
    def by_tool(self) -> list[ActivityByTool]:
        """What it did by tools."""
        return [activity for thought in self.thoughts if (activity := thought.activity) is not None]

    @property
    def engaged(self) -> list[str]:
        """The engagements by its moves: like, reply, reshare."""
        names = {AgentState(f"engaging_{action}"): action for action in ACTIONS}
        return [names[move.target] for move in self.moves if move.target in names and move.target is not move.state]


class _Listener:
    """A recorder that keeps what one agent thinks in a round, and what it and others decide about each other."""

    def __init__(self, model: SocialModel, row: int) -> None:
        self.model, self.row = model, row
        self.heard: list[Thought] = []
        self.decided: list[DecisionAboutOther] = []

    def wants(self, table: str) -> bool:
        return table in ("thoughts", "follows")

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        if table == "follows":
            self.decided += decisions_about(self.model, self.row, columns)
        if table == "thoughts":
            own = np.flatnonzero(columns["agent"] == self.row)
            told = (columns[name][own].tolist() for name in ("tick", "action", "event", "text"))
            self.heard += [Thought(*row) for row in zip(*told, strict=True)]


class TracedAgent(SocialAgent):
    """An agent that does what it would do anyway, and remembers why."""

    def __init__(self, model: SocialModel, row: int) -> None:
        self.rounds: list[RoundOfAgent] = []
        self._now: Move | None = None
        super().__init__(model, row)
        self._listener = _Listener(model, row)
        if model.writer is not None or model.params.network.dynamics == "live":
            model.recorder = self._listener

    @property
    def decided(self) -> list[DecisionAboutOther]:
        """What it decided about others so far, and others about it."""
        return self._listener.decided

    def step(self) -> None:
        """Note the round on its first tick, then do the tick."""
        model = self.model
        if not self.rounds or self.rounds[-1].round != model.round:
            draw = float(draws_of_coming(model.platform, np.array([self.row]))[0])
            chance = float(chances_online(model.platform)[self.row])
            feed = int(model.population.n_feed[self.row])
            self.rounds.append(RoundOfAgent(model.round, draw, chance, self.state is not AgentState.IDLE, feed))
        read = int(model.population.n_read[self.row])
        before = len(self.rounds[-1].moves)
        super().step()
        stopped = any(move.trigger == SEES_POST for move in self.rounds[-1].moves[before:])
        passed = int(model.population.n_read[self.row]) - read - stopped
        if passed > 0:
            self.rounds[-1].passed.append((model.tick, passed))

    def fire(self, trigger: str, context: Any = None) -> AgentState | None:
        """Fire, and note what was considered and what came of it."""
        model = self.model
        considered = model.chart.considered(self, trigger, context)
        post = context if isinstance(context, Post) else None
        # its clock has moved on already when a trigger is fired
        self._now = Move(model.tick, self.state, self.ticks_in_state, trigger, post, considered)
        if trigger == SEES_POST and post is not None:
            self._now.log_odds = model.platform.log_odds(self.row, post.post_id)
        self._now.target = super().fire(trigger, context)
        if self._now.target is AgentState.COMPOSING:
            self._now.action = self.pending_action
            drawn = model.streams.uniform("action", self.row, round_=model.round, tick=model.tick)
            self._now.action_draw = float(drawn[0])
        self.rounds[-1].moves.append(self._now)
        return self._now.target

    def hear_itself(self) -> None:
        """Note, after a round, what it posted and thought, and which words its replies and reshares got."""
        heard, self._listener.heard = self._listener.heard, []
        if self.rounds and self.rounds[-1].round == self.model.round:
            self.rounds[-1].thoughts = heard
        posts = self.model.posts
        shown = (posts.round == self.model.round) & (posts.kind == POST)
        if self.rounds and self.rounds[-1].round == self.model.round:
            texts = posts.text_id[shown & (posts.author == self.row)].tolist()
            self.rounds[-1].posted = [posts.texts[text] for text in texts]
        own = np.flatnonzero((posts.written == self.model.round) & (posts.author == self.row))
        columns = (posts.kind[own].tolist(), posts.parent[own].tolist(), posts.words[own].tolist())
        said = {(POST_KINDS[kind], parent): words for kind, parent, words in zip(*columns, strict=True)}
        for move in (move for r in self.rounds[-1:] if r.round == self.model.round for move in r.moves):
            if move.target is not None and move.post is not None:
                words = said.get((move.target.value.removeprefix("engaging_"), move.post.post_id), NO_TEXT)
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


@dataclass(frozen=True)
class Explanation:
    """An agent of a run, and its rounds; `shown` is the one to be told in full.

    Attributes:
        decided_by: Who decided what was left open in the run.
        asked: By the ledger's key, who got an answer in the run, in the order in which they were told.
    """

    agent: TracedAgent
    decided_by: str
    rounds: list[RoundOfAgent]
    shown: RoundOfAgent | None
    asked: Mapping[str, Sequence[AskedRow]] = field(default_factory=dict)


@as_before()
def why(
    run_dir: str | Path,
    agent: str,
    round_: int | None = None,
    *,
    on_round: Callable[[int], None] | None = None,
    trust: bool = False,
) -> Explanation:
    """Return what an agent of a run did, and why.

    Args:
        run_dir: The run's folder.
        agent: The agent's row, id, or name.
        round_: The round to tell; by default the last of those with most engagements after open choices, or by tools.
        on_round: Called with the number of rounds repeated, after each.
        trust: As for `replay`.

    Raises:
        DataError: If there is no such run, agent or round, the run cannot be repeated from its folder, or is not
            trusted.
        OracleError: If the ledger lacks an answer.
    """
    run_dir = Path(run_dir)
    config = recorded_config(run_dir, trust=trust)
    recorded = read_run(run_dir)
    last = _last_round(recorded, config)
    if round_ is not None and not 0 <= round_ <= last:
        raise DataError(f"{run_dir}: no round {round_} there (rounds: 0 .. {last})")
    with closing(SocialModel(config)) as model:
        people = model.population
        traced = TracedAgent(model, row_of(agent, people.ids, people.names, run_dir))
        for done in range((last if round_ is None else round_) + 1):
            model.step()
            traced.hear_itself()
            if on_round is not None:
                on_round(done + 1)
    rounds = traced.rounds
    shown = next((r for r in rounds if r.round == round_), None) if round_ is not None else _most_telling(rounds)
    keys = {move.stored.key for move in (shown.moves if shown is not None else ()) if move.stored is not None}
    return Explanation(traced, recorded.manifest.decided_by, rounds, shown, _asked_rows(recorded.folder, keys))


def _asked_rows(run_dir: Path, keys: Collection[str]) -> dict[str, list[AskedRow]]:
    """Return who got each of some answers in a run."""
    found: dict[str, list[AskedRow]] = {key: [] for key in keys}
    if not found:
        return found
    with Ledger(run_dir / LEDGER, read_only=True) as ledger:
        for row in ledger.asked():
            if row.key in found:
                found[row.key].append(row)
    return found


def _last_round(run: RecordedRun, config: Config) -> int:
    """Return the last round that is known to have been completed; a run that was killed does not say."""
    rounds = run.manifest.summary.rounds
    if rounds is None and run.manifest.llm is not None:
        with Ledger(run.folder / LEDGER, read_only=True) as ledger:
            rounds = max((row.round for row in ledger.asked()), default=0)
    if rounds == 0:
        raise DataError(f"{run.folder}: no round of it was completed (status {run.state}){run.way_on}")
    return min(rounds or config.rounds, config.rounds) - 1


def _most_telling(rounds: list[RoundOfAgent]) -> RoundOfAgent | None:
    def weight(r: RoundOfAgent) -> tuple[int, int, bool, int]:
        open_choices = sum(move.answer is not None for move in r.moves)
        sure, by_tool = min(len(r.engaged), open_choices), len(r.by_tool)
        return sure + by_tool, len(r.engaged) + by_tool + open_choices + len(r.posted), r.came_online, r.round

    return max(rounds, key=weight, default=None)
