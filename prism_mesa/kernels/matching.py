"""Similarity of posts and interests as whole numbers, so that no order of adding matters."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, part_of_kernels


@part_of_kernels
def match_of(interests: npt.NDArray[np.int8], vectors: npt.NDArray[np.int8], row: Any, text: Any) -> Any:
    """Return the similarity of an agent's interests and a text: their integer product."""
    agent, other, total = np.uint32(row), np.uint32(text), np.int32(0)
    for k in range(interests.shape[1]):
        total += np.int32(interests[agent, k]) * np.int32(vectors[other, k])
    return np.int64(total)


@part_of_kernels
def relevance_at(match: Any, unit_length: float) -> float:
    """Convert a similarity to relevance, 0..1 (`social.state.posts.relevance_of`)."""
    return min(max((np.float64(match) / unit_length + 1.0) / 2.0, 0.0), 1.0)


@kernel
def match_pairs(
    rows: npt.NDArray[np.int32],
    posts: npt.NDArray[np.int32],
    interests: npt.NDArray[np.int8],
    text_id: npt.NDArray[np.int32],
    vectors: npt.NDArray[np.int8],
    out: npt.NDArray[np.int16],
) -> None:
    """Write the similarity of each agent's interests and its post into `out`."""
    for i in range(len(rows)):
        out[i] = match_of(interests, vectors, rows[i], text_id[posts[i]])
