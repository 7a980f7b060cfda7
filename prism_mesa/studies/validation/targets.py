"""Real values of platforms that are built into PRISM, with tolerances and sources."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Final, Literal

type Role = Literal["fitted", "given", "other", "predicted"]
type Need = Literal["window", "sizes", "many", "rounds", "day", "days", "graph", "any"]


@dataclass(frozen=True)
class Source:
    """A source of real values, with a description of the data."""

    title: str
    reference: str
    description: str

    @property
    def data(self) -> str:
        """The name of its data set."""
        return self.title.partition(",")[0]


SOURCES: Final[Mapping[str, Source]] = {
    "voterfraud_cascades": Source(
        "VoterFraud2020, tweets",
        "Abilov et al. 2021, arXiv:2101.08210; Youngblood et al. 2023, doi:10.1057/s41599-023-02106-x",
        "sizes of the cascades of 3,982,990 tweets, including tweets that were never retweeted",
    ),
    "voterfraud_users": Source(
        "VoterFraud2020, users",
        "Abilov et al. 2021, arXiv:2101.08210; Youngblood et al. 2023, doi:10.1057/s41599-023-02106-x",
        "tweets and retweets of 341,676 users",
    ),
    "esm_windows": Source(
        "experience sampling, windows",
        "Oldemburgo de Mello, Cheung and Inzlicht 2024, doi:10.1038/s44271-024-00062-z",
        "actions of US Twitter users in the 1,610 of 6,218 windows of 30 minutes in which they used Twitter",
    ),
    "esm_persons": Source(
        "experience sampling, persons",
        "Oldemburgo de Mello, Cheung and Inzlicht 2024, doi:10.1038/s44271-024-00062-z",
        "differences between 234 of these users (the same answers as for windows)",
    ),
    "large_trees": Source(
        "Twitter15 and Twitter16",
        "Ma et al. 2016, IJCAI; Ma, Gao and Wong 2017, doi:10.18653/v1/P17-1066",
        "trees of 2,139 cascades of at least 56 posts, reconstructed by the authors, because Twitter names only roots; "
        "with doubtful reshares attributed to the root, structural virality is 6 % lower",
    ),
    "ropensci": Source(
        "rOpenSci", "its published analytics of its account, 2016-2021", "9,723,067 impressions of 1,668 tweets"
    ),
    "klout": Source(
        "Klout",
        "Spasojevic et al. 2015, arXiv:1506.02089",
        "minutes from a post to a reaction on Twitter, within a day",
    ),
    "half_life": Source(
        "half-life of a tweet",
        "Pfeffer, Matter and Sargsyan 2023, ICWSM 17, 1163-1167, doi:10.1609/icwsm.v17i1.22228, arXiv:2302.09654",
        "impressions of tweets: half came within about 80 minutes (median), and about 95 % of tweets had hardly any "
        "after 24 hours",
    ),
    "noted": Source(
        "posts with community notes",
        "Slaughter et al. 2025, PNAS, doi:10.1073/pnas.2503413122; the hour is read from a figure",
        "times of reposts of control posts that match 6,757 posts with a note on X, March to June 2023",
    ),
    "congress": Source("US Congress", "an archive of 525 accounts of members", "times of 179,974 tweets"),
    "graphs": Source(
        "two follow graphs", "Anwar, Saveski and Roy 2021, WSDM", "who follows whom among 9,226 and 13,688 users"
    ),
}
"""The sources of real values, by the names that targets use."""


@dataclass(frozen=True)
class Target:
    """A measure that is compared with data.

    Attributes:
        real: The value in the data.
        low: The smallest simulated mean that is inside the range.
        high: The largest simulated mean that is inside the range.
        source: A key of `SOURCES`.
        label: A short name.
        role: `fitted`: parameters were fitted to the target; `given`: the configuration contains it; `other`: another
            statistic of its data set is fitted or given; `predicted`: none of these.
        needs: The requirement for a world (see `studies.validation.validation.exclusion_reason`).
        required: Whether a configuration fails if its mean is outside the range; other targets are for information.
    """

    measure: str
    real: float
    low: float
    high: float
    source: str
    label: str
    role: Role
    needs: Need = "any"
    required: bool = True


_VOTERFRAUD: Final = "VoterFraud2020's"
_DATA_SHARE: Final = "around the share in the data, rounded to .01"
_TWITTER_TREES: Final = "Twitter15's and Twitter16's"
_TWO_GRAPHS: Final = "around two follow graphs'"
_ANALYTICS: Final = "published analytics of accounts"

RANGE_ORIGINS: Final[Mapping[str, str]] = {
    "post_size_1": f".10 around {_VOTERFRAUD} .80",
    "post_size_2": f".05 around {_VOTERFRAUD} .117",
    "post_size_mean": f"about half a post around {_VOTERFRAUD} 2.2",
    "post_tail_10": f"about .3 around {_VOTERFRAUD} 1.9",
    "post_tail_100": f"about .3 around {_VOTERFRAUD} 2.2",
    "post_size_100": f"one post in 300 to one in 4,000; {_VOTERFRAUD} is one in 507",
    "large_depth": f"one reshare around {_TWITTER_TREES} 3",
    "large_virality": f"10 % below and 15 % above {_TWITTER_TREES} 2.53",
    "large_size_virality": f"about .2 around {_TWITTER_TREES} .15",
    "large_hop_1": f".1 around {_TWITTER_TREES} .747",
    "large_hop_2": f".08 to .1 around {_TWITTER_TREES} .183",
    "large_hop_3": f"from a quarter to three times {_TWITTER_TREES} .045",
    "large_reproduction_2": f"half of {_TWITTER_TREES} .244 on both sides",
    "reciprocity": f"about .05 {_TWO_GRAPHS} .345 and .315",
    "mutual_of_possible": f".15 to .2 {_TWO_GRAPHS} .67 and .66",
    "followers_followees": f"about .12 {_TWO_GRAPHS} .74 and .70",
    "post_reshares": f"half a reshare around {_VOTERFRAUD} 1.25",
    **dict.fromkeys(("window_liked", "window_reshared", "window_replied", "window_posted"), f".05 {_DATA_SHARE}"),
    "window_none": f".08 {_DATA_SHARE}",
    "post_like_rate": f"{_ANALYTICS} lie between .2 and 1.4 % of impressions; rOpenSci's is .23 %",
    "post_reshare_rate": f".08 to .2 % of impressions, around the .12 to .13 % of {_ANALYTICS}",
    "post_reply_rate": f".01 to .15 % of impressions: {_ANALYTICS} that broadcast have .01 to .03 %, but .12 replies "
    "in a window of use over some 130 impressions are .09 %",
    "written_gini": ".08 around VoterFraud2020's .74",
    "written_top_10": ".10 around VoterFraud2020's .62",
    "burstiness": ".12 around the mean of the data, where accounts differ by a standard deviation of .116",
    "hours_r": "a correlation of at least .8",
    "delay_median": "30 to 90 minutes, around Klout's 52",
    "view_half_life": "50 to 120 minutes, around Twitter's 80",
    "silent_after_day": "at least .85; Twitter's is about .95",
    "persons_reshared_sd": ".20 to .36, which contains the data's .25",
    "persons_never_reshared": ".10 around the data's .70",
}
"""How the range of each required target was chosen. The ranges are PRISM's own; none are published."""

