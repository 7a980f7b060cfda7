"""A social model for the page: it reports errors, and keeps the state in which its last round began."""

import warnings
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from time import monotonic
from typing import Any, Final, cast

import numpy as np

from prism_mesa.analysis.explain.report import round_lines
from prism_mesa.analysis.explain.trace import AgentRound, Thought, TracedAgent
from prism_mesa.analysis.explain.why import Explanation
from prism_mesa.errors import PrismError, format_error
from prism_mesa.llm import AskedRow, Ledger
from prism_mesa.llm.answer_store import AnswerStore
from prism_mesa.llm.dispatcher import PendingQuestion
from prism_mesa.llm.request import RunPosition
from prism_mesa.reasoner import Answer, PlacedQuestion, Reasoner, asks_llm
from prism_mesa.round_model import RoundCollector
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.state.chunks import trim_heap
from prism_mesa.view.page.inputs import changed_keys, input_values, with_inputs

MOST_REPEATED: Final = 20_000
"""The most agents for which the state before each round is kept, so that an agent's round can be explained."""
_ROUNDS_A_TRIM: Final = 10
_SLOW_S: Final = 1.0
"""If a round took so many seconds, the page says that the next one is running."""
_TOGETHER_S: Final = 1.0
"""A model plays, and is not stepped, if its rounds end fewer seconds apart."""
_REST_S: Final = 0.4
"""Seconds within which the next round of a model that plays is expected."""


def forget(platform: Platform) -> None:
    """Free a copy of a platform at once: its reference cycles would keep it until the next garbage collection."""
    vars(platform).clear()


class LastRound:
    """A recorder that keeps the rows of one round, of the tables that the page shows.

    Attributes:
        rows: Table -> columns.
        answers: The answer to each question to an LLM, by tick and agent.
    """

    def __init__(self) -> None:
        self.rows: dict[str, Mapping[str, Any]] = {}
        self.answers: dict[tuple[int, int], Answer] = {}

    def begin(self) -> None:
        """Forget the previous round."""
        self.rows, self.answers = {}, {}

    def wants(self, table: str) -> bool:
        """Return whether rows of a table are kept."""
        return table in ("transitions", "thoughts")

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        """Keep rows of the round."""
        self.rows[table] = columns

    def hear(self, question: PlacedQuestion, answer: Answer) -> None:
        """Keep an LLM's answer."""
        self.answers[question.tick, question.agent] = answer


