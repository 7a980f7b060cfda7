"""Notes on configuration keys that have no effect under some conditions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from pydantic import BaseModel


class OnlyWith:
    """Marks a parameter that has an effect only with certain values of another key.

    The mark annotates a field: ``rewire: Annotated[float, OnlyWith("network.kind", "watts_strogatz")]``. The mark of a
    group applies to all keys of the group, except those in `keys`.

    Args:
        keys: Dotted keys, separated by white space. At least one of these keys must have one of the values.
        values: Values with which the parameter has an effect; by default all except null, false and 0.
    """

    def __init__(self, keys: str, *values: object) -> None:
        self.keys, self.values = keys.split(), values

    def fault(self, values: Mapping[str, Any]) -> str:
        """Return why the parameter has no effect with these values, or an empty string."""
        if any(values[key] in self.values if self.values else values[key] for key in self.keys):
            return ""
        if not self.values:
            return f"it counts only with {' or '.join(self.keys)}"
        [key] = self.keys
        return f"it counts only with {key}={' or '.join(map(str, self.values))}, not {values[key]}"


@cache
def collect_marks(kind: type[BaseModel], prefix: str = "") -> dict[str, tuple[OnlyWith, ...]]:
    """Return the marks of each dotted key, with the marks of its groups first."""
    marks_by_key: dict[str, tuple[OnlyWith, ...]] = {}
    for name, field in kind.model_fields.items():
        key, group = f"{prefix}{name}", field.annotation
        marks = [mark for mark in field.metadata if isinstance(mark, OnlyWith)]
        inner_marks: dict[str, tuple[OnlyWith, ...]] = {key: ()}
        if isinstance(group, type) and issubclass(group, BaseModel):
            inner_marks = collect_marks(group, f"{key}.")
        for leaf, leaf_marks in inner_marks.items():
            marks_by_key[leaf] = (*(mark for mark in marks if leaf not in mark.keys), *leaf_marks)
    return marks_by_key


@dataclass(frozen=True)
class WithoutEffect[K]:
    """Keys that have no effect under a condition.

    Attributes:
        keys: Dotted keys, separated by white space; ``feed.x_algo.*`` is a whole group.
        condition: The condition, a function of facts about the model.
        reason: The reason and a remedy; a template with fields of the facts in braces.
    """

    keys: str
    condition: Callable[[K], bool]
    reason: str

    def covers(self, key: str) -> bool:
        """Return whether a key is one of `keys`."""
        return key in self._single or key.startswith(self._groups)

    @cached_property
    def _single(self) -> frozenset[str]:
        return frozenset(self.keys.split())

    @cached_property
    def _groups(self) -> tuple[str, ...]:
        return tuple(key[:-1] for key in self._single if key.endswith(".*"))


def without_effect[K](table: Sequence[WithoutEffect[K]], facts: K, keys: Sequence[str]) -> tuple[str, ...]:
    """Return notes on keys without effect. A key is in the note of the first entry that applies to it."""
    groups: dict[int, list[str]] = {}
    active = [(index, entry) for index, entry in enumerate(table) if entry.condition(facts)]
    for key in keys:
        index = next((index for index, entry in active if entry.covers(key)), None)
        if index is not None:
            groups.setdefault(index, []).append(key)
    return tuple(f"{', '.join(names)}: no effect: {table[i].reason.format(facts)}" for i, names in groups.items())
