"""The base of all who ask an LLM: an event loop in the background, a dispatcher on it, a store, limits, and counts."""

import threading
from collections import Counter
from typing import Any
from weakref import finalize

from prism_mesa.llm.clients.event_loop import LoopThread
from prism_mesa.llm.closing import Closing
from prism_mesa.llm.dispatch.budget import Budget
from prism_mesa.llm.dispatch.dispatcher import Asked, Call, Dispatcher
from prism_mesa.llm.ledger.answers import AnswerStore
from prism_mesa.llm.ledger.database import Ledger
from prism_mesa.llm.params import LLMParams, Source


class LLMGateway[Q, P: LLMParams](Closing):
    """Puts questions of one kind to an LLM, in an event loop of its own: it works wherever a loop already runs.

    Args:
        params: Attempts, limits, time-outs.
        store: What is known before and where answers are shared; by default nothing and nowhere.
        kind: What of `kind` in the parameters it is; `python` if it was made by hand.
        note: Why it is asked although something else was wished for; else empty.
        budget: The limits it keeps to, which a reasoner and a client may share; by default those of `params`.

    Attributes:
        counts: Answers so far by source.
        reasons: Answers that did not come, so far, by reason.
        usage: What was spent so far: `calls`, `prompt_tokens`, `completion_tokens`.
    """

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
        self._background: LoopThread | None = None
        self._making = threading.Lock()
        self._dispatcher: Dispatcher[Q] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy has, here or in another process: all but the thread and what is out."""
        return {**vars(self), "_background": None, "_dispatcher": None, "_making": None, "_waiting": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._making = threading.Lock()

    @property
    def asked(self) -> Asked[Q]:
        """Who is asked, as a dispatcher asks."""
        raise NotImplementedError

    @property
    def slots(self) -> int:
        """Questions that are out at the same time."""
        return self.params.max_concurrency

    @property
    def attempts(self) -> int:
        """How often a question is asked whose failure may pass."""
        return self.params.attempts or 1

    def _call_is_done(self, call: Call[Q]) -> None:
        raise NotImplementedError

    def _answer_is_useless(self, call: Call[Q]) -> None:
        """Take note of an answer that is none to its question: nothing, unless somebody cares."""

    def record(self, ledger: Ledger, run: str) -> None:
        """Write to `ledger` from now on, as the run of this name (see `AnswerStore.run`)."""
        self.store.begin(ledger, run)

    def _loop(self) -> LoopThread:
        with self._making:
            if self._background is None or not self._background.is_here:
                self._forget()
                self._background = LoopThread()
                finalize(self, self._background.stop)
            return self._background

    def _dispatcher_of_this_loop(self) -> Dispatcher[Q]:
        if self._dispatcher is None:
            self._dispatcher = Dispatcher(
                self.asked,
                self._call_is_done,
                self._answer_is_useless,
                slots=self.slots,
                attempts=self.attempts,
                backoff_s=self.params.backoff_s,
                budget=self.budget,
                usage=self.usage,
            )
        return self._dispatcher

    def _forget(self) -> None:
        """Let go of what is still out."""
        self._dispatcher = None

    def _stop(self) -> None:
        if self._background is not None:
            self._background.stop()
        self._background = None
        self._forget()

    def begin(self) -> None:
        """Begin anew for another model: what is still out is dropped, limits are full; what is known stays known."""
        self._stop()
        self.budget.refill()

    def close(self) -> None:
        """End the background thread and its connections, and close the shared ledger; what is out is dropped.

        Doing it twice does no harm.
        """
        self._stop()
        self.store.close()
