"""The dispatcher: keeps an LLM's slots busy, repeats failed questions, and stays within the budget."""

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
_RESTING_S: Final = 0.25
_MAX_BACKOFF_S: Final = 30.0
_NO_DECISION: Final = frozenset({"refusal", "no-answer", "wrong-options", "wrong-numbers", "contradiction"})
"""Reasons why a decision model's answer is useless; the model would repeat it."""
_REFUSED: Final = frozenset({"cut-prompt", "too-long", "too-large", "refused-request"})
_FINAL: Final = _NO_DECISION | _REFUSED | {"circuit-open", "still-down", NO_BUDGET}
"""Reasons after which it is useless to ask again soon, besides `http-3...` and `http-4...` (except 429)."""
_USELESS: Final = (
    _NO_DECISION | _REFUSED | {"empty", "partial", "thought", "cut-answer", "unmatched", "not-json", "wrong-shape"}
)
"""Reasons why an answer is useless or a question was refused, besides `http-3...` and `http-4...`."""
_TOO_MANY_REQUESTS: Final = "http-429"

type Identity = tuple[str, str, Mapping[str, Any]]
"""Name, digest and decoding of an LLM, which identify it in a ledger."""


@dataclass(eq=False, slots=True)
class PendingQuestion[Q, A]:
    """A question in progress: it gets a `raw` answer, or a `reason` why there is none.

    Attributes:
        priority: The order in which a limit is spent, lowest first. Final when `is_sent`.
        identity: Name, digest and decoding of the LLM.
        ask: Asks the LLM, given the number of earlier attempts. Raises OracleError if there is no answer.
        read: Returns the value of an answer. Raises UselessAnswerError if it has none.
        calls: Calls per attempt; `reserved_tokens` is the maximum per attempt, and `tokens` the cost of all attempts.
        gives_up: Whether its useless answers count towards giving up the LLM (`gateway.Questions.useless_error`).
        once_a_round: Whether a failed question is not asked again in the same round.
        is_submitted: Whether the caller collects the answer later.
        is_abandoned: Whether the caller has stopped waiting.
        key: The ledger's key; empty if no LLM is asked.
        duplicates: Equal questions that wait for the same answer; `is_first` marks the one that counts as asked.
        waited_s: Seconds that busy servers told PRISM to wait; these refusals do not count as attempts.
        completion: The LLM's usable answer; `value` is read from it, and `answer` goes to the caller.
    """

    question: Q
    prompt: str
    options: Sequence[str]
    place: RunPosition
    priority: tuple[float, int, int]
    identity: Identity = ("", "", {})
    ask: Callable[[int], Awaitable[Completion]] | None = None
    read: Callable[[str], Any] = str
    calls: int = 1
    gives_up: bool = False
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
        """Seconds until the server wants a new request; 0 if unknown."""
        return self.error.retry_after_s if isinstance(self.error, OracleError) else 0.0

    @property
    def counted_attempts(self) -> int:
        """The attempts, or 0 if an equal question was asked instead."""
        return self.attempts if self.is_first else 0

    def wait_for(self, pending: "PendingQuestion[Q, A]") -> None:
        """Wait for an equal question in progress, which takes over this question's priority if that is higher."""
        pending.duplicates.append(self)
        if not pending.is_sent:
            pending.priority = min(pending.priority, self.priority)

    def share(self) -> list["PendingQuestion[Q, A]"]:
        """Copy the outcome to the equal questions and return all of them, by tick and agent."""
        questions = sorted([self, *self.duplicates], key=lambda pending: (pending.place.tick, pending.place.agent))
        questions[0].is_first = True
        for pending in questions:
            pending.raw, pending.reason, pending.error = self.raw, self.reason, self.error
            pending.attempts, pending.tokens, pending.done = self.attempts, self.tokens, True
        return questions


