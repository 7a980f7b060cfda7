"""The steps of a walk: the next trigger, its outcome, the rule's answers, and the effects."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats
from prism_mesa.kernels.commit.posts import REPLY
from prism_mesa.kernels.compiling import early_inline_kernel, inline_kernel, kernel_step
from prism_mesa.kernels.draws import mix, uniform
from prism_mesa.kernels.lanes import prefetch
from prism_mesa.kernels.matching import compute_match, match_to_relevance
from prism_mesa.kernels.programs import FAULT, run_program
from prism_mesa.kernels.utility import giving_up, preview_taste
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
    find_trigger_post,
    load_post,
    next_unread,
)
from prism_mesa.kernels.walking.world import Options, Rule, WalkOutput, World

PASSIVE: Final = -2
COMPOSES: Final = -1
"""In place of an action, for options that are not the state of an action."""


@inline_kernel
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
    """Return the probability that the agent in a row engages with a post."""
    width, position = high - low, 0.0
    if width > 0.0:
        position = min(max(2.0 * (utility - low) / width - 1.0, -rule.max_position), rule.max_position)
    log_velocity = rule.log1p[min(max(velocity, 0), len(rule.log1p) - 1)]
    z = rule.bias + rule.slope * position + rule.velocity * log_velocity + rule.media * media
    for k in range(len(rule.traits)):
        z = z + rule.traits[k] * (np.float64(traits[row, k]) - rule.means[k]) / rule.sds[k]
    middle = len(rule.logistic) // 2
    steps = np.int64(np.rint(min(max(z * rule.steps, -np.float64(middle)), np.float64(middle))))
    return np.float64(rule.logistic[steps + middle])


@inline_kernel
def _weight(
    option_action: Any, unlisted: Floats, choices: Any, is_any: Any, propensities: npt.NDArray[np.float32], row: Any
) -> float:
    """Return an option's weight in P(engage), before weights are scaled to a sum of 1."""
    if option_action == PASSIVE:
        return 0.0
    if option_action != COMPOSES:
        return np.float64(propensities[row, option_action])
    total = 0.0 if is_any else 1.0
    for action in range(unlisted.shape[1]):
        if is_any and unlisted[choices, action] > 0.0:
            total += np.float64(propensities[row, action])
    return total


@inline_kernel
def choose_option(
    choices: Any, p_engage: float, draw: float, propensities: npt.NDArray[np.float32], row: Any, options: Options
) -> Any:
    """Return the target of the option that the agent in a row chooses from an option set, given its draw."""
    first, last = np.int64(options.start[choices]), np.int64(options.start[choices + 1])
    n_active, total, is_any = 0, 0.0, False
    for i in range(first, last):
        n_active += options.action[i] != PASSIVE
        is_any |= options.action[i] >= 0
    for i in range(first, last):
        total += _weight(options.action[i], options.unlisted, choices, is_any, propensities, row)
    n_passive = last - first - n_active
    if n_active == 0 or n_passive == 0:
        p_engage = 1.0 if n_passive == 0 else 0.0
    cumulative, chosen = 0.0, np.int64(first)
    for i in range(first, last):
        if options.action[i] == PASSIVE:
            share = (1.0 - p_engage) / float(n_passive)
        elif total > 0.0:
            weight = _weight(options.action[i], options.unlisted, choices, is_any, propensities, row)
            share = p_engage * (weight / total)
        else:
            share = p_engage * (1.0 / n_active)
        if cumulative <= draw and share > 0.0:
            chosen = np.int64(i)
        cumulative += share
    return np.int64(options.target[chosen])


@inline_kernel
def choice_draw(key: np.uint64, tick: Any, trigger: np.uint64, row: Any) -> float:
    """Return the draw for an agent's choice (`social.round.choices.choice_draws`)."""
    return uniform(mix(mix(mix(key, np.uint64(tick)), trigger), np.uint64(row)))


STOPPED, IMPRESSIONS, ENGAGEMENTS, MOVES, GIVEN_UP = range(5)
"""Indices into `WalkOutput.size`."""


