"""Measures of when agents act and how much each of them does: activity, bursts, hours of the day, delays."""

from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import ACTIONS
from prism_mesa.runs.config import Config
from prism_mesa.runs.measures import gini, top_share
from prism_mesa.social.state.posts import POST, RESHARE
from prism_mesa.studies.estimators.timing import burstiness, correlation, hour_profile, shift_between
from prism_mesa.studies.measures.columns import codes_of
from prism_mesa.studies.measures.measure import FinishedRun, Measure
from prism_mesa.studies.measures.window import measured_posts, of_kind

type Floats = npt.NDArray[np.float64]

_TABLES: Final = ("engagements",)
DAY_MIN: Final = 24 * 60
_GOH: Final = "Goh and Barabasi 2008, doi:10.1209/0295-5075/81/48002"

EASTERN: Final = 5
"""Hours that UTC is ahead of US Eastern time in winter."""

CONGRESS_HOURS: Final = (
    *(0.0063, 0.0019, 0.0008, 0.0004, 0.0004, 0.0006, 0.0024, 0.0056, 0.0178, 0.0519, 0.0764, 0.0872),
    *(0.0899, 0.0857, 0.0930, 0.0925, 0.0928, 0.0830, 0.0631, 0.0456, 0.0345, 0.0260, 0.0272, 0.0150),
)
"""Share of 179,974 tweets of 525 accounts of the US Congress in each hour, Eastern time."""


def activities(run: FinishedRun) -> npt.NDArray[np.int64]:
    """Return posts and reshares of each agent, as VoterFraud2020 counts tweets and retweets; only of who has any."""
    posts = run.table("posts")
    counted = posts["author"].to_numpy()[of_kind(posts, POST) | of_kind(posts, RESHARE)]
    done = np.bincount(counted[counted >= 0])
    return done[done > 0]


def _minutes(config: Config, rounds: npt.NDArray[Any], ticks: npt.NDArray[Any]) -> Floats:
    """Return times in minutes since the run began."""
    minutes: Floats = (rounds + ticks / (config.ticks_per_round + 2)) * config.clock.round_minutes
    return minutes


def written_at(run: FinishedRun) -> tuple[npt.NDArray[Any], Floats]:
    """Return who wrote something, a post, reply or reshare, and when: minutes since the run began.

    Posts are written when their round opens; replies and reshares when they are made, of agents that are recorded.
    """
    posts, engaged = run.table("posts"), run.table("engagements")
    own = posts[of_kind(posts, POST) & (posts["author"] >= 0).to_numpy()]
    codes, names = codes_of(engaged["action"])
    wrote = engaged[np.isin(codes, [names.index(ACTIONS[i]) for i in _WRITTEN if ACTIONS[i] in names])]
    rounds, ticks = wrote["round"].to_numpy(), wrote["tick"].to_numpy()
    times = [_minutes(run.config, own["written"].to_numpy(), np.zeros(len(own))), _minutes(run.config, rounds, ticks)]
    return np.concatenate([own["author"].to_numpy(), wrote["agent"].to_numpy()]), np.concatenate(times)


_WRITTEN: Final = tuple(place for place, action in enumerate(ACTIONS) if action in ("reply", "reshare"))


def _burstiness(run: FinishedRun) -> float:
    who, when = run.once(written_at)
    found = burstiness(when, who)
    return float(found.mean()) if len(found) else nan


def hours_of(run: FinishedRun) -> Floats:
    """Return the share of what is written in each hour, of UTC or of each one's own clock; of whole days, if any."""
    start = run.config.clock.start
    since_midnight = start.hour * 60 + start.minute
    if (offset := start.utcoffset()) is not None:
        since_midnight -= int(offset.total_seconds() // 60)
    who, when = run.once(written_at)
    zone, days = run.config.agents.time_zone, int(run.config.rounds * run.config.clock.round_minutes // DAY_MIN)
    local = when if zone is None else when + 60 * run.table("agents")[zone].to_numpy()[who]
    when = local[when < days * DAY_MIN] if days else local
    return hour_profile(((when + since_midnight) % DAY_MIN // 60).astype(np.int64))


def real_hours(config: Config) -> Floats:
    """Return the profile of the data by hours of a configuration's clock.

    Its time zone is read from the configuration, never from what came out: the shift at which `agents.hours` lies
    closest to the data; without hours that of US Eastern time, or none where agents have clocks of their own.
    """
    own = config.agents
    without = EASTERN if own.time_zone is None else 0
    shift = without if own.hours is None else shift_between(own.hours, CONGRESS_HOURS)
    return np.roll(np.array(CONGRESS_HOURS), shift)


def _hours(run: FinishedRun) -> float:
    if run.config.rounds * run.config.clock.round_minutes < DAY_MIN or run.config.clock.round_minutes > 60:
        return nan
    return correlation(hours_of(run), real_hours(run.config))


def reactions(run: FinishedRun) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Floats]:
    """Return each like, reply and reshare of measured posts: root, place in `ACTIONS`, minutes since it appeared."""
    engaged = run.table("engagements")
    engaged = engaged[run.once(measured_posts).mask[engaged["root"]]]
    root, (codes, names) = engaged["root"].to_numpy(), codes_of(engaged["action"])
    after = engaged["round"].to_numpy() - run.table("posts")["round"].to_numpy()[root]
    action = np.array([ACTIONS.index(name) for name in names], np.int8)[codes]
    return root, action, _minutes(run.config, after, engaged["tick"].to_numpy())


def delays(run: FinishedRun) -> Floats:
    """Return minutes from when a measured post appeared to each like, reply and reshare of it within a day."""
    after = run.once(reactions)[2]
    return after[after <= DAY_MIN]


RHYTHMS: Final = (
    Measure(
        "written_gini",
        lambda run: gini(run.once(activities)),
        "Gini coefficient of posts and reshares of each agent that has any",
        "",
        0,
        1,
        "Gini 1912; as in Dorfman 1979, doi:10.2307/1924845",
    ),
    Measure(
        "written_top_10",
        lambda run: top_share(run.once(activities), 0.1),
        "what the tenth of such agents with most of them has of posts and reshares",
        "share",
        0,
        1,
    ),
    Measure(
        "burstiness",
        _burstiness,
        "mean burstiness of what an agent writes (posts, replies, reshares), of agents with at least 10 such: -1 a "
        "clock, 0 a Poisson process",
        "",
        -1,
        1,
        _GOH,
        _TABLES,
    ),
    Measure(
        "hours_r",
        _hours,
        "correlation of the hours in which agents write with those of tweets of the US Congress; NaN of runs of less "
        "than a day, or with rounds of more than an hour",
        "",
        -1,
        1,
        tables=_TABLES,
    ),
)
