"""Who has engaged with what: what counts once is one number."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import ACTIONS
from prism_mesa.snapshot import Plain, Restorable
from prism_mesa.social.state.population import Rows

type Mask = npt.NDArray[np.bool_]
type Keys = npt.NDArray[np.int64]

LIKE: Final = ACTIONS.index("like")
REPLY: Final = ACTIONS.index("reply")
_NO_KEYS: Final[Keys] = np.zeros(0, np.int64)
_LONG: Final = 1 << 20
_SHORT: Final = 1 << 13
"""Keys in a part that is joined for however few are sought, and (`_LONG`) in one that never is."""


class Engagements(Restorable):
    """Who has liked, and who has reshared, which root in the rounds that are committed: 8 bytes each, for good.

    Attributes:
        beside: Rows that have ever engaged beside the columns: by a script, a tool, an action of a chart.
        carried: Rows that came into this round with a post at hand, or with engagements since the last commit.
    """

    changes = ("beside",)

    def __init__(self) -> None:
        self._parts: list[Keys] = []
        self.beside: set[int] = set()
        self.carried: Rows = np.zeros(0, np.int32)

    def snapshot(self) -> dict[str, Plain]:
        """Return all keys, one part behind the other."""
        lengths = np.array(list(map(len, self._parts)), np.int64)
        return super().snapshot() | {"keys": np.concatenate([_NO_KEYS, *self._parts]), "lengths": lengths}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Bring back what `snapshot` returned."""
        super().restore(kept)
        keys, lengths = kept["keys"], kept["lengths"]
        self._parts = [part.copy() for part in np.split(keys, np.cumsum(lengths)[:-1])] if len(keys) else []

    def add(self, keys: Keys) -> None:
        """Remember likes and reshares; `keys` ascend."""
        if len(keys):
            self._parts.append(keys)

    def holds(self, keys: Keys) -> Mask:
        """Return which of `keys` have been added."""
        self._join(max(len(keys), _SHORT))
        found = np.zeros(len(keys), np.bool_)
        for part in self._parts:
            found |= part[np.minimum(np.searchsorted(part, keys), len(part) - 1)] == keys
        return found

    def _join(self, most: int) -> None:
        """Join the last parts with those before them that are not much longer, so that there are few to search.

        Rounds only add parts: it costs nothing while nobody asks. Parts of more than `most` entries stay: to join them
        takes longer than to search them for so many. Very long ones stay too, as joining takes their memory twice.
        """
        first = max(len(self._parts) - 1, 0)
        size = sum(map(len, self._parts[first:]))
        while first > 0 and len(self._parts[first - 1]) <= min(2 * size, most, _LONG):
            first -= 1
            size += len(self._parts[first])
        if len(self._parts) - first > 1:
            self._parts[first:] = [np.sort(np.concatenate(self._parts[first:]), kind="stable")]


def engagement_keys(agent: Rows, about: Rows, action: Rows) -> Keys:
    """Return one number for each engagement, ascending by agent, what it is about (a post, or its root), and action."""
    return agent.astype(np.int64) << 33 | about.astype(np.int64) << 2 | action
