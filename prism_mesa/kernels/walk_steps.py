"""The steps of a walk: what an agent reads, what meets it, where that leads, and what comes of it."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.choosing import chosen, draw_of_choice, engage_probability
from prism_mesa.kernels.compiling import part_of_kernels
from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.kernels.fields import (
    ACTION,
    ACTIVITY,
    HIGH,
    LOW,
    N_FIELDS,
    POST_RATE,
    RELEVANCE,
    SCRIPTED,
    STATE,
    THRESHOLD,
    TIMEOUT,
    TRAITS,
    UNREAD,
    UTILITY,
    WAITED,
    load_post,
)
from prism_mesa.kernels.matching import match_of, relevance_at
from prism_mesa.kernels.programs import FAULT, run_program
from prism_mesa.kernels.utility import utility_ahead, utility_at
from prism_mesa.kernels.walk_arrays import (
    FIRST_SET,
    GUARDED,
    ITS_OWN,
    NO_ACTION,
    NO_POST,
    NOTHING,
    UNDECIDED,
)
from prism_mesa.kernels.walk_world import Starts, WalkOutput, World

type Floats = npt.NDArray[np.float64]

STOPPED, IMPRESSIONS, ENGAGEMENTS, MOVES = range(4)
"""Places in `WalkOutput.size`."""

N_TRAITS: Final = 5


@part_of_kernels
def fetch_posts(starts: Starts, first: Any, last: Any, until: Any, world: World) -> Any:
    """Read of the posts that a group of agents will read, so that they are under way before the first is needed.

    Returned is a number of no use, which keeps it from being left out.
    """
    people, text_id, touched = world.people, world.posts.text_id, np.int64(0)
    for j in range(first, last):
        row = np.int64(np.uint32(starts.rows[j]))
        ahead = people.n_read[row] + (until - starts.at[j] + 1) // 2
        for place in range(people.n_read[row], min(people.n_feed[row], ahead)):
            touched += text_id[np.uint32(people.feed[row, place])]
    return touched


@part_of_kernels
def load_agent(row: Any, register: Floats, world: World) -> None:
    """Put what guards read of an agent, and what a walk does not change, into the registers."""
    people, used = world.people, world.programs.used
    threshold = people.engagement_threshold[row]
    register[THRESHOLD] = threshold
    register[LOW] = threshold - world.setting.half_band
    register[HIGH] = threshold + world.setting.half_band
    if used[SCRIPTED]:
        register[SCRIPTED] = people.scripted[row]
    if used[TIMEOUT]:
        register[TIMEOUT] = people.timeout_threshold[row]
    if used[ACTIVITY]:
        register[ACTIVITY] = people.activity[row]
    if used[POST_RATE]:
        register[POST_RATE] = people.post_rate[row]
    for trait in range(N_TRAITS):
        if used[TRAITS + trait]:
            register[TRAITS + trait] = people.traits[row, trait]
    for place in range(people.attributes.shape[1]):
        register[N_FIELDS + place] = people.attributes[row, place]


@part_of_kernels
def load_moment(row: Any, state: Any, waited: Any, register: Floats, world: World) -> None:
    """Put what a walk changes of an agent into the registers."""
    people = world.people
    register[WAITED] = waited
    register[UNREAD] = np.int64(people.n_feed[row]) - np.int64(people.n_read[row])
    register[STATE] = state
    register[ACTION] = people.pending_action[row]


@part_of_kernels
def load(row: Any, post: Any, current: Any, register: Floats, world: World) -> None:
    """Put what guards read of a post into the registers; `current` is that whose match with the agent is known."""
    people, setting = world.people, world.setting
    of_posts = N_FIELDS + people.attributes.shape[1]  # registers of attributes of posts follow those of agents
    load_post(
        register,
        world.programs.used,
        row,
        post,
        current,
        people.current_match,
        people.interests,
        world.posts,
        setting.unit_length,
        of_posts,
    )
    register[UTILITY] = register[RELEVANCE]
    if world.tastes.sensitivity != 0.0:  # utility is more than relevance
        register[UTILITY] = utility_at(row, post, register[RELEVANCE], world.tastes, world.taste_tables, world.posts)


@part_of_kernels
def next_unread(row: Any, world: World) -> Any:
    """Return the next unread post of an agent's feed, or `NO_POST`."""
    people = world.people
    place = people.n_read[row]
    return np.int64(np.uint32(people.feed[row, place])) if place < people.n_feed[row] else np.int64(NO_POST)


