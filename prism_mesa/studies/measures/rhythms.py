"""Measures of times and amounts of writing, of the speed of spread, and of actions in windows of use."""

from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.arrays import Floats, Ints, Mask, Rows
from prism_mesa.domain import ACTIONS
from prism_mesa.runs.config import Config
from prism_mesa.runs.measures import gini, top_share
from prism_mesa.social.behavior import FEED_READY
from prism_mesa.social.state.posts import POST, RESHARE
from prism_mesa.streams import Streams
from prism_mesa.studies.estimators.timing import burstiness, correlation, hour_profile, shift_between
from prism_mesa.studies.measures.cascades import (
    LARGE_CASCADES,
    MIN_IMPRESSIONS,
    MIN_LARGE,
    large_trees,
    measured_sizes,
    widely_seen_posts,
)
from prism_mesa.studies.measures.engagement import GINI
from prism_mesa.studies.measures.measure import (
    FinishedRun,
    Measure,
    index,
    is_kind,
    mean,
    measured_posts,
    measured_rounds,
    ratio,
    share,
)

_TABLES: Final = ("engagements",)
DAY_MIN: Final = 24 * 60
_GOH: Final = "Goh and Barabasi 2008, doi:10.1209/0295-5075/81/48002"
EASTERN_OFFSET_H: Final = 5  # hours by which UTC is ahead of US Eastern winter time

CONGRESS_HOURS: Final = (
    *(0.0063, 0.0019, 0.0008, 0.0004, 0.0004, 0.0006, 0.0024, 0.0056, 0.0178, 0.0519, 0.0764, 0.0872),
    *(0.0899, 0.0857, 0.0930, 0.0925, 0.0928, 0.0830, 0.0631, 0.0456, 0.0345, 0.0260, 0.0272, 0.0150),
)
"""Share of 179,974 tweets of 525 accounts of the US Congress in each hour, Eastern time."""


def activities(run: FinishedRun) -> Ints:
    """Return the number of posts and reshares of each agent with any, as VoterFraud2020 counts activity."""
    posts = run.table("posts")
    authors = posts["author"].to_numpy()[is_kind(posts, POST) | is_kind(posts, RESHARE)]
    counts = np.bincount(authors[authors >= 0])
    return counts[counts > 0]


def _minutes(config: Config, rounds: npt.NDArray[Any], ticks: npt.NDArray[Any] | float) -> Floats:
    """Return times in minutes since the start of the run."""
    minutes: Floats = (rounds + ticks / (config.ticks_per_round + 2)) * config.clock.round_minutes
    return minutes


def writing_times(run: FinishedRun) -> tuple[npt.NDArray[Any], Floats]:
    """Return the author of each post, reply and reshare, and its time in minutes since the start of the run.

    Posts are written when their round opens. Only replies and reshares by recorded agents are included.
    """
    posts, engagements = run.table("posts"), run.table("engagements")
    posts = posts[is_kind(posts, POST) & (posts["author"] >= 0).to_numpy()]
    responses = engagements[engagements["action"].isin(["reply", "reshare"])]
    times = [
        _minutes(run.config, posts["written"].to_numpy(), 0.0),
        _minutes(run.config, responses["round"].to_numpy(), responses["tick"].to_numpy()),
    ]
    return np.concatenate([posts["author"].to_numpy(), responses["agent"].to_numpy()]), np.concatenate(times)


def _burstiness(run: FinishedRun) -> float:
    author, time = run.compute(writing_times)
    return mean(burstiness(time, author))


