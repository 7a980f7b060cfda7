"""Where agents stand in the picture of the network, and which of them and of their follows are drawn."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.streams import Streams
from prism_mesa.view.page.source import Follows, Ints

type Points = npt.NDArray[np.float64]

MOST_AGENTS: Final = 5000
"""Agents that are drawn; of more, an even sample."""
MOST_FOLLOWS: Final = 12_000
"""Follows that are drawn; of more, an even sample."""
_STEPS: Final = 120
_CELLS: Final = 64
_GOLDEN: Final = np.pi * (3 - np.sqrt(5))


@dataclass(frozen=True)
class Drawn:
    """The agents that are drawn, and where.

    Attributes:
        agents: Their rows, ascending.
        where: Shape (len(agents), 2), each coordinate in -1..1.
    """

    agents: npt.NDArray[np.int64]
    where: Points

    def places(self, rows: Ints, n: int) -> npt.NDArray[np.int64]:
        """Return the places in `agents` of some of `n` agents; -1 for who is not drawn."""
        place = np.full(n, -1, np.int64)
        place[self.agents] = np.arange(len(self.agents))
        return place[rows]


def lay_out(follows: Follows) -> Drawn:
    """Return where agents stand: those who follow each other near each other, all others apart.

    Agents are drawn together by their follows, and pushed apart by how crowded it is: both forces of Fruchterman and
    Reingold (1991, doi:10.1002/spe.4380211102), the second one read from a grid, so that the time grows with the
    number of agents. The same network gives the same picture.
    """
    n = len(follows.followers)
    drawn = np.arange(n)
    if n > MOST_AGENTS:
        drawn = np.sort(np.argsort(Streams(0).uniform("agents drawn", drawn), kind="stable")[:MOST_AGENTS])
    src, dst = drawn_follows(Drawn(drawn, np.zeros((len(drawn), 2))), follows, 4 * MOST_FOLLOWS)
    return Drawn(drawn, _settled(src, dst, follows.followers[drawn]))


def drawn_follows(drawn: Drawn, follows: Follows, most: int = MOST_FOLLOWS) -> tuple[Ints, Ints]:
    """Return follows between agents that are drawn, as places among these; of too many the same share of each pair."""
    n = len(follows.followers)
    src, dst = drawn.places(follows.src, n), drawn.places(follows.dst, n)
    both = (src >= 0) & (dst >= 0)
    src, dst = src[both], dst[both]
    if len(src) > most:
        of = drawn.agents
        kept = Streams(0).uniform("follows drawn", of[dst], index=of[src].astype(np.uint64)) < most / len(src)
        src, dst = src[kept], dst[kept]
    return src, dst


def _settled(src: Ints, dst: Ints, followers: Ints) -> Points:
    """Return where agents come to rest under both forces, each coordinate in -1..1."""
    n = len(followers)
    order = np.argsort(-followers, kind="stable")
    where = np.empty((n, 2))
    turn, out = _GOLDEN * np.arange(n), np.sqrt((np.arange(n) + 0.5) / max(n, 1))
    where[order] = np.stack([out * np.cos(turn), out * np.sin(turn)], axis=1)
    degree = np.bincount(src, minlength=n) + np.bincount(dst, minlength=n)
    weight = 1 / np.sqrt(np.maximum(degree[src], 1) * np.maximum(degree[dst], 1))  # no hub draws all to itself
    mass = 1 + np.sqrt(degree)
    for step in range(_STEPS if n > 1 else 0):
        ends = where[dst] - where[src]
        pull = np.zeros((n, 2))
        for axis in (0, 1):
            force = weight * ends[:, axis]
            pull[:, axis] = np.bincount(src, force, n) - np.bincount(dst, force, n)
        move = 0.9 * pull + _push(where, mass) - 0.04 * where
        length = np.maximum(np.hypot(*move.T), 1e-12)[:, None]
        most = 0.12 * (1 - step / _STEPS) + 0.004
        where += move / length * np.minimum(length, most)
    return _within(where)


def _push(where: Points, mass: Points) -> Points:
    """Return by how much each agent is pushed away from all others, by the masses in the cells of a grid."""
    low, high = where.min(axis=0), where.max(axis=0)
    size = max(float((high - low).max()), 1e-9) / (_CELLS - 1)
    at = (where - low) / size
    cell = np.rint(at).astype(np.int64)
    crowd = np.bincount(cell[:, 0] * _CELLS + cell[:, 1], mass, _CELLS * _CELLS).reshape(_CELLS, _CELLS)
    steps = np.arange(2 * _CELLS)
    away = np.where(steps < _CELLS, steps, steps - 2 * _CELLS) * size
    far = away[:, None] ** 2 + away[None, :] ** 2 + (0.7 * size) ** 2
    room = (2 * _CELLS, 2 * _CELLS)
    spread = np.fft.rfft2(crowd, room)
    push = np.empty_like(where)
    scale = 0.55 / mass.sum()
    for axis, along in enumerate((away[:, None], away[None, :])):
        field = np.fft.irfft2(spread * np.fft.rfft2(along / far), room)[:_CELLS, :_CELLS]
        push[:, axis] = scale * _between(field, at)
    return push


def _between(field: Points, at: Points) -> Points:
    """Return what a grid holds at points between its nodes."""
    near = np.clip(np.floor(at).astype(np.int64), 0, _CELLS - 2)
    x, y = (at - near).T
    i, j = near.T
    found = (
        field[i, j] * (1 - x) * (1 - y)
        + field[i + 1, j] * x * (1 - y)
        + field[i, j + 1] * (1 - x) * y
        + field[i + 1, j + 1] * x * y
    )
    return np.asarray(found, np.float64)


def _within(where: Points) -> Points:
    """Return points in -1..1, those far out drawn in."""
    if not len(where):
        return where
    where = where - np.median(where, axis=0)
    radius = np.hypot(*where.T)
    reach = max(float(np.quantile(radius, 0.98)), 1e-9)
    scale = np.where(
        radius > reach, (reach + 0.3 * reach * np.tanh((radius - reach) / reach)) / np.maximum(radius, 1e-9), 1
    )
    where = where * scale[:, None]
    return np.asarray(where / max(float(np.abs(where).max()), 1e-9), np.float64)
