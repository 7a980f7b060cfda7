"""Which posts and rounds of a run are held against data: of a platform that is filled, with time left to spread."""

from dataclasses import dataclass
from math import ceil
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.domain import POST_KINDS
from prism_mesa.runs.config import Config
from prism_mesa.social.state.posts import POST, RESHARE
from prism_mesa.studies.measures.columns import codes_of
from prism_mesa.studies.measures.measure import FinishedRun

type Mask = npt.NDArray[np.bool_]

FILLING_H: Final = 24
"""Hours in which a platform that began empty fills; what happens in them is left out."""

SPREADING_H: Final = 18
"""Hours that a cascade is given; posts of the last so many are left out."""

SHORTEST_H: Final = 60
"""Of runs of fewer hours nothing is left out."""


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


def of_kind(posts: pd.DataFrame, kind: int) -> Mask:
    """Return which rows of `posts` are of a kind, one of `domain.POST_KINDS` by its place."""
    codes, names = codes_of(posts["kind"])
    wanted = POST_KINDS[kind]
    return np.asarray(codes == (names.index(wanted) if wanted in names else len(names)))


def measured_posts(run: FinishedRun) -> MeasuredPosts:
    """Return the posts of a run that are measured."""
    posts, cascades = run.table("posts"), run.table("cascades")
    first, end = measured_rounds(run.config)
    appeared: npt.NDArray[np.integer[Any]] = posts["round"].to_numpy()
    within = (appeared >= first) & (appeared < end)
    of_posts = of_kind(posts, POST)
    mask = within & of_posts
    passed_on = within & of_kind(posts, RESHARE) & of_posts[posts["root"].to_numpy()]
    return MeasuredPosts(posts[mask], cascades[mask[cascades["root"].to_numpy()]], posts[passed_on], mask)
