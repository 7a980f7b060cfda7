"""The walk: agents do tick after tick, as the chart's tables say, until a choice is open. Nothing here decides one.

The rules come in as tables (`ChartTables`, made from the chart and the trigger rules) and programs (guards). Where the
tables do not say what happens (a guard in Python, an action), or a choice is open, the agent stops: its tick, its
trigger and what stopped it are handed back, and a later walk goes on from there. Rows do not meet, so any cut of
the rows into blocks, walked in any order, gives the same columns and the same events.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, part_of_kernels
from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.kernels.programs import FAULT, Programs, run_program

type Int32 = npt.NDArray[np.int32]
type UInt8 = npt.NDArray[np.uint8]
type Floats = npt.NDArray[np.float64]

GROUP: Final = 64
"""Agents whose reading is prepared together."""

NO_POST: Final = -1
NO_ACTION: Final = 255

NOTHING: Final = -1
"""An outcome: no transition. As a trigger: none fires."""

UNDECIDED: Final = -2
"""An outcome: the tables do not know; the statechart itself is to be asked."""

FIRST_SET: Final = -10
"""Outcomes from here downwards are open choices: option set s is ``FIRST_SET - s``."""

GUARDED: Final = -4
"""No outcome: guards decide."""

ITS_OWN: Final = -2
"""As the post that was decided about: that which is at hand."""

FIRE: Final = -3
"""What an agent enters that is to fire its trigger first."""

AGENT_FIELDS: Final = (
    "engagement_threshold timeout_threshold activity post_rate ticks_in_state scripted n_unread state pending_action "
    "low_threshold high_threshold extraversion agreeableness conscientiousness neuroticism openness"
).split()
POST_FIELDS: Final = "post_id relevance kind likes replies reshares impressions velocity round author root".split()
FIELD_NAMES: Final = (*(f"agent.{name}" for name in AGENT_FIELDS), *(f"post.{name}" for name in POST_FIELDS))
"""What programs can read; the place of a name in here is its register."""

_THRESHOLD, _TIMEOUT, _ACTIVITY, _POST_RATE, _WAITED, _SCRIPTED, _UNREAD, _STATE, _ACTION, _LOW, _HIGH, _TRAITS = range(
    12
)
_FIRST_POST: Final = len(AGENT_FIELDS)
_ID, _RELEVANCE, _KIND, _LIKES, _REPLIES, _RESHARES, _IMPRESSIONS, _VELOCITY, _ROUND, _AUTHOR, _ROOT = range(
    _FIRST_POST, len(FIELD_NAMES)
)


class People(NamedTuple):
    """Columns of the population (`social.state.population.Population` says what they hold)."""

    state: UInt8
    ticks_in_state: Int32
    timeout_threshold: Int32
    pending_action: UInt8
    current_post: Int32
    current_match: npt.NDArray[np.int16]
    feed: Int32
    n_feed: UInt8
    n_read: UInt8
    interests: npt.NDArray[np.int8]
    engagement_threshold: Floats
    activity: Floats
    post_rate: Floats
    traits: npt.NDArray[np.float32]
    propensities: npt.NDArray[np.float32]
    scripted: npt.NDArray[np.bool_]


class PostTable(NamedTuple):
    """Columns of the posts, and the topic vectors of the texts, shape (n texts, n_topics)."""

    text_id: Int32
    root: Int32
    author: Int32
    round: Int32
    kind: UInt8
    likes: Int32
    replies: Int32
    reshares: Int32
    impressions: Int32
    velocity: Int32
    vectors: npt.NDArray[np.int8]


class ChartTables(NamedTuple):
    """A chart and the rules for triggers, as numbers.

    Attributes:
        timeout: Ticks after which each state times out, 0 where the agent's own threshold counts; int32.
        timeout_trigger: Code of that trigger, or `NOTHING`.
        sees_trigger: Code of the trigger by which a post is read, or `NOTHING`.
        rule_start: Rules of state s are ``rule_start[s]`` .. ``rule_start[s + 1] - 1``.
        rule_program: Their conditions, or `NOTHING` where they always hold.
        rule_trigger: Their triggers, or `NOTHING` where the chart does not know it.
        cell: Shape (triggers, states): which cell, or `NOTHING`.
        arm_start: Guards of cell c are ``arm_start[c]`` .. ``arm_start[c + 1] - 1``.
        arm_program: Their programs.
        outcome_start: Outcomes of cell c begin here; the guards' values, as bits, say which one it is.
        outcome: A target, `NOTHING`, `UNDECIDED`, or an option set.
        fixed: Shape (triggers, states): the outcome where no guard is asked, else `GUARDED`.
        composes: 1 for the state in which the action is drawn on entering.
        engages: Action of an engaging state, else -1.
        releases_post: 1 for states that let go of the post on entering.
        idle: Code of the state in which nothing happens.
    """

    timeout: Int32
    timeout_trigger: int
    sees_trigger: int
    rule_start: Int32
    rule_program: Int32
    rule_trigger: Int32
    cell: Int32
    arm_start: Int32
    arm_program: Int32
    outcome_start: Int32
    outcome: Int32
    fixed: Int32
    composes: UInt8
    engages: Int32
    releases_post: UInt8
    idle: int


class RoundConstants(NamedTuple):
    """What is the same for all agents in a round.

    Attributes:
        half_band: Half the width of the band of relevance.
        unit_length: Similarity of two equal topic vectors.
        action_key: Key of the draws of actions, with the round mixed in.
        ticks: Ticks of a round.
        clock: Number of tick 0 of this round.
        depth: Entries of history kept per agent.
    """

    half_band: float
    unit_length: float
    action_key: np.uint64
    ticks: int
    clock: int
    depth: int


class HistoryRing(NamedTuple):
    """Histories as rings (`social.state.population.History`): packed move, clock, post; and how many there were."""

    ring: npt.NDArray[Any]
    total: npt.NDArray[np.int64]


class WalkOutput(NamedTuple):
    """What came about in a block; `size` says how many stopped, impressions, engagements, moves (the last is idle).

    Attributes:
        counts: Shape (ticks, states): agents in each state at the end of each tick.
        stopped: Shape (4, rows): row, tick, trigger, outcome.
        impressions: Shape (3, .): tick, row, post.
        engagements: Shape (4, .): tick, row, post, action.
        moves: Shape (5, .): tick, row, packed move, post, whether the choice was open.
        gave_value: Which programs of guards have given a value.
    """

    size: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    stopped: Int32
    impressions: Int32
    engagements: Int32
    moves: Int32
    gave_value: UInt8


@part_of_kernels
def match_of(interests: npt.NDArray[np.int8], vectors: npt.NDArray[np.int8], row: Any, text: Any) -> Any:
    """Return the similarity of an agent's interests and a text: their integer product."""
    total = np.int32(0)
    for k in range(interests.shape[1]):
        total += np.int32(interests[row, k]) * np.int32(vectors[text, k])
    return np.int64(total)


