"""Fields of agents and posts that guards can read, and how they are loaded into registers."""

from typing import Any, Final

import numpy as np

from prism_mesa.arrays import Floats
from prism_mesa.kernels.compiling import early_inline_kernel
from prism_mesa.kernels.lanes import prefetch
from prism_mesa.kernels.matching import compute_match, match_to_relevance
from prism_mesa.kernels.utility import post_utility
from prism_mesa.kernels.walking.arrays import NO_POST
from prism_mesa.kernels.walking.world import Starts, World

AGENT_FIELDS: Final = (
    "ticks_in_state scripted n_unread state pending_action low_threshold high_threshold extraversion agreeableness "
    "conscientiousness neuroticism openness"
).split()
POST_FIELDS: Final = (
    "post_id relevance utility kind likes replies reshares impressions velocity round author root".split()
)
FIELD_NAMES: Final = (*(f"agent.{name}" for name in AGENT_FIELDS), *(f"post.{name}" for name in POST_FIELDS))
"""Fields that programs can read; the index of a field is its register."""
THRESHOLD, TIMEOUT = range(2)
"""Indices into `People.numbers`: the middle of an agent's band, and its timeout in ticks."""

N_FIELDS: Final = len(FIELD_NAMES)
"""The next registers contain the numbers of agents, then declared attributes of agents, of posts, and of authors."""

TICKS_IN_STATE, SCRIPTED, UNREAD, STATE, ACTION, LOW, HIGH, TRAITS = range(8)
_FIRST_POST: Final = len(AGENT_FIELDS)
ID, RELEVANCE, UTILITY, KIND, LIKES, REPLIES, RESHARES, IMPRESSIONS, VELOCITY, ROUND, AUTHOR, ROOT = range(
    _FIRST_POST, len(FIELD_NAMES)
)


N_TRAITS: Final = 5


@early_inline_kernel
def prefetch_group(starts: Starts, first: Any, last: Any, until: Any, world: World) -> None:
    """Prefetch the histories of a group of agents, and data of the posts that they may read."""
    people, text_id, depth = world.people, world.posts.text_id, world.constants.history_depth
    for j in range(first, last):
        row = np.int64(np.uint32(starts.rows[j]))
        if depth > 0:
            prefetch(world.histories.ring, row * depth + world.histories.total[row] % depth)
        end = people.n_read[row] + (until - starts.start_ticks[j] + 1) // 2
        for index in range(people.n_read[row], min(people.n_feed[row], end)):
            prefetch(text_id, np.int64(people.feed[row, index]))


@early_inline_kernel
def load_agent(row: Any, registers: Floats, world: World) -> None:
    """Load the fields of an agent that do not change during a walk."""
    people, is_used = world.people, world.programs.used
    threshold = people.numbers[THRESHOLD, row]
    registers[LOW] = threshold - world.constants.half_band
    registers[HIGH] = threshold + world.constants.half_band
    if is_used[SCRIPTED]:
        registers[SCRIPTED] = people.scripted[row]
    for trait in range(N_TRAITS):
        if is_used[TRAITS + trait]:
            registers[TRAITS + trait] = people.traits[row, trait]
    n_numbers = people.numbers.shape[0]
    for index in range(n_numbers):
        registers[N_FIELDS + index] = people.numbers[index, row]
    for index in range(people.attributes.shape[1]):
        registers[N_FIELDS + n_numbers + index] = people.attributes[row, index]


@early_inline_kernel
def load_state(row: Any, state: Any, ticks_in_state: Any, registers: Floats, world: World) -> None:
    """Load the fields of an agent that change during a walk."""
    people = world.people
    registers[TICKS_IN_STATE] = ticks_in_state
    registers[UNREAD] = np.int64(people.n_feed[row]) - np.int64(people.n_read[row])
    registers[STATE] = state
    registers[ACTION] = people.pending_action[row]


@early_inline_kernel
def load_post(row: Any, post: Any, current: Any, registers: Floats, world: World) -> None:
    """Load the fields of a post; `current` is the agent's current post, whose match is known."""
    people, posts, is_used = world.people, world.posts, world.programs.used
    match = np.int64(people.current_match[row])
    if post != current:
        match = compute_match(people.interests, posts.vectors, row, posts.text_id[post])
    registers[RELEVANCE] = match_to_relevance(match, world.constants.unit_length)
    if is_used[ID]:
        registers[ID] = post
    if is_used[KIND]:
        registers[KIND] = posts.kind[post]
    if is_used[ROUND]:
        registers[ROUND] = posts.round[post]
    if is_used[AUTHOR]:
        registers[AUTHOR] = posts.author[post]
    if is_used[ROOT] | is_used[LIKES] | is_used[REPLIES] | is_used[RESHARES] | is_used[IMPRESSIONS] | is_used[VELOCITY]:
        root = np.int64(posts.root[post])
        registers[ROOT] = root
        registers[LIKES] = posts.likes[root]
        registers[REPLIES] = posts.replies[root]
        registers[RESHARES] = posts.reshares[root]
        registers[IMPRESSIONS] = posts.impressions[root]
        registers[VELOCITY] = posts.velocity[root]
    first_attribute = N_FIELDS + people.numbers.shape[0] + people.attributes.shape[1]
    for index in range(posts.attributes.shape[1]):
        registers[first_attribute + index] = posts.attributes[post, index]
    first_attribute += posts.attributes.shape[1]
    for index in range(people.attributes.shape[1]):
        if is_used[first_attribute + index]:
            registers[first_attribute + index] = people.attributes[posts.author[post], index]
    registers[UTILITY] = registers[RELEVANCE]
    if world.tastes.sensitivity != 0.0:  # utility includes more than relevance
        registers[UTILITY] = post_utility(row, post, registers[RELEVANCE], world.tastes, world.taste_tables, posts)


@early_inline_kernel
def next_unread(row: Any, world: World) -> Any:
    """Return the next unread post of an agent's feed, or `NO_POST`."""
    people = world.people
    index = people.n_read[row]
    return np.int64(np.uint32(people.feed[row, index])) if index < people.n_feed[row] else np.int64(NO_POST)


@early_inline_kernel
def find_trigger_post(row: Any, trigger: Any, post: Any, world: World) -> Any:
    """Return the post of a trigger: the next unread post for `sees_post`, else the current post."""
    if trigger == world.chart.sees_trigger:
        next_post = next_unread(row, world)
        return post if next_post == NO_POST else next_post
    return post