@part_of_kernels
def holds(program: Any, register: Floats, world: World) -> Any:
    """Return whether a guard holds, 0 or 1, or `FAULT`."""
    own = world.programs
    return run_program(program, own.code, own.left, own.right, own.result, own.start, register)


@part_of_kernels
def meets(row: Any, state: Any, waited: Any, post: Any, loaded: Any, register: Floats, world: World) -> Any:
    """Return the trigger that an agent meets in a tick, and the post whose fields then stand in the registers."""
    chart, programs = world.chart, world.programs
    limit = chart.timeout[state]
    if waited >= (limit if limit > 0 else world.people.timeout_threshold[row]):
        return np.int64(chart.timeout_trigger), loaded
    for rule in range(chart.rule_start[state], chart.rule_start[state + 1]):
        program = chart.rule_program[rule]
        if program >= 0:
            if programs.reads_post[program]:
                if post < 0:
                    continue
                if loaded != post:
                    loaded = post
                    load(row, post, post, register, world)
            if holds(program, register, world) != 1:
                continue
        return np.int64(chart.rule_trigger[rule]), loaded
    return np.int64(NOTHING), loaded


@part_of_kernels
def note_impression(tick: Any, row: Any, post: Any, out: WalkOutput) -> None:
    """Note that an agent has read a post."""
    at = np.uint32(out.size[IMPRESSIONS])
    out.impressions[0, at] = tick
    out.impressions[1, at] = row
    out.impressions[2, at] = post
    out.size[IMPRESSIONS] = at + 1


@part_of_kernels
def scroll_past(tick: Any, row: Any, post: Any, register: Floats, world: World, out: WalkOutput) -> Any:
    """Let an agent pass what lies below its band; return the post that does not, if one is next, or `NO_POST`.

    As `social.round.effects.pass_posts` does for one agent. The fields of what is returned stand in the registers.
    """
    people, ahead = world.people, world.ahead
    most = min(people.n_read[row] + world.setting.glances, np.int64(people.n_feed[row]))
    while people.n_read[row] < most:
        next_post = np.int64(np.uint32(people.feed[row, people.n_read[row]]))
        one = ahead.previews[np.uint32(next_post - ahead.first)]
        match = match_of(people.interests, world.posts.vectors, row, one.text)
        relevance = relevance_at(match, world.setting.unit_length)
        utility = utility_ahead(row, one, relevance, ahead.are_followed, world.tastes, world.taste_tables)
        if utility >= register[LOW]:
            load(row, next_post, post, register, world)
            return next_post
        people.n_read[row] += 1
        note_impression(tick, row, next_post, out)
    register[UNREAD] = np.int64(people.n_feed[row]) - np.int64(people.n_read[row])
    return np.int64(NO_POST)


@part_of_kernels
def leads_to(
    row: Any, trigger: Any, state: Any, post: Any, loaded: Any, register: Floats, world: World, out: WalkOutput
) -> Any:
    """Return where a trigger leads an agent, and the post whose fields then stand in the registers."""
    chart, programs = world.chart, world.programs
    outcome = np.int64(chart.fixed[trigger, state])
    if outcome != GUARDED:
        return outcome, loaded
    cell, at_hand = np.uint32(chart.cell[trigger, state]), at_hand_of(row, trigger, post, world)
    key, first = np.int64(0), chart.arm_start[cell]
    for arm in range(first, chart.arm_start[cell + np.uint32(1)]):
        program = chart.arm_program[arm]
        value = FAULT
        if not programs.reads_post[program] or at_hand >= 0:
            if programs.reads_post[program] and loaded != at_hand:
                loaded = at_hand
                load(row, at_hand, post, register, world)
            value = holds(program, register, world)
        if value == FAULT:
            return np.int64(UNDECIDED), loaded
        out.gave_value[program] = 1
        key |= np.int64(value) << np.int64(arm - first)
    return np.int64(chart.outcome[np.uint32(chart.outcome_start[cell] + key)]), loaded


@part_of_kernels
def at_hand_of(row: Any, trigger: Any, post: Any, world: World) -> Any:
    """Return the post that a trigger is about: the next unread one where it is read, else the one at hand."""
    if trigger == world.chart.sees_trigger:
        ahead = next_unread(row, world)
        return post if ahead == NO_POST else ahead
    return post


