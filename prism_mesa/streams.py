"""Keyed randomness: every draw is a hash of (seed, purpose, round, tick, agent, index).

Draws are independent of each other, so a new agent or purpose changes no other draw. PRISM uses no other random
numbers.
"""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from prism_mesa.arrays import Floats, Ints, Mask, Rows, UInt64
from prism_mesa.kernels.draws import happens, last_redraws, mix, unit_at, units, write_bits

type Key = int | Rows


def digest64(*parts: str) -> int:
    """Return a 64-bit hash of strings, the same in every process and on every machine."""
    return int.from_bytes(blake2b("\x1f".join(parts).encode(), digest_size=8).digest(), "little")


def draw_seed() -> int:
    """Return a random seed from the operating system. The caller must record it."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def make_generator(*parts: str) -> np.random.Generator:
    """Return NumPy's generator with a seed from strings; equal strings give equal generators.

    >>> bool(make_generator("a").random() == make_generator("a").random() != make_generator("b").random())
    True
    """
    return np.random.Generator(np.random.Philox(key=digest64(*parts)))


@lru_cache(maxsize=1024)  # rounds share a few dozen purposes
def _purpose_key(seed: int, purpose: str) -> np.uint64:
    return np.uint64(digest64(str(seed), purpose))


@dataclass(frozen=True)
class Streams:
    """The random draws of one seed.

    >>> draws = Streams(7)
    >>> bool(draws.uniform("online", [3, 4], round_=2)[1] == draws.uniform("online", 4, round_=2)[0])
    True
    """

    seed: int

    def with_seed(self, seed: int | None) -> "Streams":
        """Return the streams of another seed, or these streams for None."""
        return self if seed is None else Streams(seed)

    def bits(self, purpose: str, agent: Key | list[int], *, round_: Key = 0, tick: Key = 0, index: Key = 0) -> UInt64:
        """Return 64 random bits for each key, as a one-dimensional array (the keys are broadcast)."""
        rounds, ticks, indices, agents = (
            np.array(part, np.int64, ndmin=1, copy=None) for part in (round_, tick, index, agent)
        )
        out = np.empty(np.broadcast(rounds, ticks, indices, agents).shape, np.uint64)
        write_bits(self.key(purpose), rounds, ticks, indices, agents, out)
        return out

    def key(self, purpose: str, *parts: int) -> np.uint64:
        """Return the key of a purpose and the first of round, tick, index, agent. Kernels mix in the remaining ones."""
        key = _purpose_key(self.seed, purpose)
        for part in parts:
            key = np.uint64(mix(key, np.uint64(part % 2**64)))
        return key

    def uniform(
        self, purpose: str, agent: Key | list[int], *, round_: Key = 0, tick: Key = 0, index: Key = 0
    ) -> Floats:
        """Return numbers in [0, 1), which are multiples of 2**-53."""
        return units(self.bits(purpose, agent, round_=round_, tick=tick, index=index))

    def uniform_one(self, purpose: str, agent: int, round_: int) -> float:
        """Return the same number as `uniform` for one agent, but faster."""
        return float(unit_at(_purpose_key(self.seed, purpose), round_, agent))

    def draw_events(self, purpose: str, probability: Floats, *, round_: int = 0) -> Mask:
        """Return whether an event happens to agents 0, 1, 2, ..., given its probability for each agent."""
        return happens(self.key(purpose, round_, 0, 0), probability)

    def last_redraw_round(self, purpose: str, agent: Key | list[int], *, round_: int, persistence: float) -> Ints:
        """Return the round of each agent's last redraw.

        Every agent draws in round 0. In each later round it keeps its draw with the probability `persistence`, which a
        draw of `purpose` decides.
        """
        agents = np.atleast_1d(np.asarray(agent)).astype(np.int64, copy=False)
        if not persistence:
            return np.full(len(agents), round_)
        return last_redraws(self.key(purpose), round_, persistence, agents)

    def integers(
        self, purpose: str, agent: Key | list[int], n_values: Key, *, round_: Key = 0, tick: Key = 0, index: Key = 0
    ) -> Ints:
        """Return integers from 0 to `n_values` - 1. `n_values` is at most 2**31, so that the bias is below 2**-22."""
        return (self.uniform(purpose, agent, round_=round_, tick=tick, index=index) * n_values).astype(np.int64)

    def normal(self, purpose: str, agent: Key | list[int], *, round_: Key = 0, index: Key = 0) -> Floats:
        """Return standard normal numbers (Box and Muller 1958, doi:10.1214/aoms/1177706645)."""
        radius = np.sqrt(-2.0 * np.log1p(-self.uniform(purpose + "/radius", agent, round_=round_, index=index)))
        return radius * np.cos(2.0 * np.pi * self.uniform(purpose + "/angle", agent, round_=round_, index=index))
