"""Values of attributes: from files, inherited, computed by users' functions, or drawn."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Ints, Rows
from prism_mesa.domain import ACTIONS, BIG_FIVE, POST_KINDS, Post
from prism_mesa.errors import ConfigError, OwnCodeError, format_count, shorten
from prism_mesa.social.params.attributes import AttributeParams
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.attributes import Attribute, Attributes, prompt_texts
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.population import Population
from prism_mesa.social.state.posts import REPLY, RESHARE, Posts
from prism_mesa.social.user_objects import load_object
from prism_mesa.statechart.users_code import user_code_line
from prism_mesa.streams import Streams

type Factories = dict[str, Callable[[], Any]]


class Columns(Mapping[str, npt.NDArray[Any]]):
    """Read-only columns by name; each is computed when it is first read."""

    def __init__(self, factories: Mapping[str, Callable[[], Any]]) -> None:
        self._factories, self._columns = dict(factories), dict[str, npt.NDArray[Any]]()

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._columns:
            column = np.asarray(self._factories[name]()).view()  # the base array stays writable
            column.flags.writeable = False
            self._columns[name] = column
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def __len__(self) -> int:
        return len(self._factories)

    @property
    def names_read(self) -> tuple[str, ...]:
        """Names of the columns that were read."""
        return tuple(self._columns)

    def add(self, name: str, factory: Callable[[], Any]) -> None:
        """Add a column."""
        self._factories[name] = factory


class UserFunction:
    """A user's deterministic function that returns the values of an attribute."""

    def __init__(self, attribute: Attribute, path: str, key: str) -> None:
        self._attribute, self._location = attribute, f"{key}: {path}"
        self._is_checked = False
        self._function, _ = load_object(key, path, "my_module:function")
        if not callable(self._function):
            raise ConfigError(f"{self._location} is not a function")

    def __call__(self, columns: Columns, n: int) -> Floats:
        """Return the stored values of `n` rows, without calling the function for 0 rows.

        Raises:
            OwnCodeError: If the function raises, or does not return an allowed value for each row.
        """
        if not n:
            return np.zeros(0)
        values = self._call(columns, n)
        if not self._is_checked:
            self._is_checked = True
            if not np.array_equal(values, self._call(columns, n)):
                raise OwnCodeError(f"{self._location}: a second call with the same rows returned other values")
        return values

    def _call(self, columns: Columns, n: int) -> Floats:
        try:
            values = self._function(columns)
        except Exception as error:  # users' code may fail in any way
            text, line = " ".join(str(error).split()), user_code_line(error)
            fault = f"{self._location}: raised {type(error).__name__}: {text}{line and f' ({line})'}"
            raise OwnCodeError(shorten(fault, 400)) from error
        try:
            return self._attribute.numbers(values, n)
        except ValueError as error:
            raise OwnCodeError(f"{self._location}: wrong return value: {error}") from None


