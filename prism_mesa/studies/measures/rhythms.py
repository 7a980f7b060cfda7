"""Measures of when agents act, how much each does, how fast posts spread, and what agents do in windows of use."""

from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.domain import ACTIONS
from prism_mesa.runs.config import Config
from prism_mesa.runs.measures import gini, top_share
from prism_mesa.social.behavior import FEED_READY
from prism_mesa.social.state.posts import POST, RESHARE
from prism_mesa.streams import Streams
from prism_mesa.studies.estimators.timing import burstiness, correlation, hour_profile, shift_between
from prism_mesa.studies.measures.cascades import (
    ENOUGH_LARGE,
    SEEN_ENOUGH,
    WHICH,
    large_trees,
    measured_sizes,
    seen_posts,
)
from prism_mesa.studies.measures.measure import (
    FinishedRun,
    Ints,
    Mask,
    Measure,
    index,
    is_kind,
    mean,
    measured_posts,
    measured_rounds,
    ratio,
    share,
)

type Floats = npt.NDArray[np.float64]

_TABLES: Final = ("engagements",)
DAY_MIN: Final = 24 * 60
_GOH: Final = "Goh and Barabasi 2008, doi:10.1209/0295-5075/81/48002"
EASTERN: Final = 5  # hours by which UTC is ahead of US Eastern winter time

CONGRESS_HOURS: Final = (
    *(0.0063, 0.0019, 0.0008, 0.0004, 0.0004, 0.0006, 0.0024, 0.0056, 0.0178, 0.0519, 0.0764, 0.0872),
    *(0.0899, 0.0857, 0.0930, 0.0925, 0.0928, 0.0830, 0.0631, 0.0456, 0.0345, 0.0260, 0.0272, 0.0150),
)
"""Share of 179,974 tweets of 525 accounts of the US Congress in each hour, Eastern time."""


def activities(run: FinishedRun) -> npt.NDArray[np.int64]:
    """Return the number of posts and reshares of each agent that has any, as VoterFraud2020 counts them."""
    posts = run.table("posts")
    counted = posts["author"].to_numpy()[is_kind(posts, POST) | is_kind(posts, RESHARE)]
    done = np.bincount(counted[counted >= 0])
    return done[done > 0]


def _minutes(config: Config, rounds: npt.NDArray[Any], ticks: npt.NDArray[Any]) -> Floats:
    """Return times in minutes since the start of the run."""
    minutes: Floats = (rounds + ticks / (config.ticks_per_round + 2)) * config.clock.round_minutes
    return minutes


def written_at(run: FinishedRun) -> tuple[npt.NDArray[Any], Floats]:
    """Return the author of each post, reply and reshare, and its time in minutes since the run began.

    Posts are written when their round opens; replies and reshares are those of recorded agents.
    """
    posts, engaged = run.table("posts"), run.table("engagements")
    written = posts[is_kind(posts, POST) & (posts["author"] >= 0).to_numpy()]
    wrote = engaged[engaged["action"].isin(["reply", "reshare"])]
    rounds, ticks = wrote["round"].to_numpy(), wrote["tick"].to_numpy()
    times = [
        _minutes(run.config, written["written"].to_numpy(), np.zeros(len(written))),
        _minutes(run.config, rounds, ticks),
    ]
    return np.concatenate([written["author"].to_numpy(), wrote["agent"].to_numpy()]), np.concatenate(times)


def _burstiness(run: FinishedRun) -> float:
    who, when = run.once(written_at)
    return mean(burstiness(when, who))


def hourly_shares(run: FinishedRun) -> Floats:
    """Return the share of writing in each hour, in UTC or by agents' clocks; incomplete days are left out."""
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
    """Return the real hourly profile, shifted to a configuration's clock.

    The shift comes from the configuration, never from results: `agents.hours` is aligned with the data. Without hours
    it is that of US Eastern time, or none if agents have clocks of their own.
    """
    agents = config.agents
    eastern = EASTERN if agents.time_zone is None else 0
    shift = eastern if agents.hours is None else shift_between(agents.hours, CONGRESS_HOURS)
    return np.roll(np.array(CONGRESS_HOURS), shift)


def _hours(run: FinishedRun) -> float:
    if run.config.rounds * run.config.clock.round_minutes < DAY_MIN or run.config.clock.round_minutes > 60:
        return nan
    return correlation(hourly_shares(run), real_hours(run.config))


