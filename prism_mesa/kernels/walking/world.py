"""The inputs and outputs of a walk, by name."""

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Int32, Ints, UInt8, UInt32, UInt64
from prism_mesa.kernels.compiling import Table
from prism_mesa.kernels.programs import Programs
from prism_mesa.kernels.utility import PREVIEW, Tastes, TasteTables
from prism_mesa.kernels.walking.arrays import ChartTables, HistoryRing, People, PostTable, RoundConstants


class Options(NamedTuple):
    """The options of open choices, in the option sets of a chart.

    Attributes:
        start: Options of set s are ``start[s]`` .. ``start[s + 1] - 1``.
        target: The state that each option leads to.
        action: The action of each option, `COMPOSES`, or `PASSIVE`.
        unlisted: 1 for actions that are not options of a set, shape (sets, actions); composing stands for these.
        trigger: Index of the draws of choices for each trigger of the chart, uint64.
    """

    start: UInt32
    target: UInt32
    action: Int32
    unlisted: Table[np.float64]
    trigger: UInt64


class Rule(NamedTuple):
    """The parameters of the rule.

    Attributes:
        answers: Whether the rule answers open choices. If not, agents stop there.
        key: Key of the draws of choices, including the round.
        bias, slope, velocity, media: Log-odds of engaging: a constant, per unit of the post's position in the band, per
            unit of log velocity, and for media.
        traits, means, sds: Log-odds per standardised trait, and the traits' means and standard deviations, shape (5,).
        logistic: P(engage) by log-odds, with `steps` entries per unit.
        log1p: ``log(1 + v)`` for velocity v = 0, 1, 2, ...; the last value applies to more.
        max_position: Maximum distance of a position from the middle of the band.
    """

    answers: bool
    key: np.uint64
    bias: float
    slope: float
    velocity: float
    media: float
    traits: Floats
    means: Floats
    sds: Floats
    logistic: Floats
    log1p: Floats
    steps: int
    max_position: float


class Starts(NamedTuple):
    """Agents that are about to walk, each once; all arrays have the same length.

    Attributes:
        rows: Rows of the agents.
        start_ticks: The tick in which each agent starts.
        triggers: The first trigger of each agent, or `NOTHING`.
        targets: The target of this trigger (the answer to an open choice), `FIRE` if the tables decide, or `NOTHING`.
        was_open: Whether the choice was open; plus `HAS_PASSED` after the frictions on a draft.
        decided_posts: The post of the decision, or `POST_AT_HAND`. An action may have read the next post since then.
    """

    rows: Int32
    start_ticks: Int32
    triggers: Int32
    targets: Int32
    was_open: UInt8
    decided_posts: Int32


class Previews(NamedTuple):
    """The data of posts that scrolling agents read.

    Attributes:
        first: Id of the post of the first entry.
        entries: A preview of each post that feeds can show, of type `kernels.utility.PREVIEW`.
        are_followed: Whether readers follow the authors of all posts in their feeds.
    """

    first: int
    entries: Annotated[npt.NDArray[np.void], PREVIEW]
    are_followed: bool


class World(NamedTuple):
    """The inputs of a walk. It changes the population and the histories.

    Attributes:
        chart, programs, options: The chart, its guards, and the options of its open choices.
        rule: The parameters of the rule.
        people: The population.
        posts, tastes, taste_tables: The posts and the parameters of their utility.
        previews: Previews of posts for scrolling agents.
        constants: Constants of the round.
        histories: The last transitions of each agent.
    """

    chart: ChartTables
    programs: Programs
    options: Options
    rule: Rule
    people: People
    posts: PostTable
    tastes: Tastes
    taste_tables: TasteTables
    previews: Previews
    constants: RoundConstants
    histories: HistoryRing


class WalkOutput(NamedTuple):
    """The events of a walk; `size` has the numbers of stopped agents, impressions, engagements, moves and give-ups.

    Attributes:
        counts: Number of agents in each state at the end of each tick, shape (ticks, states).
        answered: Number of open choices that the rule answered, for each option set.
        stopped: Rows for row, tick, trigger and outcome.
        impressions: Rows for tick, row and post.
        engagements: Rows for tick, row, post and action.
        moves: Rows for tick, row, packed move, post, and whether the choice was open.
        given_up: Rows for tick, row, post, action, and the label or friction for which the agent gave up the action.
        has_value: Whether the program of each guard has returned a value.
        registers: The registers of the guards, for use within a walk.
    """

    size: Ints
    counts: Table[np.int64]
    answered: Ints
    stopped: Table[np.int32]
    impressions: Table[np.int32]
    engagements: Table[np.int32]
    moves: Table[np.int32]
    given_up: Table[np.int32]
    has_value: UInt8
    registers: Floats