INFORMATION_ONLY: Final[tuple[tuple[str, float, str, str, Need], ...]] = (
    ("post_tail_ks", 0.0189, "voterfraud_cascades", "distance from a power law, from 10", "sizes"),
    ("post_tail_p", 0.0, "voterfraud_cascades", "plausibility of a power law, from 10", "sizes"),
    ("reproduction_later", 0.25, "voterfraud_cascades", "reshares per reshare (inferred)", "sizes"),
    ("post_like_rate_median", 0.0019, "ropensci", "median post: likes per impression", "sizes"),
    ("post_reshare_rate_median", 0.00091, "ropensci", "median post: reshares per impression", "sizes"),
    ("post_reach_median", 0.214, "ropensci", "median post: impressions per follower", "sizes"),
    ("large_reproduction_3", 0.246, "large_trees", "large cascades: hop 3 over hop 2", "many"),
    ("post_top_1", 0.693, "voterfraud_cascades", "reshares of the top 1 % of posts", "sizes"),
    ("written_top_1", 0.203, "voterfraud_users", "activity: share of top hundredth", "day"),
    ("written_only_reshares", 0.272, "voterfraud_users", "users who only reshare", "day"),
    ("written_only_posts", 0.167, "voterfraud_users", "users who only post", "day"),
    ("delay_lower", 8.162, "klout", "lower quartile of delays, minutes", "rounds"),
    ("delay_upper", 310.717, "klout", "upper quartile of delays, minutes", "rounds"),
    ("large_delay_lower", 12.0, "large_trees", "large cascades: lower quartile of delays", "many"),
    ("large_delay_median", 67.0, "large_trees", "large cascades: median delay, minutes", "many"),
    ("large_delay_upper", 352.0, "large_trees", "large cascades: upper quartile of delays", "many"),
    ("large_reshares_by", 15.0, "noted", "large cascades: hours to 3/4 of reshares", "many"),
    ("window_used", 0.259, "esm_windows", "windows of 30 minutes: used", "window"),
    ("clustering", 0.486, "graphs", "clustering of followees", "any"),
    ("degree_assortativity", -0.246, "graphs", "degree assortativity", "any"),
    ("friendship_paradox", 0.984, "graphs", "friendship paradox", "any"),
)
"""Targets for information, without a range: measure, real value, source, label, and need."""

