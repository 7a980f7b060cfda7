"""Keyed draws in kernels, with the same hash as `streams.Streams`."""

import numpy as np

from prism_mesa.arrays import Floats, Ints, Mask, UInt64
from prism_mesa.kernels.compiling import kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@kernel
def mix(key: np.uint64, part: np.uint64) -> np.uint64:
    """Mix one more part into a key: splitmix64 (Steele, Lea, Flood 2014, doi:10.1145/2714064.2660195)."""
    x = (key ^ part) + GOLDEN
    x = (x ^ (x >> _30)) * MIX_1
    x = (x ^ (x >> _27)) * MIX_2
    return x ^ (x >> _31)


@kernel
def uniform(bits: np.uint64) -> np.float64:
    """Convert bits to a number in [0, 1), a multiple of 2**-53."""
    return np.float64(bits >> _11) * 2.0**-53


@kernel
def unit_at(key: np.uint64, round_: int, agent: int) -> np.float64:
    """Return one agent's number in [0, 1), with the bits of `write_bits` for tick and index 0."""
    x = mix(mix(mix(key, np.uint64(round_)), np.uint64(0)), np.uint64(0))
    return uniform(mix(x, np.uint64(agent)))


@kernel
def write_bits(key: np.uint64, round_: Ints, tick: Ints, index: Ints, agent: Ints, out: UInt64) -> None:
    """Write the bits of each row into `out`; arguments of length 1 apply to all rows."""
    a, b, c, d = min(1, len(round_) - 1), min(1, len(tick) - 1), min(1, len(index) - 1), min(1, len(agent) - 1)
    for i in range(len(out)):
        x = mix(mix(key, np.uint64(round_[i * a])), np.uint64(tick[i * b]))
        out[i] = mix(mix(x, np.uint64(index[i * c])), np.uint64(agent[i * d]))


@kernel
def happens(key: np.uint64, probability: Floats) -> Mask:
    """Return for each agent whether an event of the given probability happens; each agent has its own draw."""
    out = np.empty(len(probability), np.bool_)
    for agent in range(len(probability)):
        out[agent] = uniform(mix(key, np.uint64(agent))) < probability[agent]
    return out


@kernel
def last_redraws(key: np.uint64, round_: int, persistence: float, agents: Ints) -> Ints:
    """Return for each agent the last round up to `round_` with a draw of at least `persistence`, or round 0."""
    out, keys = np.empty(len(agents), np.int64), np.empty(round_ + 1, np.uint64)
    for last in range(round_ + 1):
        keys[last] = mix(mix(mix(key, np.uint64(last)), np.uint64(0)), np.uint64(0))
    for i in range(len(agents)):
        last = round_
        while last > 0 and uniform(mix(keys[last], np.uint64(agents[i]))) < persistence:
            last -= 1
        out[i] = last
    return out


@kernel
def units(bits: UInt64) -> Floats:
    """Convert bits to numbers in [0, 1)."""
    out = np.empty(len(bits), np.float64)
    for i in range(len(bits)):
        out[i] = uniform(bits[i])
    return out
