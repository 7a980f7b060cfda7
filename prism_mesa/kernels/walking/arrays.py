"""Named arrays that a walk reads and writes, and the codes in these arrays."""

from typing import Annotated, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Int32, Ints, Mask, UInt8, UInt16, UInt32, UInt64
from prism_mesa.kernels.compiling import Table

POST, REPLY, RESHARE = range(3)
"""Kinds of posts, in the order of `domain.POST_KINDS`."""

NO_POST: Final = -1
NO_ACTION: Final = 255

NOTHING: Final = -1
"""As an outcome: no transition. As a trigger: no trigger fires."""

HAS_PASSED: Final = 2
"""Added to `Starts.was_open` if the draft of a reply has passed all frictions."""

UNDECIDED: Final = -2
"""An outcome that the tables do not contain, so the statechart itself decides."""

FIRST_SET: Final = -10
"""Outcomes up to this code are open choices: ``FIRST_SET - s`` stands for option set s."""

DRAFTED: Final = -5
"""An outcome: a friction depends on the draft of a reply. It is 1 less if the choice was open."""

GUARDED: Final = -4
"""In place of an outcome: guards decide."""

POST_AT_HAND: Final = -2
"""In place of the post of a decision: the agent's current post."""

FIRE: Final = -3
"""In place of a target: the agent first fires its trigger."""

STATE_BITS: Final = 4
"""Bits of a state in a packed move: ``trigger << 8 | source << 4 | target``."""


class People(NamedTuple):
    """Columns of the population; see `social.state.population.Population`."""

    state: UInt8
    ticks_in_state: Int32
    pending_action: UInt8
    current_post: Int32
    current_match: npt.NDArray[np.int16]
    feed: Table[np.int32]
    n_feed: UInt16
    n_read: UInt16
    interests: Table[np.int8]
    numbers: Table[np.float64]
    traits: Table[np.float32]
    propensities: Table[np.float32]
    scripted: Mask
    present: Mask
    attributes: Table[np.float64]


class PostTable(NamedTuple):
    """Columns of posts, topic vectors of texts, shape (texts, topics), and a mask of texts with media."""

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
    key: UInt64
    appeal: npt.NDArray[np.float32]
    attributes: Table[np.float64]
    vectors: Table[np.int8]
    with_media: Mask


class ChartTables(NamedTuple):
    """A chart and the trigger rules as numbers.

    Attributes:
        timeout: Ticks after which each state times out; 0 if the threshold is the agent's.
        timeout_trigger: Code of the timeout trigger, or `NOTHING`.
        sees_trigger: Code of the trigger that reads the next post, or `NOTHING`.
        abandons_trigger: Code of the trigger with which agents give up an action, or `NOTHING`.
        rule_start: Rules of state s are ``rule_start[s]`` .. ``rule_start[s + 1] - 1``.
        rule_program: Program of each rule's condition, or `NOTHING` if the rule always applies.
        rule_trigger: Trigger of each rule, or `NOTHING` if the chart lacks the trigger.
        claim_program: Program that says whether agents stop at a post below the band, or `NOTHING`.
        cell: Index of each cell, shape (triggers, states), or `NOTHING`.
        arm_start: Guards of cell c are ``arm_start[c]`` .. ``arm_start[c + 1] - 1``.
        arm_program: Programs of the guards.
        outcome_start: Start of the outcomes of each cell. The guards' values are the bits of an index from there.
        outcome: Each a target, `NOTHING`, `UNDECIDED`, or an option set.
        open: An option set of each cell that can be open, shape (triggers, states), else `NOTHING`.
        fixed: Outcome of cells without guards, shape (triggers, states), else `GUARDED`.
        composes: 1 for the state that draws an action on entry.
        engages: Action of each engaging state, else -1.
        action_program: For each action, the program that says whether it can be chosen, or `NOTHING` if it cannot;
            empty if all actions can be chosen.
        releases_post: 1 for states that release the post on entry.
        idle: Code of the state in which agents do nothing.
    """

    timeout: UInt32
    timeout_trigger: int
    sees_trigger: int
    abandons_trigger: int
    rule_start: UInt32
    rule_program: Int32
    rule_trigger: Int32
    claim_program: int
    cell: Table[np.int32]
    arm_start: UInt32
    arm_program: UInt32
    outcome_start: UInt32
    outcome: Int32
    open: Table[np.int32]
    fixed: Table[np.int32]
    composes: UInt8
    engages: Int32
    action_program: Int32
    releases_post: UInt8
    idle: int


class RoundConstants(NamedTuple):
    """Values that are the same for all agents in a round.

    Attributes:
        half_band: Half the width of the band.
        glances: Posts that a scrolling agent passes in a tick.
        unit_length: Similarity of two equal topic vectors.
        action_key: Key of the draws of actions, with the round mixed in.
        ticks: Ticks per round.
        first_clock: Number of the round's tick 0, counted over all rounds.
        history_depth: Entries of history per agent.
    """

    half_band: float
    glances: int
    unit_length: float
    action_key: np.uint64
    ticks: int
    first_clock: int
    history_depth: int


HISTORY_ENTRY: Final = np.dtype([("move", np.uint16), ("clock", np.int32), ("post", np.int32)])


class HistoryRing(NamedTuple):
    """Histories as ring buffers (`social.state.population.History`), with the total number of entries of each agent."""

    ring: Annotated[Table[np.void], HISTORY_ENTRY]
    total: Ints
