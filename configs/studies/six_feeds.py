"""What six_feeds.yaml names: who the agents are, and feeds after Larooij and Toernberg 2025 (arXiv:2508.03385).

All their feeds show the newest posts of those whom the reader follows, and beside these some of what others posted
last: drawn with weights, or the best by a number. A draw that hangs on reader, post and round alone is the same however
often it is asked for; who has the largest of ``log(u) / weight`` is drawn with these weights (Efraimidis and Spirakis
2006, doi:10.1016/j.ipl.2005.11.003).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

type Columns = Mapping[str, npt.NDArray[Any]]
type Floats = npt.NDArray[np.float64]

K = 3
"""Theirs: a post weighs ``log(1 + K + distance)`` times as much."""


def party(columns: Columns) -> npt.NDArray[np.str_]:
    """Return the party of each agent by its leaning: 9 of 100 have none, as in their sample of Americans."""
    leaning = columns["leaning"]
    return np.where(np.abs(leaning) < 0.09, "none", np.where(leaning < 0, "left", "right"))


def extremity(columns: Columns) -> Floats:
    """Return how far from the middle each agent stands."""
    return np.abs(columns["leaning"])


def base(columns: Columns) -> Floats:
    """Return scores by which what is reposted more is shown more."""
    return _mixed(columns, _drawn(columns, 1.0 + columns["post.reshares"]))


def newest(columns: Columns) -> Floats:
    """Return scores by which the newest posts are shown, whoever wrote them: theirs is not by followers or reposts."""
    return _mixed(columns, -1.0 - columns["post.age"])


def downplayed(columns: Columns) -> Floats:
    """Return scores by which what is reposted more is shown less."""
    return _mixed(columns, _drawn(columns, 1.0 / (1.0 + columns["post.reshares"])))


def other_side(columns: Columns) -> Floats:
    """Return scores as of `base`, a little higher for who stands on the other side."""
    distance = np.abs(columns["agent.leaning"] - columns["post.slant"])
    return _mixed(columns, _drawn(columns, (1.0 + columns["post.reshares"]) * np.log(1 + K + distance)))


def constructive(columns: Columns) -> Floats:
    """Return scores by the tone of a post: the same for all readers."""
    return _mixed(columns, columns["post.tone"] - 1.0)


def _mixed(columns: Columns, others: Floats) -> Floats:
    """Return scores above 0 for posts by those who are followed, the newest first, else `others`, below 0."""
    return np.where(columns["post.in_network"], 1.0 / (1.0 + columns["post.age"]), others)


def _drawn(columns: Columns, weight: Floats) -> Floats:
    """Return ``log(u) / weight`` for a draw u of each reader, post and round."""
    now = columns["post.round"] + columns["post.age"]
    x = (now.astype(np.uint64) << np.uint64(40)) ^ (columns["post.post_id"].astype(np.uint64) << np.uint64(20))
    x ^= columns["agent.row"].astype(np.uint64)
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):  # splitmix64
        x = (x ^ (x >> np.uint64(30))) * np.uint64(factor)
    return np.asarray(np.log(((x >> np.uint64(12)) + 0.5) / 2.0**52) / weight)
