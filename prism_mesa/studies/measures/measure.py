"""Measures and the finished run that they read; columns, communities and posts that several measures share."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import ceil, inf, nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.domain import POST_KINDS
from prism_mesa.runs.config import Config
from prism_mesa.social.state.posts import POST, RESHARE
from prism_mesa.social.world.seeded import find_communities


@dataclass(frozen=True)
class FinishedRun:
    """A run that has come to its end, as measures see it.

    Attributes:
        config: Its whole configuration.
        summary: What ``prism run --json`` prints of it.
        table: A table by name, one of `social.tables`; measures share it, so who changes it changes a copy.
        follows: Who follows whom: columns `src` and `dst`, rows of `agents`; `dst` follows `src`.
    """

    config: Config
    summary: Mapping[str, Any]
    table: Callable[[str], pd.DataFrame]
    follows: Callable[[], pd.DataFrame]
    _known: dict[Callable[..., Any], Any] = field(default_factory=dict, repr=False, compare=False)

    def once[T](self, work: "Callable[[FinishedRun], T]") -> T:
        """Return what a function makes of the run; measures that ask for the same share it."""
        if work not in self._known:
            self._known[work] = work(self)
        found: T = self._known[work]
        return found


@dataclass(frozen=True)
class Measure:
    """A number of a finished run.

    Attributes:
        compute: Returns it; NaN where it is not defined.
        meaning: In words; begins in lower case, and ends without a full stop.
        unit: Of what it counts; `share` from 0 to 1.
        low: Its smallest possible value.
        high: Its largest possible value.
        source: Where its definition comes from; empty: its meaning says all.
        tables: Those that it reads while rounds are run (`transitions`, `impressions`, `engagements`, `rounds`,
            `churn`, `ticks`, `views`), which are recorded only if some measure reads them; None: it may read any.
    """

    name: str
    compute: Callable[[FinishedRun], float]
    meaning: str
    unit: str
    low: float = 0.0
    high: float = inf
    source: str = ""
    tables: tuple[str, ...] | None = ()


share_measure: Final = partial(Measure, unit="share", low=0, high=1)
"""Makes a measure that is a share."""
index_measure: Final = partial(Measure, unit="", low=-1, high=1)
"""Makes a measure without a unit, such as a correlation."""


def first_sentence(thing: object) -> str:
    """Return the first sentence of the docstring of a user's own function, on one line, without its full stop.

    >>> first_sentence(ratio)
    'Return a part of a whole, NaN of a whole of 0'
    """
    text = " ".join((getattr(thing, "__doc__", None) or "").split("\n\n")[0].split())
    return re.split(r"(?<!\.\w)\.(?:\s|$)", text, maxsplit=1)[0]


def summary(*keys: str) -> Callable[[FinishedRun], float]:
    """Return what takes a number from the summary, by its keys from the outermost on; NaN where one is missing."""

    def number(run: FinishedRun) -> float:
        found: Any = run.summary
        for key in keys:
            if key not in found:
                return nan
            found = found[key]
        return float(found)

    return number


def ratio(part: float, whole: float) -> float:
    """Return a part of a whole, NaN of a whole of 0."""
    return part / whole if whole else nan


type Ints = npt.NDArray[np.integer[Any]]

_MOST_BINS: Final = 1 << 22  # up to so many possible pairs are counted in an array of all; more are sorted


def category_codes(column: "pd.Series[Any]") -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the texts of a column as codes, -1 for nothing, and the texts."""
    coded = column.array if isinstance(column.array, pd.Categorical) else pd.Categorical(column)
    return coded.codes.astype(np.int64), [str(text) for text in coded.categories]


def post_topics(run: FinishedRun) -> tuple[npt.NDArray[np.int64], int]:
    """Return the topic of each post as a code, -1 for none, and how many codes there are."""
    codes, names = category_codes(run.table("posts")["topic"])
    return codes, len(names)


def main_interests(run: FinishedRun) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return what each agent likes best as the place of its name, -1 for nothing, and the names."""
    codes, texts = category_codes(run.table("agents")["interests"])
    first, names = pd.factorize(np.array([*(text.partition(";")[0] for text in texts), ""], dtype=object))
    place = np.where(first == first[-1], -1, first)
    return place[codes], [str(name) for name in names]


@dataclass(frozen=True)
class Communities:
    """Communities of a run: the blocks of a stochastic block model, else those with the same main interest.

    Attributes:
        of: The one of each agent, -1 for none, shape (agents,).
    """

    of: npt.NDArray[np.int64]
    n: int


def communities(run: FinishedRun) -> Communities:
    """Return the communities of a run's agents."""
    main, names = main_interests(run)
    return Communities(*find_communities(run.config.network, run.config.agents.n, names, main))


