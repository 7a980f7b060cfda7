"""Limits on what a run and each of its rounds may spend on an LLM."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import floor, inf
from typing import Any, Final

from prism_mesa.llm.params import LLMParams
from prism_mesa.snapshot import Plain, Restorable

type _Amounts = list[float]
"""Calls, tokens and seconds that are left; infinite without a limit."""

_PROMPT_OVERHEAD: Final = 256
"""Tokens that a server's template may add to a prompt; a token has at least one byte of text."""
_OPTIONS: Final = 1024
"""Most tokens of a decision's options and instructions."""


class Budget(Restorable):
    """Calls, tokens and seconds that are left.

    Each call reserves the most tokens that it can take and returns unused ones afterwards, so concurrent calls cannot
    exceed a limit together. Seconds are wall time during which at least one call is in progress.

    Attributes:
        limited: Whether there is a limit.
    """

    _run: _Amounts
    _round: _Amounts
    _now: int | None

    def __init__(self, limits: LLMParams, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits, self.clock = limits, clock
        self._since = 0.0
        self.refill()
        self.limited = min(*self._run, *self._round) < inf

    def snapshot(self) -> dict[str, Plain]:
        """Return what is left; no call may be in progress."""
        run, of_round = ([None if n == inf else n for n in amounts] for amounts in (self._run, self._round))
        return {"run": run, "round": of_round, "now": self._now}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Restore what `snapshot` returned; amounts above the limits are reduced to these."""
        self.refill()
        self._run = list(map(min, self._run, _amounts(kept["run"])))
        self._round = list(map(min, self._round, _amounts(kept["round"])))
        self._now = None if kept["now"] is None else int(kept["now"])

    def refill(self) -> None:
        """Refill all limits."""
        limits = self.limits
        self._run = _amounts((limits.max_calls, limits.max_tokens, limits.max_seconds))
        self._round = self._full_round()
        self._now, self._out = None, 0

    def _full_round(self) -> _Amounts:
        limits = self.limits
        return _amounts((limits.max_calls_per_round, limits.max_tokens_per_round, limits.max_seconds_per_round))

    @contextmanager
    def limited_to(self, round_: int, of_run: float, of_round: float) -> Iterator[None]:
        """Limit a block to shares, 0..1, of the rest of run and round; no call may be in progress at either end."""
        self.at_round(round_)
        self._run, rest_of_run = _split(self._run, of_run)
        self._round, rest_of_round = _split(self._round, of_round)
        try:
            yield
        finally:
            self._add(rest_of_run, self._run)
            self._add(rest_of_round, self._round)

    def at_round(self, round_: int) -> None:
        """Refill the limits of a round if another round has begun."""
        if round_ != self._now:
            self._now, self._round = round_, self._full_round()

    def set_aside(self, tokens: int, calls: int = 1) -> bool:
        """Reserve calls of at most `tokens` tokens in total if the budget allows; return whether it does."""
        self._pass_time()
        if any(left[0] < calls or left[1] < tokens or left[2] <= 0 for left in (self._run, self._round)):
            return False
        self._add((-calls, -tokens, 0))
        self._out += 1
        return True

    def settle(self, aside: int, tokens: int, *, unused: int = 0) -> None:
        """Return the unspent tokens of reserved calls to the budget, and the `unused` calls."""
        self._pass_time()
        self._out -= 1
        self._add((unused, aside - tokens, 0))

    @property
    def seconds_left(self) -> float:
        """Seconds until the first limit of time is reached."""
        self._pass_time()
        return max(min(self._run[2], self._round[2]), 0.0)

    def _pass_time(self) -> None:
        now = self.clock()
        if self._out:
            self._add((0, 0, self._since - now))
        self._since = now

    def _add(self, change: Iterable[float], *amounts: _Amounts) -> None:
        """Add a change to some amounts; by default to those of the run and of the round."""
        change = tuple(change)
        for left in amounts or (self._run, self._round):
            left[:] = [n + more for n, more in zip(left, change, strict=True)]


def _amounts(limits: Iterable[float | None]) -> _Amounts:
    return [inf if limit is None else limit for limit in limits]


def _split(amounts: _Amounts, share: float) -> tuple[_Amounts, _Amounts]:
    """Split amounts into a share, in whole calls and tokens, and the rest; the rest of an infinite amount is 0."""
    part = [floor(n * share) if n < inf else n for n in amounts[:2]] + [amounts[2] * share]
    return part, [n - kept if n < inf else 0.0 for n, kept in zip(amounts, part, strict=True)]


def most_tokens(prompt: str, decoding: Mapping[str, Any], calls: int = 1) -> int:
    """Return the most tokens that a prompt can take, which a budget reserves for it.

    A decision model may read state and options twice, in both orders.
    """
    read = len(prompt.encode("utf-8", "replace")) + _PROMPT_OVERHEAD
    passes = 2 * calls if decoding.get("answer") == "decision" else 1
    return passes * (read + int(decoding.get("max_tokens", _OPTIONS if passes > 1 else 0)))
