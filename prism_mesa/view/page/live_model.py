"""A social model for the page, which reports its errors and keeps the state before its last round."""

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
        self.clear()

    def clear(self) -> None:
        """Discard the previous round."""
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

    Inputs are left out if they are invalid or if no model can be made with them. A failed round ends the run.

    Args:
        config: The configuration that the inputs change.
        inputs: Values of inputs, by key (see `view.page.inputs`).
        on_work: Called with a message when slow work begins, and with an empty string when it ends.

    Attributes:
        rest_s: Seconds without a new round after which the page explains the last round.
        inputs: Values of all inputs, by key.
        faults: Why inputs were left out, by key.
        fault: Why a round failed; empty if none did.
        copy_fault: Why the platform could not be copied before a round; empty if it could.
        lock: Locked while a round runs. Acquire it to read the model from another thread.
        ledger: The LLM's answers; None if no LLM is asked.

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
            self._make_model(config, inputs)
        finally:
            on_work("")
        self.on_work, self._round_s = on_work, _SLOW_S if asks_llm(self.reasoner) else 0.0

    def _make_model(self, config: SocialParams, inputs: Mapping[str, Any] | None) -> None:
        defaults = input_values(config)
        values = {key: (inputs or {})[key] for key in changed_keys(inputs or {}, defaults)}
        reason = ""
        # use all inputs, or all but one, or none
        for left_out in ((), *((key,) for key in values), tuple(values)):
            params, faults = apply_inputs(config, {key: values[key] for key in values if key not in left_out})
            try:
                self._initialise(params)
                break
            except (PrismError, MemoryError) as error:
                if left_out == tuple(values):
                    raise
                reason = reason or format_error(error)
        self.inputs = {**defaults, **values}
        self.faults = faults | dict.fromkeys(left_out, reason)
        self.fault = self.copy_fault = ""
        self.lock = RLock()
        self._platform_copy: Platform | None = None
        self._keep_answers()

    def _initialise(self, params: SocialParams) -> None:
        self.__dict__.clear()  # remove attributes of an incomplete model
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
                self._platform_copy = self._copied_platform() if len(self.population) <= MAX_COPIED else None
                self.last_round.clear()
                super().step()
            except Exception as error:  # a user's guard or action may raise anything; the page must survive it
                self._free_copy()
                self.fault, self.running = format_error(error), False
        if is_slow:
            self.on_work("")
        self._round_s = monotonic() - start

    def _free_copy(self) -> None:
        if self._platform_copy is not None:
            vars(self._platform_copy).clear()  # else its reference cycles keep it until the next garbage collection
            self._platform_copy = None
        if self.round % _ROUNDS_PER_TRIM == 0:
            trim_heap()

    def _copied_platform(self) -> Platform | None:
        """Return a copy of the platform that shares constant parts; on failure, set `copy_fault` and return None."""
        shared_parts = (self.reasoner, self.writer, self.platform.network, self.first_network, self.drawn_network)
        try:
            return deepcopy(self.platform, {id(part): part for part in shared_parts if part is not None})
        except Exception as error:  # a user's agent may not be copyable; the round runs anyway
            self.copy_fault = format_error(error)
            return None

    def copy_before_round(self) -> SocialModel:
        """Return the model before the last round, without LLM and records; requires a copy of the platform."""
        platform = deepcopy(self._platform_copy, {id(part): part for part in (self.reasoner, self.writer)})
        collector = RoundCollector(tables={name: list(rows) for name, rows in self.datacollector.tables.items()})
        left_out = (self.last_round, self.ledger, self._folder, self._platform_copy, self.lock, self.on_work)
        replaced = {id(self.platform): platform, id(self.datacollector): collector}
        model_copy = deepcopy(self, {id(part): None for part in left_out if part is not None} | replaced)
        model_copy.platform = cast("Platform", platform)
        return model_copy

    def why_not_explained(self) -> str:
        """Return why the last round cannot be explained; empty if it can."""
        if self._platform_copy is not None:
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
    """The explanation of an agent's last round; `agent_round` is None if there is none, and `note` says why."""

    lines: tuple[str, ...] = ()
    agent_round: AgentRound | None = None
    note: str = ""


