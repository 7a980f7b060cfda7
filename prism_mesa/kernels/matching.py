"""Similarity of posts and interests as integers, so that the order of summation does not matter."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import inline_kernel, kernel


@inline_kernel
def compute_match(interests: npt.NDArray[np.int8], vectors: npt.NDArray[np.int8], reader: Any, text: Any) -> Any:
    """Return the similarity of an agent's interests and a text: the integer product of their vectors."""
    agent, text_row, total = np.uint32(reader), np.uint32(text), np.int32(0)
    for k in range(interests.shape[1]):
        total += np.int32(interests[agent, k]) * np.int32(vectors[text_row, k])
    return np.int64(total)


@inline_kernel
def match_to_relevance(match: Any, unit_length: float) -> float:
    """Convert a similarity to relevance, 0..1 (`social.state.posts.to_relevance`)."""
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
    """Write the similarity of each agent's interests and the post in the same place into `out`."""
    for i in range(len(rows)):
        out[i] = compute_match(interests, vectors, rows[i], text_id[posts[i]])
