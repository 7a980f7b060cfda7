"""Keys that have no effect under a condition, and the words for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class WithoutEffect[K]:
    """Keys that change nothing under a condition.

    Attributes:
        keys: Dotted keys, with white space between them; ``feed.x_algo.*`` are all of a group.
        when: Whether they change nothing, by what is known of the model.
        why: Why, and what to do; a field of what is known may stand in it in braces.
    """

    keys: str
    when: Callable[[K], bool]
    why: str

    def holds(self, key: str) -> bool:
        """Return whether it is about a key."""
        return key in self._single or key.startswith(self._groups)

    @cached_property
    def _single(self) -> frozenset[str]:
        return frozenset(self.keys.split())

    @cached_property
    def _groups(self) -> tuple[str, ...]:
        return tuple(own[:-1] for own in self._single if own.endswith(".*"))


def without_effect[K](table: Sequence[WithoutEffect[K]], known: K, keys: Sequence[str]) -> tuple[str, ...]:
    """Return in words which of some keys have no effect, and why: by the first entry of the table that says so."""
    idle: dict[int, list[str]] = {}
    holding = [(place, entry) for place, entry in enumerate(table) if entry.when(known)]
    for key in keys:
        place = next((place for place, entry in holding if entry.holds(key)), None)
        if place is not None:
            idle.setdefault(place, []).append(key)
    return tuple(f"{', '.join(own)}: no effect: {table[place].why.format(known)}" for place, own in idle.items())