@early_inline_kernel
def find_trigger(
    row: Any, state: Any, ticks_in_state: Any, post: Any, loaded: Any, registers: Floats, world: World
) -> Any:
    """Return the trigger of an agent in this tick, and the post that is loaded into registers."""
    chart, programs = world.chart, world.programs
    limit = chart.timeout[state]
    if ticks_in_state >= (limit if limit > 0 else world.people.numbers[TIMEOUT, row]):
        return np.int64(chart.timeout_trigger), loaded
    for rule in range(chart.rule_start[state], chart.rule_start[state + 1]):
        program = chart.rule_program[rule]
        if program >= 0:
            if programs.reads_post[program]:
                if post < 0:
                    continue
                if loaded != post:
                    loaded = post
                    load_post(row, post, post, registers, world)
            if run_program(program, world.programs, registers) != 1:
                continue
        return np.int64(chart.rule_trigger[rule]), loaded
    return np.int64(NOTHING), loaded


@early_inline_kernel
def note_impression(tick: Any, row: Any, post: Any, out: WalkOutput) -> None:
    """Note that an agent has read a post."""
    index = np.uint32(out.size[IMPRESSIONS])
    out.impressions[0, index] = tick
    out.impressions[1, index] = row
    out.impressions[2, index] = post
    out.size[IMPRESSIONS] = index + 1


@early_inline_kernel
def scroll_past(tick: Any, row: Any, post: Any, registers: Floats, world: World, out: WalkOutput) -> Any:
    """Let an agent pass posts below its band; return the post at which it stops, or `NO_POST`.

    This is equivalent to `social.round.effects.pass_posts`. The returned post is loaded into registers.
    """
    people, previews, claim_program = world.people, world.previews, world.chart.claim_program
    max_read = min(people.n_read[row] + world.constants.glances, np.int64(people.n_feed[row]))
    for index in range(max_read, min(max_read + world.constants.glances, people.n_feed[row])):
        prefetch(previews.entries, np.int64(people.feed[row, index]) - previews.first)
    while people.n_read[row] < max_read:
        next_post = np.int64(np.uint32(people.feed[row, people.n_read[row]]))
        preview = previews.entries[np.uint32(next_post - previews.first)]
        taste = preview_taste(
            row, next_post, preview, previews.are_followed, world.tastes, world.taste_tables, world.posts
        )
        is_above_low = world.tastes.weight + taste >= registers[LOW]
        if is_above_low:  # else it is below the band whatever its relevance, at most 1, is
            match = compute_match(people.interests, world.posts.vectors, row, preview.text)
            relevance = match_to_relevance(match, world.constants.unit_length)
            is_above_low = world.tastes.weight * relevance + taste >= registers[LOW]
        if is_above_low or claim_program >= 0:
            load_post(row, next_post, post, registers, world)
            if is_above_low or run_program(claim_program, world.programs, registers) != 0:
                return next_post
        people.n_read[row] += 1
        note_impression(tick, row, next_post, out)
    registers[UNREAD] = np.int64(people.n_feed[row]) - np.int64(people.n_read[row])
    return np.int64(NO_POST)


@early_inline_kernel
def find_outcome(
    row: Any, trigger: Any, state: Any, post: Any, loaded: Any, registers: Floats, world: World, out: WalkOutput
) -> Any:
    """Return the outcome of a trigger, and the post that is loaded into registers."""
    chart, programs = world.chart, world.programs
    outcome = np.int64(chart.fixed[trigger, state])
    if outcome != GUARDED:
        return outcome, loaded
    cell, trigger_post = np.uint32(chart.cell[trigger, state]), find_trigger_post(row, trigger, post, world)
    key, first = np.int64(0), chart.arm_start[cell]
    for arm in range(first, chart.arm_start[cell + np.uint32(1)]):
        program = chart.arm_program[arm]
        value = FAULT
        if not programs.reads_post[program] or trigger_post >= 0:
            if programs.reads_post[program] and loaded != trigger_post:
                loaded = trigger_post
                load_post(row, trigger_post, post, registers, world)
            value = run_program(program, world.programs, registers)
        if value == FAULT:
            return np.int64(UNDECIDED), loaded
        out.has_value[program] = 1
        key |= np.int64(value) << np.int64(arm - first)
    return np.int64(chart.outcome[np.uint32(chart.outcome_start[cell] + key)]), loaded


@kernel_step
def find_outcome_apart(
    row: Any, trigger: Any, state: Any, post: Any, loaded: Any, registers: Floats, world: World, out: WalkOutput
) -> Any:
    """Return `find_outcome` without inlining it, where it is rarely needed."""
    return find_outcome(row, trigger, state, post, loaded, registers, world, out)


