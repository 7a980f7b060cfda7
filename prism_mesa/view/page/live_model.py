"""A social model for the page: it reports errors, and keeps the state in which its last round began."""

import warnings
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
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
from prism_mesa.view.page.inputs import apply_inputs, changed_keys, input_values

MAX_COPIED: Final = 20_000
"""Maximum number of agents for which each round keeps a copy of the platform, to explain an agent's round."""
_ROUNDS_PER_TRIM: Final = 10
_SLOW_S: Final = 1.0  # after a round this slow, the page says when the next round runs


class LastRound:
    """A recorder of one round: `rows` by table, and the LLM's `answers` by tick and agent."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget the previous round."""
        self.rows: dict[str, Mapping[str, Any]] = {}
        self.answers: dict[tuple[int, int], Answer] = {}

    def wants(self, table: str) -> bool:
        """Return whether rows of a table are kept."""
        return table in ("transitions", "thoughts")

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        """Keep rows of the round."""
        self.rows[table] = columns

    def keep_answer(self, question: PlacedQuestion, answer: Answer) -> None:
        """Keep an LLM's answer."""
        self.answers[question.tick, question.agent] = answer


class PageModel(SocialModel):
    """A social model that keeps its errors for the page to show; an exception would replace the page.

    Inputs that are invalid, or with which no model can be made, are left out. A round that fails ends the run.

    Args:
        config: The configuration that the inputs change.
        inputs: Values of inputs, by key (see `view.page.inputs`).
        on_work: Called with a message when slow work begins, and with an empty string when it ends.

    Attributes:
        rest_s: Seconds without a new round after which the page explains the last one.
        inputs: Values of all inputs, by key.
        faults: Why inputs were left out, by key.
        fault: Why a round failed; else empty.
        copy_fault: Why the platform before a round could not be copied; else empty.
        lock: Held while a round runs. Hold it to read the model from another thread.
        ledger: Answers of the LLM; None if no LLM is asked.

    Raises:
        PrismError: If no model can be made from `config` itself.
    """

    rest_s = 0.4

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
        defaults = input_values(config)
        values = {key: (inputs or {})[key] for key in changed_keys(inputs or {}, defaults)}
        reason = ""
        for left_out in ((), *((key,) for key in values), tuple(values)):
            params, faults = apply_inputs(config, {key: values[key] for key in values if key not in left_out})
            try:
                self._start(params)
                break
            except (PrismError, MemoryError) as error:
                if left_out == tuple(values):
                    raise
                reason = reason or format_error(error)
        self.inputs = {**defaults, **values}
        self.faults = faults | dict.fromkeys(left_out, reason)
        self.fault = self.copy_fault = ""
        self.lock = RLock()
        self._before: Platform | None = None
        self._keep_answers()

    def _start(self, params: SocialParams) -> None:
        """Make a new model with these parameters."""
        self.__dict__.clear()  # attributes of an incomplete model
        self.last_round = LastRound()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the page shows `notes` itself
            super().__init__(params, recorder=self.last_round)

    def _keep_answers(self) -> None:
        """Keep the LLM's answers, which the page shows, in a temporary ledger until the model is closed."""
        self.ledger: Ledger | None = None
        self._folder: TemporaryDirectory[str] | None = None
        if asks_llm(self.reasoner):
            self._folder = TemporaryDirectory(prefix="prism-page-", suffix=".temporary")
            self.ledger = Ledger(Path(self._folder.name) / "ledger.sqlite")
            self.reasoner.record(self.ledger, "page/page")
            self.reasoner.on_answer = self.last_round.keep_answer

    def step(self) -> None:
        """Run one round. If it fails, the run ends, and `fault` says why."""
        start, is_slow = monotonic(), self._round_s >= _SLOW_S
        if is_slow:
            self.on_work("a round is being run ...")
        with self.lock:
            try:
                self._free_copy()
                self._before = self._copied_platform() if len(self.population) <= MAX_COPIED else None
                self.last_round.begin()
                super().step()
            except Exception as error:  # a user's guard or action may raise anything; the page must survive it
                self._free_copy()
                self.fault, self.running = format_error(error), False
        if is_slow:
            self.on_work("")
        self._round_s = monotonic() - start

    def _free_copy(self) -> None:
        """Free the copy of the platform before the last round."""
        if self._before is not None:
            vars(self._before).clear()  # its reference cycles would keep it until the next garbage collection
            self._before = None
        if self.round % _ROUNDS_PER_TRIM == 0:
            trim_heap()

    def _copied_platform(self) -> Platform | None:
        """Return a copy of the platform that shares constant parts; if that fails, set `copy_fault`."""
        shared_parts = (self.reasoner, self.writer, self.platform.network, self.first_network, self.drawn_network)
        try:
            return deepcopy(self.platform, {id(part): part for part in shared_parts if part is not None})
        except Exception as error:  # a user's agent may not be copyable; the round runs anyway
            self.copy_fault = format_error(error)
            return None

    def copy_before_round(self) -> SocialModel:
        """Return a copy of the model before the last round, without LLM and records; its platform must be copied."""
        platform = deepcopy(self._before, {id(part): part for part in (self.reasoner, self.writer) if part is not None})
        collector = RoundCollector(tables={name: list(rows) for name, rows in self.datacollector.tables.items()})
        left_out = (self.last_round, self.ledger, self._folder, self._before, self.lock, self.on_work)
        replaced = {id(self.platform): platform, id(self.datacollector): collector}
        twin = deepcopy(self, {id(part): None for part in left_out if part is not None} | replaced)
        twin.platform = cast("Platform", platform)
        return twin

    def why_not_explained(self) -> str:
        """Return why the last round cannot be explained; empty if it can."""
        if self._before is not None:
            return ""
        if self.round < 0:
            return "No round has been run yet: press play (▶), or Step."
        if self.fault:
            return "The round failed and cannot be explained."
        if self.copy_fault:
            return f"No explanation: the state before the round could not be kept ({self.copy_fault})."
        n = len(self.population)
        return f"With {n:,} agents, the state before each round is not kept: use prism run, then prism why."

    def close(self) -> None:
        """Close the LLM's threads and connections, and delete its answers."""
        super().close()
        if self.ledger is not None:
            self.ledger.close()
        if self._folder is not None:
            self._folder.cleanup()


