"""The gateway: the one way of a question to an LLM and back. It is looked up, asked, stored, replayed and counted here.

The way of a question: `_prepare` writes it down, `_put` gives it its key and looks it up in the answer store (in replay
also what came of it then); if it is not known the dispatcher asks it, once for all equal ones, and `_call_is_done`
stores what was said; `_give` reads the answer, counts it and writes down who asked. `answer` and `answer_all` wait for
what they put and give it together, in the order asked; `submit` and `collect` give it as it comes.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast
from weakref import finalize

from prism_mesa.errors import OracleError
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.clients.event_loop import LoopThread
from prism_mesa.llm.dispatch.budget import Budget, most_tokens
from prism_mesa.llm.dispatch.dispatcher import Dispatcher
from prism_mesa.llm.dispatch.pending import Identity, PendingQuestion
from prism_mesa.llm.errors import MOST_USELESS, Closing, UselessAnswerError
from prism_mesa.llm.ledger.answers import AnswerStore
from prism_mesa.llm.ledger.database import AskedRow, Ledger, answer_key
from prism_mesa.llm.params import SHORTFALLS, LLMParams, Source
from prism_mesa.snapshot import Restorable


class LLMGateway[Q, A, P: LLMParams](Closing, Restorable):
    """Puts questions of one kind to an LLM, in an event loop of its own: it works wherever a loop already runs.

    Questions with equal keys (prompt, options, LLM, decoding) are asked once. Of those that wait for it the first, by
    tick and agent, counts as `llm` and the others as `cache`; so do all that meet the key later.

    Args:
        params: Attempts, limits, time-outs.
        store: What is known before and where answers are shared; by default nothing and nowhere.
        kind: What of `kind` in the parameters it is; `python` if it was made by hand.
        note: Why it is asked although something else was wished for; else empty.
        budget: The limits it keeps to, which a reasoner and a client may share; by default those of `params`.

    Attributes:
        counts: Answers so far by source.
        reasons: Answers that did not come, so far, by reason.
        usage: Cost so far: `calls`, `prompt_tokens`, `completion_tokens`.
        by_llm: For each LLM (`RunPosition.llm`) its answers by source, and its cost as in `usage`.
    """

    changes: ClassVar[tuple[str, ...]] = ("counts", "reasons", "usage", "by_llm", "budget", "store", "_useless", "_ok")

    def __init__(
        self, params: P, store: AnswerStore | None, *, kind: str, note: str, budget: Budget | None = None
    ) -> None:
        self.params: P = params
        self.store = store or AnswerStore()
        self.kind = kind
        self.note = note
        self.budget = budget or Budget(params)
        self.counts: Counter[Source] = Counter()
        self.reasons: Counter[str] = Counter()
        self.usage: Counter[str] = Counter()
        self.by_llm: dict[str, Counter[str]] = {}
        self._useless: Counter[str] = Counter()
        self._ok: set[str] = set()
        self._background: LoopThread | None = None
        self._making = threading.Lock()
        self._dispatcher: Dispatcher[Q, A] | None = None
        self._waiting: dict[str, PendingQuestion[Q, A]] = {}
        self._ready: list[tuple[Q, A]] = []
        self._n_out = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy has, here or in another process: all but the thread and what is out."""
        own: dict[str, Any] = {"_background": None, "_dispatcher": None, "_making": None, "_waiting": {}, "_n_out": 0}
        return vars(self) | own

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._making = threading.Lock()

    # What a kind of question says of itself

    def identity(self, llm: str = "") -> Identity:
        """Return name, digest and decoding of one of the LLMs, by which a ledger knows it (see `RunPosition.llm`)."""
        raise NotImplementedError

    @property
    def slots(self) -> int:
        """Questions that are out at the same time."""
        return self.params.max_concurrency

    @property
    def attempts(self) -> int:
        """How often a question is asked whose failure may pass."""
        return self.params.attempts or 1

    def _prepare(self, question: Q) -> PendingQuestion[Q, A]:
        """Return a question as it is put; one that needs no LLM is `done` and has its answer."""
        raise NotImplementedError

    async def _ask(self, pending: PendingQuestion[Q, A]) -> Completion:
        """Return what the LLM says, or raise OracleError."""
        raise NotImplementedError

    def _read(self, question: Q, raw: str) -> Any:
        """Return what a text says to a question, or raise UselessAnswerError."""
        raise NotImplementedError

    def _answer(self, pending: PendingQuestion[Q, A], said: Any, source: Source) -> A:
        """Return what whoever asked is given of what was read."""
        raise NotImplementedError

    def _stand_in(self, pending: PendingQuestion[Q, A]) -> tuple[A, Source]:
        """Return what is given in place of an answer that did not come, or is of no use (then there is a `raw`)."""
        raise NotImplementedError

    def _missing(self, pending: PendingQuestion[Q, A]) -> str:
        """Return in words to what the ledger that is replayed holds no answer."""
        raise NotImplementedError

    def _choice_and_probabilities(self, question: Q, raw: str) -> tuple[str, str]:
        """Return what the ledger holds beside a text of what it says."""
        return "", ""

    def _failed_before(self, pending: PendingQuestion[Q, A]) -> str:
        """Return why a question is not asked again, as it just failed; else an empty string."""
        return ""

    def _answer_is_useless(self, pending: PendingQuestion[Q, A]) -> None:
        """Take note of an answer that is none to its question."""

    def _is_hopeless(self, pending: PendingQuestion[Q, A]) -> bool:
        """Count a useless answer; return whether of the first `MOST_USELESS` of that LLM none could be used."""
        self._useless[pending.place.llm] += 1
        return pending.place.llm not in self._ok and self._useless[pending.place.llm] >= MOST_USELESS

    def _answer_has_come(self, pending: PendingQuestion[Q, A]) -> None:
        """Take note of what came of a question that was asked."""

    # The way there

    def answer(self, asks: Sequence[Q]) -> list[A]:
        """Do what `answer_all` does, for callers that cannot await, inside a running loop or not."""
        return self._loop().run(self._answer_all(asks)) if asks else []

    async def answer_all(self, asks: Sequence[Q]) -> list[A]:
        """Return the answers to some questions, in the order of `asks`, and record them.

        All are put before any is waited for, so that limits are spent by priority, then tick, then agent, whichever
        answer comes first.

        Raises:
            OracleError: `not-recorded`, if the ledger that is replayed does not hold a question.
        """
        return await asyncio.wrap_future(self._loop().start(self._answer_all(asks)))

    def submit(self, asks: Sequence[Q]) -> None:
        """Put questions without waiting; `collect` brings the answers.

        Raises:
            OracleError: As `answer_all`.
        """
        self._loop().run(self._submit(asks))

    def collect(self) -> list[tuple[Q, A]]:
        """Return answers to what was submitted, each once, and [] when none is out any more.

        It waits until there are some and the LLM's slots would run dry without further questions, so that few
        calls of it bring many answers.
        """
        return self._loop().run(self._collect())

    async def _answer_all(self, asks: Sequence[Q]) -> list[A]:
        pending: list[PendingQuestion[Q, A]] = []
        try:
            pending.extend(self._put(self._prepare(ask), submitted=False) for ask in asks)
            left = [one for one in pending if not one.done]

            def none_is_left() -> bool:
                while left and left[-1].done:
                    left.pop()
                return not left

            await self._until(none_is_left)
        except BaseException:
            self._leave(pending)
            raise
        return self._give(pending)

    def _leave(self, pending: Sequence[PendingQuestion[Q, A]]) -> None:
        """Count questions that nobody waits for any more, and note what comes of them, now or when it is known."""
        for one in pending:
            one.is_left = True
        self._give([one for one in pending if one.done])

    async def _submit(self, asks: Sequence[Q]) -> None:
        pending: list[PendingQuestion[Q, A]] = []
        try:
            pending.extend(self._put(self._prepare(ask), submitted=True) for ask in asks)
        finally:
            self._give([one for one in pending if one.done])

    async def _collect(self) -> list[tuple[Q, A]]:
        dispatcher = self._dispatcher_of_this_loop()
        await self._until(lambda: not self._n_out or bool(self._ready and dispatcher.wants_more))
        found, self._ready[:] = self._ready[:], []
        return found

    async def _until(self, is_reached: Callable[[], bool]) -> None:
        dispatcher = self._dispatcher_of_this_loop()
        while not is_reached():
            dispatcher.flush()
            await dispatcher.news()
        dispatcher.check()

    def _put(self, pending: PendingQuestion[Q, A], *, submitted: bool) -> PendingQuestion[Q, A]:
        """Look a question up, and if it is not known let the dispatcher ask it; equal questions once."""
        pending.is_submitted = submitted
        if pending.done:
            return pending
        self.budget.at_round(pending.place.round)
        pending.identity = self.identity(pending.place.llm)
        pending.key = answer_key(pending.prompt, pending.options, *pending.identity)
        pending.done = self._look_up(pending)
        if not pending.done:
            self._n_out += submitted
            self._ask_once(pending)
        return pending

    def _look_up(self, pending: PendingQuestion[Q, A]) -> bool:
        """Say whether it is known what comes of a question, which then has it."""
        is_replay = self.store.mode == "replay"
        if is_replay:
            place = pending.place
            past = pending.past = self.store.past(place.round, place.tick, place.agent)
            fell_short = past is not None and past.source in SHORTFALLS
            if past and fell_short and (past.key == pending.key or not self.store.knows(*pending.identity)):
                pending.reason, pending.attempts, pending.is_first = past.reason, past.attempts, True
                return True
        pending.raw = self.store.raw_of(pending.key)
        if pending.raw is None and is_replay:
            raise OracleError("not-recorded", self._not_recorded(pending))
        if pending.raw is None:
            pending.reason = self._failed_before(pending)
        return pending.raw is not None or bool(pending.reason)

    def _not_recorded(self, pending: PendingQuestion[Q, A]) -> str:
        where = "" if self.store.shared is None else f" {self.store.shared.path}"
        return f"the ledger{where} holds no answer for {self._missing(pending)}"

    def _ask_once(self, pending: PendingQuestion[Q, A]) -> None:
        """Let the dispatcher ask a question, or let it wait for the equal one that is out."""
        if pending.key in self._waiting:
            pending.wait_for(self._waiting[pending.key])
            return
        pending.most_tokens = most_tokens(pending.prompt, pending.identity[2], pending.calls)
        self._waiting[pending.key] = pending
        self._dispatcher_of_this_loop().put(pending)

    async def _ask_or_repeat(self, pending: PendingQuestion[Q, A]) -> Completion:
        """Return what the LLM said to a question before the run was stopped, or else asks it."""
        before = self.store.said_before(pending.key)
        if before is None:
            return await self._ask(pending)
        stored, attempts = before
        self._spend(pending, {"calls": (attempts - 1) * pending.calls})
        pending.attempts = attempts - 1
        counts = stored.prompt_tokens, stored.completion_tokens
        return Completion(stored.raw, *counts, stored.latency_ms, calls=pending.calls)

    # The way back

    def _call_is_done(self, asked: PendingQuestion[Q, A]) -> None:
        """Store what was said, let all know who wait for it, and give it to those that were submitted."""
        del self._waiting[asked.key]
        self._answer_has_come(asked)
        if asked.completion is not None:
            self._ok.add(asked.place.llm)
            told = self._choice_and_probabilities(asked.question, asked.completion.text)
            asked.raw = self.store.keep(asked.stored(asked.completion, *told))
        given = [one for one in asked.share() if one.is_submitted or one.is_left]
        self._give(given)
        self._n_out -= sum(one.is_submitted for one in given)

    def _give(self, pending: Sequence[PendingQuestion[Q, A]]) -> list[A]:
        """Return the answers to questions that are done, count them, and write down who asked."""
        rows: list[AskedRow] = []
        try:
            for one in pending:
                if one.key:
                    rows.append(self._settle(one))
                if one.is_submitted:
                    self._ready.append((one.question, cast("A", one.answer)))
        finally:
            self.store.note(rows)
        return [cast("A", one.answer) for one in pending]

    def _settle(self, pending: PendingQuestion[Q, A]) -> AskedRow:
        """Give a question its answer, count it, and return what is to be written down of it."""
        source: Source = "llm" if pending.is_first else "cache"
        if pending.raw is not None:
            try:
                pending.answer = self._answer(pending, self._read(pending.question, pending.raw), source)
            except UselessAnswerError as error:
                pending.reason, pending.error = error.reason, error
        if pending.reason:
            pending.answer, source = self._stand_in(pending)
            if source != "budget":
                self.reasons[pending.reason] += 1
        self.counts[source] += 1
        self.by_llm.setdefault(pending.place.llm, Counter())[source] += 1
        return pending.row(source, self.store.run)

    def _spend(self, pending: PendingQuestion[Q, A], spent: Mapping[str, int]) -> None:
        """Add calls and tokens to the totals, and to those of the LLM that was asked."""
        self.usage.update(spent)
        self.by_llm.setdefault(pending.place.llm, Counter()).update(spent)

    # What it lives in

    def record(self, ledger: Ledger | None, run: str) -> None:
        """Write to `ledger` from now on, if there is one, as the run of this name (see `AnswerStore.run`)."""
        self.store.begin(ledger, run)

    def _loop(self) -> LoopThread:
        with self._making:
            if self._background is None or not self._background.is_here:
                self._forget()
                self._background = LoopThread()
                finalize(self, self._background.stop)
            return self._background

    def _dispatcher_of_this_loop(self) -> Dispatcher[Q, A]:
        if self._dispatcher is None:
            self._dispatcher = Dispatcher(
                self._ask_or_repeat,
                self._read,
                self._call_is_done,
                self._answer_is_useless,
                slots=self.slots,
                attempts=self.attempts,
                backoff_s=self.params.backoff_s,
                patience_s=self.params.timeout_s,
                budget=self.budget,
                spend=self._spend,
            )
        return self._dispatcher

    def _forget(self) -> None:
        """Let go of what is still out."""
        self._dispatcher = None
        self._waiting.clear()
        self._ready.clear()
        self._n_out = 0

    def _stop(self) -> None:
        if self._background is not None:
            self._background.stop()
        self._background = None
        self._forget()

    def begin(self) -> None:
        """Begin anew for another model: what is still out is dropped, limits are full; what is known stays known."""
        if self._waiting:
            self._stop()
        self._forget()
        self._useless.clear()
        self._ok.clear()
        self.budget.refill()

    def close(self) -> None:
        """End the background thread and its connections, and close the shared ledger; what is out is dropped.

        Doing it twice does no harm.
        """
        self._stop()
        self.store.close()
