"""Keys that have no effect under a condition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class WithoutEffect[K]:
    """Keys that have no effect under a condition.

    Attributes:
        keys: Dotted keys, separated by white space; ``feed.x_algo.*`` is a whole group.
        when: Whether they have no effect, given facts of the model.
        why: The reason, and what to do; fields of the facts in braces are filled in.
    """

    keys: str
    when: Callable[[K], bool]
    why: str

    def holds(self, key: str) -> bool:
        """Return whether a key is among them."""
        return key in self._single or key.startswith(self._groups)

    @cached_property
    def _single(self) -> frozenset[str]:
        return frozenset(self.keys.split())

    @cached_property
    def _groups(self) -> tuple[str, ...]:
        return tuple(key[:-1] for key in self._single if key.endswith(".*"))


def without_effect[K](table: Sequence[WithoutEffect[K]], known: K, keys: Sequence[str]) -> tuple[str, ...]:
    """Return a note for each group of keys without effect, with the reason of the first entry that applies."""
    idle: dict[int, list[str]] = {}
    active = [(index, entry) for index, entry in enumerate(table) if entry.when(known)]
    for key in keys:
        index = next((index for index, entry in active if entry.holds(key)), None)
        if index is not None:
            idle.setdefault(index, []).append(key)
    return tuple(f"{', '.join(names)}: no effect: {table[index].why.format(known)}" for index, names in idle.items())
