"""What several measures read of a run, as arrays: communities, topics, pairs and how often each comes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.runs.config import Config
from prism_mesa.social.world.communities import communities_of
from prism_mesa.studies.measures.measure import FinishedRun

type Ints = npt.NDArray[np.integer[Any]]

_MOST_BINS: Final = 1 << 22
"""Up to so many possible pairs are counted in an array of all; more are sorted."""


def codes_of(column: "pd.Series[Any]") -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the texts of a column as codes, -1 for nothing, and the texts."""
    coded = column.array if isinstance(column.array, pd.Categorical) else pd.Categorical(column)
    return coded.codes.astype(np.int64), [str(text) for text in coded.categories]


def topics_of(run: FinishedRun) -> tuple[npt.NDArray[np.int64], int]:
    """Return the topic of each post as a code, -1 for none, and how many codes there are."""
    codes, names = codes_of(run.table("posts")["topic"])
    return codes, len(names)


def main_interests(run: FinishedRun) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return what each agent likes best as the place of its name, -1 for nothing, and the names."""
    codes, texts = codes_of(run.table("agents")["interests"])
    first, names = pd.factorize(np.array([*(text.partition(";")[0] for text in texts), ""], dtype=object))
    place = np.where(first == first[-1], -1, first)
    return place[codes], [str(name) for name in names]


@dataclass(frozen=True)
class Communities:
    """Communities of a run: the blocks of a stochastic block model, else those with the same main interest.

    Attributes:
        of: The one of each agent, -1 for none, shape (agents,).
        n: How many there are.
    """

    of: npt.NDArray[np.int64]
    n: int


def communities(run: FinishedRun) -> Communities:
    """Return the communities of a run's agents."""
    main, names = main_interests(run)
    return Communities(*communities_of(run.config.network, run.config.agents.n, names, main))


def count_pairs(first: Ints, second: Ints, n_second: int) -> tuple[Ints, Ints, Ints]:
    """Return the different pairs of whole numbers from 0, ordered, and how often each comes.

    Args:
        first: One of each pair.
        second: The other, below `n_second`.
        n_second: Above all of the second.

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
