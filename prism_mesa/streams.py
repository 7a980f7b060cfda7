"""Keyed randomness: every draw is a hash of (seed, purpose, round, tick, agent, index).

No draw depends on another, so a new agent or purpose changes no other draw. PRISM has no other random numbers.
"""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.draws import bits_of, happens, last_renewals, mixed, units

type Floats = npt.NDArray[np.float64]
type Ints = npt.NDArray[np.int64]
type Key = int | npt.NDArray[np.integer]


def digest64(*parts: str) -> int:
    """Return a 64-bit hash of strings, the same in every process and on every machine."""
    return int.from_bytes(blake2b("\x1f".join(parts).encode(), digest_size=8).digest(), "little")


def fresh_seed() -> int:
    """Return a random seed from the operating system, which the caller must record."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def generator(*parts: str) -> np.random.Generator:
    """Return a generator for a library; equal strings give equal generators.

    >>> bool(generator("a").random() == generator("a").random() != generator("b").random())
    True
    """
    return np.random.Generator(np.random.Philox(key=digest64(*parts)))


@lru_cache(maxsize=1024)  # rounds share a few dozen purposes
def _purpose_key(seed: int, purpose: str) -> np.uint64:
    return np.uint64(digest64(str(seed), purpose))


@dataclass(frozen=True)
class Streams:
    """The draws of one seed.

    >>> draws = Streams(7)
    >>> bool(draws.uniform("online", [3, 4], round_=2)[1] == draws.uniform("online", 4, round_=2)[0])
    True
    """

    seed: int

    def of(self, seed: int | None) -> "Streams":
        """Return the streams of another seed, or these streams for None."""
        return self if seed is None else Streams(seed)

    def bits(
        self, purpose: str, agent: Key | list[int], *, round_: Key = 0, tick: Key = 0, index: Key = 0
    ) -> npt.NDArray[np.uint64]:
        """Return 64 random bits for each key, as a one-dimensional array (the keys are broadcast)."""
        rounds, ticks, indices, agents = (
            np.array(part, np.int64, ndmin=1, copy=None) for part in (round_, tick, index, agent)
        )
        out = np.empty(np.broadcast(rounds, ticks, indices, agents).shape, np.uint64)
        bits_of(self.key(purpose), rounds, ticks, indices, agents, out)
        return out

    def key(self, purpose: str, *parts: int) -> np.uint64:
        """Return the key of a purpose's draws; kernels mix in what `parts` lacks of round, tick, index, agent."""
        key = _purpose_key(self.seed, purpose)
        for part in parts:
            key = np.uint64(mixed(key, np.uint64(part % 2**64)))
        return key

    def uniform(
        self, purpose: str, agent: Key | list[int], *, round_: Key = 0, tick: Key = 0, index: Key = 0
    ) -> Floats:
        """Return numbers in [0, 1), multiples of 2**-53."""
        return units(self.bits(purpose, agent, round_=round_, tick=tick, index=index))

    def happens(self, purpose: str, probability: Floats, *, round_: int = 0) -> npt.NDArray[np.bool_]:
        """Return whether the draws of agents 0, 1, 2, ... lie below their probabilities."""
        return happens(self.key(purpose, round_, 0, 0), probability)

    def last_redraw_round(self, purpose: str, agent: Key | list[int], *, round_: int, lasting: float) -> Ints:
        """Return the round in which each agent last drew; a draw lasts another round with the probability `lasting`.

        Draws of `purpose` decide whether it lasts. Every agent draws in round 0.
        """
        agents = np.atleast_1d(np.asarray(agent)).astype(np.int64, copy=False)
        return last_renewals(self.key(purpose), round_, lasting, agents) if lasting else np.full(len(agents), round_)

    def integers(
        self,
        purpose: str,
        agent: Key | list[int],
        below: Key,
        *,
        round_: Key = 0,
        tick: Key = 0,
        index: Key = 0,
    ) -> Ints:
        """Return integers in 0 .. `below` - 1. `below` is at most 2**31, which keeps the bias under 2**-22."""
        uniform = self.uniform(purpose, agent, round_=round_, tick=tick, index=index)
        return (uniform * below).astype(np.int64)

    def normal(self, purpose: str, agent: Key | list[int], *, round_: Key = 0, index: Key = 0) -> Floats:
        """Return standard normal numbers (Box and Muller 1958, doi:10.1214/aoms/1177706645)."""
        radius = np.sqrt(-2.0 * np.log1p(-self.uniform(purpose + "/radius", agent, round_=round_, index=index)))
        return radius * np.cos(2.0 * np.pi * self.uniform(purpose + "/angle", agent, round_=round_, index=index))