@part_of_kernels
def answer(
    tick: Any,
    row: Any,
    trigger: Any,
    outcome: Any,
    post: Any,
    at_hand: Any,
    loaded: Any,
    register: Floats,
    world: World,
) -> Any:
    """Return the state that the rule chooses where a choice is open, and the post whose fields stand in the registers.

    Without a post the utility is the middle of the band.
    """
    people, posts, options, rule = world.people, world.posts, world.options, world.rule
    choices = np.uint32(FIRST_SET - outcome)
    if options.start[choices + 1] - options.start[choices] == 1:
        return np.int64(options.target[options.start[choices]]), loaded
    low, high = register[LOW], register[HIGH]
    utility, velocity, media = (low + high) / 2, np.int64(0), 0.0
    if at_hand >= 0:
        if loaded != at_hand:
            loaded = at_hand
            load(row, at_hand, post, register, world)
        utility, velocity = register[UTILITY], np.int64(posts.velocity[posts.root[at_hand]])
        media = 1.0 if posts.with_media[posts.text_id[at_hand]] else 0.0
    engage = engage_probability(utility, low, high, velocity, media, people.traits, row, rule)
    draw = draw_of_choice(rule.key, tick, options.trigger[trigger], row)
    return chosen(choices, engage, draw, people.propensities, row, options), loaded


@part_of_kernels
def note_history(tick: Any, row: Any, move: Any, decided: Any, world: World) -> None:
    """Write a move and what it was decided about into an agent's history."""
    ring, total, setting = world.histories.ring, world.histories.total, world.setting
    place = total[row] % setting.depth
    ring["move"][row, place] = move
    ring["clock"][row, place] = setting.clock + tick
    ring["post"][row, place] = decided
    total[row] += 1


@part_of_kernels
def note_move(tick: Any, row: Any, move: Any, post: Any, was_open: Any, out: WalkOutput) -> None:
    """Note a move for the records."""
    at = np.uint32(out.size[MOVES])
    out.moves[0, at] = tick
    out.moves[1, at] = row
    out.moves[2, at] = move
    out.moves[3, at] = post
    out.moves[4, at] = was_open
    out.size[MOVES] = at + 1


@part_of_kernels
def read_next(tick: Any, row: Any, post: Any, world: World, out: WalkOutput) -> None:
    """Let an agent read the next post of its feed, which is `post`."""
    people, posts = world.people, world.posts
    people.n_read[row] += 1
    people.current_match[row] = match_of(people.interests, posts.vectors, row, posts.text_id[post])
    note_impression(tick, row, post, out)


@part_of_kernels
def enter(tick: Any, row: Any, target: Any, post: Any, world: World, out: WalkOutput) -> Any:
    """Do what entering a state entails for an agent with a post at hand; return what it has at hand then."""
    chart, people = world.chart, world.people
    if chart.composes[target]:
        people.pending_action[row] = drawn_action(tick, row, world)
    if chart.engages[target] >= 0 and post >= 0:
        at = np.uint32(out.size[ENGAGEMENTS])
        out.engagements[0, at] = tick
        out.engagements[1, at] = row
        out.engagements[2, at] = post
        out.engagements[3, at] = chart.engages[target]
        out.size[ENGAGEMENTS] = at + 1
    if chart.releases_post[target]:
        people.pending_action[row] = NO_ACTION
        return np.int64(NO_POST)
    return post


@part_of_kernels
def drawn_action(tick: Any, row: Any, world: World) -> Any:
    """Return the action that an agent composes, drawn from its propensities."""
    propensities, key = world.people.propensities, world.setting.action_key
    draw = unit(mixed(mixed(mixed(key, np.uint64(tick)), np.uint64(0)), np.uint64(row)))
    like = np.float64(propensities[row, 0])
    both = like + np.float64(propensities[row, 1])
    return np.uint8((1 if draw >= like else 0) + (1 if draw >= both else 0))


@part_of_kernels
def transition(
    tick: Any,
    row: Any,
    trigger: Any,
    state: Any,
    target: Any,
    post: Any,
    decided: Any,
    was_open: Any,
    keeps: Any,
    world: World,
    out: WalkOutput,
) -> Any:
    """Take a transition and do what it entails; return the post at hand then.

    As `social.round.effects.apply_effects` does for one agent; a self-transition enters nothing.
    """
    ahead = next_unread(row, world) if trigger == world.chart.sees_trigger else np.int64(NO_POST)
    if state == target:
        if ahead >= 0:
            read_next(tick, row, ahead, world, out)
            return ahead
        return post
    move = np.int64(trigger) << 6 | state << 3 | target
    about = post if ahead == NO_POST else ahead
    if world.setting.depth > 0:
        note_history(tick, row, move, about if decided == ITS_OWN else decided, world)
    if ahead >= 0:
        read_next(tick, row, ahead, world, out)
    if keeps:
        note_move(tick, row, move, about, was_open, out)
    return enter(tick, row, target, about, world, out)