@part_of_kernels
def relevance_at(match: Any, unit_length: float) -> float:
    """Return a similarity as relevance, 0..1 (`social.state.posts.relevance_of`)."""
    return min(max((np.float64(match) / unit_length + 1.0) / 2.0, 0.0), 1.0)


@part_of_kernels
def _load(
    register: Floats,
    used: UInt8,
    row: Any,
    post: Any,
    current: Any,
    matches: npt.NDArray[np.int16],
    interests: npt.NDArray[np.int8],
    posts: PostTable,
    unit_length: float,
) -> None:
    """Put what guards read of a post into the registers; a post's counters are its root's."""
    match = np.int64(matches[row])
    if post != current:
        match = match_of(interests, posts.vectors, row, posts.text_id[post])
    register[_RELEVANCE] = relevance_at(match, unit_length)
    if used[_ID]:
        register[_ID] = post
    if used[_KIND]:
        register[_KIND] = posts.kind[post]
    if used[_ROUND]:
        register[_ROUND] = posts.round[post]
    if used[_AUTHOR]:
        register[_AUTHOR] = posts.author[post]
    if used[_ROOT] | used[_LIKES] | used[_REPLIES] | used[_RESHARES] | used[_IMPRESSIONS] | used[_VELOCITY]:
        root = np.int64(posts.root[post])
        register[_ROOT] = root
        register[_LIKES] = posts.likes[root]
        register[_REPLIES] = posts.replies[root]
        register[_RESHARES] = posts.reshares[root]
        register[_IMPRESSIONS] = posts.impressions[root]
        register[_VELOCITY] = posts.velocity[root]


