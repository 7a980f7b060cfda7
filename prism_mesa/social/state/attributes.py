"""Declared attributes of agents and posts, and their values as numbers.

Numbers and truth values are stored unchanged, strings as their index in the declared values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import did_you_mean, shortened
from prism_mesa.social.params.attributes import AttributeParams, Value
from prism_mesa.social.state.population import Categories
from prism_mesa.statechart import Values
from prism_mesa.tables import Column, ColumnType

type Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Attribute:
    """An attribute with `values`, or with numbers from `low` to `high`; if `is_told`, prompts mention it."""

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
    def is_truth(self) -> bool:
        """Whether the values are true and false."""
        return bool(self.values) and isinstance(self.values[0], bool)

    @property
    def kind(self) -> ColumnType:
        """The type of the attribute's column in tables."""
        if self.texts:
            return "category"
        if self.is_truth:
            return "bool"
        return "int" if self.values and all(type(value) is int for value in self.values) else "float64"

    @property
    def kept(self) -> Floats:
        """The number that stands for each of `values`."""
        return np.arange(len(self.values), dtype=np.float64) if self.texts else np.array(self.values, np.float64)

    @property
    def scale(self) -> float:
        """1 / (highest - lowest value); 1 for strings and truth values."""
        if self.texts or self.is_truth:
            return 1.0
        length = float(self.kept.max() - self.kept.min()) if self.values else self.high - self.low
        return 1.0 / length if length else 0.0

    @property
    def allowed(self) -> str:
        """The values, for messages."""
        if not self.values:
            return f"a number in {self.low:g}..{self.high:g}"
        return f"one of {shortened(', '.join(map(_text, self.values)), 200)}"

    def value(self, stored: float) -> Value:
        """Return the value that a number stands for."""
        if self.texts:
            return self.texts[int(stored)]
        return bool(stored) if self.is_truth else int(stored) if self.kind == "int" else float(stored)

    def number(self, value: object) -> float:
        """Return the number that stands for a value; raise ValueError if the attribute does not have the value."""
        if isinstance(value, np.generic):
            value = value.item()
        if self.texts:
            if isinstance(value, str) and value in self.texts:
                return float(self.texts.index(value))
        elif isinstance(value, bool | int | float) and isinstance(value, bool) == self.is_truth:
            is_allowed = value in self.values if self.values else self.low <= value <= self.high
            if is_allowed:
                return float(value)
        suggestion = did_you_mean(value, self.texts) if isinstance(value, str) else ""
        raise ValueError(f"{shortened(repr(value))} is not {self.allowed}{suggestion and f'.{suggestion}'}")

    def numbers(self, values: object, n: int) -> Floats:
        """Return the numbers that stand for `n` values.

        Raises:
            ValueError: If there are not `n` values, or the attribute does not have one of them.
        """
        try:
            column = np.asarray(values)
        except ValueError:
            column = np.array(None)
        if column.shape != (n,):
            shape = f"{len(column)} values" if column.ndim == 1 else "not a column of values"
            raise ValueError(f"{shape} for {n} rows")
        if self.texts or column.dtype.kind not in "biuf" or (column.dtype.kind == "b") != self.is_truth:
            return np.array([self.number(value) for value in column.tolist()], np.float64)
        numbers = column.astype(np.float64)
        for number in numbers[~self.allows(numbers)]:
            raise ValueError(f"{number:g} is not {self.allowed}")
        return numbers

    def allows(self, numbers: Floats) -> npt.NDArray[np.bool_]:
        """Return which numbers are values of the attribute."""
        return np.isin(numbers, self.kept) if self.values else (numbers >= self.low) & (numbers <= self.high)

    def column(self, stored: Floats) -> Any:
        """Return stored values as guards read them."""
        if self.texts:
            return Categories(stored.astype(np.int64), self.texts)
        return stored.astype({"bool": np.bool_, "int": np.int64}.get(self.kind, np.float64), copy=False)

    @property
    def known(self) -> Values:
        """The values, for static checks of guards."""
        if self.texts or self.is_truth:
            return Values(names=self.texts or (False, True))
        ends = (float(self.kept.min()), float(self.kept.max())) if self.values else (self.low, self.high)
        return Values(*ends)

    def in_table(self, whose: str) -> Column:
        """Return its column in the table of agents or posts."""
        meaning = f"attribute of {whose} (`attributes.{self.name}`)"
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

    def of_agents(self, name: str) -> tuple[int, Attribute]:
        """Return an attribute of agents with its index; KeyError if there is none."""
        return list(self.agents).index(name), self.agents[name]

    def of_posts(self, name: str) -> tuple[int, Attribute]:
        """Return an attribute of posts with its index; KeyError if there is none."""
        return list(self.posts).index(name), self.posts[name]

    @property
    def fields(self) -> dict[str, Values]:
        """The fields that guards can read, by name, and their values."""
        agents = {f"agent.{name}": attribute.known for name, attribute in self.agents.items()}
        return agents | {f"post.{name}": attribute.known for name, attribute in self.posts.items()}

    def values(self, attributes: Mapping[str, Attribute], stored: Sequence[float]) -> dict[str, Value]:
        """Return the values of a row by name, of `agents` or `posts`."""
        return {name: attribute.value(n) for (name, attribute), n in zip(attributes.items(), stored, strict=True)}


NO_ATTRIBUTES: Final = Attributes({})


def prompt_texts(attributes: Mapping[str, Attribute], stored: Floats) -> list[str]:
    """Return the text about each row's attributes in prompts; `stored` has shape (n, attributes).

    >>> prompt_texts({"leaning": Attribute("leaning", low=-1, high=1, is_told=True)}, np.array([[0.25], [-1.0]]))
    ['leaning: 0.25', 'leaning: -1']
    """
    mentioned = [(index, attribute) for index, attribute in enumerate(attributes.values()) if attribute.is_told]
    if not mentioned:
        return [""] * len(stored)
    return ["; ".join(f"{a.name}: {_text(a.value(row[index]))}" for index, a in mentioned) for row in stored.tolist()]


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:.3g}" if isinstance(value, float) else str(value)