@dataclass(frozen=True)
class RoundExplanation:
    """An agent's last round explained; `agent_round` is None if it did nothing, `note` says why it is missing."""

    lines: tuple[str, ...] = ()
    agent_round: AgentRound | None = None
    note: str = ""


@dataclass(frozen=True)
class _KnownAnswers:
    """Answers questions with the answers of the last round (see `gateway.Questions`)."""

    answers: Mapping[tuple[int, int], Answer]

    def prepare(self, question: PlacedQuestion) -> PendingQuestion[PlacedQuestion, Answer]:
        position = RunPosition(int(question.round), int(question.agent), int(question.tick))
        answer = self.answers.get((position.tick, position.agent), Answer(None, "fallback", "unknown"))
        options = question.question.options
        return PendingQuestion(question, "", options, position, (0.0, 0, 0), done=True, answer=answer)


def explain_round(model: PageModel, row: int) -> RoundExplanation:
    """Explain what an agent did in the last round of a model, by running it again in a copy of the model."""
    if note := model.why_not_explained():
        return RoundExplanation(note=note)
    twin: SocialModel | None = None
    source = model.reasoner
    try:
        twin = model.copy_before_round()
        twin.platform.writer = None
        if asks_llm(source):  # the copy repeats the LLM's answers
            store = AnswerStore(shared=model.ledger)
            reasoner = Reasoner(source.oracles, params=source.params, store=store, rule=source.rule, kind=source.kind)
            reasoner.batch_reasoner = source.batch_reasoner
            reasoner.questions = cast("Any", _KnownAnswers(model.last_round.answers))
            twin.platform.reasoner = reasoner
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model has issued these warnings
            return _explain_in_copy(model, twin, row)
    except Exception as error:  # a user's agent may not be copyable, and a user's guard may raise anything
        return RoundExplanation(note=f"No explanation: {format_error(error)}.")
    finally:
        if twin is not None:
            if (repeater := twin.platform.reasoner) is not source and asks_llm(repeater):
                repeater.store.shared = None  # the model closes its ledger
            twin.close()
            vars(twin.platform).clear()  # frees it at once


def _explain_in_copy(model: PageModel, twin: SocialModel, row: int) -> RoundExplanation:
    traced = TracedAgent(twin, row)
    SocialModel.step(twin)
    twin.platform.posts = model.posts  # with what was written in the round
    traced.note_round()
    if not traced.rounds:
        return RoundExplanation(note="It was not on the platform in this round.")
    agent_round = traced.rounds[-1]
    agent_round.thoughts = _thoughts(model, row)
    for move in agent_round.moves:
        if move.post is not None and (post := model.post(move.post.post_id, row)) is not None:
            move.post = replace(move.post, text=post.text, words=post.words)
    askers: dict[str, list[AskedRow]] = {move.stored_answer.key: [] for move in agent_round.moves if move.stored_answer}
    for question in model.ledger.asked() if model.ledger is not None and askers else ():
        if question.key in askers:
            askers[question.key].append(question)
    explanation = Explanation(traced, model.reasoner.label, traced.rounds, agent_round, askers)
    return RoundExplanation(tuple(round_lines(explanation, agent_round)), agent_round)


def _thoughts(model: PageModel, row: int) -> list[Thought]:
    columns = model.last_round.rows.get("thoughts")
    if columns is None:
        return []
    rows = np.flatnonzero(columns["agent"] == row)
    cells = (columns[name][rows].tolist() for name in ("tick", "action", "event", "text"))
    return [Thought(*thought) for thought in zip(*cells, strict=True)]