@kernel
def walk(
    rows: Int32,
    at: Int32,
    triggers: Int32,
    targets: Int32,
    opens: UInt8,
    about: Int32,
    until: int,
    keeps: UInt8,
    chart: ChartTables,
    programs: Programs,
    people: People,
    posts: PostTable,
    setting: RoundConstants,
    book: HistoryRing,
    out: WalkOutput,
) -> None:
    """Let agents do their ticks from after `at` up to `until`, or up to where one stops.

    It is one long function because handing many arrays to another one costs more than a tick.

    Args:
        rows: Who walks, each once.
        at: The tick that each has come to.
        triggers: What is to happen at that tick before it goes on, or `NOTHING`.
        targets: Where that leads (an answer to an open choice); `FIRE` if the chart is to say, `NOTHING` if nowhere.
        opens: Whether that was an open choice.
        about: The post that was decided about, or `ITS_OWN`: an action may have read the next one since.
        until: The last tick.
        keeps: Whose moves are noted, one for each agent of the population, or one for all.
        chart: What happens when.
        programs: The guards of `chart`.
        people: The population, which is changed.
        posts: What is read.
        setting: What is the same for all.
        book: The histories, which are written on.
        out: What came about; it has room for one of each per row and tick.
    """
    states, waits, limits = people.state, people.ticks_in_state, people.timeout_threshold
    actions, current, matches = people.pending_action, people.current_post, people.current_match
    feed, n_feed, n_read, interests = people.feed, people.n_feed, people.n_read, people.interests
    thresholds, activity, post_rate = people.engagement_threshold, people.activity, people.post_rate
    traits, propensities, scripted = people.traits, people.propensities, people.scripted
    text_id, vectors, unit_length = posts.text_id, posts.vectors, setting.unit_length
    timeout, rule_start, rule_program, rule_trigger = (
        chart.timeout,
        chart.rule_start,
        chart.rule_program,
        chart.rule_trigger,
    )
    cells, arm_start, arm_program = chart.cell, chart.arm_start, chart.arm_program
    fixed, outcome_start, outcomes = chart.fixed, chart.outcome_start, chart.outcome
    composes, engages, releases_post = chart.composes, chart.engages, chart.releases_post
    code, left, right, result, start = programs.code, programs.left, programs.right, programs.result, programs.start
    reads_post, used = programs.reads_post, programs.used
    ring, total = book.ring, book.total
    counts, stopped, impressions, engagements, moves = (
        out.counts,
        out.stopped,
        out.impressions,
        out.engagements,
        out.moves,
    )
    gave_value = out.gave_value
    n_stopped, n_impressions, n_engagements, n_moves = 0, 0, 0, 0
    keeps_step = min(1, len(keeps) - 1)
    last = min(until, setting.ticks)
    register = programs.registers.copy()
    touched = np.int64(0)
    for i in range(len(rows)):
        if i % GROUP == 0:  # have what this group will read under way before the first of it is needed
            for j in range(i, min(i + GROUP, len(rows))):
                row = rows[j]
                for place in range(n_read[row], min(n_feed[row], n_read[row] + (until - at[j] + 1) // 2)):
                    touched += text_id[feed[row, place]]
        row, tick, trigger, outcome, was_open = rows[i], np.int64(at[i]), triggers[i], np.int64(targets[i]), opens[i]
        state, waited = np.int64(states[row]), np.int64(waits[row])
        post = np.int64(current[row])
        loaded = np.int64(NO_POST)  # whose fields stand in the registers
        decided = np.int64(about[i])
        register[_THRESHOLD] = thresholds[row]
        register[_LOW] = thresholds[row] - setting.half_band
        register[_HIGH] = thresholds[row] + setting.half_band
        if used[_SCRIPTED]:
            register[_SCRIPTED] = scripted[row]
        if used[_TIMEOUT]:
            register[_TIMEOUT] = limits[row]
        if used[_ACTIVITY]:
            register[_ACTIVITY] = activity[row]
        if used[_POST_RATE]:
            register[_POST_RATE] = post_rate[row]
        for trait in range(5):
            if used[_TRAITS + trait]:
                register[_TRAITS + trait] = traits[row, trait]
        while True:
            is_new_tick = tick > at[i]
            if is_new_tick or outcome == FIRE:
                register[_WAITED] = waited
                register[_UNREAD] = np.int64(n_feed[row]) - np.int64(n_read[row])
                register[_STATE] = state
                register[_ACTION] = actions[row]
            if is_new_tick:  # what meets the agent?
                trigger, outcome, was_open = np.int32(NOTHING), np.int64(FIRE), np.uint8(0)
                decided = np.int64(ITS_OWN)
                limit = timeout[state]
                if waited >= (limit if limit > 0 else limits[row]):
                    trigger = np.int32(chart.timeout_trigger)
                else:
                    for rule in range(rule_start[state], rule_start[state + 1]):
                        program = rule_program[rule]
                        if program >= 0:
                            if reads_post[program]:
                                if post == NO_POST:
                                    continue
                                if loaded != post:
                                    loaded = post
                                    _load(register, used, row, post, post, matches, interests, posts, unit_length)
                            if run_program(program, code, left, right, result, start, register) != 1:
                                continue
                        trigger = rule_trigger[rule]
                        break
            if trigger >= 0 and outcome == FIRE:  # where does that lead?
                outcome = np.int64(fixed[trigger, state])
                if outcome == GUARDED:
                    cell = cells[trigger, state]
                    at_hand = post
                    if trigger == chart.sees_trigger and n_read[row] < n_feed[row]:
                        at_hand = np.int64(feed[row, n_read[row]])
                    key, first = np.int64(0), arm_start[cell]
                    for arm in range(first, arm_start[cell + 1]):
                        program = arm_program[arm]
                        value = FAULT
                        if not reads_post[program] or at_hand != NO_POST:
                            if reads_post[program] and loaded != at_hand:
                                loaded = at_hand
                                _load(register, used, row, at_hand, post, matches, interests, posts, unit_length)
                            value = run_program(program, code, left, right, result, start, register)
                        if value == FAULT:
                            outcome = np.int64(UNDECIDED)
                            break
                        gave_value[program] = 1
                        key |= np.int64(value) << np.int64(arm - first)
                    if outcome == GUARDED:
                        outcome = np.int64(outcomes[outcome_start[cell] + key])
            if trigger >= 0 and outcome <= UNDECIDED:
                stopped[0, n_stopped] = row
                stopped[1, n_stopped] = tick
                stopped[2, n_stopped] = trigger
                stopped[3, n_stopped] = outcome
                n_stopped += 1
                break
            if trigger >= 0 and outcome >= 0:
                # take the transition and do what it entails, as `social.round.effects.apply_effects` does for one agent
                target = outcome
                move = np.int64(trigger) << 6 | state << 3 | target
                reads = trigger == chart.sees_trigger and n_read[row] < n_feed[row]
                waited = np.int64(0)
                if setting.depth > 0 and state != target:
                    place = total[row] % setting.depth
                    ring["move"][row, place] = move
                    ring["clock"][row, place] = setting.clock + tick
                    if decided == ITS_OWN:
                        decided = np.int64(feed[row, n_read[row]]) if reads else post
                    ring["post"][row, place] = decided
                    total[row] += 1
                if reads:
                    post = np.int64(feed[row, n_read[row]])
                    n_read[row] += 1
                    matches[row] = match_of(interests, vectors, row, text_id[post])
                    impressions[0, n_impressions] = tick
                    impressions[1, n_impressions] = row
                    impressions[2, n_impressions] = post
                    n_impressions += 1
                if state != target:
                    if keeps[row * keeps_step]:
                        moves[0, n_moves] = tick
                        moves[1, n_moves] = row
                        moves[2, n_moves] = move
                        moves[3, n_moves] = post
                        moves[4, n_moves] = was_open
                        n_moves += 1
                    if composes[target]:
                        draw = unit(
                            mixed(mixed(mixed(setting.action_key, np.uint64(tick)), np.uint64(0)), np.uint64(row))
                        )
                        like = np.float64(propensities[row, 0])
                        both = like + np.float64(propensities[row, 1])
                        actions[row] = np.uint8((1 if draw >= like else 0) + (1 if draw >= both else 0))
                    if engages[target] >= 0 and post != NO_POST:
                        engagements[0, n_engagements] = tick
                        engagements[1, n_engagements] = row
                        engagements[2, n_engagements] = post
                        engagements[3, n_engagements] = engages[target]
                        n_engagements += 1
                    if releases_post[target]:
                        post = np.int64(NO_POST)
                        actions[row] = NO_ACTION
                state = target
            if (trigger >= 0 or is_new_tick) and 1 <= tick <= setting.ticks:
                counts[tick - 1, state] += 1
            if tick >= until:
                break
            if state == chart.idle:
                for rest in range(tick + 1, last + 1):
                    counts[rest - 1, state] += 1
                break
            tick += 1
            waited += 1
        states[row], waits[row], current[row] = state, waited, post
    out.size[:] = n_stopped, n_impressions, n_engagements, n_moves, touched
