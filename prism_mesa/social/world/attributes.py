"""Values of attributes: what files say, what posts inherit, what functions of a user's own work out; else drawn."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import ACTIONS, BIG_FIVE, POST_KINDS, Post
from prism_mesa.errors import ConfigError, OwnCodeError, shortened
from prism_mesa.social.params.attributes import AttributeParams
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.attributes import Attribute, Attributes, Floats, prompt_texts
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.population import Population
from prism_mesa.social.state.posts import RESHARE, Posts
from prism_mesa.social.user_objects import load_object
from prism_mesa.statechart.users_code import line_of
from prism_mesa.streams import Streams

type Rows = npt.NDArray[np.integer[Any]]


class Columns(Mapping[str, npt.NDArray[Any]]):
    """Columns by name, each made when somebody asks for it, and read-only."""

    def __init__(self, made: Mapping[str, Callable[[], Any]]) -> None:
        self._made, self._known = dict(made), dict[str, npt.NDArray[Any]]()

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._known:
            column = np.asarray(self._made[name]()).view()  # what it is a view of may be written to by others
            column.flags.writeable = False
            self._known[name] = column
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    @property
    def read(self) -> tuple[str, ...]:
        """Names of those that somebody has asked for."""
        return tuple(self._known)

    def add(self, name: str, column: Callable[[], Any]) -> None:
        """Let there be another column."""
        self._made[name] = column


class OwnFunction:
    """A function of a user's own that gives the values of an attribute; the same columns give the same values."""

    def __init__(self, attribute: Attribute, where: str, key: str) -> None:
        self._attribute, self._where = attribute, f"{key}: {where}"
        self._is_checked = False
        self._function, _ = load_object(key, where, "my_module:function")
        if not callable(self._function):
            raise ConfigError(f"{self._where}: is no function")

    def __call__(self, columns: Columns, n: int) -> Floats:
        """Return the values of `n` rows as they are stored; without any, your function is not called.

        Raises:
            OwnCodeError: If it raises, or gives anything but a value of the attribute for each row.
        """
        if not n:
            return np.zeros(0)
        found = self._asked(columns, n)
        if not self._is_checked:
            self._is_checked = True
            if not np.array_equal(found, self._asked(columns, n)):
                raise OwnCodeError(
                    f"{self._where}: gave other values for the same rows when it was asked again: what it draws has to "
                    "come from the columns alone"
                )
        return found

    def _asked(self, columns: Columns, n: int) -> Floats:
        try:
            given = self._function(columns)
        except Exception as error:  # code of a user's own may fail in any way
            said = " ".join(str(error).split())
            at = line_of(error)
            raise OwnCodeError(
                shortened(f"{self._where}: raised {type(error).__name__}: {said}{at and f' ({at})'}", 400)
            ) from error
        try:
            return self._attribute.numbers(given, n)
        except ValueError as error:
            raise OwnCodeError(f"{self._where}: gave {error}") from None