_TARGETS: Final = (
    Target("post_size_1", 0.8029, 0.70, 0.90, "voterfraud_cascades", "P(1): never reshared", "fitted", "sizes"),
    Target("post_size_2", 0.1169, 0.067, 0.167, "voterfraud_cascades", "P(2): reshared once", "fitted", "sizes"),
    Target("post_size_mean", 2.245, 1.7, 2.7, "voterfraud_cascades", "mean size of a cascade", "fitted", "sizes"),
    Target("post_tail_10", 1.92, 1.6, 2.2, "voterfraud_cascades", "exponent of sizes from 10", "fitted", "sizes"),
    Target("post_tail_100", 2.22, 1.9, 2.5, "voterfraud_cascades", "exponent of sizes from 100", "fitted", "many"),
    Target(
        "post_size_100", 0.001973, 1 / 4000, 1 / 300, "voterfraud_cascades", "share that reaches 100", "fitted", "sizes"
    ),
    Target("large_depth", 3.0, 2, 4, "large_trees", "large cascades: depth, median", "fitted", "many"),
    Target("large_virality", 2.53, 2.28, 2.9, "large_trees", "large cascades: virality, mean", "fitted", "many"),
    Target(
        "large_size_virality", 0.153, -0.1, 0.35, "large_trees", "large cascades: r of size, virality", "fitted", "many"
    ),
    Target("large_hop_1", 0.747, 0.64, 0.85, "large_trees", "large cascades: at hop 1", "fitted", "many"),
    Target("large_hop_2", 0.183, 0.10, 0.28, "large_trees", "large cascades: at hop 2", "fitted", "many"),
    Target("large_hop_3", 0.045, 0.01, 0.12, "large_trees", "large cascades: at hop 3", "fitted", "many"),
    Target(
        "large_reproduction_2", 0.244, 0.12, 0.36, "large_trees", "large cascades: hop 2 over hop 1", "fitted", "many"
    ),
    Target("window_liked", 0.378, 0.33, 0.43, "esm_windows", "windows of use: liked", "fitted", "window"),
    Target("window_reshared", 0.163, 0.11, 0.21, "esm_windows", "windows of use: reshared", "fitted", "window"),
    Target("window_replied", 0.120, 0.07, 0.17, "esm_windows", "windows of use: replied", "fitted", "window"),
    Target("window_posted", 0.120, 0.07, 0.17, "esm_windows", "windows of use: posted", "fitted", "window"),
    Target("window_none", 0.538, 0.46, 0.62, "esm_windows", "windows of use: none of the four", "fitted", "window"),
    Target("post_like_rate", 0.00234, 0.002, 0.014, "ropensci", "likes per impression", "predicted", "sizes"),
    Target("post_reshare_rate", 0.00117, 0.0008, 0.002, "ropensci", "reshares per impression", "predicted", "sizes"),
    Target("post_reply_rate", 0.0001, 0.0001, 0.0015, "ropensci", "replies per impression", "predicted", "sizes"),
    Target("post_reshares", 1.245, 0.75, 1.75, "voterfraud_cascades", "reshares per post", "fitted", "day"),
    Target("written_gini", 0.743, 0.66, 0.82, "voterfraud_users", "activity: Gini", "fitted", "day"),
    Target("written_top_10", 0.622, 0.52, 0.72, "voterfraud_users", "activity: share of top tenth", "fitted", "day"),
    Target("burstiness", 0.2, 0.08, 0.32, "congress", "burstiness", "predicted", "day"),
    Target("hours_r", 1.0, 0.8, 1.0, "congress", "hours: correlation", "given", "day"),
    Target("delay_median", 51.9, 30, 90, "klout", "median delay of a reaction, minutes", "fitted", "rounds"),
    Target("view_half_life", 80.0, 50, 120, "half_life", "half-life of impressions, minutes", "fitted", "days"),
    Target("silent_after_day", 0.95, 0.85, 1.0, "half_life", "posts silent after 24 hours", "predicted", "days"),
    Target("persons_reshared_sd", 0.253, 0.20, 0.36, "esm_persons", "persons: sd of reshared", "fitted", "window"),
    Target("persons_never_reshared", 0.705, 0.60, 0.80, "esm_persons", "persons: never reshared", "fitted", "window"),
    Target("reciprocity", 0.345, 0.28, 0.40, "graphs", "follows that are returned", "fitted", "graph"),
    Target("mutual_of_possible", 0.670, 0.50, 0.85, "graphs", "mutual follows of possible ones", "fitted", "graph"),
    Target("followers_followees", 0.744, 0.60, 0.85, "graphs", "followers and followees: r", "fitted", "graph"),
    *(
        Target(name, real, -inf, inf, source, label, "predicted", needs, required=False)
        for name, real, source, label, needs in INFORMATION_ONLY
    ),
)
"""All targets in the order of the table, before `assign_roles`."""


