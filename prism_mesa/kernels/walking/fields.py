"""What guards can read of an agent and of a post: the names, their registers, and how a post comes into them."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import part_of_kernels
from prism_mesa.kernels.matching import match_of, relevance_at
from prism_mesa.kernels.walking.arrays import PostTable

type UInt8 = npt.NDArray[np.uint8]
type Floats = npt.NDArray[np.float64]

AGENT_FIELDS: Final = (
    "ticks_in_state scripted n_unread state pending_action low_threshold high_threshold extraversion agreeableness "
    "conscientiousness neuroticism openness"
).split()
POST_FIELDS: Final = (
    "post_id relevance utility kind likes replies reshares impressions velocity round author root".split()
)
FIELD_NAMES: Final = (*(f"agent.{name}" for name in AGENT_FIELDS), *(f"post.{name}" for name in POST_FIELDS))
"""What programs can read; the place of a name in here is its register."""
THRESHOLD, TIMEOUT = range(2)
"""Places of two fields in `People.numbers`: the middle of the band, and after how many ticks an agent times out."""

N_FIELDS: Final = len(FIELD_NAMES)
"""Registers from here on are for the numbers of agents, then for what a user declares of agents, and of posts."""

WAITED, SCRIPTED, UNREAD, STATE, ACTION, LOW, HIGH, TRAITS = range(8)
_FIRST_POST: Final = len(AGENT_FIELDS)
ID, RELEVANCE, UTILITY, KIND, LIKES, REPLIES, RESHARES, IMPRESSIONS, VELOCITY, ROUND, AUTHOR, ROOT = range(
    _FIRST_POST, len(FIELD_NAMES)
)


@part_of_kernels
def load_post(
    register: Floats,
    used: UInt8,
    row: Any,
    post: Any,
    current: Any,
    matches: npt.NDArray[np.int16],
    interests: npt.NDArray[np.int8],
    posts: PostTable,
    unit_length: float,
    first_attribute: Any,
) -> None:
    """Put what guards read of a post into the registers, but for its utility; its counters are its root's.

    Registers from `first_attribute` on are for the attributes of posts.
    """
    match = np.int64(matches[row])
    if post != current:
        match = match_of(interests, posts.vectors, row, posts.text_id[post])
    register[RELEVANCE] = relevance_at(match, unit_length)
    if used[ID]:
        register[ID] = post
    if used[KIND]:
        register[KIND] = posts.kind[post]
    if used[ROUND]:
        register[ROUND] = posts.round[post]
    if used[AUTHOR]:
        register[AUTHOR] = posts.author[post]
    if used[ROOT] | used[LIKES] | used[REPLIES] | used[RESHARES] | used[IMPRESSIONS] | used[VELOCITY]:
        root = np.int64(posts.root[post])
        register[ROOT] = root
        register[LIKES] = posts.likes[root]
        register[REPLIES] = posts.replies[root]
        register[RESHARES] = posts.reshares[root]
        register[IMPRESSIONS] = posts.impressions[root]
        register[VELOCITY] = posts.velocity[root]
    for place in range(posts.attributes.shape[1]):
        register[first_attribute + place] = posts.attributes[post, place]