def count_pairs(first: Ints, second: Ints, n_second: int) -> tuple[Ints, Ints, Ints]:
    """Return the different pairs of whole numbers from 0 (the second below `n_second`), ordered, with their counts.

    Returns:
        First, second, count.
    """
    if not len(first):
        none = np.zeros(0, np.int64)
        return none, none, none
    keys = first.astype(np.int64) * n_second + second
    if int(keys.max()) < _MOST_BINS:
        all_counts = np.bincount(keys)
        keys = np.flatnonzero(all_counts)
        counts = all_counts[keys]
    else:
        keys, counts = np.unique(keys, return_counts=True)
    return keys // n_second, keys % n_second, counts


def have_joined(run: FinishedRun) -> npt.NDArray[np.bool_]:
    """Return which agents are or were on the platform (see `joined_in`)."""
    return joined_in(run.config, run.table)


def joined_in(config: Config, table: Callable[[str], pd.DataFrame]) -> npt.NDArray[np.bool_]:
    """Return which agents are or were on the platform: all, but those who waited to join to the end (table `churn`)."""
    agents = table("agents")
    if not config.has_churn:
        return np.ones(len(agents), np.bool_)
    there = np.array(agents["present"], np.bool_)
    there[table("churn")["agent"].to_numpy()] = True
    return there


def is_sampled(run: FinishedRun, table: str) -> bool:
    """Return whether a table holds rows of some agents only (`records.*`)."""
    return bool(run.summary["recorded"][table]["share"] < 1)


def writers(run: FinishedRun, roots: Ints) -> npt.NDArray[np.int64]:
    """Return who wrote each of some roots: row of the agent."""
    return np.asarray(run.table("posts")["author"], np.int64)[roots]


type Mask = npt.NDArray[np.bool_]

FILLING_H: Final = 24  # hours in which a platform that began empty fills; what happens in them is left out
SPREADING_H: Final = 18  # hours that a cascade is given; posts of the last so many are left out
SHORTEST_H: Final = 60  # of runs of fewer hours nothing is left out


def measured_rounds(config: Config) -> tuple[int, int]:
    """Return the first round in which posts are measured, and the first in which they are no more.

    Posts of the first 24 and the last 18 hours are left out, but of a run of less than 60 hours none.
    """
    hours = config.clock.round_minutes / 60
    if config.rounds * hours < SHORTEST_H:
        return 0, config.rounds
    return ceil(FILLING_H / hours), config.rounds - ceil(SPREADING_H / hours)


@dataclass(frozen=True)
class MeasuredPosts:
    """The posts that are measured, without replies, and their cascades.

    Attributes:
        table: Rows of `posts`, those that appeared in the measured rounds.
        cascades: Their rows of `cascades`.
        reshares: Rows of `posts` that are reshares of the same rounds, of posts of whatever round.
        mask: Which rows of `posts` they are.
    """

    table: pd.DataFrame
    cascades: pd.DataFrame
    reshares: pd.DataFrame
    mask: Mask


def is_kind(posts: pd.DataFrame, kind: int) -> Mask:
    """Return which rows of `posts` are of a kind, one of `domain.POST_KINDS` by its place."""
    codes, names = category_codes(posts["kind"])
    wanted = POST_KINDS[kind]
    return np.asarray(codes == (names.index(wanted) if wanted in names else len(names)))


def measured_posts(run: FinishedRun) -> MeasuredPosts:
    """Return the posts of a run that are measured."""
    posts, cascades = run.table("posts"), run.table("cascades")
    first, end = measured_rounds(run.config)
    appeared: npt.NDArray[np.integer[Any]] = posts["round"].to_numpy()
    within = (appeared >= first) & (appeared < end)
    of_posts = is_kind(posts, POST)
    mask = within & of_posts
    passed_on = within & is_kind(posts, RESHARE) & of_posts[posts["root"].to_numpy()]
    return MeasuredPosts(posts[mask], cascades[mask[cascades["root"].to_numpy()]], posts[passed_on], mask)