@dataclass
class AttributeSource:
    """Gives attributes their values.

    Args:
        declared: What is declared, by name.
        streams: The draws.
        of_texts: What posts.file says of each text of the corpus, by attribute; NaN where it says nothing.
        bounds: Where the communities of agents begin among their rows, and the last one ends.
    """

    declared: Mapping[str, AttributeParams]
    streams: Streams
    of_texts: Mapping[str, Floats] = field(default_factory=dict)
    bounds: Rows = field(default_factory=lambda: np.zeros(1, np.int64))
    known: Attributes = field(init=False)
    _functions: dict[str, OwnFunction] = field(init=False)

    def __post_init__(self) -> None:
        self.known = Attributes(self.declared)
        both = self.known.agents | self.known.posts
        asked = {name: own.function for name, own in self.declared.items() if own.function is not None}
        self._functions = {
            name: OwnFunction(both[name], where, f"attributes.{name}.function") for name, where in asked.items()
        }

    def of_agents(
        self, rows: Rows, people: Population, network: FollowNetwork, given: Mapping[str, Floats] | None = None
    ) -> Floats:
        """Return the attributes of agents, shape (n, attributes).

        Args:
            rows: Their row numbers in the network, which key the draws.
            people: Their other columns; row i is of ``rows[i]``.
            network: Who follows whom.
            given: What agents.profiles says, by attribute: one number for each of them, NaN where it says nothing.
        """
        columns, found = _agent_columns(rows, people, network), np.zeros((len(rows), len(self.known.agents)))
        for place, (name, own) in enumerate(self.known.agents.items()):
            if name in self._functions:
                values = self._functions[name](columns, len(rows))
            else:
                values = self._drawn(name, own, rows.astype(np.int64), f"attribute {name}")
            if self.declared[name].inherits is not None:
                values = self._of_communities(name, own, rows.astype(np.int64), values)
            if given and name in given:
                values = np.where(np.isnan(given[name]), values, given[name])
            found[:, place] = values
            columns.add(name, _read_later(own, values))
        return found

    def of_posts(self, posts: Posts, ids: Rows, people: Population) -> Floats:
        """Return the attributes of posts that have just been added, shape (n, attributes).

        A draw is keyed by the post's key, and does not depend on how many posts there are.
        """
        known, found = self.known, np.zeros((len(ids), len(self.known.posts)))
        own = posts.kind[ids] != RESHARE
        found[~own] = posts.attributes[posts.root[ids[~own]]]
        ids = ids[own]
        key, author = posts.key[ids].view(np.int64), posts.author[ids]
        columns = _post_columns(posts, ids, known, people)
        for place, (name, attribute) in enumerate(known.posts.items()):
            params = self.declared[name]
            if name in self._functions:
                values = self._functions[name](columns, len(ids))
            else:
                values = self._drawn(name, attribute, key, f"post attribute {name}")
            if params.inherits is not None:
                there, source = known.of_agents(params.inherits)
                values = self._inherited(name, attribute, source, people.attributes[author, there], values, key)
            if name in self.of_texts:
                values = _of_text(self.of_texts[name], posts, ids, values)
            found[own, place] = values
            columns.add(name, _read_later(attribute, values))
        return found

    def give_to(self, posts: Posts, people: Population) -> None:
        """Let posts have their attributes from here as they are added."""
        if self.known.posts:
            posts.declare(len(self.known.posts), partial(self.of_posts, posts, people=people))

    def shown(self, views: list[Post], kept: Floats) -> list[Post]:
        """Return views of posts, with their attributes on them, of which `kept` has a row for each."""
        if self.known.posts:
            for view, row, told in zip(views, kept.tolist(), prompt_texts(self.known.posts, kept), strict=True):
                vars(view).update(self.known.values(self.known.posts, row), about=told)  # it is frozen
        return views

    def _of_communities(self, name: str, own: Attribute, rows: npt.NDArray[np.int64], drawn: Floats) -> Floats:
        """Return what agents have from their communities: the values of a draw at the middle of equal parts.

        Who came when the communities were made has none, and what is `drawn`.
        """
        many, noise = len(self.bounds) - 1, self.declared[name].noise
        community = np.searchsorted(self.bounds, rows, side="right") - 1
        middle = (community + 0.5) / max(many, 1)
        if own.values:
            values = own.kept[np.minimum(self._place(name, own, middle), len(own.values) - 1)]
            spoilt = self.streams.uniform(f"noise of {name}", rows) < noise
        else:
            exact = own.low + middle * (own.high - own.low)
            values = _within(own, exact + noise * self.streams.normal(f"noise of {name}", rows)) if noise else exact
            spoilt = np.zeros(len(rows), np.bool_)
        return np.where(spoilt | (community >= many), drawn, values)

    def _place(self, name: str, own: Attribute, u: Floats) -> npt.NDArray[np.int64]:
        """Return the place among the values at each quantile."""
        share = np.array(self.declared[name].share or [1.0] * len(own.values))
        below = np.cumsum(share / share.sum())[:-1]
        return np.searchsorted(below, u, side="right")

    def _drawn(self, name: str, own: Attribute, keys: npt.NDArray[np.int64], purpose: str) -> Floats:
        params = self.declared[name]
        if own.values:
            return own.kept[self._place(name, own, self.streams.uniform(purpose, keys))]
        if params.sd is None or params.mean is None:
            return own.low + self.streams.uniform(purpose, keys) * (own.high - own.low)
        return _within(own, params.mean + params.sd * self.streams.normal(purpose, keys))

    def _inherited(
        self,
        name: str,
        own: Attribute,
        source: Attribute,
        of_author: Floats,
        drawn: Floats,
        keys: npt.NDArray[np.int64],
    ) -> Floats:
        """Return what posts have from their authors; `drawn` is what they would have without."""
        noise, purpose = self.declared[name].noise, f"noise of {name}"
        if not own.values:
            return _within(own, of_author + noise * self.streams.normal(purpose, keys)) if noise else of_author
        if own.texts:
            of_author = np.array([own.texts.index(text) for text in source.texts], np.float64)[of_author.astype(int)]
        return np.where(self.streams.uniform(purpose, keys) < noise, drawn, of_author) if noise else of_author