class PageModel(SocialModel):
    """A social model that keeps its errors for the page to show; an exception would replace the page.

    Invalid inputs, and inputs with which no model can be made, are left out. A round that fails ends the run; the page
    stays.

    Args:
        config: The configuration that the inputs change.
        inputs: Values of inputs, by key (see `view.page.inputs`).
        on_work: Called with a text when something slow begins, and with an empty one when it ends.

    Attributes:
        inputs: Values of all inputs, by key.
        faults: The reason why an input was left out, by key.
        fault: Why the run ended, if a round failed; else empty.
        uncopied: Why the state before a round could not be kept; else empty.
        kept: The last round, in rows.
        lock: Held while a round runs. Hold it to read the model from another thread.
        ledger: Answers of the LLM; None if none is asked.
        on_work: As the argument; you can replace it.

    Raises:
        PrismError: If no model can be made from `config` itself.
    """

    def __init__(
        self,
        config: SocialParams,
        inputs: Mapping[str, Any] | None = None,
        on_work: Callable[[str], None] = lambda _: None,
    ) -> None:
        on_work("a new model is being made ...")
        try:
            self._begin(config, inputs)
        finally:
            on_work("")
        self.on_work, self._round_s = on_work, _SLOW_S if asks_llm(self.reasoner) else 0.0

    def _begin(self, config: SocialParams, inputs: Mapping[str, Any] | None) -> None:
        at_first = input_values(config)
        values = {key: (inputs or {})[key] for key in changed_keys(inputs or {}, at_first)}
        why = ""
        for without in ((), *((key,) for key in values), tuple(values)):
            params, faults = with_inputs(config, {key: values[key] for key in values if key not in without})
            try:
                self._start(params)
                break
            except (PrismError, MemoryError) as error:
                if without == tuple(values):
                    raise
                why = why or format_error(error)
        self.inputs = {**at_first, **values}
        self.faults = faults | dict.fromkeys(without, why)
        self.fault = self.uncopied = ""
        self.lock = RLock()
        self._before: Platform | None = None
        self._ended = -inf, -inf
        self._keep_answers()

    def _start(self, params: SocialParams) -> None:
        """Start again with these parameters."""
        self.__dict__.clear()  # a half-made model
        self.kept = LastRound()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the page shows `notes` itself
            super().__init__(params, recorder=self.kept)

    def _keep_answers(self) -> None:
        """Keep the LLM's answers, which the page shows, in a temporary ledger until the model is closed."""
        self.ledger: Ledger | None = None
        self._folder: TemporaryDirectory[str] | None = None
        if asks_llm(self.reasoner):
            self._folder = TemporaryDirectory(prefix="prism-page-", suffix=".temporary")
            self.ledger = Ledger(Path(self._folder.name) / "ledger.sqlite")
            self.reasoner.record(self.ledger, "page/page")
            self.reasoner.on_answer = self.kept.hear

    def step(self) -> None:
        """Run one round. If it fails, the run ends, and `fault` says why."""
        began = monotonic()
        if self._round_s >= _SLOW_S:
            self.on_work("a round is being run ...")
        self._step()
        if self._round_s >= _SLOW_S:
            self.on_work("")
        self._ended = self._ended[1], monotonic()
        self._round_s = self._ended[1] - began

    def _step(self) -> None:
        with self.lock:
            try:
                self._forget_before()
                self._before = self._copied_platform() if len(self.population) <= MOST_REPEATED else None
                self.kept.begin()
                super().step()
            except Exception as error:  # a user's guard or action may raise anything; the page must survive it
                self._forget_before()
                self.fault, self.running = format_error(error), False

    def _forget_before(self) -> None:
        if self._before is not None:
            forget(self._before)
            self._before = None
        if self.round % _ROUNDS_A_TRIM == 0:
            trim_heap()

    def _copied_platform(self) -> Platform | None:
        """Return a copy of the platform, sharing what never changes; if that fails, set `uncopied` and return None."""
        shared = (self.reasoner, self.writer, self.platform.network, self.first_network, self.drawn_network)
        try:
            return deepcopy(self.platform, {id(part): part for part in shared if part is not None})
        except Exception as error:  # a user's agent may not be copyable; the round runs anyway
            self.uncopied = format_error(error)
            return None

    @property
    def can_be_told(self) -> bool:
        """Whether the state before the last round was kept."""
        return self._before is not None

    @property
    def rest_s(self) -> float:
        """Seconds without a new round after which none is expected; 0 if rounds are run one by one."""
        before, last = self._ended
        is_playing = last - before < _TOGETHER_S and monotonic() - last < _REST_S
        return _REST_S if is_playing else 0.0

    def as_the_round_opened(self) -> SocialModel | None:
        """Return a copy of the model before the last round, without LLM and records; None if it was not kept."""
        if self._before is None:
            return None
        before = deepcopy(self._before, {id(part): part for part in (self.reasoner, self.writer) if part is not None})
        collector = RoundCollector(tables={name: list(rows) for name, rows in self.datacollector.tables.items()})
        left_out = (self.kept, self.ledger, self._folder, self._before, self.lock, self.on_work)
        replaced = {id(self.platform): before, id(self.datacollector): collector}
        twin = deepcopy(self, {id(part): None for part in left_out if part is not None} | replaced)
        twin.platform = before
        return twin

    def close(self) -> None:
        """Close the LLM's threads and connections, and delete its answers."""
        super().close()
        if self.ledger is not None:
            self.ledger.close()
        if self._folder is not None:
            self._folder.cleanup()


@dataclass(frozen=True)
class ToldRound:
    """An explanation of an agent's last round; `shown` is None if it did nothing, `note` says why it is missing."""

    lines: tuple[str, ...] = ()
    shown: AgentRound | None = None
    note: str = ""


