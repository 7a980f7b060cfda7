"""The steps of a walk: which trigger an agent meets, where it leads, how the rule answers, and the effects."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import early_part_of_kernels, part_of_kernels
from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.kernels.matching import match_of, relevance_at
from prism_mesa.kernels.programs import FAULT, run_program
from prism_mesa.kernels.utility import utility_ahead
from prism_mesa.kernels.walking.arrays import (
    FIRST_SET,
    GUARDED,
    NO_ACTION,
    NO_POST,
    NOTHING,
    POST_AT_HAND,
    STATE_BITS,
    UNDECIDED,
)
from prism_mesa.kernels.walking.reading import (
    HIGH,
    LOW,
    TIMEOUT,
    UNREAD,
    UTILITY,
    at_hand_of,
    load,
    next_unread,
)
from prism_mesa.kernels.walking.world import Options, Rule, WalkOutput, World

type Int32 = npt.NDArray[np.int32]
type UInt32 = npt.NDArray[np.uint32]
type Floats = npt.NDArray[np.float64]

PASSIVE: Final = -2
COMPOSES: Final = -1
"""What an option does that is not the state of an action."""


@part_of_kernels
def engage_probability(
    utility: float,
    low: float,
    high: float,
    velocity: Any,
    media: Any,
    traits: npt.NDArray[np.float32],
    row: Any,
    rule: Rule,
) -> float:
    """Return P(engage) of the agent of a row for a post."""
    width, held = high - low, 0.0
    if width > 0.0:
        held = min(max(2.0 * (utility - low) / width - 1.0, -rule.most), rule.most)
    logged = rule.log1p[min(max(velocity, 0), len(rule.log1p) - 1)]
    z = rule.bias + rule.slope * held + rule.velocity * logged + rule.media * media
    for k in range(len(rule.traits)):
        z = z + rule.traits[k] * (np.float64(traits[row, k]) - rule.means[k]) / rule.sds[k]
    middle = len(rule.logistic) // 2
    steps = np.int64(np.rint(min(max(z * rule.steps, -np.float64(middle)), np.float64(middle))))
    return np.float64(rule.logistic[steps + middle])


@part_of_kernels
def _weight(
    does: Any, left: Floats, choices: Any, is_any: Any, propensities: npt.NDArray[np.float32], row: Any
) -> float:
    """Return an option's weight in P(engage), before weights are scaled to add up to 1."""
    if does == PASSIVE:
        return 0.0
    if does != COMPOSES:
        return np.float64(propensities[row, does])
    total = 0.0 if is_any else 1.0
    for action in range(left.shape[1]):
        if is_any and left[choices, action] > 0.0:
            total += np.float64(propensities[row, action])
    return total


@part_of_kernels
def chosen(
    choices: Any, engage: float, draw: float, propensities: npt.NDArray[np.float32], row: Any, options: Options
) -> Any:
    """Return the option of a set that the agent of a row chooses, by its draw."""
    first, last = np.int64(options.start[choices]), np.int64(options.start[choices + 1])
    n_active, total, is_any = 0, 0.0, False
    for i in range(first, last):
        n_active += options.does[i] != PASSIVE
        is_any |= options.does[i] >= 0
    for i in range(first, last):
        total += _weight(options.does[i], options.left, choices, is_any, propensities, row)
    n_passive = last - first - n_active
    if n_active == 0 or n_passive == 0:
        engage = 1.0 if n_passive == 0 else 0.0
    before, picked = 0.0, np.int64(first)
    for i in range(first, last):
        if options.does[i] == PASSIVE:
            share = (1.0 - engage) / float(n_passive)
        elif total > 0.0:
            share = engage * (_weight(options.does[i], options.left, choices, is_any, propensities, row) / total)
        else:
            share = engage * (1.0 / n_active)
        if before <= draw and share > 0.0:
            picked = np.int64(i)
        before += share
    return np.int64(options.target[picked])


@part_of_kernels
def draw_of_choice(key: np.uint64, tick: Any, trigger: np.uint64, row: Any) -> float:
    """Return the draw of an agent's choice (`social.round.choices.choice_draws`)."""
    return unit(mixed(mixed(mixed(key, np.uint64(tick)), trigger), np.uint64(row)))


STOPPED, IMPRESSIONS, ENGAGEMENTS, MOVES = range(4)
"""Places in `WalkOutput.size`."""


@early_part_of_kernels
def meets(row: Any, state: Any, waited: Any, post: Any, loaded: Any, register: Floats, world: World) -> Any:
    """Return the trigger that an agent meets in a tick, and the post that is loaded into registers."""
    chart, programs = world.chart, world.programs
    limit = chart.timeout[state]
    if waited >= (limit if limit > 0 else world.people.numbers[TIMEOUT, row]):
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
            if run_program(program, world.programs, register) != 1:
                continue
        return np.int64(chart.rule_trigger[rule]), loaded
    return np.int64(NOTHING), loaded


@early_part_of_kernels
def note_impression(tick: Any, row: Any, post: Any, out: WalkOutput) -> None:
    """Record that an agent has read a post."""
    at = np.uint32(out.size[IMPRESSIONS])
    out.impressions[0, at] = tick
    out.impressions[1, at] = row
    out.impressions[2, at] = post
    out.size[IMPRESSIONS] = at + 1


