"""Declared attributes of agents and posts, whose values are stored as numbers.

A number or boolean is stored unchanged, and a string as its index in the declared values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from prism_mesa.arrays import Floats, Mask
from prism_mesa.errors import did_you_mean, shorten
from prism_mesa.social.params.attributes import AttributeParams, Value
from prism_mesa.social.state.population import Categories
from prism_mesa.statechart import Values
from prism_mesa.tables import Column, ColumnType


@dataclass(frozen=True)
class Attribute:
    """An attribute whose values are `values`, or else numbers from `low` to `high`; prompts mention it if `is_told`."""

    name: str
    values: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    is_told: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """The values if they are strings, else empty."""
        return tuple(value for value in self.values if isinstance(value, str))

    @property
    def is_boolean(self) -> bool:
        """Whether the values are booleans."""
        return bool(self.values) and isinstance(self.values[0], bool)

    @property
    def kind(self) -> ColumnType:
        """The type of the attribute's column in tables."""
        if self.texts:
            return "category"
        if self.is_boolean:
            return "bool"
        return "int" if self.values and all(type(value) is int for value in self.values) else "float64"

    @property
    def stored_values(self) -> Floats:
        """The stored number of each of `values`."""
        return np.arange(len(self.values), dtype=np.float64) if self.texts else np.array(self.values, np.float64)

    @property
    def scale(self) -> float:
        """1 / (highest - lowest value); 1 for strings and booleans."""
        if self.texts or self.is_boolean:
            return 1.0
        length = float(self.stored_values.max() - self.stored_values.min()) if self.values else self.high - self.low
        return 1.0 / length if length else 0.0

    @property
    def allowed_text(self) -> str:
        """The values, for messages."""
        if not self.values:
            return f"a number in {self.low:g}..{self.high:g}"
        return f"one of {shorten(', '.join(map(_value_text, self.values)), 200)}"

    def value(self, stored: float) -> Value:
        """Return the value of a stored number."""
        if self.texts:
            return self.texts[int(stored)]
        return bool(stored) if self.is_boolean else int(stored) if self.kind == "int" else float(stored)

    def number(self, value: object) -> float:
        """Return the number that stores a value; raise ValueError if the attribute does not allow the value."""
        if isinstance(value, np.generic):
            value = value.item()
        if self.texts:
            if isinstance(value, str) and value in self.texts:
                return float(self.texts.index(value))
        elif isinstance(value, bool | int | float) and isinstance(value, bool) == self.is_boolean:
            is_allowed = value in self.values if self.values else self.low <= value <= self.high
            if is_allowed:
                return float(value)
        suggestion = did_you_mean(value, self.texts) if isinstance(value, str) else ""
        raise ValueError(f"{shorten(repr(value))} is not {self.allowed_text}{suggestion and f'.{suggestion}'}")

    def numbers(self, values: object, n: int) -> Floats:
        """Return the numbers that store `n` values.

        Raises:
            ValueError: If there are not `n` values, or the attribute does not allow one of the values.
        """
        try:
            column = np.asarray(values)
        except ValueError:
            column = np.array(None)
        if column.shape != (n,):
            shape = f"{len(column)} values" if column.ndim == 1 else "not a column of values"
            raise ValueError(f"{shape} for {n} rows")
        if self.texts or column.dtype.kind not in "biuf" or (column.dtype.kind == "b") != self.is_boolean:
            return np.array([self.number(value) for value in column.tolist()], np.float64)
        numbers = column.astype(np.float64)
        for number in numbers[~self.allows(numbers)]:
            raise ValueError(f"{number:g} is not {self.allowed_text}")
        return numbers

    def allows(self, numbers: Floats) -> Mask:
        """Return which stored numbers are allowed."""
        return np.isin(numbers, self.stored_values) if self.values else (numbers >= self.low) & (numbers <= self.high)

    def column(self, stored: Floats) -> Any:
        """Return stored numbers as a column for guards."""
        if self.texts:
            return Categories(stored.astype(np.int64), self.texts)
        return stored.astype({"bool": np.bool_, "int": np.int64}.get(self.kind, np.float64), copy=False)

    @property
    def guard_values(self) -> Values:
        """The values, for static checks of guards."""
        if self.texts or self.is_boolean:
            return Values(names=self.texts or (False, True))
        numbers = self.stored_values if self.values else np.array([self.low, self.high])
        return Values(float(numbers.min()), float(numbers.max()))

    def to_table_column(self, owner: str) -> Column:
        """Return the attribute's column in the table of agents or posts."""
        meaning = f"attribute of {owner} (`attributes.{self.name}`)"
        return Column(self.name, self.kind, meaning, one_of=self.texts)


class Attributes:
    """All declared attributes.

    Attributes:
        agents: Attributes of agents by name, in the order of the columns of `Population.attributes`.
        posts: Attributes of posts by name, in the order of the columns of `Posts.attributes`.
    """

    def __init__(self, declared: Mapping[str, AttributeParams]) -> None:
        self.agents: dict[str, Attribute] = {}
        self.posts: dict[str, Attribute] = {}
        for name, params in declared.items():
            attributes = self.agents if params.of == "agent" else self.posts
            attributes[name] = Attribute(name, params.values or (), *(params.range or (0.0, 0.0)), is_told=params.told)

    def agent_attribute(self, name: str) -> tuple[int, Attribute]:
        """Return the index of an attribute of agents, and the attribute; raise KeyError if it does not exist."""
        return list(self.agents).index(name), self.agents[name]

    def post_attribute(self, name: str) -> tuple[int, Attribute]:
        """Return the index of an attribute of posts, and the attribute; raise KeyError if it does not exist."""
        return list(self.posts).index(name), self.posts[name]

    @property
    def fields(self) -> dict[str, Values]:
        """The possible values of each field that guards can read, by name."""
        owners = (("agent.", self.agents), ("post.", self.posts), ("post.author_", self.agents))
        return {owner + name: attribute.guard_values for owner, group in owners for name, attribute in group.items()}

    def values(self, attributes: Mapping[str, Attribute], stored: Sequence[float]) -> dict[str, Value]:
        """Return the values in a row of `agents` or `posts`, by name."""
        return {name: attribute.value(n) for (name, attribute), n in zip(attributes.items(), stored, strict=True)}


NO_ATTRIBUTES: Final = Attributes({})


def prompt_texts(attributes: Mapping[str, Attribute], stored: Floats) -> list[str]:
    """Return the text that describes each row's attributes in prompts; `stored` has shape (n, attributes).

    >>> prompt_texts({"leaning": Attribute("leaning", low=-1, high=1, is_told=True)}, np.array([[0.25], [-1.0]]))
    ['leaning: 0.25', 'leaning: -1']
    """
    shown_attributes = [(index, attribute) for index, attribute in enumerate(attributes.values()) if attribute.is_told]
    if not shown_attributes:
        return [""] * len(stored)
    rows = stored.tolist()
    return ["; ".join(f"{a.name}: {_value_text(a.value(row[i]))}" for i, a in shown_attributes) for row in rows]


def _value_text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:.3g}" if isinstance(value, float) else str(value)