def reactions(run: FinishedRun) -> pd.DataFrame:
    """Return the likes, replies and reshares of measured posts: `root`, `action`, and `minutes` since it appeared."""
    engaged = run.table("engagements")
    engaged = engaged[run.once(measured_posts).mask[engaged["root"]]]
    rounds = engaged["round"].to_numpy() - run.table("posts")["round"].to_numpy()[engaged["root"].to_numpy()]
    return engaged[["root", "action"]].assign(minutes=_minutes(run.config, rounds, engaged["tick"].to_numpy()))


def delays(run: FinishedRun) -> Floats:
    """Return minutes from the appearance of a measured post to each like, reply and reshare of it within a day."""
    minutes: Floats = run.once(reactions)["minutes"].to_numpy()
    return minutes[minutes <= DAY_MIN]


def _top_written(top: float, run: FinishedRun) -> float:
    return top_share(run.once(activities), top)


_GINI: Final = "Gini 1912; as in Dorfman 1979, doi:10.2307/1924845"
_WRITTEN: Final = "posts and reshares of each agent that has any"

RHYTHMS: Final = (
    index(
        "written_gini", lambda run: gini(run.once(activities)), f"Gini coefficient of {_WRITTEN}", source=_GINI, low=0
    ),
    share("written_top_10", partial(_top_written, 0.1), f"share of the top tenth in {_WRITTEN}"),
    index(
        "burstiness",
        _burstiness,
        "mean burstiness of the posts, replies and reshares of agents with 10 or more: -1 a clock, 0 a Poisson process",
        source=_GOH,
        tables=_TABLES,
    ),
    index(
        "hours_r",
        _hours,
        "correlation of hours of writing with tweets of the US Congress; needs a day, and rounds of an hour at most",
        tables=_TABLES,
    ),
)


SEEN: Final = 20  # fewest impressions of a post in its first 24 hours
_LATER_MIN: Final = DAY_MIN + 12 * 60
_SILENT: Final = 0.01
_PFEFFER: Final = "after Pfeffer, Matter and Sargsyan 2023, ICWSM 17, 1163-1167, arXiv:2302.09654"
_NEEDS: Final = "of the posts that `records.views` draws"


def _views_within(run: FinishedRun, minutes: float) -> pd.DataFrame:
    """Return rows of `views` in the first minutes of measured posts that appeared early enough to have them.

    Column `after` has the minutes from the appearance to the start of the round, ascending for each root.
    """
    if not run.config.records.views:
        return pd.DataFrame({"root": [], "after": [], "impressions": []})
    views, appeared, each = run.table("views"), run.table("posts")["round"].to_numpy(), run.config.clock.round_minutes
    born = appeared[views["root"]]
    views = views.assign(after=(views["round"] - born) * each)
    counts = run.once(measured_posts).mask[views["root"]] & ((run.config.rounds - born) * each >= minutes)
    return views[counts & (views["after"] < minutes)]


def half_lives(run: FinishedRun) -> "pd.Series[float]":
    """Return minutes to half of a post's impressions in 24 hours, for posts with `SEEN` or more of them.

    The impressions of a round are spread evenly over it.
    """
    views = _views_within(run, DAY_MIN)
    by_root, new = views.groupby("root")["impressions"], views["impressions"]
    total = by_root.transform("sum")
    lacking = total / 2 - (by_root.cumsum() - new)  # at the start of the round
    reached = (total >= SEEN) & (lacking > 0) & (lacking <= new)
    return (views["after"] + lacking / new * run.config.clock.round_minutes)[reached]


def _silent(run: FinishedRun) -> float:
    views = _views_within(run, _LATER_MIN)
    is_late = views["after"] >= DAY_MIN
    first, later = (views[part].groupby("root")["impressions"].sum() for part in (~is_late, is_late))
    first = first[first >= SEEN]
    return float((later.reindex(first.index, fill_value=0) <= _SILENT * first).mean())


def _large_delays(run: FinishedRun) -> "pd.Series[float]":
    """Return minutes from the appearance of a post to each reshare in its cascade, by root, for large cascades."""
    rows, large = run.once(reactions), run.once(large_trees)[0]["root"]
    rows = rows[rows["root"].isin(large if len(large) >= ENOUGH_LARGE else []) & (rows["action"] == "reshare")]
    return rows.set_index("root")["minutes"]


def _large_delay(quantile: float | None, run: FinishedRun) -> float:
    """Return a quantile of the delays in minutes; without one, the hours to the upper quartile of a median cascade."""
    minutes = run.once(_large_delays)
    if quantile is None:
        return float(minutes.groupby(level=0).quantile(0.75).median()) / 60
    return float(minutes.quantile(quantile))