@dataclass(frozen=True)
class _RecalledChoice:
    """Answers questions from those of the last round (see `gateway.Questions`)."""

    answers: Mapping[tuple[int, int], Answer]

    def prepare(self, question: PlacedQuestion) -> PendingQuestion[PlacedQuestion, Answer]:
        place = RunPosition(int(question.round), int(question.agent), int(question.tick))
        answer = self.answers.get((place.tick, place.agent), Answer(None, "fallback", "unknown"))
        options = question.question.options
        return PendingQuestion(question, "", options, place, (0.0, 0, 0), done=True, answer=answer)


def _recalling(asked: Reasoner, model: PageModel) -> Reasoner:
    """Return a reasoner that repeats the answers of an LLM in the last round."""
    store = AnswerStore(shared=model.ledger)
    reasoner = Reasoner(asked.oracles, params=asked.params, store=store, rule=asked.rule, kind=asked.kind)
    reasoner.batch_reasoner = asked.batch_reasoner
    reasoner.questions = cast("Any", _RecalledChoice(model.kept.answers))
    return reasoner


def tell_round(model: PageModel, row: int) -> ToldRound:
    """Explain what an agent did in the last round of a model. The model is not changed."""
    try:
        twin = model.as_the_round_opened()
    except Exception as error:  # a user's model may not be copyable
        return ToldRound(note=f"It cannot be told why: {format_error(error)}.")
    if twin is None:
        return ToldRound(note=why_untold(model))
    asked, before = model.reasoner, twin.platform
    if asks_llm(asked):
        before.reasoner = _recalling(asked, model)
    before.writer = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model has issued these warnings
            return _explain_round(model, twin, row)
    except Exception as error:  # a user's guard may raise anything; the page must survive it
        return ToldRound(note=f"It cannot be told why: {format_error(error)}.")
    finally:
        if before.reasoner is not asked and asks_llm(before.reasoner):
            before.reasoner.store.shared = None  # the model closes its ledger
        twin.close()
        forget(before)


def _explain_round(model: PageModel, twin: SocialModel, row: int) -> ToldRound:
    """Run the last round again in a copy of the model, and explain an agent."""
    traced = TracedAgent(twin, row)
    SocialModel.step(twin)
    twin.platform.posts = model.posts  # with what was written in the round
    traced.note_round()
    if not traced.rounds:
        return ToldRound(note="It was not on the platform in this round.")
    shown = traced.rounds[-1]
    shown.thoughts = _thoughts(model, row)
    for move in shown.moves:
        if move.post is not None and (post := model.post(move.post.post_id, row)) is not None:
            move.post = replace(move.post, text=post.text, words=post.words)
    keys = {move.stored.key for move in shown.moves if move.stored is not None}
    explanation = Explanation(traced, model.reasoner.label, traced.rounds, shown, _askers(model, keys))
    return ToldRound(tuple(round_lines(explanation, shown)), shown)


def why_untold(model: PageModel) -> str:
    """Return why the last round of a model cannot be explained; empty if it can."""
    if model.can_be_told:
        return ""
    if model.round < 0:
        return "No round has been run yet: press play (▶), or Step."
    if model.fault:
        return "The round failed; it cannot be told why."
    if model.uncopied:
        return f"It cannot be told why: the state before the round could not be kept ({model.uncopied})."
    return f"With {len(model.population):,} agents the state before each round is not kept: run it, and ask prism why."


def _thoughts(model: PageModel, row: int) -> list[Thought]:
    columns = model.kept.rows.get("thoughts")
    if columns is None:
        return []
    rows = np.flatnonzero(columns["agent"] == row)
    cells = (columns[name][rows].tolist() for name in ("tick", "action", "event", "text"))
    return [Thought(*thought) for thought in zip(*cells, strict=True)]


def _askers(model: PageModel, keys: set[str]) -> dict[str, list[AskedRow]]:
    """Return the reasoners that received answers so far."""
    askers: dict[str, list[AskedRow]] = {key: [] for key in keys}
    for row in model.ledger.asked() if model.ledger is not None and keys else ():
        if row.key in askers:
            askers[row.key].append(row)
    return askers
