"""Tools that an LLM may call: functions with a name, a description and a schema. Errors in tools become texts.

>>> registry = ToolRegistry()
>>> @registry.tool
... def reply(post: int, text: str, loud: bool = False) -> str:
...     '''Reply to a post.
...
...     Args:
...         post: its number.
...         text: what you say.
...     '''
...     return f"replied to {post}"
>>> print(registry.describe())
- reply(post: int, text: str, loud: bool = False): Reply to a post. post: its number. text: what you say.
>>> registry.execute("reply", {"post": "3", "text": "No."})
ToolResult(ok=True, text='replied to 3', reason='')
>>> print(registry.execute("reply", {"post": "third"}).text)
post: Input should be a valid integer, unable to parse string as an integer, not 'third'
text: is missing; allowed: str, what you say.
"""

import asyncio
import contextvars
import inspect
import json
import keyword
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from threading import TIMEOUT_MAX, Thread
from types import EllipsisType
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from prism_mesa.deliberation.text import ITERATORS, error_text, result_text, short_repr, truncate
from prism_mesa.deliberation.tool_schema import Schema, call_schema, tool_line, tool_signature
from prism_mesa.errors import ConfigError, did_you_mean

type Function = Callable[..., Any]

TIMEOUT_S: Final = 10.0
RESULT_CAP: Final = 1000
MIN_CAP: Final = 80
"""The minimum of `result_cap`, which leaves room for the note on a cut."""


class ToolResult(BaseModel):
    """The result of a call.

    Attributes:
        ok: Whether the tool ran and returned.
        text: The result or the fault, for the LLM; at most the registry's `result_cap` characters.
        reason: Empty if `ok`, else `unknown-tool`, `bad-parameters`, `timeout`, or the class of the exception.
    """

    model_config = ConfigDict(frozen=True)

    ok: bool
    text: str
    reason: str = ""


@dataclass(frozen=True)
class Tool:
    """A function that an LLM may call.

    Attributes:
        name: A Python identifier.
        description: One line for prompts.
        parameters: JSON schema of an object. Calls are checked against the function's type hints.
        timeout_s: Seconds until a call times out. A coroutine is then cancelled; a thread continues. None runs the
            tool in the caller's thread, which suits tools that change something.
    """

    name: str
    description: str
    parameters: Schema = field(hash=False)
    function: Function
    timeout_s: float | None = TIMEOUT_S

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or keyword.iskeyword(self.name):
            raise ConfigError(f"tool {short_repr(self.name)}: name: must be a Python identifier, such as 'read_feed'")
        _check_timeout(self.timeout_s, f"tool {self.name}")

    @classmethod
    def wrap(cls, function: Function, *, name: str | None = None, timeout_s: float | None = TIMEOUT_S) -> "Tool":
        """Make a tool from a function's signature and docstring.

        The first paragraph of the docstring is the description; its `Args:` (Google style) describe the parameters.
        A bound method stays bound.

        Raises:
            ConfigError: If there is no docstring, a parameter has no type or cannot be passed by name, the name is
                not an identifier, or the time-out is not above 0.
        """
        signature = tool_signature(function)
        if not signature.description:
            raise ConfigError(f"tool {signature.name}: docstring: is missing; the LLM needs its first paragraph")
        return cls(name or signature.name, signature.description, signature.parameters, function, timeout_s)