def hourly_shares(run: FinishedRun) -> Floats:
    """Return the share of writing in each hour, in UTC or by the agents' clocks; incomplete days are left out."""
    start = run.config.clock.start
    since_midnight = start.hour * 60 + start.minute
    if (offset := start.utcoffset()) is not None:
        since_midnight -= int(offset.total_seconds() // 60)
    author, time = run.compute(writing_times)
    zone, days = run.config.agents.time_zone, int(run.config.rounds * run.config.clock.round_minutes // DAY_MIN)
    local_times = time if zone is None else time + 60 * run.table("agents")[zone].to_numpy()[author]
    local_times = local_times[time < days * DAY_MIN] if days else local_times
    return hour_profile(((local_times + since_midnight) % DAY_MIN // 60).astype(np.int64))


def real_hours(config: Config) -> Floats:
    """Return the real hourly profile, shifted to a configuration's clock.

    The shift depends on the configuration, never on results. With `agents.hours`, the shift aligns the data with these
    hours. Otherwise it is the offset of US Eastern time, or 0 if agents have their own clocks.
    """
    agents = config.agents
    eastern = EASTERN_OFFSET_H if agents.time_zone is None else 0
    shift = eastern if agents.hours is None else shift_between(agents.hours, CONGRESS_HOURS)
    return np.roll(np.array(CONGRESS_HOURS), shift)


def _hours_correlation(run: FinishedRun) -> float:
    if run.config.rounds * run.config.clock.round_minutes < DAY_MIN or run.config.clock.round_minutes > 60:
        return nan
    return correlation(hourly_shares(run), real_hours(run.config))


def reactions(run: FinishedRun) -> pd.DataFrame:
    """Return the engagements with measured posts: `root`, `action`, and `minutes` after the post."""
    engagements = run.table("engagements")
    engagements = engagements[run.compute(measured_posts).mask[engagements["root"]]]
    rounds = engagements["round"].to_numpy() - run.table("posts")["round"].to_numpy()[engagements["root"].to_numpy()]
    return engagements[["root", "action"]].assign(minutes=_minutes(run.config, rounds, engagements["tick"].to_numpy()))


def delays(run: FinishedRun) -> Floats:
    """Return the minutes between measured posts and engagements with them within a day."""
    minutes: Floats = run.compute(reactions)["minutes"].to_numpy()
    return minutes[minutes <= DAY_MIN]


_WRITTEN: Final = "posts and reshares over agents who wrote any"

RHYTHMS: Final = (
    index(
        "written_gini", lambda run: gini(run.compute(activities)), f"Gini coefficient of {_WRITTEN}", source=GINI, low=0
    ),
    share(
        "written_top_10",
        lambda run: top_share(run.compute(activities), 0.1),
        "share of posts and reshares by the top tenth of their authors",
    ),
    index(
        "burstiness",
        _burstiness,
        "mean burstiness of posts, replies and reshares of agents with 10 or more: -1 regular, 0 a Poisson process",
        source=_GOH,
        tables=_TABLES,
    ),
    index(
        "hours_r",
        _hours_correlation,
        "correlation of activity by hour with tweets of the US Congress; needs a day and rounds of at most an hour",
        tables=_TABLES,
    ),
)


MIN_VIEWS: Final = 20  # impressions of a post in its first 24 hours
_LATER_MIN: Final = DAY_MIN + 12 * 60
_MAX_SILENT_SHARE: Final = 0.01
_PFEFFER: Final = "after Pfeffer, Matter and Sargsyan 2023, ICWSM 17, 1163-1167, arXiv:2302.09654"
_VIEWED: Final = "for posts drawn by `records.views`"


def _views_within(run: FinishedRun, minutes: float) -> pd.DataFrame:
    """Return the rows of `views` in the first minutes of measured posts that the run shows for at least that long.

    Column `after` has the minutes from the post to the start of the round; it ascends for each root.
    """
    if not run.config.records.views:
        return pd.DataFrame({"root": [], "after": [], "impressions": []})
    views, step = run.table("views"), run.config.clock.round_minutes
    post_round = run.table("posts")["round"].to_numpy()[views["root"]]
    views = views.assign(after=(views["round"] - post_round) * step)
    is_measured = run.compute(measured_posts).mask[views["root"]] & ((run.config.rounds - post_round) * step >= minutes)
    return views[is_measured & (views["after"] < minutes)]


def half_lives(run: FinishedRun) -> "pd.Series[float]":
    """Return the minutes to half of a post's impressions in 24 hours, for posts with at least `MIN_VIEWS` impressions.

    Impressions are taken as evenly spread over their round.
    """
    views = _views_within(run, DAY_MIN)
    root_views, round_views = views.groupby("root")["impressions"], views["impressions"]
    total = root_views.transform("sum")
    missing_views = total / 2 - (root_views.cumsum() - round_views)  # at the start of the round
    is_half_reached = (total >= MIN_VIEWS) & (missing_views > 0) & (missing_views <= round_views)
    return (views["after"] + missing_views / round_views * run.config.clock.round_minutes)[is_half_reached]


def _silent_share(run: FinishedRun) -> float:
    views = _views_within(run, _LATER_MIN)
    is_late = views["after"] >= DAY_MIN
    first, next_day = (views[part].groupby("root")["impressions"].sum() for part in (~is_late, is_late))
    first = first[first >= MIN_VIEWS]
    return float((next_day.reindex(first.index, fill_value=0) <= _MAX_SILENT_SHARE * first).mean())


def _large_delays(run: FinishedRun) -> "pd.Series[float]":
    """Return the minutes from each post with a large cascade to its reshares, by root."""
    rows, large = run.compute(reactions), run.compute(large_trees)[0]["root"]
    rows = rows[rows["root"].isin(large if len(large) >= MIN_LARGE else []) & (rows["action"] == "reshare")]
    return rows.set_index("root")["minutes"]


def _large_delay_quantile(quantile: float | None, run: FinishedRun) -> float:
    """Return a quantile of the delays in minutes; for None, the median cascade's upper quartile in hours."""
    minutes = run.compute(_large_delays)
    if quantile is None:
        return float(minutes.groupby(level=0).quantile(0.75).median()) / 60
    return float(minutes.quantile(quantile))


CLOCKS: Final = (
    Measure(
        "view_half_life",
        lambda run: float(run.compute(half_lives).median()),
        f"median time to half of the impressions of the first 24 hours, {_VIEWED} with at least {MIN_VIEWS} then",
        "minutes",
        source=_PFEFFER,
        tables=("views",),
    ),
    share(
        "silent_after_day",
        _silent_share,
        f"posts whose impressions in hours 24 to 36 are at most 1 % of those on day 1, {_VIEWED} with at least "
        f"{MIN_VIEWS} on day 1",
        source=_PFEFFER,
        tables=("views",),
    ),
    *(
        Measure(
            name,
            partial(_large_delay_quantile, quantile),
            f"{statistic} from a post to recorded reshares in its cascade, for {LARGE_CASCADES}",
            unit,
            tables=_TABLES,
        )
        for name, unit, statistic, quantile in (
            ("large_delay_lower", "minutes", "lower quartile of the time", 0.25),
            ("large_delay_median", "minutes", "median time", 0.5),
            ("large_delay_upper", "minutes", "upper quartile of the time", 0.75),
            ("large_reshares_by", "hours", "median over cascades of the upper quartile of the time", None),
        )
    ),
)


MIN_FOLLOWERS: Final = 100  # followers of an author for impressions per follower


def _median_rate(counter: str, run: FinishedRun) -> float:
    posts = widely_seen_posts(run)
    return float((posts[counter] / posts["impressions"]).median()) if len(posts) else nan


def _median_reach(run: FinishedRun) -> float:
    posts = run.compute(measured_posts).table
    followers = run.table("agents")["followers"].to_numpy()[posts["author"].to_numpy()]
    mask = followers >= MIN_FOLLOWERS
    return float(np.median(posts["impressions"].to_numpy()[mask] / followers[mask])) if mask.any() else nan


def _exclusive_share(kind: int, other_kind: int, run: FinishedRun) -> float:
    """Return the share of agents who write only the first kind of posts, among agents who write either kind."""
    posts = run.table("posts")
    posts = posts[posts["author"] >= 0]
    authors, others = (posts["author"][is_kind(posts, k)].unique() for k in (kind, other_kind))
    return ratio(len(np.setdiff1d(authors, others)), len(np.union1d(authors, others)))


def _delay_quantile(quantile: float, run: FinishedRun) -> float:
    minutes = run.compute(delays)
    return float(np.quantile(minutes, quantile)) if len(minutes) else nan


SPREADS: Final = (
    *(
        share(
            f"post_{action}_rate_median",
            partial(_median_rate, counter),
            f"median {counter} per impression of measured posts with at least {MIN_IMPRESSIONS} impressions",
        )
        for action, counter in (("like", "likes"), ("reshare", "reshares"))
    ),
    Measure(
        "post_reach_median",
        _median_reach,
        f"median impressions per follower of measured posts by authors with {MIN_FOLLOWERS} followers or more",
        "impressions",
    ),
    share(
        "post_top_1",
        lambda run: top_share(measured_sizes(run) - 1, 0.01),
        "share of reshares that the top hundredth of measured posts receive",
    ),
    share(
        "written_top_1",
        lambda run: top_share(run.compute(activities), 0.01),
        "share of posts and reshares by the top hundredth of their authors",
    ),
    share(
        "written_only_reshares",
        partial(_exclusive_share, RESHARE, POST),
        "agents who only reshare, of all who post or reshare",
    ),
    share(
        "written_only_posts",
        partial(_exclusive_share, POST, RESHARE),
        "agents who only post, of all who post or reshare",
    ),
    *(
        Measure(
            f"delay_{name}",
            partial(_delay_quantile, quantile),
            f"{statistic} of the time from a measured post to recorded engagements with it, within a day",
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
_WINDOWS: Final = "windows of use (rounds in which a recorded agent came online; without day 1 of long runs)"
_WINDOW_OPTIONS: Final = ("share", 0, 1, _ESM, _WINDOW_TABLES)

USED_WINDOWS: Final = (
    *(23, 27, 26, 18, 21, 18, 14, 11, 11, 17, 9, 7, 4, 3, 10, 6),
    *(1, 1, 1, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
)
"""Numbers of persons in the experience-sampling data who were asked about 1, 2, 3, ... windows of use."""


@dataclass(frozen=True)
class Windows:
    """Windows of use, and what agents did in them.

    Attributes:
        agent: The agent of each window, ascending.
        round: The round of each window.
        actions: Action, or `post` -> a mask of the windows in which the agent took it.
        n_possible: The number of windows if all recorded agents had come online in every round.
    """

    agent: Rows
    round: Rows
    actions: dict[str, Mask]
    n_possible: int


def usage_windows(run: FinishedRun) -> Windows:
    """Return the windows of use of recorded agents, from the first measured round on."""
    agents, transitions = run.table("agents"), run.table("transitions")
    first, _ = measured_rounds(run.config)
    is_recorded = (agents["recorded_transitions"] & agents["recorded_engagements"]).to_numpy()
    rounds = run.config.rounds

    def window_keys(rows: pd.DataFrame, agent: str = "agent", round_: str = "round") -> Rows:
        """Return a unique number for each agent and round that have a row."""
        agents, round_column = rows[agent].to_numpy(), rows[round_].to_numpy()
        is_counted = (round_column >= first) & (round_column < rounds) & is_recorded[agents]
        return np.unique(agents[is_counted].astype(np.int64) * rounds + round_column[is_counted])

    window_key = window_keys(transitions[transitions["trigger"] == FEED_READY])
    engagements, posts = run.table("engagements"), run.table("posts")
    keys: dict[str, Rows] = {action: window_keys(engagements[engagements["action"] == action]) for action in ACTIONS}
    is_by_agent = is_kind(posts, POST) & posts["author"].between(0, len(agents), inclusive="left")
    keys["post"] = window_keys(posts[is_by_agent], "author", "written")
    actions = {action: np.isin(window_key, taken, assume_unique=True) for action, taken in keys.items()}
    return Windows(window_key // rounds, window_key % rounds, actions, int(is_recorded.sum()) * (rounds - first))


def _used_share(run: FinishedRun) -> float:
    windows = run.compute(usage_windows)
    return ratio(len(windows.agent), windows.n_possible)


def _idle_share(run: FinishedRun) -> float:
    actions = np.stack(list(run.compute(usage_windows).actions.values()))
    return mean(~actions.any(axis=0))


def person_shares(agent: Rows, round_: Rows, actions: Mask, seed: int) -> Floats:
    """Return the share of windows with an action for each person, with windows sampled as in the data.

    Each agent with a window is a person. A person's sample has as many random windows as a random person in the data
    was asked about (`USED_WINDOWS`), or all windows of the agent if there are fewer.
    """
    draws = Streams(seed)
    persons, person = np.unique(agent, return_inverse=True)
    if not len(persons):
        return np.zeros(0)
    ends = np.cumsum(USED_WINDOWS)
    n_sampled = 1 + np.searchsorted(ends, draws.uniform("windows asked of", persons) * ends[-1], side="right")
    order = np.lexsort((draws.uniform("window asked", agent, round_=round_), person))
    first_rows = np.searchsorted(person[order], np.arange(len(persons)))
    rank = np.arange(len(order)) - first_rows[person[order]]
    sampled_windows = order[rank < n_sampled[person[order]]]
    return np.bincount(person[sampled_windows], actions[sampled_windows]) / np.bincount(person[sampled_windows])


def _reshared_shares(run: FinishedRun) -> Floats:
    windows = run.compute(usage_windows)
    return person_shares(windows.agent, windows.round, windows.actions["reshare"], run.config.seed)


def _sd_over_persons(run: FinishedRun) -> float:
    shares = run.compute(_reshared_shares)
    return float(shares.std(ddof=1)) if len(shares) > 1 else nan


SESSIONS: Final = (
    *(
        Measure(
            f"window_{verb}",
            partial(lambda action, run: mean(run.compute(usage_windows).actions[action]), action),
            f"{_WINDOWS} in which the agent {verb}",
            *_WINDOW_OPTIONS,
        )
        for action, verb in (("like", "liked"), ("reshare", "reshared"), ("reply", "replied"), ("post", "posted"))
    ),
    Measure("window_none", _idle_share, "windows of use without a like, reshare, reply or post", *_WINDOW_OPTIONS),
    Measure("window_used", _used_share, "rounds in which recorded agents came online", *_WINDOW_OPTIONS),
    Measure(
        "persons_reshared_sd",
        _sd_over_persons,
        "sd over persons of the share of windows with a reshare, with persons sampled as in the data",
        *_WINDOW_OPTIONS,
    ),
    Measure(
        "persons_never_reshared",
        lambda run: mean(run.compute(_reshared_shares) == 0),
        "persons without a reshare, with persons sampled as in the data",
        *_WINDOW_OPTIONS,
    ),
)
