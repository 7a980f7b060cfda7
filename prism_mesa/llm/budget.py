"""Limits on what a run and each of its rounds may spend on an LLM."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from prism_mesa.llm.params import LLMParams
from prism_mesa.snapshot import Plain, Restorable

_NO_LIMIT = math.inf


@dataclass
class _Allowance:
    """What is left of one set of limits. What is set aside counts as spent until it is settled."""

    calls: float = _NO_LIMIT
    tokens: float = _NO_LIMIT
    seconds: float = _NO_LIMIT

    def suffices(self, calls: int, tokens: int) -> bool:
        return self.calls >= calls and self.tokens >= tokens and self.seconds > 0

    def part(self, share: float) -> "_Allowance":
        """Keep a share, whole calls and tokens, and return the rest; without a limit the rest is 0."""
        left = [math.floor(n * share) if n < _NO_LIMIT else n for n in (self.calls, self.tokens)]
        left.append(self.seconds * share)
        rest = [now - n if n < _NO_LIMIT else 0.0 for now, n in zip(self.all(), left, strict=True)]
        self.calls, self.tokens, self.seconds = left
        return _Allowance(*rest)

    def all(self) -> tuple[float, float, float]:
        return self.calls, self.tokens, self.seconds

    def left(self) -> list[float | None]:
        """Return what is left of calls, tokens and seconds; None is no limit."""
        return [None if n == _NO_LIMIT else n for n in self.all()]

    def reduce_to(self, left: Sequence[float | None]) -> None:
        """Reduce it to what `left` returned; it never grows."""
        self.calls, self.tokens, self.seconds = map(min, self.all(), (_NO_LIMIT if n is None else n for n in left))

    def take(self, calls: int, tokens: int) -> None:
        self.calls -= calls
        self.tokens -= tokens


def _allowances(params: LLMParams) -> tuple[_Allowance, _Allowance]:
    """Return the full allowances of a run and of a round."""

    def allowance(*limits: float | None) -> _Allowance:
        return _Allowance(*(_NO_LIMIT if limit is None else limit for limit in limits))

    of_round = allowance(params.max_calls_per_round, params.max_tokens_per_round, params.max_seconds_per_round)
    return allowance(params.max_calls, params.max_tokens, params.max_seconds), of_round


@dataclass
class Budget(Restorable):
    """Calls, tokens and seconds that are left.

    Before a call goes out, the most tokens that it can take are set aside; unused ones are given back afterwards. So
    calls that are out at the same time cannot exceed a limit together. Seconds are wall time in which at least one
    call is out.

    Attributes:
        limited: Whether there is any limit at all.
    """

    limits: LLMParams
    clock: Callable[[], float] = time.monotonic
    limited: bool = field(init=False)
    _run: _Allowance = field(init=False)
    _round: _Allowance = field(init=False)
    _now: int | None = field(default=None, init=False)
    _out: int = field(default=0, init=False)
    _since: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.refill()
        self.limited = (self._run, self._round) != (_Allowance(), _Allowance())

    def snapshot(self) -> dict[str, Plain]:
        """Return what is left, while nothing is out."""
        return {"run": self._run.left(), "round": self._round.left(), "now": self._now}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Bring back what `snapshot` returned."""
        self.refill()
        self._run.reduce_to(kept["run"])
        self._round.reduce_to(kept["round"])
        self._now = None if kept["now"] is None else int(kept["now"])

    def refill(self) -> None:
        """Refill all limits."""
        self._run, self._round = _allowances(self.limits)
        self._now, self._out = None, 0

    @contextmanager
    def limited_to(self, round_: int, of_run: float, of_round: float) -> Iterator[None]:
        """Limit a block to shares, 0..1, of what is left of the run and of its round; no call may be out around it."""
        self.at_round(round_)
        kept = self._run.part(of_run), self._round.part(of_round)
        try:
            yield
        finally:
            for allowance, rest in zip((self._run, self._round), kept, strict=True):
                allowance.calls, allowance.tokens = allowance.calls + rest.calls, allowance.tokens + rest.tokens
                allowance.seconds += rest.seconds

    def at_round(self, round_: int) -> None:
        """Refill the limits of a round if another round has begun."""
        if round_ != self._now:
            self._now = round_
            _, self._round = _allowances(self.limits)

    def set_aside(self, tokens: int, calls: int = 1) -> bool:
        """Reserve calls of at most `tokens` tokens in all, if the budget allows; return whether it does."""
        self._pass_time()
        if not (self._run.suffices(calls, tokens) and self._round.suffices(calls, tokens)):
            return False
        for allowance in (self._run, self._round):
            allowance.take(calls, tokens)
        self._out += 1
        return True

    def settle(self, aside: int, tokens: int, *, unused: int = 0) -> None:
        """Return the unspent tokens of reserved calls to the budget, and the `unused` calls."""
        self._pass_time()
        self._out -= 1
        for allowance in (self._run, self._round):
            allowance.take(-unused, tokens - aside)

    @property
    def seconds_left(self) -> float:
        """Seconds until the first limit of time is reached."""
        self._pass_time()
        return max(min(self._run.seconds, self._round.seconds), 0.0)

    def _pass_time(self) -> None:
        now = self.clock()
        if self._out:
            self._run.seconds -= now - self._since
            self._round.seconds -= now - self._since
        self._since = now


_PROMPT_OVERHEAD = 256
"""Tokens that a server may add to a prompt (its template); a token is at least one byte of text."""
_OPTIONS = 1024
"""Most tokens of the options and instructions of a decision."""


def most_tokens(prompt: str, decoding: Mapping[str, Any], calls: int = 1) -> int:
    """Return the most tokens that asking `prompt` can take: what a budget reserves for it.

    A decision model may read state and options twice, once in either order.
    """
    read = len(prompt.encode("utf-8", "replace")) + _PROMPT_OVERHEAD
    passes = 2 * calls if decoding.get("answer") == "decision" else 1
    return passes * (read + int(decoding.get("max_tokens", _OPTIONS if passes > 1 else 0)))
