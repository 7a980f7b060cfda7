"""The dispatcher: keeps an LLM's slots full, asks again what may pass, and keeps to the budget. One loop owns it.

A call is a key, a prompt, and a question, which is whatever `Asked` reads an answer to. What becomes of an answer that
does not come is for those who put the call.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Protocol

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.dispatch.budget import Budget, most_tokens
from prism_mesa.llm.dispatch.semaphore import PrioritySemaphore
from prism_mesa.llm.errors import UselessAnswerError, storable
from prism_mesa.streams import digest64

NO_BUDGET = "budget"
_RESTING_S = 0.25
_LONGEST_BACKOFF_S = 30.0
_FINAL = frozenset({"circuit-open", "still-down", "too-long", "refused-request", NO_BUDGET})
"""Reasons that asking again soon does not help against; `http-...` (4xx) is another."""


class Asked[Q](Protocol):
    """What a dispatcher asks: a client, and how its answer is read."""

    @property
    def decoding(self) -> Mapping[str, Any]:
        """Every option that can change an answer."""
        ...

    async def ask(self, prompt: str, question: Q, attempt: int = 0) -> Completion:
        """Return what the LLM says.

        Raises:
            OracleError: If there is no answer.
        """
        ...

    def read(self, question: Q, raw: str) -> object:
        """Return what a text says.

        Raises:
            UselessAnswerError: If it is no answer to the question.
        """
        ...


@dataclass(eq=False)
class Call[Q]:
    """A question for the LLM, and what came of it: a `completion`, or the `reason` why there is none.

    Attributes:
        priority: What a limit is spent on first: lower comes first. It stands once the call is `taken` from the queue.
        most_tokens: Tokens that one attempt cannot exceed.
        attempts: How often the LLM was asked.
        said: The last answer that was none to the question.
        error: What the last attempt raised.
    """

    key: str
    prompt: str
    question: Q
    priority: tuple[float, int, int] = (0.0, 0, 0)
    most_tokens: int = 0
    taken: bool = False
    attempts: int = 0
    said: str = ""
    completion: Completion | None = None
    reason: str = ""
    error: Exception | None = None
    done: bool = False


class Dispatcher[Q]:
    """Asks an LLM up to `slots` questions at a time.

    Without limits a call goes out as soon as a slot is free. With limits all calls that wait are taken
    together, in the order of their priority, and all their answers are awaited before more are taken: so
    who gets something does not depend on which answer comes first (but for limits of seconds).

    Args:
        attempts: How often a question is asked whose failure may pass.
        backoff_s: Seconds before the second attempt, doubled for each further one, half to one and a half
            times as long by the key; a useless answer is asked again at once.
        on_done: Called with each call that is done.
        on_useless: Called after each answer that is none to its question. What either of the two raises ends the work.

    Attributes:
        usage: `calls`, `prompt_tokens` and `completion_tokens` so far.
    """

    def __init__(
        self,
        asked: Asked[Q],
        on_done: Callable[[Call[Q]], None],
        on_useless: Callable[[Call[Q]], None] = lambda call: None,
        *,
        slots: int,
        attempts: int,
        backoff_s: float,
        budget: Budget,
        usage: Counter[str],
    ) -> None:
        self.asked = asked
        self.usage = usage
        self._on_done = on_done
        self._on_useless = on_useless
        self._semaphore = PrioritySemaphore(slots)
        self._attempts = attempts
        self._backoff_s = backoff_s
        self._budget = budget
        self._queue: list[Call[Q]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsent = 0
        self._changed = asyncio.Event()
        self._broken: BaseException | None = None

    @property
    def wants_more(self) -> bool:
        """Whether slots may soon run dry."""
        return self._unsent < self._semaphore.n

    def put(self, call: Call[Q]) -> None:
        """Take a call; with limits it waits for `flush`."""
        call.most_tokens = most_tokens(call.prompt, self.asked.decoding)
        if self._budget.limited:
            self._queue.append(call)
        else:
            call.taken = True
            self._unsent += 1
            self._run(self._pursue(call))

    def flush(self) -> None:
        """With limits: let the calls that wait go out together, unless others still are."""
        if self._queue and not self._tasks:
            calls, self._queue = self._queue, []
            for call in calls:
                call.taken = True
            self._run(self._spend(calls))

    async def news(self) -> None:
        """Wait until a call is done.

        Raises:
            BaseException: Whatever broke the work on a call, which no answer of an LLM can.
        """
        if self._broken is None:
            await self._changed.wait()
        self.check()

    def check(self) -> None:
        """Raise whatever broke the work on a call, if anything did; see `news`."""
        if self._broken is not None:
            raise self._broken

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._drop_task)

    def _drop_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._broken = self._broken or task.exception()
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _pursue(self, call: Call[Q]) -> None:
        """Ask as often as it takes and is allowed.

        A call that waits to be asked again holds no slot, and then goes before those that were not asked yet.
        """
        async with self._semaphore.slot():
            self._unsent -= 1
            await self._attempt(call)
        while not call.done:
            await asyncio.sleep(self._pause_s(call))
            async with self._semaphore.slot(rank=-call.attempts):
                await self._attempt(call)

    async def _spend(self, calls: list[Call[Q]]) -> None:
        """Ask in the order of priority for as long as the budget lasts; what it leaves over has the reason `budget`."""
        waiting = sorted(calls, key=_order)
        while waiting:
            granted = list(takewhile(lambda call: self._budget.set_aside(call.most_tokens), waiting))
            if not granted:
                break
            await asyncio.gather(*map(self._attempt_in_slot, granted))
            again = [call for call in granted if not call.done]
            if again:
                await asyncio.sleep(max(map(self._pause_s, again)))
            waiting = sorted([*again, *waiting[len(granted) :]], key=_order)
        for call in waiting:
            self._left_over(call)

    async def _attempt_in_slot(self, call: Call[Q]) -> None:
        async with self._semaphore.slot():
            if self._budget.seconds_left > 0:
                await self._attempt(call)
            else:  # the time ran out while the call waited for a slot
                self._budget.settle(call.most_tokens, 0, called=False)
                self._left_over(call)

    async def _attempt(self, call: Call[Q]) -> None:
        """Ask once; the call is then done, or may be asked again."""
        self.check()  # what broke another call ends the work on all
        limit_s = self._budget.seconds_left
        said = Completion("")
        try:
            async with asyncio.timeout(limit_s if limit_s < math.inf else None) as limit:
                said = await self.asked.ask(call.prompt, call.question, call.attempts)
            self.asked.read(call.question, said.text)
            if (kept := storable(said.text)) != said.text:  # what is used is what can be recorded
                said = replace(said, text=kept)
                self.asked.read(call.question, kept)
        except (OracleError, UselessAnswerError) as error:
            reason, call.error = error.reason, error
        except ConfigError:  # what was configured cannot be asked at all
            raise
        except (KeyboardInterrupt, SystemExit) as error:  # of a function that plays the LLM: not to end this loop
            raise RuntimeError(f"the LLM's function raised {type(error).__name__}") from error
        except TimeoutError as error:
            reason, call.error = NO_BUDGET if limit.expired() else "timeout", error
        except Exception as error:  # a client or function of a user's own may fail in any way: named, counted
            reason, call.error = type(error).__name__, error
        else:
            reason, call.completion = "", said
        self._count(call, reason, said)
        if reason and (isinstance(call.error, UselessAnswerError) or reason == "empty"):
            call.said = said.text
            self._notify(self._on_useless, call)
        if not reason:
            self._finish(call)
        elif call.attempts >= self._attempts or not may_pass(reason, call.error):
            self._fail(call, reason)
        else:
            call.reason = reason

    def _count(self, call: Call[Q], reason: str, said: Completion) -> None:
        called = getattr(call.error, "sent", True) or not reason
        call.attempts += called and reason != "resting"
        self.usage["calls"] += called
        self.usage["prompt_tokens"] += said.prompt_tokens
        self.usage["completion_tokens"] += said.completion_tokens
        if self._budget.limited:
            told = said.prompt_tokens + said.completion_tokens if said.prompt_tokens else call.most_tokens
            cost_nothing = not called or reason in ("refused", "busy") or reason.startswith("http-")
            self._budget.settle(call.most_tokens, 0 if cost_nothing else told, called=called)

    def _finish(self, call: Call[Q]) -> None:
        call.done = True
        self._notify(self._on_done, call)
        self._tell()

    def _notify(self, whom: Callable[[Call[Q]], None], call: Call[Q]) -> None:
        """Tell somebody of a call; what that raises ends the work on all calls, at once."""
        try:
            whom(call)
        except BaseException as error:
            self._broken = self._broken or error
            self._tell()
            raise

    def _left_over(self, call: Call[Q]) -> None:
        """Give up a call that no limit is left for: as what it failed with, if it was asked at all."""
        self._fail(call, call.reason if call.attempts else NO_BUDGET)

    def _fail(self, call: Call[Q], reason: str) -> None:
        call.reason = reason
        self._finish(call)

    def _pause_s(self, call: Call[Q]) -> float:
        """Return how long to wait before the next attempt; the jitter is keyed, as all randomness here."""
        if isinstance(call.error, UselessAnswerError):
            return 0.0
        if call.attempts == 0:  # no server was up; it may be in a moment
            return _RESTING_S
        jitter = 0.5 + digest64(call.key, str(call.attempts)) / 2**64
        return min(self._backoff_s * 2.0 ** (call.attempts - 1), _LONGEST_BACKOFF_S) * jitter


def may_pass(reason: str, error: Exception | None) -> bool:
    """Return whether asking again may help: not after a refusal (4xx), with all servers down, or on a bug."""
    foreseen = isinstance(error, OracleError | UselessAnswerError | TimeoutError)
    return foreseen and reason not in _FINAL and not reason.startswith("http-")


def _order(call: Call[Any]) -> tuple[tuple[float, int, int], str]:
    return call.priority, call.key