@early_inline_kernel
def ask_instead(row: Any, trigger: Any, state: Any, outcome: Any, post: Any, world: World) -> Any:
    """Return the outcome of a trigger, or an open choice if a label lets the oracle decide about composing."""
    marks = world.taste_tables.marks
    if marks.asks == 0 or post < 0 or outcome < 0 or not world.chart.composes[outcome]:
        return outcome
    is_asked = marks.posts[world.posts.root[post]] & marks.agents[row] & marks.asks
    choice = np.int64(world.chart.open[trigger, state])
    return choice if is_asked and choice <= FIRST_SET else outcome


@early_inline_kernel
def has_draft(row: Any, trigger: Any, target: Any, post: Any, world: World) -> Any:
    """Return whether an agent is about to reply, and a friction depends on its draft."""
    marks = world.taste_tables.marks
    if marks.drafts == 0 or world.chart.engages[target] != REPLY:
        return False
    acted_on = find_trigger_post(row, trigger, post, world)
    return acted_on >= 0 and marks.posts[world.posts.root[acted_on]] & marks.agents[row] & marks.drafts != 0


@kernel_step
def gives_up(
    tick: Any, row: Any, trigger: Any, state: Any, target: Any, post: Any, world: World, out: WalkOutput
) -> Any:
    """Return whether an agent gives up the action of a target state because of a label or friction, and note it."""
    chart, marks, posts = world.chart, world.taste_tables.marks, world.posts
    if trigger == chart.abandons_trigger or target == state:
        return False
    acted_on = find_trigger_post(row, trigger, post, world)
    if acted_on < 0:
        return False
    raised = np.float64(len(chart.action_program) == 0)
    mark = giving_up(row, np.int64(posts.root[acted_on]), chart.engages[target], raised, marks, posts.key)
    if mark >= 0:
        index = np.uint32(out.size[GIVEN_UP])
        out.given_up[0, index] = tick
        out.given_up[1, index] = row
        out.given_up[2, index] = acted_on
        out.given_up[3, index] = chart.engages[target]
        out.given_up[4, index] = mark
        out.size[GIVEN_UP] = index + 1
    return mark >= 0


@early_inline_kernel
def answer_choice(
    tick: Any,
    row: Any,
    trigger: Any,
    outcome: Any,
    post: Any,
    trigger_post: Any,
    loaded: Any,
    registers: Floats,
    world: World,
) -> Any:
    """Return the state that the rule chooses for an open choice, and the post that is loaded into registers.

    Without a post, the utility is the middle of the band.
    """
    people, posts, options, rule = world.people, world.posts, world.options, world.rule
    choices = np.uint32(FIRST_SET - outcome)
    if options.start[choices + 1] - options.start[choices] == 1:
        return np.int64(options.target[options.start[choices]]), loaded
    low, high = registers[LOW], registers[HIGH]
    utility, velocity, media = (low + high) / 2, np.int64(0), 0.0
    if trigger_post >= 0:
        if loaded != trigger_post:
            loaded = trigger_post
            load_post(row, trigger_post, post, registers, world)
        utility, velocity = registers[UTILITY], np.int64(posts.velocity[posts.root[trigger_post]])
        media = 1.0 if posts.with_media[posts.text_id[trigger_post]] else 0.0
    p_engage = engage_probability(utility, low, high, velocity, media, people.traits, row, rule)
    draw = choice_draw(rule.key, tick, options.trigger[trigger], row)
    return choose_option(choices, p_engage, draw, people.propensities, row, options), loaded


@early_inline_kernel
def note_history(tick: Any, row: Any, move: Any, decided_post: Any, world: World) -> None:
    """Add a move and its post to an agent's history."""
    ring, total, constants = world.histories.ring, world.histories.total, world.constants
    place = total[row] % constants.history_depth
    ring["move"][row, place] = move
    ring["clock"][row, place] = constants.first_clock + tick
    ring["post"][row, place] = decided_post
    total[row] += 1


