"""How fast this machine streams memory, and which share of that a round reaches.

The method is that of McCalpin's STREAM (1995, "Memory bandwidth and machine balance in current high performance
computers"; www.cs.virginia.edu/stream): loops over arrays far larger than the caches, the best of several, one
thread; counted is what the loop names (copy 16 bytes an element, triad 24), not what the processor fetches besides
before it writes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numba
import numpy as np
import numpy.typing as npt
from measuring import Times, say, wall_s

from prism_mesa.social.model import SocialModel

type Floats = npt.NDArray[np.float64]

COUNTED: Final = (
    "Counted, each once a stage: the follows of who is online; feeds written, and what is read of them; columns of the "
    "population at opening, in the walk and at closing; the outbox made and read; lists of what was seen, looked at "
    "and written anew; events written and read; columns of posts written, read and counted in. Not counted: whole "
    "cache lines where a few bytes are read, scratch that stays in the caches, arrays NumPy makes on the way."
)


def _copy(a: Floats, b: Floats, c: Floats) -> None:
    for i in range(len(a)):
        c[i] = a[i]


def _triad(a: Floats, b: Floats, c: Floats) -> None:
    for i in range(len(a)):
        a[i] = b[i] + 3.0 * c[i]


@dataclass(frozen=True)
class Bandwidth:
    """Bytes per second of one thread."""

    copy: float
    triad: float


def measured_bandwidth(length: int, times: int) -> Bandwidth:
    """Return the best of several loops over arrays of `length` float64."""
    a, b, c = np.full(length, 1.0), np.full(length, 2.0), np.full(length, 0.5)
    copy = _best(_copy, times, a, b, c)
    triad = _best(_triad, times, a, b, c)
    assert a[0] == a[-1] == 2.0 + 3.0 * c[0], "the loops do not do what they say"
    say(f"bandwidth: copy {16 * length / copy / 1e9:.1f} GB/s, triad {24 * length / triad / 1e9:.1f} GB/s")
    return Bandwidth(16 * length / copy, 24 * length / triad)


def _best(loop: Callable[..., None], times: int, *arrays: Floats) -> float:
    compiled: Any = numba.njit(loop)
    found = Times(warm_up=1)
    for _ in range(times + 1):
        found.all.append(wall_s(lambda: compiled(*arrays)))
    return found.minimum


def touched_bytes(model: SocialModel) -> dict[str, int]:
    """Return the bytes that the model's last round had to touch at least, by what they are; see `COUNTED`."""
    people, posts, seen, now, n = model.population, model.posts, model.exposure, model.round, len(model.population)
    online = model.streams.draw_events("online", people.activity, round_=now)
    readers = int(online.sum())
    edges = int(np.diff(model.network.indptr)[online].sum())
    first, end = posts.first_visible(now, model.params.feed.window), int(np.searchsorted(posts.round, now + 1))
    writers = len(np.unique(posts.author[first:end]))
    impressions = model.counts["impressions"]
    engagements = sum(model.counts[name] for name in ("likes", "replies", "reshares"))
    new = model.counts["posts"] + model.counts["replies"] + model.counts["reshares"]
    known = len(seen)
    read = int((people.n_read > 0).sum())
    walker = 42  # row, tick, trigger, target, post decided about: 4 bytes each, open: 1; written and read
    state = 26  # state, ticks in it, post at hand: 9 bytes, read and written; threshold: 8, read
    return {
        "follows": 4 * edges + 8 * readers,
        "feeds": 4 * int(people.n_feed.sum()) + 4 * impressions,
        "population": n * (8 + 1 + 1)  # activity, state, present
        + n * (8 + 1)  # post rate, present
        + n * 2  # read and unread set to 0
        + readers * (walker + state)
        + readers * (4 + 4)  # timeout, length of the feed written and read, read posts
        + n * 3  # who is active
        + read * people.interests.shape[1]
        + impressions * 2  # similarity
        + engagements * (12 + 2)  # propensities, action
        + n * 2  # at closing: state, present
        + readers * 18,  # and then state, ticks in it, post at hand, action
        "outbox": (end - first) * (8 + 16) + writers * 8 + n // 64 * 24,
        "seen": readers * 8 + 4 * known * readers // n + 16 * n + 8 * known + impressions * 12,
        "events": 2 * (12 * impressions + 16 * engagements),
        "posts": new * 29 + impressions * (4 + 4 + 8) + engagements * (4 + 8 + 8),
    }


def report_bandwidth(touched: dict[int, tuple[dict[str, int], float]], speed: Bandwidth) -> None:
    """Print the share of the bandwidth that rounds reach.

    Args:
        touched: Agents -> bytes by what they are, and the seconds of a round.
        speed: What the machine can do.
    """
    print(
        f"\nStreaming with one thread (STREAM): copy {speed.copy / 1e9:.1f} GB/s, triad {speed.triad / 1e9:.1f} GB/s. "
        f"{COUNTED}\n"
    )
    parts = list(next(iter(touched.values()))[0])
    print(f"| agents | {' MB | '.join(parts)} MB | all MB | bytes per agent | GB/s | share of triad |")
    print(f"|--:|{'--:|' * (len(parts) + 4)}")
    for n, (bytes_of, seconds) in sorted(touched.items()):
        total = sum(bytes_of.values())
        each = " | ".join(f"{bytes_of[part] / 1e6:.4g}" for part in parts)
        rate = total / seconds
        print(f"| {n:,} | {each} | {total / 1e6:.4g} | {total / n:.0f} | {rate / 1e9:.2f} | {rate / speed.triad:.1%} |")
