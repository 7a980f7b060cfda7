"""The one tree of errors: every message says where, what was given, what is allowed, and what to do next.

`cli` turns an error into one line and `exit_code`.
"""

import re
import shlex
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import ClassVar, Final

_USER_OF_ADDRESS: Final = re.compile(
    r"(?<=://)[^\s/?#]*@"  # http://me:pass@host
    r"|(?<=\bhost=)[^\s/?#]*@"  # reasoner.host=me@host
    r"|(?<![^\s='\"(\[,])[^\s:/@='\"()\[\],]+:[^\s/@'\",]+@(?=[\w\[])"  # me:pass@host
)
_KEY_OF_ADDRESS: Final = re.compile(
    r"([?&;][\w.-]*(?:key|token|secret|passw(?:or)?d|pwd|auth|signature)[\w.-]*=)[^\s&#;'\"]+", re.IGNORECASE
)

LONGEST: Final = 600
"""Characters of a message; it is to be read, whatever a user or an LLM wrote into it."""

_LEFT_OUT: Final = " [...] "
_LONGEST_NAME: Final = 200


def shortened(text: str, most: int = LONGEST) -> str:
    """Return `text` with at most `most` characters: of a longer one the beginning and the end, which say where and why.

    >>> shortened("a" * 20 + "z" * 20, 15)
    'aaaaa [...] zzz'
    """
    room = most - len(_LEFT_OUT)
    end = room * 2 // 5
    return text if len(text) <= most else f"{text[: room - end]}{_LEFT_OUT}{text[len(text) - end :]}"


class PrismError(Exception):
    """Base of all errors that PRISM raises on purpose.

    A message is one line of at most `LONGEST` characters, without what could steer a terminal (`printable`) and without
    the password of an address (`said_openly`), whatever stood in what a user gave.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, *told: object) -> None:
        super().__init__(*(printable(shortened(said_openly(one))) if isinstance(one, str) else one for one in told))


class BadInputError(PrismError, ValueError):
    """Something a user gave cannot be used; nothing was run."""

    exit_code: ClassVar[int] = 2


class ConfigError(BadInputError):
    """A configuration key or value is wrong."""


class MissingLLMError(ConfigError):
    """The LLM of a configuration is missing: no server, no such model on it, no file, or no extra."""


class OwnCodeError(ConfigError):
    """A function of a user's own that a configuration names raised, or gave what cannot be used."""


class DataError(BadInputError):
    """A file is missing, empty, or has not the columns or rows that are needed."""


class ChartError(BadInputError):
    """A statechart, or a call on one, contradicts itself."""


class AgentError(BadInputError):
    """An agent's field was given a value outside its range."""


class NotRestorableError(BadInputError):
    """Something in a model has state that no snapshot can hold."""


class StateTypeError(PrismError, TypeError):
    """An agent's state was set to something that is not an `AgentState`."""


class OracleError(PrismError):
    """The LLM cannot be asked, or its answer cannot be used.

    Attributes:
        reason: One word for the ledger.
        calls: Requests sent to a server, each of which may cost.
        retry_after_s: Seconds after which the server wants to be asked again; 0 if it does not say.
        tokens: What it cost all the same: tokens of the prompt and of what was said.
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
    """An LLM gave no usable answer, and nothing may stand in for it: the step is given up.

    Attributes:
        reason: One word: `timeout`, `refused`, `http-404`, `unparsable`, ...
        attempts: How often it was asked.
        component: Who asked: `agent`, `policy`, ...
    """

    def __init__(self, reason: str, attempts: int, component: str, message: str = "") -> None:
        times = f"{attempts} attempt{'s' if attempts != 1 else ''}"
        super().__init__(message or f"the LLM gave the {component} no usable answer ({reason}, {times})")
        self.reason = reason
        self.attempts = attempts
        self.component = component


class RunError(PrismError):
    """A run that had started could not be brought to a good end."""


class PrismWarning(UserWarning):
    """Something that was given has no effect, was changed on its way in, or failed without ending a run."""

    def __init__(self, *told: object) -> None:
        super().__init__(*(shortened(one) if isinstance(one, str) else one for one in told))


class NotedWarning(PrismWarning):
    """A warning of a model whose text also stands in the summary of a run, where the commands show it."""


def counted(n: int, what: str) -> str:
    """Return how many there are, in words.

    >>> counted(1, "round"), counted(2000, "agent"), counted(2, "reply")
    ('1 round', '2,000 agents', '2 replies')
    """
    return f"{n:,} {what if n == 1 else re.sub(r'(?<![aeou])y$', 'ie', what) + 's'}"


def in_command(path: object) -> str:
    """Return a path as it is written in a command: in quotes if a shell would make something else of it.

    >>> in_command("results/a-1"), in_command("my results/a-1")
    ('results/a-1', '"my results/a-1"')
    """
    text = str(path)
    bare = shlex.quote(text)
    return bare if bare == text or any(char in text for char in '"$`\\!') else f'"{text}"'


def printable(text: str) -> str:
    """Return `text` on one line, without what could steer a terminal: it may hold what a user or an LLM wrote."""
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def told(error: BaseException) -> str:
    r"""Return in one line what an error says, of one that is not PRISM's also its kind, and the notes on it.

    >>> error = ValueError("no\nmore")
    >>> error.add_note("agent 3 in round 2")
    >>> told(error)
    'ValueError: no more (agent 3 in round 2)'
    """
    said = str(error) if isinstance(error, PrismError) else f"{type(error).__name__}: {error}"
    notes = "; ".join(map(str, getattr(error, "__notes__", ())))
    return printable(f"{shortened(said, LONGEST // 2)} ({notes})" if notes else said)


def one_line[T](told: Callable[[T], str]) -> Callable[[T], str]:
    """Keep what a `__repr__` says on one line; of an object that is only half made, say what Python does."""

    @wraps(told)
    def said(self: T) -> str:
        try:
            return printable(told(self))
        except Exception:  # a debugger shows objects before their `__init__` has come to its end
            return object.__repr__(self)

    return said


def said_openly(text: str) -> str:
    """Return `text` without passwords and keys in the addresses that it holds: for all that is written or said.

    >>> said_openly("no answer from https://me:pass@llm.example:8000/v1?api_key=abc&n=1")
    'no answer from https://llm.example:8000/v1?api_key=***&n=1'
    """
    return _KEY_OF_ADDRESS.sub(r"\1***", _USER_OF_ADDRESS.sub("", text))


def did_you_mean(given: str, allowed: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the nearest of `allowed`, or an empty string; never for what was given.

    >>> did_you_mean("scroling", ["scrolling", "idle"])
    " Did you mean 'scrolling'?"
    >>> did_you_mean("idle", ["idle"]) + did_you_mean("'idle'", ["idle"])
    ''
    """
    if len(given) > _LONGEST_NAME:  # no name is so long, and comparing takes its square
        return ""
    others = [name for name in allowed if given not in (name, repr(name))]
    near = get_close_matches(given, others, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
