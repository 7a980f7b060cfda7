"""The dispatcher: asks questions concurrently, repeats failed ones, and stays within the budget."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Final

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm.budget import Budget
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.errors import UselessAnswerError, replace_lone_surrogates
from prism_mesa.llm.request import RunPosition
from prism_mesa.streams import digest64

NO_BUDGET: Final = "budget"
_REST_PAUSE_S: Final = 0.25
_MAX_BACKOFF_S: Final = 30.0
_DECISION_REASONS: Final = frozenset({"refusal", "no-answer", "wrong-options", "wrong-numbers", "contradiction"})
"""Reasons why a decision model's answer is useless. The model would give the same answer again."""
_REFUSAL_REASONS: Final = frozenset({"cut-prompt", "too-long", "too-large", "refused-request"})
_PERMANENT_REASONS: Final = _DECISION_REASONS | _REFUSAL_REASONS | {"circuit-open", "still-down", NO_BUDGET}
"""Reasons after which PRISM does not ask again, besides `http-3...` and `http-4...` (except 429)."""
_TEXT_REASONS: Final = frozenset({"empty", "partial", "thought", "cut-answer", "unmatched", "not-json", "wrong-shape"})
_USELESS_REASONS: Final = _DECISION_REASONS | _REFUSAL_REASONS | _TEXT_REASONS
"""Reasons why an answer is useless or a question was refused, besides `http-3...` and `http-4...`."""
_TOO_MANY_REQUESTS: Final = "http-429"

type Identity = tuple[str, str, Mapping[str, Any]]
"""Name, digest and decoding of an LLM, which identify it in a ledger."""


@dataclass(eq=False, slots=True)
class PendingQuestion[Q, A]:
    """A question in progress, which ends with a `raw` answer or with the `reason` why there is none.

    Attributes:
        priority: Under a limit, the lowest numbers are asked first. Final when `is_sent`.
        identity: Name, digest and decoding of the LLM.
        ask: Asks the LLM, given the number of earlier attempts. Raises OracleError if there is no answer.
        read: Returns the value of an answer. Raises UselessAnswerError if the answer has none.
        calls: Calls per attempt; `reserved_tokens` is the maximum per attempt, and `tokens` the cost of all attempts.
        fails_if_useless: Whether useless answers count towards `MAX_USELESS_ANSWERS`.
        once_a_round: Whether a failed question waits for the next round before it is asked again.
        is_submitted: Whether the caller collects the answer later.
        key: The ledger's key; empty if no LLM is asked.
        duplicates: Equal questions that wait for the same answer. Only the question with `is_first` counts as asked.
        waited_s: Seconds that busy servers told PRISM to wait. Refusals by busy servers do not count as attempts.
        completion: The LLM's usable answer. `value` is the result of reading it, and the caller gets `answer`.
    """

    question: Q
    prompt: str
    options: Sequence[str]
    position: RunPosition
    priority: tuple[float, int, int]
    identity: Identity = ("", "", {})
    ask: Callable[[int], Awaitable[Completion]] | None = None
    read: Callable[[str], Any] = str
    calls: int = 1
    fails_if_useless: bool = False
    once_a_round: bool = False
    is_submitted: bool = False
    is_abandoned: bool = False
    key: str = ""
    duplicates: list["PendingQuestion[Q, A]"] = field(default_factory=list)
    reserved_tokens: int = 0
    is_sent: bool = False
    attempts: int = 0
    tokens: tuple[int, int] = (0, 0)
    waited_s: float = 0.0
    last_text: str = ""
    completion: Completion | None = None
    raw: str | None = None
    reason: str = ""
    error: Exception | None = None
    is_replay: bool = False
    is_first: bool = False
    done: bool = False
    value: Any = None
    answer: A | None = None

    @property
    def retry_after_s(self) -> float:
        """Seconds that the server asks PRISM to wait before the next request; 0 if unknown."""
        return self.error.retry_after_s if isinstance(self.error, OracleError) else 0.0

    @property
    def counted_attempts(self) -> int:
        """The number of attempts, or 0 if an equal question was asked instead."""
        return self.attempts if self.is_first else 0

    def wait_for(self, pending: "PendingQuestion[Q, A]") -> None:
        """Wait for an equal question in progress, which gets this question's priority if it is higher."""
        pending.duplicates.append(self)
        if not pending.is_sent:
            pending.priority = min(pending.priority, self.priority)

    def share_outcome(self) -> list["PendingQuestion[Q, A]"]:
        """Copy the outcome to the equal questions, and return all of them, sorted by tick and agent."""
        questions = sorted([self, *self.duplicates], key=lambda equal: (equal.position.tick, equal.position.agent))
        questions[0].is_first = True
        for pending in questions:
            pending.raw, pending.reason, pending.error = self.raw, self.reason, self.error
            pending.attempts, pending.tokens, pending.done = self.attempts, self.tokens, True
        return questions


