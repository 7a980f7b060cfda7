"""What guards can read of an agent and of a post, and how it comes into their registers."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import early_part_of_kernels
from prism_mesa.kernels.lanes import prefetch
from prism_mesa.kernels.matching import match_of, relevance_at
from prism_mesa.kernels.utility import utility_at
from prism_mesa.kernels.walking.arrays import (
    NO_POST,
)
from prism_mesa.kernels.walking.world import Starts, World

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


N_TRAITS: Final = 5


@early_part_of_kernels
def fetch_posts(starts: Starts, first: Any, last: Any, until: Any, world: World) -> None:
    """Prefetch the histories of a group of agents, and the data of the posts that they may read."""
    people, text_id, depth = world.people, world.posts.text_id, world.setting.depth
    for j in range(first, last):
        row = np.int64(np.uint32(starts.rows[j]))
        if depth > 0:
            prefetch(world.histories.ring, row * depth + world.histories.total[row] % depth)
        ahead = people.n_read[row] + (until - starts.at[j] + 1) // 2
        for place in range(people.n_read[row], min(people.n_feed[row], ahead)):
            prefetch(text_id, np.int64(people.feed[row, place]))


@early_part_of_kernels
def load_agent(row: Any, register: Floats, world: World) -> None:
    """Load the fields of an agent that a walk does not change."""
    people, used = world.people, world.programs.used
    threshold = people.numbers[THRESHOLD, row]
    register[LOW] = threshold - world.setting.half_band
    register[HIGH] = threshold + world.setting.half_band
    if used[SCRIPTED]:
        register[SCRIPTED] = people.scripted[row]
    for trait in range(N_TRAITS):
        if used[TRAITS + trait]:
            register[TRAITS + trait] = people.traits[row, trait]
    n_numbers = people.numbers.shape[0]
    for place in range(n_numbers):
        register[N_FIELDS + place] = people.numbers[place, row]
    for place in range(people.attributes.shape[1]):
        register[N_FIELDS + n_numbers + place] = people.attributes[row, place]


@early_part_of_kernels
def load_moment(row: Any, state: Any, waited: Any, register: Floats, world: World) -> None:
    """Load the fields of an agent that a walk changes."""
    people = world.people
    register[WAITED] = waited
    register[UNREAD] = np.int64(people.n_feed[row]) - np.int64(people.n_read[row])
    register[STATE] = state
    register[ACTION] = people.pending_action[row]


@early_part_of_kernels
def load(row: Any, post: Any, current: Any, register: Floats, world: World) -> None:
    """Put what guards read of a post into the registers; `current` is the post whose match with the agent is known."""
    people, posts, used = world.people, world.posts, world.programs.used
    match = np.int64(people.current_match[row])
    if post != current:
        match = match_of(people.interests, posts.vectors, row, posts.text_id[post])
    register[RELEVANCE] = relevance_at(match, world.setting.unit_length)
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
    first_attribute = N_FIELDS + people.numbers.shape[0] + people.attributes.shape[1]
    for place in range(posts.attributes.shape[1]):
        register[first_attribute + place] = posts.attributes[post, place]
    register[UTILITY] = register[RELEVANCE]
    if world.tastes.sensitivity != 0.0:  # utility includes more than relevance
        register[UTILITY] = utility_at(row, post, register[RELEVANCE], world.tastes, world.taste_tables, posts)


@early_part_of_kernels
def next_unread(row: Any, world: World) -> Any:
    """Return the next unread post of an agent's feed, or `NO_POST`."""
    people = world.people
    place = people.n_read[row]
    return np.int64(np.uint32(people.feed[row, place])) if place < people.n_feed[row] else np.int64(NO_POST)


@early_part_of_kernels
def at_hand_of(row: Any, trigger: Any, post: Any, world: World) -> Any:
    """Return the post of a trigger: the next unread one if it reads, else the current one."""
    if trigger == world.chart.sees_trigger:
        ahead = next_unread(row, world)
        return post if ahead == NO_POST else ahead
    return post