class ToolRegistry:
    """The tools of an agent, in the order in which they were added.

    Signatures and docstrings are read once per function, so registries of bound methods for each agent and turn are
    cheap.

    Args:
        tools: Functions, methods, or `Tool` objects.
        timeout_s: The default time-out of tools (see `Tool`); None for no time-out.
        result_cap: Maximum characters of a result; at least 80.

    Raises:
        ConfigError: If a function cannot be a tool (see `Tool.wrap`), a name is taken, or a number is out of range.
    """

    def __init__(
        self,
        tools: Iterable[Function | Tool] = (),
        *,
        timeout_s: float | None = TIMEOUT_S,
        result_cap: int = RESULT_CAP,
    ) -> None:
        _check_timeout(timeout_s, "tools")
        if result_cap < MIN_CAP:
            raise ConfigError(f"tools: result_cap: must be at least {MIN_CAP}, not {result_cap}")
        self.timeout_s = timeout_s
        self.result_cap = result_cap
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def add(
        self, function: Function | Tool, *, name: str | None = None, timeout_s: float | EllipsisType | None = ...
    ) -> Tool:
        """Add a function or method, plain or async, or a `Tool`, and return the tool.

        Args:
            function: The function or the tool.
            name: The tool's name for the LLM; by default the function's name.
            timeout_s: See `Tool`; by default the registry's time-out.

        Raises:
            ConfigError: If the function cannot be a tool (see `Tool.wrap`), or the name is taken.
        """
        limit = self.timeout_s if timeout_s is ... else timeout_s
        tool = function if isinstance(function, Tool) else Tool.wrap(function, name=name, timeout_s=limit)
        if tool.name in self._tools:
            raise ConfigError(f"tool {tool.name}: name: is taken; give another one (name=...)")
        self._tools[tool.name] = tool
        return tool

    def tool(self, function: Function | None = None, **options: Any) -> Any:
        """Decorate a function to add it, with or without the arguments of `add`."""

        def add_tool[F: Function](function: F) -> F:
            self.add(function, **options)
            return function

        return add_tool if function is None else add_tool(function)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(self._tools)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._tools

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def describe(self) -> str:
        """Describe the tools for a prompt, one per line: name, parameters, descriptions."""
        return "\n".join(map(tool_line, self))

    @property
    def call_schema(self) -> Schema | None:
        """The JSON schema of one call: `tool_name`, `parameters` and `reasoning`, in this order; None without tools.

        The schema has no references, so it can become a grammar.
        """
        return call_schema(self) if self._tools else None

    def identity(self, name: str, parameters: Mapping[str, Any]) -> str:
        """Return a string that is the same for equivalent calls, such as ``like(post=3)`` and ``like(post="3")``."""
        if name not in self:
            return json.dumps([name, parameters], sort_keys=True, default=str)
        return f"{name} {tool_signature(self._tools[name].function).identity(parameters)}"

    def execute(self, name: str, parameters: Mapping[str, Any]) -> ToolResult:
        """Check the parameters, run the tool, and return its result or the fault; raise only interrupts and exits.

        Tools with a time-out and coroutines run in a thread (see `Tool`).
        """
        try:
            if name not in self:
                return self._failure("unknown-tool", self._unknown_tool_text(name))
            tool = self._tools[name]
            arguments, faults = tool_signature(tool.function).arguments(parameters)
            if faults:
                return self._failure("bad-parameters", faults)
            text = run_function(tool.function, arguments, tool.timeout_s)
            return ToolResult(ok=True, text=truncate(text, self.result_cap))
        except (KeyboardInterrupt, SystemExit):
            raise
        except ToolTimeoutError as error:
            return self._failure("timeout", str(error))
        except BaseException as error:
            return self._failure(type(error).__name__, error_text(error))

    def _failure(self, reason: str, text: str) -> ToolResult:
        return ToolResult(ok=False, text=truncate(text, self.result_cap), reason=reason)

    def _unknown_tool_text(self, name: object) -> str:
        quoted_name = short_repr(name)
        suggestion = did_you_mean(quoted_name.strip("'\""), self._tools)
        return f"There is no tool {quoted_name}.{suggestion} The tools are: {', '.join(self._tools) or 'none'}."


def _check_timeout(timeout_s: object, where: str) -> None:
    is_number = isinstance(timeout_s, int | float) and timeout_s is not True and 0 < timeout_s <= TIMEOUT_MAX
    if timeout_s is not None and not is_number:
        raise ConfigError(f"{where}: timeout_s: must be seconds above 0, or None, not {short_repr(timeout_s)}")


_GRACE_S: Final = 0.1
"""Extra seconds for a thread, in which a coroutine can cancel itself unless it blocks its event loop."""


class ToolTimeoutError(Exception):
    """A tool took too long."""


def run_function(function: Callable[..., Any], arguments: Mapping[str, Any], limit_s: float | None) -> str:
    """Run a function and return its result as text; raise ToolTimeoutError if it takes longer than the limit."""

    def to_text(value: Any) -> str:
        value = asyncio.run(_await_within(value, limit_s)) if inspect.iscoroutine(value) else value
        return result_text(list(value) if isinstance(value, ITERATORS) else value)

    if limit_s is not None:
        return _run_in_thread(lambda: to_text(function(**arguments)), limit_s)
    value = function(**arguments)
    return _run_in_thread(lambda: to_text(value), None) if inspect.iscoroutine(value) else to_text(value)


async def _await_within(task: Coroutine[Any, Any, Any], limit_s: float | None) -> Any:
    timer = asyncio.timeout(limit_s)
    try:
        async with timer:
            return await task
    except TimeoutError:
        if timer.expired():
            raise _timeout_error(limit_s) from None
        raise


def _run_in_thread(task: Callable[[], str], limit_s: float | None) -> str:
    """Run `task` in a daemon thread, and return its result or raise its error."""
    future: Future[str] = Future()

    def run_task() -> None:
        try:
            future.set_result(task())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=contextvars.copy_context().run, args=(run_task,), name="prism-tool", daemon=True).start()
    if not wait([future], None if limit_s is None else limit_s + _GRACE_S).done:
        raise _timeout_error(limit_s)
    return future.result()


def _timeout_error(limit_s: float | None) -> ToolTimeoutError:
    return ToolTimeoutError(f"no result within {limit_s:g} s; it was given up")
