"""The gateway: looks up answers, asks an LLM, and stores, replays and counts its answers.

`QuestionHandler.prepare` writes a question's prompt. If the `AnswerStore` has no answer, the `Dispatcher` asks the LLM,
once for all equal questions. The store keeps the answer, `QuestionHandler.conclude` converts it for the caller, and the
ledger records who asked. `answer` and `answer_all` return answers in the order of the questions, `collect` in the order
of arrival.
"""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, cast
from weakref import finalize

from prism_mesa.errors import LLMFailureException, OracleError
from prism_mesa.llm.answer_store import AnswerStore
from prism_mesa.llm.budget import Budget, tokens_to_reserve
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.clients.event_loop import LoopThread
from prism_mesa.llm.dispatcher import Dispatcher, PendingQuestion
from prism_mesa.llm.errors import MAX_USELESS_ANSWERS, Closeable, UselessAnswerError
from prism_mesa.llm.ledger import AskedRow, Ledger, StoredAnswer, answer_key, decoding_text
from prism_mesa.llm.params import SHORTFALLS, LLMParams, Source
from prism_mesa.snapshot import Restorable


class QuestionHandler[Q, A](Protocol):
    """A handler of one kind of question: writes prompts, and turns outcomes into answers."""

    def prepare(self, question: Q) -> PendingQuestion[Q, A]:
        """Return a question with its prompt and its LLM. If it needs no LLM, it is `done` and has its answer."""

    def conclude(self, pending: PendingQuestion[Q, A], source: Source) -> tuple[A, Source]:
        """Return the caller's answer and its source. A failed question has a `reason` and gets a replacement."""

    def summarise(self, pending: PendingQuestion[Q, A], value: Any) -> tuple[str, str]:
        """Return the choice and the probabilities for the ledger."""

    def describe(self, pending: PendingQuestion[Q, A]) -> str:
        """Describe the question for an error."""

    def useless_error(self, pending: PendingQuestion[Q, A]) -> LLMFailureException:
        """Return the error for an LLM whose first `MAX_USELESS_ANSWERS` answers are all useless."""