@early_part_of_kernels
def scroll_past(tick: Any, row: Any, post: Any, register: Floats, world: World, out: WalkOutput) -> Any:
    """Let an agent pass posts below its band; return the next post that it meets, or `NO_POST`.

    This equals `social.round.effects.pass_posts` for one agent. The returned post is loaded into registers.
    """
    people, ahead, claims = world.people, world.ahead, world.chart.claims
    most = min(people.n_read[row] + world.setting.glances, np.int64(people.n_feed[row]))
    while people.n_read[row] < most:
        next_post = np.int64(np.uint32(people.feed[row, people.n_read[row]]))
        preview = ahead.previews[np.uint32(next_post - ahead.first)]
        match = match_of(people.interests, world.posts.vectors, row, preview.text)
        relevance = relevance_at(match, world.setting.unit_length)
        utility = utility_ahead(row, preview, relevance, ahead.are_followed, world.tastes, world.taste_tables)
        meets_it = utility >= register[LOW]
        if meets_it or claims >= 0:
            load(row, next_post, post, register, world)
            if meets_it or run_program(claims, world.programs, register) != 0:
                return next_post
        people.n_read[row] += 1
        note_impression(tick, row, next_post, out)
    register[UNREAD] = np.int64(people.n_feed[row]) - np.int64(people.n_read[row])
    return np.int64(NO_POST)


@early_part_of_kernels
def leads_to(
    row: Any, trigger: Any, state: Any, post: Any, loaded: Any, register: Floats, world: World, out: WalkOutput
) -> Any:
    """Return the outcome of a trigger, and the post that is loaded into registers."""
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
            value = run_program(program, world.programs, register)
        if value == FAULT:
            return np.int64(UNDECIDED), loaded
        out.gave_value[program] = 1
        key |= np.int64(value) << np.int64(arm - first)
    return np.int64(chart.outcome[np.uint32(chart.outcome_start[cell] + key)]), loaded


@early_part_of_kernels
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
    """Return the state that the rule chooses for an open choice, and the post loaded into registers.

    Without a post, the utility is the middle of the band.
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


@early_part_of_kernels
def note_history(tick: Any, row: Any, move: Any, decided: Any, world: World) -> None:
    """Record a move and its post in an agent's history."""
    ring, total, setting = world.histories.ring, world.histories.total, world.setting
    place = total[row] % setting.depth
    ring["move"][row, place] = move
    ring["clock"][row, place] = setting.clock + tick
    ring["post"][row, place] = decided
    total[row] += 1


@early_part_of_kernels
def note_move(tick: Any, row: Any, move: Any, post: Any, was_open: Any, out: WalkOutput) -> None:
    """Record a move for the recorder."""
    at = np.uint32(out.size[MOVES])
    out.moves[0, at] = tick
    out.moves[1, at] = row
    out.moves[2, at] = move
    out.moves[3, at] = post
    out.moves[4, at] = was_open
    out.size[MOVES] = at + 1


@early_part_of_kernels
def read_next(tick: Any, row: Any, post: Any, world: World, out: WalkOutput) -> None:
    """Let an agent read the next post of its feed, which is `post`."""
    people, posts = world.people, world.posts
    people.n_read[row] += 1
    people.current_match[row] = match_of(people.interests, posts.vectors, row, posts.text_id[post])
    note_impression(tick, row, post, out)


@early_part_of_kernels
def enter(tick: Any, row: Any, target: Any, post: Any, world: World, out: WalkOutput) -> Any:
    """Apply the effects of entering a state with a post at hand; return the post at hand after that."""
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


@early_part_of_kernels
def drawn_action(tick: Any, row: Any, world: World) -> Any:
    """Draw the action that an agent composes from its propensities."""
    propensities, key = world.people.propensities, world.setting.action_key
    draw = unit(mixed(mixed(mixed(key, np.uint64(tick)), np.uint64(0)), np.uint64(row)))
    like = np.float64(propensities[row, 0])
    both = like + np.float64(propensities[row, 1])
    return np.uint8((1 if draw >= like else 0) + (1 if draw >= both else 0))


@early_part_of_kernels
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
    """Take a transition and apply its effects; return the post at hand after that.

    This equals `social.round.effects.apply_effects` for one agent; a self-transition enters nothing.
    """
    ahead = next_unread(row, world) if trigger == world.chart.sees_trigger else np.int64(NO_POST)
    if state == target:
        if ahead >= 0:
            read_next(tick, row, ahead, world, out)
            return ahead
        return post
    move = np.int64(trigger) << 2 * STATE_BITS | state << STATE_BITS | target
    about = post if ahead == NO_POST else ahead
    if world.setting.depth > 0:
        note_history(tick, row, move, about if decided == POST_AT_HAND else decided, world)
    if ahead >= 0:
        read_next(tick, row, ahead, world, out)
    if keeps:
        note_move(tick, row, move, about, was_open, out)
    return enter(tick, row, target, about, world, out)