class Dispatcher[Q, A]:
    """Asks an LLM up to `slots` questions at a time, in one event loop.

    Without limits, a question is sent as soon as a slot is free. With limits, questions are sent in batches, sorted by
    priority; a batch waits until the batch before it has been answered. So the order in which answers arrive does not
    determine which questions are answered (except with limits on seconds).

    Args:
        ask: Asks one question. Raises OracleError if there is no answer.
        on_done: Called with each finished question. An error in `on_done` or `on_useless` ends all work.
        on_useless: Called after each useless answer, each refusal (3xx, 4xx) and each bug of a client.
        attempts: Maximum number of attempts at a question after temporary failures.
        backoff_s: Seconds before the second attempt, doubled for each further attempt. The key of the question
            determines a random factor, 0.5 to 1.5. After a useless answer there is no pause.
        patience_s: Seconds of waiting for a busy server (429, 503) after which its refusals count as attempts.
        spend: Called after each attempt with the attempt's `calls`, `prompt_tokens` and `completion_tokens`.
    """

    def __init__(
        self,
        ask: Callable[[PendingQuestion[Q, A]], Awaitable[Completion]],
        on_done: Callable[[PendingQuestion[Q, A]], None],
        on_useless: Callable[[PendingQuestion[Q, A]], None],
        *,
        slots: int,
        attempts: int,
        backoff_s: float,
        patience_s: float = 0.0,
        budget: Budget,
        spend: Callable[[PendingQuestion[Q, A], Mapping[str, int]], None],
    ) -> None:
        self._ask, self._on_done, self._on_useless, self._spend_on = ask, on_done, on_useless, spend
        self._n_slots, self._slots = slots, asyncio.Semaphore(slots)
        self._attempts, self._backoff_s, self._patience_s = attempts, backoff_s, patience_s
        self._budget = budget
        self._queue: list[PendingQuestion[Q, A]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsent = 0
        self._changed = asyncio.Event()
        self._error: BaseException | None = None

    @property
    def needs_questions(self) -> bool:
        """Whether slots may soon be idle."""
        return self._unsent < self._n_slots

    def put(self, pending: PendingQuestion[Q, A]) -> None:
        """Add a question. With limits, `wait` sends it."""
        if self._budget.is_limited:
            self._queue.append(pending)
        else:
            pending.is_sent = True
            self._unsent += 1
            self._run(self._ask_until_done(pending))

    async def wait(self) -> None:
        """Wait until a question is done. With limits, first send the next batch if no question is in progress."""
        if self._queue and not self._tasks:
            batch, self._queue = self._queue, []
            for pending in batch:
                pending.is_sent = True
            self._run(self._ask_within_budget(batch))
        if self._error is None:
            await self._changed.wait()
        self.check()

    def check(self) -> None:
        """Raise the error that ended the work, if there is one."""
        if self._error is not None:
            raise self._error

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._drop_task)

    def _drop_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._error = self._error or task.exception()
        self._announce_change()

    def _announce_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _ask_until_done(self, pending: PendingQuestion[Q, A]) -> None:
        """Ask until the question is done. During pauses it occupies no slot."""
        async with self._slots:
            self._unsent -= 1
            await self._attempt(pending)
        while not pending.done:
            await asyncio.sleep(self._pause_s(pending))
            async with self._slots:
                await self._attempt(pending)

    async def _ask_within_budget(self, batch: list[PendingQuestion[Q, A]]) -> None:
        """Ask by priority until the budget is spent. The remaining questions get the reason `budget`."""
        waiting = sorted(batch, key=_sort_key)
        while waiting:
            affordable = list(takewhile(lambda item: self._budget.reserve(item.reserved_tokens, item.calls), waiting))
            if not affordable:
                break
            await asyncio.gather(*map(self._attempt_in_slot, affordable))
            retries = [pending for pending in affordable if not pending.done]
            if retries:
                await asyncio.sleep(max(map(self._pause_s, retries)))
            waiting = sorted([*retries, *waiting[len(affordable) :]], key=_sort_key)
        for pending in waiting:
            self._give_up(pending)

    async def _attempt_in_slot(self, pending: PendingQuestion[Q, A]) -> None:
        async with self._slots:
            if self._budget.seconds_left > 0:
                await self._attempt(pending)
            else:  # the time ran out while the question waited for a slot
                self._budget.release(pending.reserved_tokens, 0, unused=pending.calls)
                self._give_up(pending)

    async def _attempt(self, pending: PendingQuestion[Q, A]) -> None:
        """Ask once. Afterwards the question is done, or the caller asks again."""
        self.check()  # an error in one question ends the work on all questions
        limit_s = self._budget.seconds_left
        reply = Completion("")
        try:
            async with asyncio.timeout(limit_s if limit_s < math.inf else None) as limit:
                reply = await self._ask(pending)
            pending.read(reply.text)
            if (text := replace_lone_surrogates(reply.text)) != reply.text:  # a replay reads the recorded text
                reply = replace(reply, text=text)
                pending.read(text)
        except OracleError as error:
            reason, pending.error, reply = error.reason, error, Completion("", *error.tokens, calls=error.calls)
        except UselessAnswerError as error:
            reason, pending.error = error.reason, error
        except ConfigError:
            raise
        except (KeyboardInterrupt, SystemExit) as error:  # must not end this loop
            raise RuntimeError(f"the LLM's function raised {type(error).__name__}") from error
        except TimeoutError as error:
            reason, pending.error = NO_BUDGET if limit.expired() else "timeout", error
        except Exception as error:  # a user's client or function may fail in any way
            reason, pending.error = type(error).__name__, error
        else:
            reason, pending.error, pending.completion = "", None, reply
        self._count(pending, reason, reply)
        is_refused = reason.startswith(("http-3", "http-4")) and reason != _TOO_MANY_REQUESTS
        is_useless = not isinstance(pending.error, OracleError | TimeoutError | None)  # a bug counts, too
        if is_refused or is_useless or reason in _USELESS_REASONS:
            pending.last_text = reply.text
            self._notify(self._on_useless, pending)
        pending.reason = reason
        if not reason or pending.attempts >= self._attempts or not is_temporary(reason, pending.error):
            self._finish(pending)

    def _count(self, pending: PendingQuestion[Q, A], reason: str, reply: Completion) -> None:
        wait_s = pending.retry_after_s
        is_asked_to_wait = 0 < wait_s <= self._patience_s - pending.waited_s
        pending.waited_s += wait_s if is_asked_to_wait else 0.0
        pending.attempts += reply.calls > 0 and reason != "resting" and not is_asked_to_wait
        tokens = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
        self._spend_on(pending, {"calls": reply.calls, **tokens})
        pending.tokens = (pending.tokens[0] + reply.prompt_tokens, pending.tokens[1] + reply.completion_tokens)
        if self._budget.is_limited:
            is_free = not reply.calls or reason in ("refused", "busy") or reason.startswith("http-")
            default_tokens = 0 if is_free else pending.reserved_tokens
            n_tokens = reply.prompt_tokens + reply.completion_tokens if reply.prompt_tokens else default_tokens
            self._budget.release(pending.reserved_tokens, n_tokens, unused=pending.calls - reply.calls)

    def _finish(self, pending: PendingQuestion[Q, A]) -> None:
        pending.done = True
        self._notify(self._on_done, pending)
        self._announce_change()

    def _notify(self, callback: Callable[[PendingQuestion[Q, A]], None], pending: PendingQuestion[Q, A]) -> None:
        """Run a callback. An error in it ends the work on all questions."""
        try:
            callback(pending)
        except BaseException as error:
            self._error = self._error or error
            self._announce_change()
            raise

    def _give_up(self, pending: PendingQuestion[Q, A]) -> None:
        """Finish a question that exceeds a limit. If it was asked before, it keeps the reason for its last failure."""
        pending.reason = pending.reason if pending.attempts else NO_BUDGET
        self._finish(pending)

    def _pause_s(self, pending: PendingQuestion[Q, A]) -> float:
        """Return the seconds to wait before the next attempt, with a keyed jitter."""
        if isinstance(pending.error, UselessAnswerError):
            return 0.0
        if pending.retry_after_s:
            return pending.retry_after_s
        if pending.attempts == 0:  # no server was up, but one may be soon
            return _REST_PAUSE_S
        jitter = 0.5 + digest64(pending.key, str(pending.attempts)) / 2**64
        return min(self._backoff_s * 2.0 ** (pending.attempts - 1), _MAX_BACKOFF_S) * jitter


def is_expected(error: Exception | None) -> bool:
    """Return whether an error says that there is no usable answer; any other is a bug in a client or a function."""
    return isinstance(error, OracleError | UselessAnswerError | TimeoutError)


def is_temporary(reason: str, error: Exception | None) -> bool:
    """Return whether a failure may be temporary. Refusals (4xx), bugs, and failures of all servers are not."""
    is_refused = reason.startswith("http-") and reason != _TOO_MANY_REQUESTS
    return is_expected(error) and reason not in _PERMANENT_REASONS and not is_refused


def _sort_key(pending: PendingQuestion[Any, Any]) -> tuple[tuple[float, int, int], str]:
    return pending.priority, pending.key
