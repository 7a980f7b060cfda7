"""Limits on calls, tokens and time of an LLM, for a run and for each round."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import floor, inf
from typing import Any, Final

from prism_mesa.llm.params import LLMParams
from prism_mesa.snapshot import Plain, Restorable

type _Amounts = list[float]
"""Remaining calls, tokens and seconds; infinite without a limit."""

_PROMPT_OVERHEAD: Final = 256
"""Maximum tokens that a server's template adds to a prompt. Each other token has at least one byte of text."""
_OPTION_TOKENS: Final = 1024
"""Maximum tokens of a decision's options and instructions."""


class Budget(Restorable):
    """The remaining calls, tokens and seconds.

    Each call reserves the maximum number of tokens that it can use, and returns the unused tokens. So concurrent calls
    cannot exceed a limit together. The clock runs while at least one call is in progress.

    Attributes:
        is_limited: Whether there is a limit.
    """

    _run: _Amounts
    _round: _Amounts
    _current_round: int | None

    def __init__(self, limits: LLMParams, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits, self.clock = limits, clock
        self._last_clock_s = 0.0
        self.refill()
        self.is_limited = min(*self._run, *self._round) < inf

    def snapshot(self) -> dict[str, Plain]:
        """Return the remaining amounts. No call may be in progress."""
        run, round_amounts = ([None if n == inf else n for n in amounts] for amounts in (self._run, self._round))
        return {"run": run, "round": round_amounts, "now": self._current_round}

    def restore(self, snapshot: Mapping[str, Plain]) -> None:
        """Restore a snapshot. Amounts above the limits are reduced to the limits."""
        self.refill()
        self._run = list(map(min, self._run, _amounts(snapshot["run"])))
        self._round = list(map(min, self._round, _amounts(snapshot["round"])))
        self._current_round = None if snapshot["now"] is None else int(snapshot["now"])

    def refill(self) -> None:
        """Refill all limits."""
        limits = self.limits
        self._run = _amounts((limits.max_calls, limits.max_tokens, limits.max_seconds))
        self._round = self._full_round()
        self._current_round, self._n_in_progress = None, 0

    def _full_round(self) -> _Amounts:
        limits = self.limits
        return _amounts((limits.max_calls_per_round, limits.max_tokens_per_round, limits.max_seconds_per_round))

    @contextmanager
    def limited_to(self, round_: int, run_share: float, round_share: float) -> Iterator[None]:
        """Limit a block to shares, 0..1, of the remaining amounts. No call may be in progress."""
        self.begin_round(round_)
        self._run, run_remainder = _split(self._run, run_share)
        self._round, round_remainder = _split(self._round, round_share)
        try:
            yield
        finally:
            self._add(run_remainder, self._run)
            self._add(round_remainder, self._round)

    def begin_round(self, round_: int) -> None:
        """Refill the round's limits if a new round has begun."""
        if round_ != self._current_round:
            self._current_round, self._round = round_, self._full_round()

    def reserve(self, tokens: int, calls: int = 1) -> bool:
        """Reserve calls and their maximum total of `tokens` if the budget suffices; return whether it does."""
        self._charge_time()
        if any(amounts[0] < calls or amounts[1] < tokens or amounts[2] <= 0 for amounts in (self._run, self._round)):
            return False
        self._add((-calls, -tokens, 0))
        self._n_in_progress += 1
        return True

    def release(self, reserved: int, tokens: int, *, unused: int = 0) -> None:
        """End a reservation: return its unspent tokens and its `unused` calls to the budget."""
        self._charge_time()
        self._n_in_progress -= 1
        self._add((unused, reserved - tokens, 0))

    @property
    def seconds_left(self) -> float:
        """Seconds until a time limit is reached."""
        self._charge_time()
        return max(min(self._run[2], self._round[2]), 0.0)

    def _charge_time(self) -> None:
        now = self.clock()
        if self._n_in_progress:
            self._add((0, 0, self._last_clock_s - now))
        self._last_clock_s = now

    def _add(self, change: Sequence[float], *amounts: _Amounts) -> None:
        for values in amounts or (self._run, self._round):
            values[:] = [n + more for n, more in zip(values, change, strict=True)]


def _amounts(limits: Iterable[float | None]) -> _Amounts:
    return [inf if limit is None else limit for limit in limits]


def _split(amounts: _Amounts, share: float) -> tuple[_Amounts, _Amounts]:
    """Split amounts into a share, in whole calls and tokens, and a remainder, which is 0 for infinite amounts."""
    part = [floor(n * share) if n < inf else n for n in amounts[:2]] + [amounts[2] * share]
    return part, [n - n_in_part if n < inf else 0.0 for n, n_in_part in zip(amounts, part, strict=True)]


def tokens_to_reserve(prompt: str, decoding: Mapping[str, Any], calls: int = 1) -> int:
    """Return the number of tokens to reserve for a prompt: the maximum that it can use.

    A decision model may read the prompt and the options twice, once in each order.
    """
    prompt_tokens = len(prompt.encode("utf-8", "replace")) + _PROMPT_OVERHEAD
    passes = 2 * calls if decoding.get("answer") == "decision" else 1
    return passes * (prompt_tokens + int(decoding.get("max_tokens", _OPTION_TOKENS if passes > 1 else 0)))
