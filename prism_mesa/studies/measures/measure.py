"""Measures and finished runs, and quantities that several measures use."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import ceil, inf, nan
from typing import Any, Final

import numpy as np
import pandas as pd

from prism_mesa.arrays import Ints, Mask, Rows
from prism_mesa.domain import POST_KINDS
from prism_mesa.errors import ConfigError, printable
from prism_mesa.runs.config import Config
from prism_mesa.social.state.posts import POST, RESHARE
from prism_mesa.social.world.seeded import find_communities


@dataclass(frozen=True)
class FinishedRun:
    """A finished run, as input for measures.

    Attributes:
        config: Its configuration.
        summary: Its summary, as ``prism run --json`` prints it.
        table: Returns a table of `social.tables` by name. Measures share the table, so change only a copy.
        follows: Returns the follows: columns `src` and `dst`, rows of `agents`; `dst` follows `src`.
    """

    config: Config
    summary: Mapping[str, Any]
    table: Callable[[str], pd.DataFrame]
    follows: Callable[[], pd.DataFrame]
    _results: dict[Callable[..., Any], Any] = field(default_factory=dict, repr=False, compare=False)

    def compute[T](self, function: "Callable[[FinishedRun], T]") -> T:
        """Return `function` of this run. The result is computed once and shared by all measures."""
        if function not in self._results:
            self._results[function] = function(self)
        result: T = self._results[function]
        return result


@dataclass(frozen=True)
class Measure:
    """A number computed from a finished run.

    Attributes:
        compute: Returns the number; NaN if undefined.
        meaning: A phrase that begins in lower case, without a full stop.
        unit: The unit; `share` for 0 to 1.
        low: The smallest possible value.
        high: The largest possible value.
        source: The source of the definition; empty if `meaning` defines the measure.
        tables: The optional tables that the measure reads (`transitions`, `impressions`, `engagements`, `rounds`,
            `churn`, `ticks`, `views`); None means all of them.
    """

    name: str
    compute: Callable[[FinishedRun], float]
    meaning: str
    unit: str
    low: float = 0.0
    high: float = inf
    source: str = ""
    tables: tuple[str, ...] | None = ()


share: Final = partial(Measure, unit="share", low=0, high=1)
"""Return a measure that is a share."""
index: Final = partial(Measure, unit="", low=-1, high=1)
"""Return a measure without a unit, such as a correlation."""


def first_sentence(function: object) -> str:
    """Return the first sentence of a docstring, on one line without the full stop.

    >>> first_sentence(ratio)
    'Return a part over a whole; NaN if the whole is 0'
    """
    text = " ".join((getattr(function, "__doc__", None) or "").split("\n\n")[0].split())
    return re.split(r"(?<!\.\w)\.(?:\s|$)", text, maxsplit=1)[0]


def summary(keys: str) -> Callable[[FinishedRun], float]:
    """Return a function that reads a number from a run's summary by dotted keys; NaN if a key is missing."""

    def number(run: FinishedRun) -> float:
        value: Any = run.summary
        for key in keys.split("."):
            if key not in value:
                return nan
            value = value[key]
        return float(value)

    return number


def ratio(part: float, whole: float) -> float:
    """Return a part over a whole; NaN if the whole is 0."""
    return part / whole if whole else nan


def mean(values: Any) -> float:
    """Return the mean of an array or a column; NaN if it is empty."""
    return ratio(float(np.sum(values)), np.size(values))


_MAX_BINS: Final = 1 << 22  # largest number of bins for counting pairs; with more possible pairs, they are sorted


def _category_codes(column: "pd.Series[Any]") -> tuple[Ints, list[str]]:
    """Return a column of strings as integer codes (-1 if missing), and the strings by code."""
    categorical = column.array if isinstance(column.array, pd.Categorical) else pd.Categorical(column)
    return categorical.codes.astype(np.int64), [str(text) for text in categorical.categories]


def post_topics(run: FinishedRun) -> tuple[Ints, int]:
    """Return the topic of each post as an integer code (-1 for none), and the number of topics."""
    codes, names = _category_codes(run.table("posts")["topic"])
    return codes, len(names)


def main_interests(run: FinishedRun) -> tuple[Ints, list[str]]:
    """Return the main interest of each agent as an index (-1 for none) of a list of names, and the list."""
    codes, texts = _category_codes(run.table("agents")["interests"])
    first, names = pd.factorize(np.array([*(text.partition(";")[0] for text in texts), ""], dtype=object))
    code_by_text = np.where(first == first[-1], -1, first)
    return code_by_text[codes], [str(name) for name in names]


