"""The walk: agents do tick after tick, as the chart's tables say, until a choice is open.

The rules come in as tables (`ChartTables`, made from the chart and the trigger rules) and programs (guards). Where the
tables do not say what happens (a guard in Python, an action), or a choice is open, the agent stops: its tick, its
trigger and what stopped it are handed back, and a later walk goes on from there. Rows do not meet, so any cut of
the rows into blocks, walked in any order, gives the same columns and the same events.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel
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
from prism_mesa.kernels.ordering import is_among
from prism_mesa.kernels.programs import FAULT, Programs, run_program
from prism_mesa.kernels.utility import MOOD_SHIFT, Tastes, TasteTables, unlike_at, utility_at
from prism_mesa.kernels.walk_arrays import (
    FIRE,
    GUARDED,
    ITS_OWN,
    NO_ACTION,
    NO_POST,
    NOTHING,
    RESHARE,
    UNDECIDED,
    ChartTables,
    HistoryRing,
    People,
    PostTable,
    RoundConstants,
    WalkOutput,
)

type Int32 = npt.NDArray[np.int32]
type UInt8 = npt.NDArray[np.uint8]

GROUP: Final = 64
"""Agents whose reading is prepared together."""


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
    tastes: Tastes,
    taste_tables: TasteTables,
    setting: RoundConstants,
    histories: HistoryRing,
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
        tastes: What it is worth, with `taste_tables`.
        taste_tables: See `tastes`.
        setting: What is the same for all.
        histories: The histories, which are written on.
        out: What came about; it has room for one of each per row and tick.
    """
    states, waits, limits = people.state, people.ticks_in_state, people.timeout_threshold
    actions, current, matches = people.pending_action, people.current_post, people.current_match
    feed, n_feed, n_read, interests = people.feed, people.n_feed, people.n_read, people.interests
    thresholds, activity, post_rate = people.engagement_threshold, people.activity, people.post_rate
    traits, propensities, scripted = people.traits, people.propensities, people.scripted
    text_id, vectors, unit_length = posts.text_id, posts.vectors, setting.unit_length
    root_of, kind, author_of, round_of = posts.root, posts.kind, posts.author, posts.round
    key_of, appeal, aged, mood = posts.key, posts.appeal, taste_tables.aged, taste_tables.mood
    indptr, indices, attributes = taste_tables.indptr, taste_tables.indices, taste_tables.attributes
    close_indptr, close_indices = taste_tables.close_indptr, taste_tables.close_indices
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
    ring, total = histories.ring, histories.total
    counts, stopped, impressions, engagements, moves = (
        out.counts,
        out.stopped,
        out.impressions,
        out.engagements,
        out.moves,
    )
    gave_value = out.gave_value
    n_stopped, n_impressions, n_engagements, n_moves = 0, 0, 0, 0
    keeps_step, last = min(1, len(keeps) - 1), min(until, setting.ticks)
    sees = chart.sees_trigger
    scrolls_past = setting.glances > 1 and sees >= 0
    has_odds = tastes.sensitivity != 0.0  # utility is more than relevance
    register = programs.registers.copy()
    declared = people.attributes
    of_posts = N_FIELDS + declared.shape[1]  # registers of attributes of posts follow those of agents
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
        register[THRESHOLD] = thresholds[row]
        register[LOW] = thresholds[row] - setting.half_band
        register[HIGH] = thresholds[row] + setting.half_band
        if used[SCRIPTED]:
            register[SCRIPTED] = scripted[row]
        if used[TIMEOUT]:
            register[TIMEOUT] = limits[row]
        if used[ACTIVITY]:
            register[ACTIVITY] = activity[row]
        if used[POST_RATE]:
            register[POST_RATE] = post_rate[row]
        for trait in range(5):
            if used[TRAITS + trait]:
                register[TRAITS + trait] = traits[row, trait]
        for place in range(declared.shape[1]):
            register[N_FIELDS + place] = declared[row, place]
        while True:
            is_new_tick = tick > at[i]
            if is_new_tick or outcome == FIRE:
                register[WAITED] = waited
                register[UNREAD] = np.int64(n_feed[row]) - np.int64(n_read[row])
                register[STATE] = state
                register[ACTION] = actions[row]
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
                                    load_post(
                                        register,
                                        used,
                                        row,
                                        post,
                                        post,
                                        matches,
                                        interests,
                                        posts,
                                        unit_length,
                                        of_posts,
                                    )
                                    register[UTILITY] = register[RELEVANCE]
                                    if has_odds:
                                        relevance = register[RELEVANCE]
                                        register[UTILITY] = utility_at(
                                            row, post, relevance, tastes, taste_tables, posts
                                        )
                            if run_program(program, code, left, right, result, start, register) != 1:
                                continue
                        trigger = rule_trigger[rule]
                        break
                if scrolls_past and trigger == sees:
                    # scroll past what lies below the band, as `social.round.effects.pass_posts` does for one agent
                    trigger, waited, loaded = np.int32(NOTHING), np.int64(0), np.int64(NO_POST)
                    most = n_read[row] + setting.glances
                    while n_read[row] < min(most, n_feed[row]):
                        ahead = np.int64(feed[row, n_read[row]])
                        match = match_of(interests, vectors, row, text_id[ahead])
                        utility = tastes.weight * relevance_at(match, unit_length)
                        if has_odds:  # as `kernels.utility.utility_at`
                            root, author = np.int64(root_of[ahead]), author_of[ahead]
                            share, more = 1.0, 0.0
                            if kind[ahead] == RESHARE:
                                share, more = tastes.gamma, tastes.reshared
                            elif tastes.gamma != 1.0 and not is_among(indices, indptr[row], indptr[row + 1], author):
                                share = tastes.gamma
                            if tastes.closeness != 0.0:
                                for tie in range(close_indptr[row], close_indptr[row + 1]):
                                    if close_indices[tie] == author:
                                        more += tastes.closeness
                            if tastes.homophily != 0.0:
                                more -= tastes.homophily * unlike_at(row, author_of[root], tastes, attributes)
                            bits = mixed(mixed(tastes.mood_key, key_of[root]), np.uint64(row)) >> MOOD_SHIFT
                            age = np.int64(min(max(tastes.now - round_of[root], 0), len(aged) - 1))
                            odds = share * appeal[root] - aged[age] + more + mood[np.int64(bits)]
                            utility += tastes.sensitivity * odds
                        if utility >= register[LOW]:
                            register[UTILITY] = utility
                            loaded = ahead
                            load_post(
                                register, used, row, ahead, post, matches, interests, posts, unit_length, of_posts
                            )
                            trigger, waited = np.int32(sees), np.int64(register[WAITED])
                            break
                        n_read[row] += 1
                        impressions[0, n_impressions] = tick
                        impressions[1, n_impressions] = row
                        impressions[2, n_impressions] = ahead
                        n_impressions += 1
                    register[UNREAD] = np.int64(n_feed[row]) - np.int64(n_read[row])
            if trigger >= 0 and outcome == FIRE:  # where does that lead?
                outcome = np.int64(fixed[trigger, state])
                if outcome == GUARDED:
                    cell = cells[trigger, state]
                    at_hand = post
                    if trigger == sees and n_read[row] < n_feed[row]:
                        at_hand = np.int64(feed[row, n_read[row]])
                    key, first = np.int64(0), arm_start[cell]
                    for arm in range(first, arm_start[cell + 1]):
                        program = arm_program[arm]
                        value = FAULT
                        if not reads_post[program] or at_hand != NO_POST:
                            if reads_post[program] and loaded != at_hand:
                                loaded = at_hand
                                load_post(
                                    register, used, row, at_hand, post, matches, interests, posts, unit_length, of_posts
                                )
                                register[UTILITY] = register[RELEVANCE]
                                if has_odds:
                                    relevance = register[RELEVANCE]
                                    register[UTILITY] = utility_at(row, at_hand, relevance, tastes, taste_tables, posts)
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
                reads = trigger == sees and n_read[row] < n_feed[row]
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
    # one by one: numba takes seconds to compile a slice that is written to another
    out.size[0], out.size[1], out.size[2] = n_stopped, n_impressions, n_engagements
    out.size[3], out.size[4] = n_moves, touched
