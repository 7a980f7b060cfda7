"""PRISM's errors and warnings, and helpers for their messages.

A message says where the error is, what is allowed, and what to do. `cli` prints it, and exits with `exit_code`.
"""

import re
import shlex
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import ClassVar, Final

_ADDRESS_USER: Final = re.compile(
    r"(?<=://)[^\s/?#]*@"  # http://me:pass@host
    r"|(?<=\bhost=)[^\s/?#]*@"  # reasoner.host=me@host
    r"|(?<![^\s='\"(\[,])[^\s:/@='\"()\[\],]+:[^\s/@'\",]+@(?=[\w\[])"  # me:pass@host
)
_ADDRESS_KEY: Final = re.compile(
    r"([?&;][\w.-]*(?:key|token|secret|passw(?:or)?d|pwd|auth|signature)[\w.-]*=)[^\s&#;'\"]+", re.IGNORECASE
)

LONGEST: Final = 600
"""Longest message, in characters."""

_GAP: Final = " [...] "
_LONGEST_NAME: Final = 200


def shortened(text: str, max_length: int = LONGEST) -> str:
    """Return `text` with at most `max_length` characters; the middle of a longer one is left out.

    >>> shortened("a" * 20 + "z" * 20, 15)
    'aaaaa [...] zzz'
    """
    room = max_length - len(_GAP)
    end = room * 2 // 5
    return text if len(text) <= max_length else f"{text[: room - end]}{_GAP}{text[len(text) - end :]}"


class PrismError(Exception):
    """Base of PRISM's errors.

    A message is one line of at most `LONGEST` characters, `printable`, and without passwords (`redact_credentials`).
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, *args: object) -> None:
        texts = (printable(shortened(redact_credentials(arg))) if isinstance(arg, str) else arg for arg in args)
        super().__init__(*texts)


class BadInputError(PrismError, ValueError):
    """The input cannot be used; nothing has run."""

    exit_code: ClassVar[int] = 2


class ConfigError(BadInputError):
    """A configuration key or value is wrong."""


class MissingLLMError(ConfigError):
    """The LLM of a configuration is missing: no server, no such model on it, no file, or no extra."""


class OwnCodeError(ConfigError):
    """A user's function, named in a configuration, raised an error or returned an unusable value."""


class DataError(BadInputError):
    """A file is missing, empty, or lacks columns or rows."""


class ChartError(BadInputError):
    """A statechart, or a call of its methods, is inconsistent."""


class AgentError(BadInputError):
    """A value of an agent's field is outside its range."""


class NotRestorableError(BadInputError):
    """A model has state that cannot be saved in a snapshot."""


class StateTypeError(PrismError, TypeError):
    """An agent's state was set to a value that is not an `AgentState`."""


class OracleError(PrismError):
    """The LLM cannot be asked, or its answer cannot be used.

    Attributes:
        reason: One word for the ledger.
        calls: Requests sent to a server.
        retry_after_s: Seconds to wait, according to the server; 0 if unknown.
        tokens: Tokens of the prompt and of the answer.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        calls: int = 1,
        retry_after_s: float = 0.0,
        tokens: tuple[int, int] = (0, 0),
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.calls = calls
        self.retry_after_s = retry_after_s
        self.tokens = tokens


class LLMFailureException(PrismError):  # noqa: N818 - the contract's name
    """An LLM gave no usable answer, and there is no fallback.

    Attributes:
        reason: One word: `timeout`, `refused`, `http-404`, `unparsable`, ...
        attempts: The number of attempts.
        component: The part that asked: `agent`, `policy`, ...
    """

    def __init__(self, reason: str, attempts: int, component: str, message: str = "") -> None:
        times = f"{attempts} attempt{'s' if attempts != 1 else ''}"
        super().__init__(message or f"the LLM gave the {component} no usable answer ({reason}, {times})")
        self.reason = reason
        self.attempts = attempts
        self.component = component


class RunError(PrismError):
    """A run failed after it had started."""


class PrismWarning(UserWarning):
    """Input has no effect or was changed, or something failed without ending a run."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(shortened(arg) if isinstance(arg, str) else arg for arg in args))


class NotedWarning(PrismWarning):
    """A warning whose text is also in the run's summary, where the commands show it."""


def counted(n: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "round"), counted(2000, "agent"), counted(2, "reply")
    ('1 round', '2,000 agents', '2 replies')
    """
    return f"{n:,} {noun if n == 1 else re.sub(r'(?<![aeou])y$', 'ie', noun) + 's'}"


def in_command(path: object) -> str:
    """Return a path for a command, in quotes if a shell needs them.

    >>> in_command("results/a-1"), in_command("my results/a-1")
    ('results/a-1', '"my results/a-1"')
    """
    text = str(path)
    bare = shlex.quote(text)
    return bare if bare == text or any(char in text for char in '"$`\\!') else f'"{text}"'


def printable(text: str) -> str:
    """Return `text` on one line, without control characters."""
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def format_error(error: BaseException) -> str:
    r"""Return an error with its notes in one line; errors that are not PRISM's begin with their type.

    >>> error = ValueError("no\nmore")
    >>> error.add_note("agent 3 in round 2")
    >>> format_error(error)
    'ValueError: no more (agent 3 in round 2)'
    """
    text = str(error) if isinstance(error, PrismError) else f"{type(error).__name__}: {error}"
    notes = "; ".join(map(str, getattr(error, "__notes__", ())))
    return printable(f"{shortened(text, LONGEST // 2)} ({notes})" if notes else text)


def one_line[T](render: Callable[[T], str]) -> Callable[[T], str]:
    """Decorate a `__repr__` so that it returns one line, and Python's own for incomplete objects."""

    @wraps(render)
    def represent(self: T) -> str:
        try:
            return printable(render(self))
        except Exception:  # a debugger may show an object before `__init__` has ended
            return object.__repr__(self)

    return represent


def redact_credentials(text: str) -> str:
    """Return `text` without passwords and keys in addresses.

    >>> redact_credentials("no answer from https://me:pass@llm.example:8000/v1?api_key=abc&n=1")
    'no answer from https://llm.example:8000/v1?api_key=***&n=1'
    """
    return _ADDRESS_KEY.sub(r"\1***", _ADDRESS_USER.sub("", text))


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the name in `allowed` that is most similar to `name`, or an empty string.

    >>> did_you_mean("scroling", ["scrolling", "idle"])
    " Did you mean 'scrolling'?"
    >>> did_you_mean("idle", ["idle"]) + did_you_mean("'idle'", ["idle"])
    ''
    """
    if len(name) > _LONGEST_NAME:  # the comparison takes quadratic time
        return ""
    others = [other for other in allowed if name not in (other, repr(other))]
    matches = get_close_matches(name, others, n=1)
    return f" Did you mean {matches[0]!r}?" if matches else ""