class LLMGateway[Q, A, P: LLMParams](Closeable, Restorable):
    """Asks an LLM questions of one kind, in a separate event loop, so it also works inside a running loop.

    Questions with equal keys (prompt, options, LLM, decoding) are asked once. The first question, by tick and agent,
    counts as `llm`; the others and all later questions with this key count as `cache`.

    Args:
        store: Recorded answers; by default an empty store without a ledger.
        attempts: Maximum number of attempts at a question after temporary failures.
        kind: The LLM's kind, as in the parameters; `python` for a client made in Python.
        note: Why this LLM replaces the preferred LLM; empty if it is the preferred one.
        budget: The limits, which a reasoner and a client may share; by default the limits in `params`.

    Attributes:
        counts: Answers so far by source; `reasons` counts missing answers by reason.
        usage: Cost so far: `calls`, `prompt_tokens`, `completion_tokens`.
        by_llm: For each LLM (`RunPosition.llm`), the number of answers by source, and the cost as in `usage`.
        on_answer: Called in the gateway's thread with each question and its answer; None for no callback.
    """

    saved_fields: ClassVar[tuple[str, ...]] = tuple("counts reasons usage by_llm budget store _useless _ok".split())

    def __init__(
        self,
        handler: QuestionHandler[Q, A],
        params: P,
        store: AnswerStore | None,
        *,
        slots: int,
        attempts: int,
        kind: str,
        note: str,
        budget: Budget | None = None,
    ) -> None:
        self.handler, self.params = handler, params
        self.store = store or AnswerStore()
        self.slots, self.attempts, self.kind, self.note = slots, attempts, kind, note
        self.budget = budget or Budget(params)
        self.counts: Counter[Source] = Counter()
        self.reasons, self.usage = Counter[str](), Counter[str]()
        self.by_llm: dict[str, Counter[str]] = {}
        self.on_answer: Callable[[Q, A], object] | None = None
        self._useless, self._ok = Counter[str](), set[str]()
        self._failures: dict[str, str] = {}
        self._failed_round = -1
        self._background: LoopThread | None = None
        self._lock = threading.Lock()
        self._dispatcher: Dispatcher[Q, A] | None = None
        self._waiting: dict[str, PendingQuestion[Q, A]] = {}
        self._answers: list[tuple[Q, A]] = []
        self._n_open = 0

    def __getstate__(self) -> dict[str, Any]:
        reset: dict[str, Any] = {"_background": None, "_dispatcher": None, "_lock": None, "_waiting": {}, "_n_open": 0}
        return vars(self) | reset

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    def answer(self, questions: Sequence[Q]) -> list[A]:
        """Return the same answers as `answer_all`, for callers that cannot await."""
        return self._loop().run(self._answer_all(questions)) if questions else []

    async def answer_all(self, questions: Sequence[Q]) -> list[A]:
        """Return the answers in the order of `questions`, and record them.

        Under a limit, questions are asked by priority, then tick, then agent, regardless of the order of the answers.
        Raises OracleError (`not-recorded`) if a replayed ledger lacks a question.
        """
        return await asyncio.wrap_future(self._loop().start(self._answer_all(questions)))

    def submit(self, questions: Sequence[Q]) -> None:
        """Send questions without waiting; `collect` returns the answers. Raises the same errors as `answer_all`."""
        self._loop().run(self._submit(questions))

    def collect(self) -> list[tuple[Q, A]]:
        """Wait for answers to submitted questions and return them; [] when no question is in progress.

        It also waits until the LLM has free slots for more questions, so that each call returns many answers.
        """
        return self._loop().run(self._collect())

    async def _answer_all(self, questions: Sequence[Q]) -> list[A]:
        batch: list[PendingQuestion[Q, A]] = []
        dispatcher = self._get_dispatcher()
        try:
            batch.extend(self._put(question, submitted=False) for question in questions)
            for pending in batch:
                while not pending.done:
                    await dispatcher.wait()
            dispatcher.check()
        except BaseException:
            for pending in batch:
                pending.is_abandoned = True
            self._deliver([pending for pending in batch if pending.done])
            raise
        return self._deliver(batch)

    async def _submit(self, questions: Sequence[Q]) -> None:
        batch: list[PendingQuestion[Q, A]] = []
        try:
            batch.extend(self._put(question, submitted=True) for question in questions)
        finally:
            self._deliver([pending for pending in batch if pending.done])

    async def _collect(self) -> list[tuple[Q, A]]:
        dispatcher = self._get_dispatcher()
        while self._n_open and not (self._answers and dispatcher.needs_questions):
            await dispatcher.wait()
        dispatcher.check()
        answers, self._answers[:] = self._answers[:], []
        return answers

    def _put(self, question: Q, *, submitted: bool) -> PendingQuestion[Q, A]:
        """Prepare a question and look up its answer; else pass it to the dispatcher, once for equal questions."""
        pending = self.handler.prepare(question)
        pending.is_submitted = submitted
        if pending.done:
            return pending
        if pending.once_a_round and pending.position.round != self._failed_round:
            self._failures, self._failed_round = {}, pending.position.round
        self.budget.begin_round(pending.position.round)
        pending.key = answer_key(pending.prompt, pending.options, *pending.identity)
        pending.done = self._look_up(pending)
        if not pending.done:
            self._n_open += submitted
            if (first := self._waiting.setdefault(pending.key, pending)) is pending:
                pending.reserved_tokens = tokens_to_reserve(pending.prompt, pending.identity[2], pending.calls)
                self._get_dispatcher().put(pending)
            else:
                pending.wait_for(first)
        return pending

    def _look_up(self, pending: PendingQuestion[Q, A]) -> bool:
        row = None
        pending.is_replay = self.store.mode == "replay"
        if pending.is_replay:
            row = self.store.next_outcome(pending.position.round, pending.position.tick, pending.position.agent)
            was_unanswered = row is not None and row.source in SHORTFALLS
            if row and was_unanswered and (row.key == pending.key or not self.store.has_llm(*pending.identity)):
                pending.reason, pending.attempts, pending.is_first = row.reason, row.attempts, True
                return True
        pending.raw = self.store.find_raw(pending.key)
        if pending.raw is None and pending.is_replay:
            ledger = "" if self.store.shared_ledger is None else f" {self.store.shared_ledger.path}"
            fault = f"the ledger{ledger} holds no answer for {self.handler.describe(pending)}"
            hint = "; another question is recorded there: has the configuration or a file changed?"
            raise OracleError("not-recorded", fault + (hint if row else ""))
        if pending.raw is None and pending.once_a_round:
            pending.reason = self._failures.get(pending.key, "")
        return pending.raw is not None or bool(pending.reason)

    async def _ask_or_repeat(self, pending: PendingQuestion[Q, A]) -> Completion:
        """Return the answer that the LLM gave before the run was stopped, or ask the LLM."""
        outcome = self.store.answer_before_stop(pending.key)
        if outcome is None:
            assert pending.ask is not None  # noqa: S101 - `prepare` sets it, or the question is done
            return await pending.ask(pending.attempts)
        stored, attempts = outcome
        self._spend(pending, {"calls": (attempts - 1) * pending.calls})
        pending.attempts = attempts - 1
        counts = stored.prompt_tokens, stored.completion_tokens
        return Completion(stored.raw, *counts, stored.latency_ms, calls=pending.calls)

    def _count_useless(self, pending: PendingQuestion[Q, A]) -> None:
        """Count a useless answer; raise an error if the first `MAX_USELESS_ANSWERS` answers are all useless."""
        llm = pending.position.llm
        if any(question.fails_if_useless for question in (pending, *pending.duplicates)):
            self._useless[llm] += 1
            if llm not in self._ok and self._useless[llm] >= MAX_USELESS_ANSWERS:
                raise self.handler.useless_error(pending)

    def _finish(self, pending: PendingQuestion[Q, A]) -> None:
        """Store the answer, share it among equal questions, and deliver those whose caller does not wait."""
        del self._waiting[pending.key]
        if pending.completion is None:
            keys = [equal.key for equal in (pending, *pending.duplicates) if equal.once_a_round]
            self._failures |= dict.fromkeys(keys, pending.reason)
        else:
            self._ok.add(pending.position.llm)
            pending.raw = self.store.add_answer(self._make_stored_answer(pending, pending.completion))
        unawaited = [equal for equal in pending.share_outcome() if equal.is_submitted or equal.is_abandoned]
        self._deliver(unawaited)
        self._n_open -= sum(question.is_submitted for question in unawaited)

    def _make_stored_answer(self, pending: PendingQuestion[Q, A], completion: Completion) -> StoredAnswer:
        llm, digest, decoding = pending.identity
        return StoredAnswer(
            pending.key,
            pending.prompt,
            json.dumps(list(pending.options)),
            llm,
            digest,
            decoding_text(decoding),
            completion.text,
            *self.handler.summarise(pending, pending.read(completion.text)),
            completion.prompt_tokens,
            completion.completion_tokens,
            completion.latency_ms,
        )

    def _deliver(self, batch: Sequence[PendingQuestion[Q, A]]) -> list[A]:
        """Return the answers to finished questions, count them, and record who asked."""
        rows: list[AskedRow] = []
        try:
            for pending in batch:
                if pending.key:
                    rows.append(self._settle(pending))
                if pending.is_submitted:
                    self._answers.append((pending.question, cast("A", pending.answer)))
        finally:
            self.store.record_asked(rows)
        return [cast("A", pending.answer) for pending in batch]

    def _settle(self, pending: PendingQuestion[Q, A]) -> AskedRow:
        """Give a question its answer, count it, and return its row for the ledger."""
        if pending.raw is not None:
            try:
                pending.value = pending.read(pending.raw)
            except UselessAnswerError as error:
                pending.reason, pending.error = error.reason, error
        pending.answer, source = self.handler.conclude(pending, "llm" if pending.is_first else "cache")
        if pending.reason and source != "budget":
            self.reasons[pending.reason] += 1
        self.counts[source] += 1
        self.by_llm.setdefault(pending.position.llm, Counter())[source] += 1
        if self.on_answer is not None:
            self.on_answer(pending.question, pending.answer)
        position, tokens = pending.position, pending.tokens if pending.is_first else (0, 0)
        fields = (pending.key, source, pending.reason, pending.counted_attempts, self.store.run, *tokens)
        return AskedRow(position.round, position.tick, position.agent, *fields)

    def _spend(self, pending: PendingQuestion[Q, A], costs: Mapping[str, int]) -> None:
        self.usage.update(costs)
        self.by_llm.setdefault(pending.position.llm, Counter()).update(costs)

    def record(self, ledger: Ledger | None, run: str) -> None:
        """Record questions and answers in `ledger` under a run's name (see `AnswerStore.run`); None: do not record."""
        self.store.begin(ledger, run)

    def _loop(self) -> LoopThread:
        with self._lock:
            if self._background is None or not self._background.is_in_process:
                self._forget()
                self._background = LoopThread()
                finalize(self, self._background.stop)
            return self._background

    def _get_dispatcher(self) -> Dispatcher[Q, A]:
        if self._dispatcher is None:
            self._dispatcher = Dispatcher(
                self._ask_or_repeat,
                self._finish,
                self._count_useless,
                slots=self.slots,
                attempts=self.attempts,
                backoff_s=self.params.backoff_s,
                patience_s=self.params.timeout_s,
                budget=self.budget,
                spend=self._spend,
            )
        return self._dispatcher

    def _forget(self) -> None:
        self._dispatcher = None
        self._waiting.clear()
        self._answers.clear()
        self._n_open = 0

    def _stop(self) -> None:
        if self._background is not None:
            self._background.stop()
        self._background = None
        self._forget()

    def begin(self) -> None:
        """Prepare for another model: drop questions in progress and refill the limits, but keep known answers."""
        if self._waiting:
            self._stop()
        self._forget()
        self._useless.clear()
        self._ok.clear()
        self._failures, self._failed_round = {}, -1
        self.budget.refill()

    def close(self) -> None:
        """Drop the questions in progress, end the background thread, and close the shared ledger."""
        self._stop()
        self.store.close()