CLOCKS: Final = (
    Measure(
        "view_half_life",
        lambda run: float(run.once(half_lives).median()),
        f"median time to half of a measured post's impressions of 24 hours, of posts with {SEEN} of them; {_NEEDS}",
        "minutes",
        source=_PFEFFER,
        tables=("views",),
    ),
    share(
        "silent_after_day",
        _silent,
        f"such posts with at most a hundredth as many impressions in the next 12 hours; {_NEEDS}",
        source=_PFEFFER,
        tables=("views",),
    ),
    *(
        Measure(
            name,
            partial(_large_delay, quantile),
            f"{statistic} time from a post to a recorded reshare in its cascade, over {WHICH}",
            unit,
            tables=_TABLES,
        )
        for name, unit, statistic, quantile in (
            ("large_delay_lower", "minutes", "lower quartile of the", 0.25),
            ("large_delay_median", "minutes", "median", 0.5),
            ("large_delay_upper", "minutes", "upper quartile of the", 0.75),
            ("large_reshares_by", "hours", "median over cascades of the upper quartile of the", None),
        )
    ),
)


FOLLOWED_ENOUGH: Final = 100  # fewest followers of an author for impressions per follower


def _median_rate(counter: str, run: FinishedRun) -> float:
    seen = seen_posts(run)
    return float((seen[counter] / seen["impressions"]).median()) if len(seen) else nan


def _reach(run: FinishedRun) -> float:
    posts = run.once(measured_posts).table
    followers = run.table("agents")["followers"].to_numpy()[posts["author"].to_numpy()]
    enough = followers >= FOLLOWED_ENOUGH
    return float(np.median(posts["impressions"].to_numpy()[enough] / followers[enough])) if enough.any() else nan


def _only(kind: int, other_kind: int, run: FinishedRun) -> float:
    """Return the share of agents who write one kind of posts alone, of those who write either kind."""
    posts = run.table("posts")
    posts = posts[posts["author"] >= 0]
    authors, others = (posts["author"][is_kind(posts, k)].unique() for k in (kind, other_kind))
    return ratio(len(np.setdiff1d(authors, others)), len(np.union1d(authors, others)))


def _delay_at(quantile: float, run: FinishedRun) -> float:
    minutes = run.once(delays)
    return float(np.quantile(minutes, quantile)) if len(minutes) else nan


def _top_reshared(run: FinishedRun) -> float:
    return top_share(measured_sizes(run) - 1, 0.01)


SPREADS: Final = (
    *(
        share(
            f"post_{action}_rate_median",
            partial(_median_rate, counter),
            f"median {counter} per impression of measured posts with at least {SEEN_ENOUGH} impressions",
        )
        for action, counter in (("like", "likes"), ("reshare", "reshares"))
    ),
    Measure(
        "post_reach_median",
        _reach,
        f"median impressions per follower of measured posts by authors with {FOLLOWED_ENOUGH} followers or more",
        "impressions",
    ),
    share("post_top_1", _top_reshared, "share of the top hundredth of measured posts in reshares"),
    share("written_top_1", partial(_top_written, 0.01), f"share of the top hundredth in {_WRITTEN}"),
    share("written_only_reshares", partial(_only, RESHARE, POST), "agents who only reshare, of those who write either"),
    share("written_only_posts", partial(_only, POST, RESHARE), "agents who only post, of the same"),
    *(
        Measure(
            f"delay_{name}",
            partial(_delay_at, quantile),
            f"{statistic} of the times from a measured post to a recorded engagement with it within a day",
            "minutes",
            tables=_TABLES,
        )
        for name, statistic, quantile in (
            ("median", "median", 0.5),
            ("lower", "lower quartile", 0.25),
            ("upper", "upper quartile", 0.75),
        )
    ),
)


_WINDOW_TABLES: Final = ("transitions", "engagements")
_ESM: Final = "Oldemburgo de Mello, Cheung and Inzlicht 2024, doi:10.1038/s44271-024-00062-z"
_WINDOWS: Final = "windows of use (rounds in which a recorded agent came online; long runs without the first day)"
_SHARE: Final = ("share", 0, 1, _ESM, _WINDOW_TABLES)