@dataclass
class AttributeSource:
    """Computes the values of declared attributes.

    Args:
        text_values: For each attribute, the values of all texts in posts.file; NaN for blank cells.
        bounds: The first row of each community of agents, then the number of agents in communities.
    """

    declared: Mapping[str, AttributeParams]
    streams: Streams
    text_values: Mapping[str, Floats] = field(default_factory=dict)
    bounds: Rows = field(default_factory=lambda: np.zeros(1, np.int64))
    schema: Attributes = field(init=False)
    _functions: dict[str, UserFunction] = field(init=False)

    def __post_init__(self) -> None:
        self.schema = Attributes(self.declared)
        by_name = self.schema.agents | self.schema.posts
        self._functions = {
            name: UserFunction(by_name[name], params.function, f"attributes.{name}.function")
            for name, params in self.declared.items()
            if params.function is not None
        }

    def agent_values(
        self, rows: Rows, population: Population, network: FollowNetwork, file_data: Mapping[str, Floats] | None = None
    ) -> Floats:
        """Return the attributes of agents, shape (n, attributes).

        `rows` are their rows in the network, which key the draws. `population` has their other columns, in the same
        order. `file_data` has the values in agents.profiles, by attribute, NaN for blank cells.
        """
        columns, keys = Columns(_agent_columns(rows, population, network)), rows.astype(np.int64)
        table = np.zeros((len(rows), len(self.schema.agents)))
        for index, (name, attribute) in enumerate(self.schema.agents.items()):
            values = self._initial_values(name, attribute, columns, keys, f"attribute {name}")
            if self.declared[name].inherits is not None:
                values = self._from_community(name, attribute, keys, values)
            if file_data and name in file_data:
                values = np.where(np.isnan(file_data[name]), values, file_data[name])
            table[:, index] = values
            columns.add(name, partial(user_values, attribute, values))
        return table

    def post_values(self, posts: Posts, ids: Rows, population: Population) -> Floats:
        """Return the attributes of newly added posts, shape (n, attributes).

        Draws depend on the post's key, not on the number of posts.
        """
        schema, table = self.schema, np.zeros((len(ids), len(self.schema.posts)))
        is_root = posts.kind[ids] != RESHARE
        table[~is_root] = posts.attributes[posts.root[ids[~is_root]]]
        ids = ids[is_root]
        keys, author = posts.key[ids].view(np.int64), posts.author[ids]
        columns = Columns(_post_columns(posts, ids, schema, population))
        for index, (name, attribute) in enumerate(schema.posts.items()):
            values = self._initial_values(name, attribute, columns, keys, f"post attribute {name}")
            inherits = self.declared[name].inherits
            if inherits is not None:
                source_index, source = schema.agent_attribute(inherits)
                author_values = population.attributes[author, source_index]
                values = self._from_author(name, attribute, source, author_values, values, keys)
            if name in self.text_values:
                values = _with_file_values(self.text_values[name], posts, ids, values)
            if self.declared[name].parent:
                values = self._from_parent(name, attribute, posts, ids, values, keys)
            table[is_root, index] = values
            columns.add(name, partial(user_values, attribute, values))
        return table

    def _from_parent(
        self, name: str, attribute: Attribute, posts: Posts, ids: Rows, values: Floats, keys: Ints
    ) -> Floats:
        """Return the values of replies, some from the posts that they answer; other posts keep their `values`."""
        index, _ = self.schema.post_attribute(name)
        weight, is_reply = self.declared[name].parent, posts.kind[ids] == REPLY
        parent_values = posts.attributes[np.where(is_reply, posts.parent[ids], 0), index]
        if attribute.values:
            is_copied = is_reply & (self.streams.uniform(f"parent of {name}", keys) < weight)
            return np.where(is_copied, parent_values, values)
        return np.where(is_reply, _clip_to_range(attribute, weight * parent_values + (1 - weight) * values), values)

    def attach_to(self, posts: Posts, population: Population) -> None:
        """Make `posts` draw the attributes of added posts from this source."""
        if self.schema.posts:
            posts.declare(len(self.schema.posts), partial(self.post_values, posts, population=population))

    def fill_views(self, views: list[Post], stored: Floats, of_authors: Floats) -> list[Post]:
        """Set the attributes of views of posts and return the views; `stored` has a row of values for each view.

        `of_authors` has the values of their authors, which views have with ``author_`` before the name.
        """
        for view, row in zip(views, of_authors.tolist(), strict=True) if self.schema.agents else ():
            values = self.schema.values(self.schema.agents, row)
            vars(view).update({f"author_{name}": value for name, value in values.items()})
        if self.schema.posts:
            texts = prompt_texts(self.schema.posts, stored)
            for view, row, text in zip(views, stored.tolist(), texts, strict=True):
                vars(view).update(self.schema.values(self.schema.posts, row), about=text)  # the class is frozen
        return views

    def _initial_values(self, name: str, attribute: Attribute, columns: Columns, keys: Ints, purpose: str) -> Floats:
        if name in self._functions:
            return self._functions[name](columns, len(keys))
        params = self.declared[name]
        if attribute.values:
            return attribute.stored_values[self._value_indices(name, attribute, self.streams.uniform(purpose, keys))]
        if params.sd is None or params.mean is None:
            return attribute.low + self.streams.uniform(purpose, keys) * (attribute.high - attribute.low)
        return _clip_to_range(attribute, params.mean + params.sd * self.streams.normal(purpose, keys))

    def _from_community(self, name: str, attribute: Attribute, rows: Ints, drawn: Floats) -> Floats:
        """Return values by community, spread evenly over the quantiles of a draw.

        Agents added later belong to no community and keep their `drawn` values.
        """
        n_communities, noise = len(self.bounds) - 1, self.declared[name].noise
        community = np.searchsorted(self.bounds, rows, side="right") - 1
        quantile = (community + 0.5) / max(n_communities, 1)
        if attribute.values:
            indices = np.minimum(self._value_indices(name, attribute, quantile), len(attribute.values) - 1)
            values = attribute.stored_values[indices]
            is_drawn = self.streams.uniform(f"noise of {name}", rows) < noise
        else:
            values = attribute.low + quantile * (attribute.high - attribute.low)
            if noise:
                values = _clip_to_range(attribute, values + noise * self.streams.normal(f"noise of {name}", rows))
            is_drawn = np.zeros(len(rows), np.bool_)
        return np.where(is_drawn | (community >= n_communities), drawn, values)

    def _value_indices(self, name: str, attribute: Attribute, quantiles: Floats) -> Ints:
        share = np.array(self.declared[name].share or [1.0] * len(attribute.values))
        return np.searchsorted(np.cumsum(share / share.sum())[:-1], quantiles, side="right")

    def _from_author(
        self, name: str, attribute: Attribute, source: Attribute, author_values: Floats, drawn: Floats, keys: Ints
    ) -> Floats:
        """Return the values that posts inherit from their authors; noise replaces some by `drawn` values."""
        noise, purpose, values = self.declared[name].noise, f"noise of {name}", author_values
        if not attribute.values:
            return _clip_to_range(attribute, values + noise * self.streams.normal(purpose, keys)) if noise else values
        if attribute.texts:
            values = np.array([attribute.texts.index(text) for text in source.texts], np.float64)[values.astype(int)]
        return np.where(self.streams.uniform(purpose, keys) < noise, drawn, values) if noise else values