def assign_roles(measures: Collection[str] | None) -> tuple[Target, ...]:
    """Return all targets with their roles, given the fitted measures (None: those fitted by PRISM's configuration).

    A target counts as predicted only if no target of its data set is fitted or given.
    """
    if measures is None:
        measures = {target.measure for target in _TARGETS if target.role == "fitted"}

    def data(target: Target) -> str:
        return SOURCES[target.source].data

    used_data = {data(target) for target in _TARGETS if target.role == "given" or target.measure in measures}

    def role(target: Target) -> Role:
        if target.role == "given":
            return "given"
        return "fitted" if target.measure in measures else "other" if data(target) in used_data else "predicted"

    return tuple(replace(target, role=role(target)) for target in _TARGETS)


TARGETS: Final = assign_roles(None)
"""All targets in the order of the table. Targets that are only for information have infinite bounds."""

CASCADES: Final = ("post_size_1", "post_size_2", "post_size_mean", "post_tail_10", "post_tail_100", "post_size_100")
"""The measures of cascades among the targets."""

QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
DELAYS: Final = (2.007, 8.162, 51.9, 310.717, 808.0, 1034.094, 1329.148)
"""Minutes from a post to a reaction, at `QUANTILES` (Klout)."""

SIZES: Final = {1: 1.0, 2: 0.1971, 3: 0.0802, 10: 0.01525, 100: 0.001973, 1000: 6.75e-05}
"""Size -> the share of VoterFraud2020's tweets with a cascade of at least this size."""

TOP_SHARES: Final = {0.01: 0.203, 0.1: 0.622, 0.25: 0.83}
"""Share of users -> the share of the most active VoterFraud2020 users in all activity."""
