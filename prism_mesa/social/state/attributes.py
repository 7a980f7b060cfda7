"""Attributes that a user declares of agents and posts: what their values are, and how they are kept as numbers.

A number, true and false are kept as themselves; a text is kept as its place among the declared ones.
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
from prism_mesa.tables import Column

type Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Attribute:
    """One attribute.

    Attributes:
        name: What it is called.
        values: All its values; empty: numbers from `low` to `high`.
        low: The least number.
        high: The greatest number.
        is_told: Whether prompts tell an LLM of it.
    """

    name: str
    values: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    is_told: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """Its values if they are texts, else nothing."""
        return tuple(value for value in self.values if isinstance(value, str))

    @property
    def is_truth(self) -> bool:
        """Whether it is true or false."""
        return bool(self.values) and isinstance(self.values[0], bool)

    @property
    def is_whole(self) -> bool:
        """Whether all its values are whole numbers."""
        return bool(self.values) and all(type(value) is int for value in self.values)

    @property
    def kept(self) -> Floats:
        """What each of `values` is kept as."""
        return np.arange(len(self.values), dtype=np.float64) if self.texts else np.array(self.values, np.float64)

    @property
    def scale(self) -> float:
        """1 over the difference of its most unlike values as they are kept; of texts and truth values 1."""
        if self.texts or self.is_truth:
            return 1.0
        length = float(self.kept.max() - self.kept.min()) if self.values else self.high - self.low
        return 1.0 / length if length else 0.0

    @property
    def allowed(self) -> str:
        """What its values are, in words."""
        if not self.values:
            return f"a number in {self.low:g}..{self.high:g}"
        return f"one of {shortened(', '.join(map(_written, self.values)), 200)}"

    def value(self, kept: float) -> Value:
        """Return the value that is kept as a number."""
        if self.texts:
            return self.texts[int(kept)]
        if self.is_truth:
            return bool(kept)
        return int(kept) if self.is_whole else float(kept)

    def number(self, value: object) -> float:
        """Return what a value is kept as.

        Raises:
            ValueError: If it is none of the attribute.
        """
        if isinstance(value, np.generic):
            value = value.item()
        if self.texts:
            if isinstance(value, str) and value in self.texts:
                return float(self.texts.index(value))
        elif isinstance(value, bool | int | float) and isinstance(value, bool) == self.is_truth:
            is_one = value in self.values if self.values else self.low <= value <= self.high
            if is_one:
                return float(value)
        near = did_you_mean(value, self.texts) if isinstance(value, str) else ""
        raise ValueError(f"{shortened(repr(value))} is not {self.allowed}{near and f'.{near}'}")

    def numbers(self, given: object, n: int) -> Floats:
        """Return what `n` values are kept as.

        Raises:
            ValueError: If they are not so many, or one is none of the attribute.
        """
        try:
            column = np.asarray(given)
        except ValueError:
            column = np.array(None)
        if column.shape != (n,):
            raise ValueError(f"{_shape(column)} for {n} rows")
        if self.texts or column.dtype.kind not in "biuf" or (column.dtype.kind == "b") != self.is_truth:
            return np.array([self.number(value) for value in column.tolist()], np.float64)
        numbers = column.astype(np.float64)
        self.check(numbers)
        return numbers

    def check(self, kept: Floats) -> None:
        """Check that each number is what a value is kept as.

        Raises:
            ValueError: If one is not.
        """
        fine = np.isin(kept, self.kept) if self.values else (kept >= self.low) & (kept <= self.high)
        if not fine.all():
            raise ValueError(f"{kept[int(np.flatnonzero(~fine)[0])]:g} is not {self.allowed}")

    def column(self, kept: Floats) -> Any:
        """Return what is kept of several rows as guards read it."""
        if self.texts:
            return Categories(kept.astype(np.int64), self.texts)
        return kept.astype(np.bool_) if self.is_truth else kept.astype(np.int64) if self.is_whole else kept

    @property
    def known(self) -> Values:
        """Its values, for the static checks of guards."""
        if self.texts:
            return Values(names=self.texts)
        if self.is_truth:
            return Values(names=(False, True))
        if self.values:
            return Values(float(self.kept.min()), float(self.kept.max()))
        return Values(self.low, self.high)

    def in_table(self, whose: str) -> Column:
        """Return its column in the table of agents, or of posts."""
        meaning = f"attribute of {whose} (`attributes.{self.name}`)"
        if self.texts:
            return Column(self.name, "category", meaning, one_of=self.texts)
        return Column(self.name, "bool" if self.is_truth else "int" if self.is_whole else "float64", meaning)


class Attributes:
    """All attributes that are declared.

    Attributes:
        agents: Those of agents by name, in the order of the columns of `Population.attributes`.
        posts: Those of posts, in the order of the columns of `Posts.attributes`.
    """

    def __init__(self, declared: Mapping[str, AttributeParams]) -> None:
        own = {
            name: (of.of, Attribute(name, of.values or (), *(of.range or (0.0, 0.0)), is_told=of.told))
            for name, of in declared.items()
        }
        self.agents = {name: one for name, (of, one) in own.items() if of == "agent"}
        self.posts = {name: one for name, (of, one) in own.items() if of == "post"}

    def of_agents(self, name: str) -> tuple[int, Attribute]:
        """Return place and meaning of an attribute of agents; KeyError if there is none."""
        return _found(self.agents, name)

    def of_posts(self, name: str) -> tuple[int, Attribute]:
        """Return place and meaning of an attribute of posts; KeyError if there is none."""
        return _found(self.posts, name)

    @property
    def fields(self) -> dict[str, Values]:
        """What guards can read of agents and posts by them, and the values of each."""
        agents = {f"agent.{name}": own.known for name, own in self.agents.items()}
        return agents | {f"post.{name}": own.known for name, own in self.posts.items()}

    def values(self, of: Mapping[str, Attribute], kept: Sequence[float]) -> dict[str, Value]:
        """Return the values of a row by name; `of` is `agents` or `posts`."""
        return {name: own.value(number) for (name, own), number in zip(of.items(), kept, strict=True)}


NO_ATTRIBUTES: Final = Attributes({})


def in_words(of: Mapping[str, Attribute], kept: Floats) -> list[str]:
    """Return what prompts tell of the attributes of each row, shape (n, attributes); mostly nothing.

    >>> in_words({"leaning": Attribute("leaning", low=-1, high=1, is_told=True)}, np.array([[0.25], [-1.0]]))
    ['leaning: 0.25', 'leaning: -1']
    """
    told = [(place, own) for place, own in enumerate(of.values()) if own.is_told]
    if not told:
        return [""] * len(kept)
    return ["; ".join(f"{own.name}: {_written(own.value(row[place]))}" for place, own in told) for row in kept.tolist()]


def _found(among: Mapping[str, Attribute], name: str) -> tuple[int, Attribute]:
    return list(among).index(name), among[name]


def _shape(column: npt.NDArray[Any]) -> str:
    return f"{len(column)} values" if column.ndim == 1 else "no column of values"


def _written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:.3g}" if isinstance(value, float) else str(value)
