"""What a run and each of its rounds may spend on an LLM. It only counts; who gets what is decided elsewhere."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from prism_mesa.reasoner.params import LLMParams

_NO_LIMIT = math.inf


@dataclass
class _Purse:
    """What is left of one set of limits. What is set aside counts as spent until it is settled."""

    calls: float = _NO_LIMIT
    tokens: float = _NO_LIMIT
    seconds: float = _NO_LIMIT

    def holds(self, tokens: int) -> bool:
        return self.calls >= 1 and self.tokens >= tokens and self.seconds > 0

    def take(self, calls: int, tokens: int) -> None:
        self.calls -= calls
        self.tokens -= tokens


def _purses(own: LLMParams) -> tuple[_Purse, _Purse]:
    """Return full purses of a run and of a round."""
    of_run = (own.max_calls, own.max_tokens, own.max_seconds)
    of_round = (own.max_calls_per_round, own.max_tokens_per_round, own.max_seconds_per_round)
    run, round_ = (
        _Purse(*(_NO_LIMIT if limit is None else limit for limit in limits)) for limits in (of_run, of_round)
    )
    return run, round_


@dataclass
class Budget:
    """Calls, tokens and seconds that are left.

    For a call the most tokens that it can take are set aside before it goes out, and what it did not take is given back
    afterwards: so calls that are out at the same time cannot exceed a limit together. Seconds are wall
    time in which at least one call is out.

    Attributes:
        limited: Whether there is any limit at all.
    """

    limits: LLMParams
    clock: Callable[[], float] = time.monotonic
    limited: bool = field(init=False)
    _run: _Purse = field(init=False)
    _round: _Purse = field(init=False)
    _now: int | None = field(default=None, init=False)
    _out: int = field(default=0, init=False)
    _since: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.refill()
        self.limited = (self._run, self._round) != (_Purse(), _Purse())

    def refill(self) -> None:
        """Let all limits begin anew."""
        self._run, self._round = _purses(self.limits)
        self._now, self._out = None, 0

    def at_round(self, round_: int) -> None:
        """Let the limits of a round begin anew when another round has begun."""
        if round_ != self._now:
            self._now = round_
            _, self._round = _purses(self.limits)

    def set_aside(self, tokens: int) -> bool:
        """Take one call of at most `tokens` tokens out of the budget, if it holds that much; say whether."""
        self._pass_time()
        if not (self._run.holds(tokens) and self._round.holds(tokens)):
            return False
        for purse in (self._run, self._round):
            purse.take(1, tokens)
        self._out += 1
        return True

    def settle(self, aside: int, tokens: int, *, called: bool = True) -> None:
        """Give back what a call that was set aside did not take; all of it if nobody was called."""
        self._pass_time()
        self._out -= 1
        for purse in (self._run, self._round):
            purse.take(0 if called else -1, tokens - aside)

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
