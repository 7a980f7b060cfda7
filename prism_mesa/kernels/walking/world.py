"""The inputs of a walk by name, and its outputs."""

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import Table
from prism_mesa.kernels.programs import Programs
from prism_mesa.kernels.utility import PREVIEW, Tastes, TasteTables
from prism_mesa.kernels.walking.arrays import ChartTables, HistoryRing, People, PostTable, RoundConstants

type Int32 = npt.NDArray[np.int32]
type UInt32 = npt.NDArray[np.uint32]
type UInt8 = npt.NDArray[np.uint8]
type Floats = npt.NDArray[np.float64]


class Options(NamedTuple):
    """The options of open choices: the option sets of a chart.

    Attributes:
        start: Options of set s are ``start[s]`` .. ``start[s + 1] - 1``.
        target: The state that each option leads to.
        does: Its action, `COMPOSES`, or `PASSIVE`.
        left: Shape (sets, 3): 1 for actions that are not options; composing stands for these.
        trigger: Index of the draws of choices after each trigger of the chart, uint64.
    """

    start: UInt32
    target: UInt32
    does: Int32
    left: Table[np.float64]
    trigger: npt.NDArray[np.uint64]


class Rule(NamedTuple):
    """The numbers of the rule.

    Attributes:
        answers: Whether the rule answers; if not, agents stop at open choices.
        key: Key of the draws of choices, with the round mixed in.
        bias, slope, velocity, media: Log-odds of engaging: to begin with, by a post's position on the band, by the
            logarithm of its velocity, and if it has media.
        traits, means, sds: Log-odds by standardised trait, shape (5,), and the means and deviations of traits.
        logistic: P(engage) by log-odds, with `steps` entries per unit.
        log1p: Logarithm of 1 + 0, 1, 2, ...; the last applies to more.
        most: The farthest position from the middle of the band.
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
    most: float


class Starts(NamedTuple):
    """Agents about to walk, each once: arrays of one length.

    Attributes:
        rows: Rows of the agents.
        at: The tick at which each starts.
        triggers: The trigger that it meets first, or `NOTHING`.
        targets: Where that leads (an answer to an open choice), `FIRE` if the chart decides, or `NOTHING`.
        opens: Whether it was an open choice.
        about: The post that was decided about, or `POST_AT_HAND`: an action may have read the next post since.
    """

    rows: Int32
    at: Int32
    triggers: Int32
    targets: Int32
    opens: UInt8
    about: Int32


class Ahead(NamedTuple):
    """What agents see who scroll past posts.

    Attributes:
        first: The post of the first preview.
        previews: A preview of each post in a feed, of type `kernels.utility.PREVIEW`.
        are_followed: Whether readers follow the authors of all posts in feeds.
    """

    first: int
    previews: Annotated[npt.NDArray[np.void], PREVIEW]
    are_followed: bool


class World(NamedTuple):
    """All that a walk reads, and the population and histories that it changes.

    Attributes:
        chart, programs, options: The chart, its guards, and the options of its open choices.
        rule: How the rule answers open choices, if it does.
        people: The population.
        posts, tastes, taste_tables: The posts, and what makes their utility.
        ahead: What agents see of the next posts of their feeds.
        setting: Constants of the round.
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
    ahead: Ahead
    setting: RoundConstants
    histories: HistoryRing


class WalkOutput(NamedTuple):
    """What happened in a walk; `size` counts stopped agents, impressions, engagements and moves.

    Attributes:
        counts: Shape (ticks, states): agents in each state at the end of each tick.
        answered: Open choices answered by the rule, by option set.
        stopped: Shape (4, rows): row, tick, trigger, outcome.
        impressions: Shape (3, .): tick, row, post.
        engagements: Shape (4, .): tick, row, post, action.
        moves: Shape (5, .): tick, row, packed move, post, whether the choice was open.
        gave_value: Whether the program of each guard gave a value.
        register: The registers of the guards, for use within a walk.
    """

    size: npt.NDArray[np.int64]
    counts: Table[np.int64]
    answered: npt.NDArray[np.int64]
    stopped: Table[np.int32]
    impressions: Table[np.int32]
    engagements: Table[np.int32]
    moves: Table[np.int32]
    gave_value: UInt8
    register: Floats