@dataclass(frozen=True)
class Communities:
    """The `n` communities of a run; `groups` has the community of each agent (-1 for none)."""

    groups: Ints
    n: int


def communities(run: FinishedRun) -> Communities:
    """Return the blocks of a stochastic block model, or in other networks groups with the same main interest."""
    interests, names = main_interests(run)
    return Communities(*find_communities(run.config.network, run.config.agents.n, names, interests))


def count_pairs(first: Rows, second: Rows, n_second: int) -> tuple[Rows, Rows, Rows]:
    """Return the distinct pairs, sorted, as first and second numbers (below `n_second`), and their counts."""
    keys = first.astype(np.int64) * n_second + second
    if int(keys.max(initial=0)) < _MAX_BINS:
        bins = np.bincount(keys)
        keys = np.flatnonzero(bins)
        counts = bins[keys]
    else:
        keys, counts = np.unique(keys, return_counts=True)
    return keys // n_second, keys % n_second, counts


def joined_agents(run: FinishedRun) -> Mask:
    """Return a mask of the agents that are or were on the platform (see `select_joined_agents`)."""
    return select_joined_agents(run.config, run.table)


def select_joined_agents(config: Config, table: Callable[[str], pd.DataFrame]) -> Mask:
    """Return a mask of the agents that are or were on the platform; it excludes agents that never joined."""
    agents = table("agents")
    if not config.has_churn:
        return np.ones(len(agents), np.bool_)
    has_joined = np.array(agents["present"], np.bool_)
    has_joined[table("churn")["agent"].to_numpy()] = True
    return has_joined


def attribute_values(run: FinishedRun, attribute: str, kind: str = "agent") -> "pd.Series[float]":
    """Return an attribute of all agents or posts; raise ConfigError if it is not declared."""
    attribute_names = [name for name, params in run.config.attributes.items() if params.of == kind]
    if attribute not in attribute_names:
        known = ", ".join(attribute_names) or "none"
        raise ConfigError(f"{kind}s have no attribute {printable(attribute)!r} (attributes of {kind}s: {known})")
    return run.table(f"{kind}s")[attribute]


def is_sampled(run: FinishedRun, table: str) -> bool:
    """Return whether a table holds only a sample of the agents (`records.*`)."""
    return bool(run.summary["recorded"][table]["share"] < 1)


def root_authors(run: FinishedRun, roots: Rows) -> Ints:
    """Return the authors of roots, as rows of `agents`."""
    return np.asarray(run.table("posts")["author"], np.int64)[roots]


FILLING_H: Final = 24  # hours in which an empty platform fills; posts of these hours are left out
SPREADING_H: Final = 18  # last hours; posts of these hours are left out, because their cascades are still spreading
SHORTEST_H: Final = 60  # hours; in shorter runs no posts are left out


def measured_rounds(config: Config) -> tuple[int, int]:
    """Return the measured rounds as (first, end); a run of 60 hours or more omits its first 24 and last 18 hours."""
    hours = config.clock.round_minutes / 60
    if config.rounds * hours < SHORTEST_H:
        return 0, config.rounds
    return ceil(FILLING_H / hours), config.rounds - ceil(SPREADING_H / hours)


@dataclass(frozen=True)
class MeasuredPosts:
    """The measured posts of a run, without replies, and their cascades.

    Attributes:
        table: Rows of `posts` that appeared in the measured rounds.
        cascades: Their rows of `cascades`.
        reshares: Rows of `posts`: reshares in the measured rounds, of posts from any round.
        mask: A mask of the measured rows of `posts`.
    """

    table: pd.DataFrame
    cascades: pd.DataFrame
    reshares: pd.DataFrame
    mask: Mask


def is_kind(posts: pd.DataFrame, kind: int) -> Mask:
    """Return a mask of the rows of `posts` with a kind, an index of `domain.POST_KINDS`."""
    return np.asarray(posts["kind"] == POST_KINDS[kind])


def measured_posts(run: FinishedRun) -> MeasuredPosts:
    """Return the measured posts of a run."""
    posts, cascades = run.table("posts"), run.table("cascades")
    first, end = measured_rounds(run.config)
    is_measured_round = np.asarray(posts["round"].between(first, end, inclusive="left"))
    is_post = is_kind(posts, POST)
    mask = is_measured_round & is_post
    reshares = is_measured_round & is_kind(posts, RESHARE) & is_post[posts["root"].to_numpy()]
    return MeasuredPosts(posts[mask], cascades[mask[cascades["root"].to_numpy()]], posts[reshares], mask)