@early_inline_kernel
def note_move(tick: Any, row: Any, move: Any, post: Any, was_open: Any, out: WalkOutput) -> None:
    """Note a move for the recorder."""
    index = np.uint32(out.size[MOVES])
    out.moves[0, index] = tick
    out.moves[1, index] = row
    out.moves[2, index] = move
    out.moves[3, index] = post
    out.moves[4, index] = was_open
    out.size[MOVES] = index + 1


@early_inline_kernel
def read_next(tick: Any, row: Any, post: Any, world: World, out: WalkOutput) -> None:
    """Let an agent read the next post of its feed, which is `post`."""
    people, posts = world.people, world.posts
    people.n_read[row] += 1
    people.current_match[row] = compute_match(people.interests, posts.vectors, row, posts.text_id[post])
    note_impression(tick, row, post, out)


@early_inline_kernel
def enter(tick: Any, row: Any, target: Any, post: Any, world: World, out: WalkOutput) -> Any:
    """Apply the effects of entering a state with a current post; return the current post afterwards."""
    chart, people = world.chart, world.people
    if chart.composes[target]:
        people.pending_action[row] = draw_action(tick, row, world)
    if chart.engages[target] >= 0 and post >= 0:
        index = np.uint32(out.size[ENGAGEMENTS])
        out.engagements[0, index] = tick
        out.engagements[1, index] = row
        out.engagements[2, index] = post
        out.engagements[3, index] = chart.engages[target]
        out.size[ENGAGEMENTS] = index + 1
    if chart.releases_post[target]:
        people.pending_action[row] = NO_ACTION
        return np.int64(NO_POST)
    return post


@early_inline_kernel
def action_draw(tick: Any, row: Any, world: World) -> Any:
    """Return the draw for the action that an agent composes, in 0..1."""
    return uniform(mix(mix(mix(world.constants.action_key, np.uint64(tick)), np.uint64(0)), np.uint64(row)))


@kernel_step
def choose_action(tick: Any, row: Any, post: Any, loaded: Any, registers: Floats, world: World) -> Any:
    """Choose the action that an account composes among those whose condition is true, by its propensities.

    Return the post that is loaded into registers. This is equivalent to `social.round.effects.apply_effects`.
    """
    people, action_program = world.people, world.chart.action_program
    if post >= 0 and loaded != post:
        loaded = post
        load_post(row, post, post, registers, world)
    left, n_actions = 0.0, len(action_program)
    for action in range(n_actions):
        if action_program[action] >= 0 and run_program(action_program[action], world.programs, registers) == 1:
            left += np.float64(people.propensities[row, action])
    left *= action_draw(tick, row, world)
    for action in range(n_actions):
        if action_program[action] >= 0 and run_program(action_program[action], world.programs, registers) == 1:
            if left >= 0:
                people.pending_action[row] = np.uint8(action)
            left -= np.float64(people.propensities[row, action])
    return loaded


@early_inline_kernel
def draw_action(tick: Any, row: Any, world: World) -> Any:
    """Draw the action that an agent composes, given its propensities."""
    propensities, draw = world.people.propensities, action_draw(tick, row, world)
    like = np.float64(propensities[row, 0])
    like_or_reply = like + np.float64(propensities[row, 1])
    return np.uint8((1 if draw >= like else 0) + (1 if draw >= like_or_reply else 0))


@early_inline_kernel
def transition(
    tick: Any,
    row: Any,
    trigger: Any,
    state: Any,
    target: Any,
    post: Any,
    decided_post: Any,
    was_open: Any,
    is_recorded: Any,
    world: World,
    out: WalkOutput,
) -> Any:
    """Take a transition and apply its effects; return the current post afterwards.

    This is equivalent to `social.round.effects.apply_effects`. A self-transition has no effects of entering a state.
    """
    next_post = next_unread(row, world) if trigger == world.chart.sees_trigger else np.int64(NO_POST)
    if state == target:
        if next_post >= 0:
            read_next(tick, row, next_post, world, out)
            return next_post
        return post
    move = np.int64(trigger) << 2 * STATE_BITS | state << STATE_BITS | target
    event_post = post if next_post == NO_POST else next_post
    if world.constants.history_depth > 0:
        note_history(tick, row, move, event_post if decided_post == POST_AT_HAND else decided_post, world)
    if next_post >= 0:
        read_next(tick, row, next_post, world, out)
    if is_recorded:
        note_move(tick, row, move, event_post, was_open, out)
    return enter(tick, row, target, event_post, world, out)
