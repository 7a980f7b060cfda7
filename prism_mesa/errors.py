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

MAX_MESSAGE_LENGTH: Final = 600
"""Maximum length of a message, in characters."""

_GAP: Final = " [...] "
_LONGEST_NAME: Final = 200


def shorten(text: str, max_length: int = MAX_MESSAGE_LENGTH) -> str:
    """Return `text` with at most `max_length` characters. Longer text loses its middle.

    >>> shorten("a" * 20 + "z" * 20, 15)
    'aaaaa [...] zzz'
    """
    n_kept = max_length - len(_GAP)
    n_end = n_kept * 2 // 5
    return text if len(text) <= max_length else f"{text[: n_kept - n_end]}{_GAP}{text[len(text) - n_end :]}"


class PrismError(Exception):
    """Base class of PRISM's errors.

    A message is one `printable` line of at most `MAX_MESSAGE_LENGTH` characters, without passwords and keys
    (`redact_credentials`).
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, *args: object) -> None:
        texts = (printable(shorten(redact_credentials(arg))) if isinstance(arg, str) else arg for arg in args)
        super().__init__(*texts)


class BadInputError(PrismError, ValueError):
    """The input cannot be used, so nothing has run."""

    exit_code: ClassVar[int] = 2


class ConfigError(BadInputError):
    """A configuration key or value is wrong."""


class MissingLLMError(ConfigError):
    """The configured LLM is missing: there is no server, no such model on the server, no file, or no extra."""


class OwnCodeError(ConfigError):
    """A user's function in a configuration raised an error or returned an unusable value."""


class DataError(BadInputError):
    """A file is missing, empty, or lacks columns or rows."""


class ChartError(BadInputError):
    """A statechart is inconsistent, or one of its methods was called with wrong arguments."""


class AgentError(BadInputError):
    """The value of an agent's field is out of range."""


class NotRestorableError(BadInputError):
    """A model has state that cannot be saved in a snapshot."""


class StateTypeError(PrismError, TypeError):
    """An agent's state was set to a value that is not an `AgentState`."""


class OracleError(PrismError):
    """The LLM cannot be asked, or its answer cannot be used.

    Attributes:
        reason: One word for the ledger.
        calls: Number of requests to a server.
        retry_after_s: Seconds to wait before the next request, according to the server; 0 if unknown.
        tokens: Number of tokens of the prompt, and of the answer.
    """

    def __init__(
        self, reason: str, message: str, *, calls: int = 1, retry_after_s: float = 0.0, tokens: tuple[int, int] = (0, 0)
    ) -> None:
        super().__init__(message)
        self.reason, self.calls, self.retry_after_s, self.tokens = reason, calls, retry_after_s, tokens


class LLMFailureException(PrismError):  # noqa: N818 - the contract's name
    """An LLM gave no usable answer, and there is no fallback.

    Attributes:
        reason: One word: `timeout`, `refused`, `http-404`, `unparsable`, ...
        attempts: The number of attempts.
        component: The part of PRISM that asked: `agent`, `policy`, ...
    """

    def __init__(self, reason: str, attempts: int, component: str, message: str = "") -> None:
        times = f"{attempts} attempt{'s' if attempts != 1 else ''}"
        super().__init__(message or f"the LLM gave the {component} no usable answer ({reason}, {times})")
        self.reason = reason
        self.attempts = attempts
        self.component = component


class RunError(PrismError):
    """A run failed after its start."""


class PrismWarning(UserWarning):
    """Input has no effect or was changed, or a failure did not end the run."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(shorten(arg) if isinstance(arg, str) else arg for arg in args))


class NotedWarning(PrismWarning):
    """A warning whose text is also in the run's summary. Commands do not print the warning."""


def format_count(n: int, noun: str) -> str:
    """Return a number and a noun, in the plural unless the number is 1.

    >>> format_count(1, "round"), format_count(2000, "agent"), format_count(2, "reply")
    ('1 round', '2,000 agents', '2 replies')
    """
    return f"{n:,} {noun if n == 1 else re.sub(r'(?<![aeou])y$', 'ie', noun) + 's'}"


def quote_path(path: object) -> str:
    """Return a path as an argument of a shell command, in quotes if necessary.

    >>> quote_path("results/a-1"), quote_path("my results/a-1")
    ('results/a-1', '"my results/a-1"')
    """
    text = str(path)
    quoted = shlex.quote(text)
    return quoted if quoted == text or any(char in text for char in '"$`\\!') else f'"{text}"'


def printable(text: str) -> str:
    """Return `text` on one line, without control characters."""
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def format_error(error: BaseException) -> str:
    r"""Return an error and its notes on one line. Errors that are not PRISM's begin with their type.

    >>> error = ValueError("no\nmore")
    >>> error.add_note("agent 3 in round 2")
    >>> format_error(error)
    'ValueError: no more (agent 3 in round 2)'
    """
    text = str(error) if isinstance(error, PrismError) else f"{type(error).__name__}: {error}"
    notes = "; ".join(map(str, getattr(error, "__notes__", ())))
    return printable(f"{shorten(text, MAX_MESSAGE_LENGTH // 2)} ({notes})" if notes else text)


def one_line[T](render: Callable[[T], str]) -> Callable[[T], str]:
    """Decorate a `__repr__` so that it returns one line, and Python's default for incomplete objects."""

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
    """Return `` Did you mean 'x'?`` for the most similar name in `allowed`, or an empty string.

    >>> did_you_mean("scroling", ["scrolling", "idle"])
    " Did you mean 'scrolling'?"
    >>> did_you_mean("idle", ["idle"]) + did_you_mean("'idle'", ["idle"])
    ''
    """
    if len(name) > _LONGEST_NAME:  # the comparison takes quadratic time
        return ""
    matches = get_close_matches(name, [other for other in allowed if name not in (other, repr(other))], n=1)
    return f" Did you mean {matches[0]!r}?" if matches else ""
