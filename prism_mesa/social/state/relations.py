"""Mutes, blocks and reports."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.snapshot import Plain, Restorable
from prism_mesa.social.state.population import Rows

type Keys = npt.NDArray[np.int64]
type Mask = npt.NDArray[np.bool_]

_LOWER: Final = 0xFFFFFFFF
NO_KEYS: Final[Keys] = np.zeros(0, np.int64)


def pair_keys(agent: Rows, other: Rows) -> Keys:
    """Return a number for each pair of rows, ascending by agent, then by other."""
    return np.asarray(agent, np.int64) << 32 | np.asarray(other, np.int64)


def split_keys(keys: Keys) -> tuple[Keys, Keys]:
    """Return the two columns that make up `pair_keys`."""
    return keys >> 32, keys & _LOWER


def are_in(keys: Keys, wanted: Rows) -> Mask:
    """Return which of the `wanted` numbers are in the ascending `keys`."""
    if not len(keys):
        return np.zeros(len(wanted), np.bool_)
    return np.asarray(keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted)


def is_first(keys: Rows) -> Mask:
    """Return which ascending numbers differ from the previous one."""
    mask = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=mask[1:])
    return mask


def distinct[T: np.generic](keys: npt.NDArray[T]) -> npt.NDArray[T]:
    """Return the distinct numbers, ascending; ten times as fast as NumPy's `unique`."""
    ascending = np.sort(keys)
    return ascending[is_first(ascending)]


class Relations(Restorable):
    """Mutes, blocks and reports: pairs as numbers (`pair_keys`), ascending.

    Attributes:
        muted: Agent and other agent: the other is hidden from the agent.
        blocked: Agent and other agent: each is hidden from the other, and neither follows the other.
        reported: Agent and root.
        new_follows: Follower and followed: the follows that begin with this round.
        counts: Rows of the table `follows` so far, by event.
    """

    changes = ("muted", "blocked", "reported", "new_follows", "counts")

    def __init__(self) -> None:
        self.muted = self.blocked = self.reported = self.new_follows = NO_KEYS
        self.counts: Counter[str] = Counter()
        self._hidden: Keys | None = None
        self._rows: tuple[Keys, npt.NDArray[np.int32]] | None = None

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Restore a snapshot."""
        super().restore(kept)
        self._hidden = self._rows = None

    def note(self, *, muted: Keys, blocked: Keys, reported: Keys) -> Keys:
        """Add distinct new pairs, and return the pairs that are newly hidden."""
        old_hidden = self.hidden
        self.muted, self.blocked = _merged(self.muted, muted), _merged(self.blocked, blocked)
        self.reported = _merged(self.reported, reported)
        newly_hidden = _hidden_by(muted, blocked)
        newly_hidden = newly_hidden[~are_in(old_hidden, newly_hidden)]
        if len(newly_hidden):
            self._hidden, self._rows = _merged(old_hidden, newly_hidden), None
        return newly_hidden

    def forget(self, *, muted: Keys, blocked: Keys) -> None:
        """Remove the distinct pairs of ended mutes and blocks."""
        if len(muted) or len(blocked):
            self.muted, self.blocked = _without(self.muted, muted), _without(self.blocked, blocked)
            self._hidden = self._rows = None

    @property
    def hidden(self) -> Keys:
        """Pairs of an agent and another that is hidden from it: muted, blocked, or blocked by it."""
        if self._hidden is None:
            self._hidden = _hidden_by(self.muted, self.blocked)
        return self._hidden

    def hidden_rows(self, n: int) -> tuple[Keys, npt.NDArray[np.int32]]:
        """Return `hidden` as compressed sparse rows of `n` agents; both arrays are empty without pairs."""
        if self._rows is None or len(self._rows[0]) not in (0, n + 1):
            agent, other = split_keys(self.hidden)
            starts = np.zeros(n + 1 if len(agent) else 0, np.int64)
            firsts = np.flatnonzero(is_first(agent))
            starts[agent[firsts] + 1] = np.diff(firsts, append=len(agent))
            self._rows = np.cumsum(starts, out=starts), other.astype(np.int32)
        return self._rows

    def hides(self, agent: Rows, other: Rows) -> Mask:
        """Return whether the other is hidden from each agent."""
        return are_in(self.hidden, pair_keys(agent, other))

    def are_apart(self, agent: Rows, other: Rows) -> Mask:
        """Return whether one agent of each pair has blocked the other."""
        return are_in(self.blocked, pair_keys(agent, other)) | are_in(self.blocked, pair_keys(other, agent))


def _hidden_by(muted: Keys, blocked: Keys) -> Keys:
    agent, other = split_keys(blocked)
    return distinct(np.concatenate([muted, blocked, pair_keys(other, agent)]))


def _merged(keys: Keys, added: Keys) -> Keys:
    return np.insert(keys, np.searchsorted(keys, added), added) if len(added) else keys


def _without(keys: Keys, removed: Keys) -> Keys:
    return keys[~are_in(removed, keys)]
