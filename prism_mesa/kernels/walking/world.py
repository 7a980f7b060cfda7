"""All that a walk is given, by name, and what it writes."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.programs import Programs
from prism_mesa.kernels.utility import Tastes, TasteTables
from prism_mesa.kernels.walking.arrays import ChartTables, HistoryRing, People, PostTable, RoundConstants
from prism_mesa.kernels.walking.choosing import Options, Rule

type Int32 = npt.NDArray[np.int32]
type UInt8 = npt.NDArray[np.uint8]
type Floats = npt.NDArray[np.float64]


class Starts(NamedTuple):
    """Agents about to walk, each once: arrays of one length.

    Attributes:
        rows: Which agents.
        at: The tick that each has come to.
        triggers: What happens there first, or `NOTHING`.
        targets: Where that leads (an answer to an open choice); `FIRE` if the chart is to say, `NOTHING` if nowhere.
        opens: Whether that was an open choice.
        about: The post that was decided about, or `ITS_OWN`: an action may have read the next one since.
    """

    rows: Int32
    at: Int32
    triggers: Int32
    targets: Int32
    opens: UInt8
    about: Int32


class Ahead(NamedTuple):
    """What agents look at who scroll past posts; nothing where they do not.

    Attributes:
        first: The post that the first preview is of.
        previews: Of each post that is in a feed, of the type `kernels.utility.PREVIEW`.
        are_followed: Whether all posts in feeds are by authors whom the reader follows.
    """

    first: int
    previews: npt.NDArray[Any]
    are_followed: bool


class World(NamedTuple):
    """All that a walk goes by, and the population and histories that it changes.

    Attributes:
        chart: What happens when; `programs` are its guards, `options` what its open choices are between.
        programs: See `chart`.
        options: See `chart`.
        rule: Who answers open choices at once, if it does.
        people: The population.
        posts: What is read; `tastes` and `taste_tables` say what it is worth.
        tastes: See `posts`.
        taste_tables: See `posts`.
        ahead: What agents see of the next posts of their feeds.
        setting: What is the same for all.
        histories: What agents did.
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
    """What came about; `size` says how many stopped, impressions, engagements and moves there are.

    Attributes:
        counts: Shape (ticks, states): agents in each state at the end of each tick.
        answered: How often the rule has answered, by option set.
        stopped: Shape (4, rows): row, tick, trigger, outcome.
        impressions: Shape (3, .): tick, row, post.
        engagements: Shape (4, .): tick, row, post, action.
        moves: Shape (5, .): tick, row, packed move, post, whether the choice was open.
        gave_value: Which programs of guards have given a value.
        register: The registers of the guards: what stands in there is of no use behind a walk.
    """

    size: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    answered: npt.NDArray[np.int64]
    stopped: Int32
    impressions: Int32
    engagements: Int32
    moves: Int32
    gave_value: UInt8
    register: Floats
