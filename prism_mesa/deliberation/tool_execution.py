"""Running a function, plain or async, within a time.

A thread cannot be ended: a plain function that was given up may still do what it does.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, wait
from threading import Thread
from typing import Any, Final

from prism_mesa.deliberation.jsonable import ONCE
from prism_mesa.deliberation.text import as_text

_GRACE_S: Final = 0.1
"""How much longer than its time a thread is waited for: a coroutine ends itself, if it does not block its loop."""


class GivenUpError(Exception):
    """A tool took too long."""


def run(function: Callable[..., Any], arguments: Mapping[str, Any], limit_s: float | None) -> str:
    """Return what a function returns, as text; without a limit a plain one runs in the caller's thread.

    A generator is run to its end, and fails as the function would.

    Raises:
        GivenUpError: If there is no result in time.
    """

    def finished(value: Any) -> str:
        value = asyncio.run(_within(value, limit_s)) if inspect.iscoroutine(value) else value
        return as_text(list(value) if isinstance(value, ONCE) else value)

    if limit_s is not None:
        return _in_thread(lambda: finished(function(**arguments)), limit_s)
    value = function(**arguments)
    return _in_thread(lambda: finished(value), None) if inspect.iscoroutine(value) else finished(value)


async def _within(work: Coroutine[Any, Any, Any], limit_s: float | None) -> Any:
    timer = asyncio.timeout(limit_s)
    try:
        async with timer:
            return await work
    except TimeoutError:
        if timer.expired():
            raise _given_up(limit_s) from None
        raise


def _in_thread(work: Callable[[], str], limit_s: float | None) -> str:
    """Return what `work` returns, done in a daemon thread; what it raises is raised here."""
    future: Future[str] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=contextvars.copy_context().run, args=(run,), name="prism-tool", daemon=True).start()
    if not wait([future], None if limit_s is None else limit_s + _GRACE_S).done:
        raise _given_up(limit_s)
    return future.result()


def _given_up(limit_s: float | None) -> GivenUpError:
    return GivenUpError(f"no result within {limit_s:g} s; it was given up")