@dataclass(frozen=True)
class _KnownAnswers:
    """Answers questions with the answers of the last round (see `gateway.QuestionHandler`)."""

    answers: Mapping[tuple[int, int], Answer]

    def prepare(self, question: PlacedQuestion) -> PendingQuestion[PlacedQuestion, Answer]:
        position = RunPosition(int(question.round), int(question.agent), int(question.tick))
        answer = self.answers.get((position.tick, position.agent), Answer(None, "fallback", "unknown"))
        options = question.question.options
        return PendingQuestion(question, "", options, position, (0.0, 0, 0), done=True, answer=answer)


def explain_round(model: PageModel, row: int) -> RoundExplanation:
    """Explain what an agent did in the last round of a model, by repeating the round in a copy of the model."""
    if note := model.why_not_explained():
        return RoundExplanation(note=note)
    model_copy: SocialModel | None = None
    reasoner = model.reasoner
    try:
        model_copy = model.copy_before_round()
        model_copy.platform.writer = None
        if asks_llm(reasoner):  # the copy reuses the LLM's answers
            store = AnswerStore(shared_ledger=model.ledger)
            copied_reasoner = Reasoner(
                reasoner.oracles, params=reasoner.params, store=store, rule=reasoner.rule, kind=reasoner.kind
            )
            copied_reasoner.batch_reasoner = reasoner.batch_reasoner
            copied_reasoner.handler = cast("Any", _KnownAnswers(model.last_round.answers))
            model_copy.platform.reasoner = copied_reasoner
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the original model has issued these warnings
            return _explain_in_copy(model, model_copy, row)
    except Exception as error:  # a user's agent may not be copyable, and a user's guard may raise anything
        return RoundExplanation(note=f"No explanation: {format_error(error)}.")
    finally:
        if model_copy is not None:
            if (used_reasoner := model_copy.platform.reasoner) is not reasoner and asks_llm(used_reasoner):
                used_reasoner.store.shared_ledger = None  # the original model closes its ledger
            model_copy.close()
            vars(model_copy.platform).clear()  # free its memory at once


def _explain_in_copy(model: PageModel, model_copy: SocialModel, row: int) -> RoundExplanation:
    traced_agent = TracedAgent(model_copy, row)
    SocialModel.step(model_copy)
    model_copy.platform.posts = model.posts  # include the posts written in the round
    traced_agent.note_round()
    if not traced_agent.rounds:
        return RoundExplanation(note="The agent was not on the platform in this round.")
    agent_round = traced_agent.rounds[-1]
    agent_round.thoughts = _thoughts(model, row)
    for move in agent_round.moves:
        if move.post is not None and (post := model.post(move.post.post_id, row)) is not None:
            move.post = replace(move.post, text=post.text, words=post.words)
    askers: dict[str, list[AskedRow]] = {move.stored_answer.key: [] for move in agent_round.moves if move.stored_answer}
    for question in model.ledger.asked() if model.ledger is not None and askers else ():
        if question.key in askers:
            askers[question.key].append(question)
    explanation = Explanation(traced_agent, model.reasoner.label, traced_agent.rounds, agent_round, askers)
    return RoundExplanation(tuple(round_lines(explanation, agent_round)), agent_round)


def _thoughts(model: PageModel, row: int) -> list[Thought]:
    columns = model.last_round.rows.get("thoughts")
    if columns is None:
        return []
    rows = np.flatnonzero(columns["agent"] == row)
    cells = (columns[name][rows].tolist() for name in ("tick", "action", "event", "text"))
    return [Thought(*thought) for thought in zip(*cells, strict=True)]