def file_columns(
    declared: Mapping[str, AttributeParams], schema: Mapping[str, Attribute]
) -> dict[str, tuple[str, Attribute]]:
    """Return the attributes with a column in a file: name -> (column, attribute)."""
    return {name: (column, schema[name]) for name in schema if (column := declared[name].column) is not None}


def blank_notes(values: Mapping[str, Floats], key: str, rows: str) -> list[str]:
    """Return a note on each attribute with blank cells in a file."""
    blank = ((name, int(np.isnan(column).sum())) for name, column in values.items())
    return [f"attributes.{name}: {key}: drawn for {format_count(n, rows)} without a value" for name, n in blank if n]


def user_values(attribute: Attribute, stored: Floats) -> npt.NDArray[Any]:
    """Return stored values as strings, truth values or numbers."""
    if attribute.texts:
        return np.array(attribute.texts)[stored.astype(np.int64)]
    return stored.astype(np.bool_) if attribute.is_boolean else stored


def _clip_to_range(attribute: Attribute, values: Floats) -> Floats:
    """Clip numbers to the range and round them to float32 shares of it: digits of log and cos differ by machine."""
    length = attribute.high - attribute.low
    shares = ((values - attribute.low) / length).astype(np.float32).astype(np.float64)
    return np.clip(attribute.low + shares * length, attribute.low, attribute.high)


def _with_file_values(text_values: Floats, posts: Posts, ids: Rows, values: Floats) -> Floats:
    text_id, n = posts.text_id[ids], len(text_values)
    is_from_file = (text_id < n) & (posts.root[ids] == ids) & (posts.parent[ids] < 0)
    file_values = np.where(is_from_file, text_values[np.minimum(text_id, n - 1)], np.nan)
    return np.where(np.isnan(file_values), values, file_values)


def _agent_columns(rows: Rows, population: Population, network: FollowNetwork) -> Factories:
    factories: Factories = {"agent": lambda: rows, "id": lambda: [population.ids[i] for i in range(len(population))]}
    for name, declared in AGENT_FIELDS.items():
        factories[name] = partial(lambda name, declared: declared.to_column(getattr(population, name)), name, declared)
    for names, table in ((BIG_FIVE, population.traits), (ACTIONS, population.propensities)):
        factories |= {name: partial(table.__getitem__, (slice(None), index)) for index, name in enumerate(names)}
    return factories | {"followers": lambda: network.n_followers[rows], "followees": lambda: network.n_followees[rows]}


def _post_columns(posts: Posts, ids: Rows, schema: Attributes, population: Population) -> Factories:
    author = posts.author[ids]
    factories: Factories = {
        "post": lambda: ids,
        "author": lambda: author,
        "round": lambda: posts.round[ids],
        "kind": lambda: np.array(POST_KINDS)[posts.kind[ids]],
        "text": lambda: posts.visible_texts(ids),
    }
    for index, (name, attribute) in enumerate(schema.agents.items()):
        factories[f"author.{name}"] = partial(
            lambda index, attribute: user_values(attribute, population.attributes[author, index]), index, attribute
        )
    return factories