USED_WINDOWS: Final = (
    *(23, 27, 26, 18, 21, 18, 14, 11, 11, 17, 9, 7, 4, 3, 10, 6),
    *(1, 1, 1, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
)
"""How many of the 234 persons of the experience-sampling data were asked after 1, 2, 3, ... windows of use."""


@dataclass(frozen=True)
class Windows:
    """Windows of use, and which of four things the agent did in each.

    Attributes:
        agent: The agent of each window, ascending.
        round: The round of each window.
        did: Action, or `post`, -> in which windows it was done.
        possible: The number of windows if these agents came online in every round.
    """

    agent: Ints
    round: Ints
    did: dict[str, Mask]
    possible: int


def usage_windows(run: FinishedRun) -> Windows:
    """Return the windows of use of agents with recorded transitions and engagements.

    The first day is left out if its posts are (see `measure.measured_rounds`).
    """
    agents, moves = run.table("agents"), run.table("transitions")
    first, _ = measured_rounds(run.config)
    known = (agents["recorded_transitions"] & agents["recorded_engagements"]).to_numpy()
    rounds = run.config.rounds

    def keys(rows: pd.DataFrame, agent: str = "agent", round_: str = "round") -> Ints:
        """Return a number for each agent and round in which it has a row."""
        who, when = rows[agent].to_numpy(), rows[round_].to_numpy()
        counted = (when >= first) & (when < rounds) & known[who]
        return np.unique(who[counted].astype(np.int64) * rounds + when[counted])

    used = keys(moves[moves["trigger"] == FEED_READY])
    engaged, posts = run.table("engagements"), run.table("posts")
    done: dict[str, Ints] = {action: keys(engaged[engaged["action"] == action]) for action in ACTIONS}
    by_agents = is_kind(posts, POST) & posts["author"].between(0, len(agents), inclusive="left")
    done["post"] = keys(posts[by_agents], "author", "written")
    did = {action: np.isin(used, active, assume_unique=True) for action, active in done.items()}
    return Windows(used // rounds, used % rounds, did, int(known.sum()) * (rounds - first))


def _share(action: str, run: FinishedRun) -> float:
    return mean(run.once(usage_windows).did[action])


def _used(run: FinishedRun) -> float:
    windows = run.once(usage_windows)
    return ratio(len(windows.agent), windows.possible)


def _never(run: FinishedRun) -> float:
    return mean(run.once(_persons) == 0)


def _none(run: FinishedRun) -> float:
    did = np.stack(list(run.once(usage_windows).did.values()))
    return mean(~did.any(axis=0))


def person_shares(agent: Ints, round_: Ints, did: Mask, seed: int) -> npt.NDArray[np.float64]:
    """Return the share of windows in which each person did something, with persons sampled as in the data.

    Each agent with a window is a person. It is asked about as many of its windows as a random person of the data
    (`USED_WINDOWS`), or about all if it has fewer; the windows are drawn, too.
    """
    draws = Streams(seed)
    persons, place = np.unique(agent, return_inverse=True)
    if not len(persons):
        return np.zeros(0)
    ends = np.cumsum(USED_WINDOWS)
    wanted = 1 + np.searchsorted(ends, draws.uniform("windows asked of", persons) * ends[-1], side="right")
    order = np.lexsort((draws.uniform("window asked", agent, round_=round_), place))
    begins = np.searchsorted(place[order], np.arange(len(persons)))
    rank = np.arange(len(order)) - begins[place[order]]
    asked = order[rank < wanted[place[order]]]
    return np.bincount(place[asked], did[asked]) / np.bincount(place[asked])


def _persons(run: FinishedRun) -> npt.NDArray[np.float64]:
    windows = run.once(usage_windows)
    return person_shares(windows.agent, windows.round, windows.did["reshare"], run.config.seed)


def _spread(run: FinishedRun) -> float:
    shares = run.once(_persons)
    return float(shares.std(ddof=1)) if len(shares) > 1 else nan


_DONE: Final = {"like": "liked", "reshare": "reshared", "reply": "replied", "post": "posted"}

SESSIONS: Final = (
    *(
        Measure(f"window_{done}", partial(_share, action), f"{_WINDOWS} in which the agent {done}", *_SHARE)
        for action, done in _DONE.items()
    ),
    Measure("window_none", _none, "windows of use in which it did none of the four", *_SHARE),
    Measure("window_used", _used, "rounds of the same agents that are windows of use", *_SHARE),
    Measure(
        "persons_reshared_sd",
        _spread,
        "standard deviation over persons of the share of windows with a reshare, in samples like those of the data",
        *_SHARE,
    ),
    Measure("persons_never_reshared", _never, "persons that reshared in no window of such a sample", *_SHARE),
)