def _within(own: Attribute, values: Floats) -> Floats:
    """Return numbers of a range; rounded as its parts: the last digits of log and cos differ between machines."""
    length = own.high - own.low
    parts = ((values - own.low) / length).astype(np.float32).astype(np.float64)
    return np.clip(own.low + parts * length, own.low, own.high)


def _of_text(of_texts: Floats, posts: Posts, ids: Rows, values: Floats) -> Floats:
    """Return values of posts with those that the file gives of the texts they say, where they are posts of it."""
    text, n = posts.text_id[ids], len(of_texts)
    is_of_file = (text < n) & (posts.root[ids] == ids) & (posts.parent[ids] < 0)
    given = np.where(is_of_file, of_texts[np.minimum(text, n - 1)], np.nan)
    return np.where(np.isnan(given), values, given)


def _read_later(own: Attribute, kept: Floats) -> Callable[[], npt.NDArray[Any]]:
    return lambda: shown_values(own, kept)


def shown_values(own: Attribute, kept: Floats) -> npt.NDArray[Any]:
    """Return the values of several rows as users read them: texts, truth values, or numbers."""
    if own.texts:
        return np.array(own.texts)[kept.astype(np.int64)]
    return kept.astype(np.bool_) if own.is_truth else kept


def _agent_columns(rows: Rows, people: Population, network: FollowNetwork) -> Columns:
    made: dict[str, Callable[[], Any]] = {"agent": lambda: rows}
    made["id"] = lambda: [people.ids[i] for i in range(len(people))]
    for name, declared in AGENT_FIELDS.items():
        made[name] = lambda name=name, declared=declared: declared.as_read(getattr(people, name))  # type: ignore[misc]
    for place, trait in enumerate(BIG_FIVE):
        made[trait] = lambda place=place: people.traits[:, place]  # type: ignore[misc]
    for place, action in enumerate(ACTIONS):
        made[action] = lambda place=place: people.propensities[:, place]  # type: ignore[misc]
    made["followers"] = lambda: network.n_followers[rows]
    made["followees"] = lambda: network.n_followees[rows]
    return Columns(made)


def _post_columns(posts: Posts, ids: Rows, known: Attributes, people: Population) -> Columns:
    author = posts.author[ids]
    made: dict[str, Callable[[], Any]] = {"post": lambda: ids, "author": lambda: author}
    made["round"] = lambda: posts.round[ids]
    made["kind"] = lambda: np.array(POST_KINDS)[posts.kind[ids]]
    made["text"] = lambda: posts.shown(ids)
    for place, (name, own) in enumerate(known.agents.items()):
        made[f"author.{name}"] = lambda place=place, own=own: shown_values(own, people.attributes[author, place])  # type: ignore[misc]
    return Columns(made)