class Dispatcher[Q, A]:
    """Asks an LLM up to `slots` questions at a time, in one event loop.

    Without limits, a question is sent as soon as a slot is free. With limits, all waiting questions are sent together,
    by priority, and the next ones follow when all have been answered. So the order of the answers does not determine
    which questions are answered (except with limits of seconds).

    Args:
        ask: Asks one question; raises OracleError if there is no answer.
        on_done: Called with each finished question. An error in it, or in `on_useless`, ends all work.
        on_useless: Called after each useless answer and each refusal (3xx, 4xx).
        attempts: Number of attempts at a question whose failure may pass.
        backoff_s: Seconds before the second attempt, doubled for each further one, times 0.5 to 1.5 by the key; a
            useless answer is asked again at once.
        patience_s: Seconds of waiting for a busy server (429, 503) after which its refusals count as attempts.
        spend: Called after each attempt with its `calls`, `prompt_tokens` and `completion_tokens`.
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

    def put(self, call: PendingQuestion[Q, A]) -> None:
        """Add a call; with limits, `wait` sends it."""
        if self._budget.is_limited:
            self._queue.append(call)
        else:
            call.is_sent = True
            self._unsent += 1
            self._run(self._ask_until_done(call))

    async def wait(self) -> None:
        """Wait until a call is done; with limits, first send the waiting calls together if none is in progress."""
        if self._queue and not self._tasks:
            calls, self._queue = self._queue, []
            for call in calls:
                call.is_sent = True
            self._run(self._ask_within_budget(calls))
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

    async def _ask_until_done(self, call: PendingQuestion[Q, A]) -> None:
        """Ask until the call is done; a call that waits to be asked again occupies no slot."""
        async with self._slots:
            self._unsent -= 1
            await self._attempt(call)
        while not call.done:
            await asyncio.sleep(self._pause_s(call))
            async with self._slots:
                await self._attempt(call)

    async def _ask_within_budget(self, calls: list[PendingQuestion[Q, A]]) -> None:
        """Ask by priority until the budget is spent; the remaining calls get the reason `budget`."""
        waiting = sorted(calls, key=_order)
        while waiting:
            affordable = list(takewhile(lambda call: self._budget.reserve(call.reserved_tokens, call.calls), waiting))
            if not affordable:
                break
            await asyncio.gather(*map(self._attempt_in_slot, affordable))
            retries = [call for call in affordable if not call.done]
            if retries:
                await asyncio.sleep(max(map(self._pause_s, retries)))
            waiting = sorted([*retries, *waiting[len(affordable) :]], key=_order)
        for call in waiting:
            self._give_up(call)

    async def _attempt_in_slot(self, call: PendingQuestion[Q, A]) -> None:
        async with self._slots:
            if self._budget.seconds_left > 0:
                await self._attempt(call)
            else:  # the time ran out while the call waited for a slot
                self._budget.release(call.reserved_tokens, 0, unused=call.calls)
                self._give_up(call)

    async def _attempt(self, call: PendingQuestion[Q, A]) -> None:
        """Ask once; the call is then done, or may be asked again."""
        self.check()  # an error in another call ends the work on all
        limit_s = self._budget.seconds_left
        reply = Completion("")
        try:
            async with asyncio.timeout(limit_s if limit_s < math.inf else None) as limit:
                reply = await self._ask(call)
            call.read(reply.text)
            if (text := replace_lone_surrogates(reply.text)) != reply.text:  # a replay reads the recorded text
                reply = replace(reply, text=text)
                call.read(text)
        except OracleError as error:
            reason, call.error, reply = error.reason, error, Completion("", *error.tokens, calls=error.calls)
        except UselessAnswerError as error:
            reason, call.error = error.reason, error
        except ConfigError:
            raise
        except (KeyboardInterrupt, SystemExit) as error:  # they must not end this loop
            raise RuntimeError(f"the LLM's function raised {type(error).__name__}") from error
        except TimeoutError as error:
            reason, call.error = NO_BUDGET if limit.expired() else "timeout", error
        except Exception as error:  # a user's client or function may fail in any way
            reason, call.error = type(error).__name__, error
        else:
            reason, call.error, call.completion = "", None, reply
        self._count(call, reason, reply)
        is_refused = reason.startswith(("http-3", "http-4")) and reason != _TOO_MANY_REQUESTS
        if is_refused or reason in _USELESS or isinstance(call.error, UselessAnswerError):
            call.last_text = reply.text
            self._notify(self._on_useless, call)
        call.reason = reason
        if not reason or call.attempts >= self._attempts or not may_pass(reason, call.error):
            self._finish(call)

    def _count(self, call: PendingQuestion[Q, A], reason: str, reply: Completion) -> None:
        wait_s = call.retry_after_s
        is_asked_to_wait = 0 < wait_s <= self._patience_s - call.waited_s
        call.waited_s += wait_s if is_asked_to_wait else 0.0
        call.attempts += reply.calls > 0 and reason != "resting" and not is_asked_to_wait
        tokens = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
        self._spend_on(call, {"calls": reply.calls, **tokens})
        call.tokens = (call.tokens[0] + reply.prompt_tokens, call.tokens[1] + reply.completion_tokens)
        if self._budget.is_limited:
            cost_nothing = not reply.calls or reason in ("refused", "busy") or reason.startswith("http-")
            default_tokens = 0 if cost_nothing else call.reserved_tokens
            n_tokens = reply.prompt_tokens + reply.completion_tokens if reply.prompt_tokens else default_tokens
            self._budget.release(call.reserved_tokens, n_tokens, unused=call.calls - reply.calls)

    def _finish(self, call: PendingQuestion[Q, A]) -> None:
        call.done = True
        self._notify(self._on_done, call)
        self._announce_change()

    def _notify(self, callback: Callable[[PendingQuestion[Q, A]], None], call: PendingQuestion[Q, A]) -> None:
        """Run a callback; its error ends the work on all calls."""
        try:
            callback(call)
        except BaseException as error:
            self._error = self._error or error
            self._announce_change()
            raise

    def _give_up(self, call: PendingQuestion[Q, A]) -> None:
        """Give up a call that a limit stops; after an attempt, it keeps the reason of its last failure."""
        call.reason = call.reason if call.attempts else NO_BUDGET
        self._finish(call)

    def _pause_s(self, call: PendingQuestion[Q, A]) -> float:
        """Return how long to wait before the next attempt, with a keyed jitter."""
        if isinstance(call.error, UselessAnswerError):
            return 0.0
        if call.retry_after_s:
            return call.retry_after_s
        if call.attempts == 0:  # no server was up, but one may be soon
            return _RESTING_S
        jitter = 0.5 + digest64(call.key, str(call.attempts)) / 2**64
        return min(self._backoff_s * 2.0 ** (call.attempts - 1), _MAX_BACKOFF_S) * jitter


def may_pass(reason: str, error: Exception | None) -> bool:
    """Return whether asking again may help: not after a refusal (4xx) or a bug, nor if all servers are down."""
    is_expected = isinstance(error, OracleError | UselessAnswerError | TimeoutError)
    return is_expected and reason not in _FINAL and (reason == _TOO_MANY_REQUESTS or not reason.startswith("http-"))


def _order(call: PendingQuestion[Any, Any]) -> tuple[tuple[float, int, int], str]:
    return call.priority, call.key
