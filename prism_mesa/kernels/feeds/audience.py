"""What feeds go by of those who read them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]


class Audience(NamedTuple):
    """Four lists for each agent i, all ascending: ``indices[indptr[i]:indptr[i + 1]]``, and so on.

    Attributes:
        indptr: With `indices`: whom each agent follows (`social.state.network.FollowNetwork`).
        indices: See `indptr`.
        known_start: With `known`: roots that each agent has seen (`social.state.exposure.Exposure`).
        known: See `known_start`.
        hidden_start: With `hidden`: whose posts are not shown to each agent; empty if nobody's are.
        hidden: See `hidden_start`.
        shown_start: With `shown`: posts that each agent has read, where roots can be shown again; else of no agents.
        shown: See `shown_start`.
    """

    indptr: Int64
    indices: Int32
    known_start: Int64
    known: Int32
    hidden_start: Int64
    hidden: Int32
    shown_start: Int64
    shown: Int32
