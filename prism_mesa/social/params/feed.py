"""Parameters of feeds and of the utility of posts to readers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from prism_mesa.llm.params import value_text
from prism_mesa.params import LogOdds, Params, Share, check_name_or_object
from prism_mesa.without_effect import OnlyWith

MAX_FEED_SIZE = 10_000
"""The largest `feed.size`."""

Weight = Annotated[float, Field(ge=-1e6, le=1e6)]


class XAlgoParams(Params):
    """The ranking published for Twitter's home timeline in 2023, with the signals that this platform has.

    Sources: weights from github.com/twitter/the-algorithm-ml, projects/home/recap/README.md (2023), where `reply` is
    13.5 in the first version and 27 in a later version; factors from github.com/twitter/the-algorithm, home-mixer
    (2023); prior rates per impression from 9.7 million impressions of one account's posts, 2016-2021 (rOpenSci).
    """

    out_of_network: int = Field(10, ge=0, le=1000, description="candidates per agent drawn from the whole platform")
    weight_like: Weight = Field(0.5, description="weight of a predicted like")
    weight_reshare: Weight = Field(1.0, description="weight of a predicted reshare")
    weight_reply: Weight = Field(27.0, description="weight of a predicted reply")
    weight_good_click: Weight = Field(11.0, description="weight of a predicted good click")
    weight_profile_click: Weight = Field(12.0, description="weight of a predicted profile click")
    weight_reply_engaged: Weight = Field(75.0, description="weight of a predicted reply that the author engages with")
    weight_negative: Weight = Field(-74.0, description="weight of predicted negative feedback")
    weight_report: Weight = Field(-369.0, description="weight of a predicted report")
    rate_like: Share = Field(0.00234, description="prior likes per impression")
    rate_reshare: Share = Field(0.00117, description="prior reshares per impression")
    rate_reply: Share = Field(0.0001, description="prior replies per impression")
    rate_good_click: Share = Field(0.00466, description="prior good clicks per impression")
    rate_profile_click: Share = Field(0.00114, description="prior profile clicks per impression")
    rate_negative: Share = Field(0.0001, description="prior negative feedback per impression (assumed)")
    rate_report: Share = Field(0.00001, description="prior reports per impression (assumed)")
    reply_engaged: Share = Field(0.1, description="share of replies that the author engages with (assumed)")
    prior_impressions: float = Field(20.0, gt=0, le=1e9, description="weight of a prior, in impressions (assumed)")
    out_of_network_factor: Share = Field(0.75, description="factor on the score of posts from outside the network")
    reply_factor: Share = Field(0.75, description="factor on the score of a reply")
    author_decay: Share = Field(0.5, description="factor on the score of each further post by the same author")
    author_floor: Share = Field(0.25, description="lower limit of the factor on further posts by the same author")


X_2026: Final = XAlgoParams(
    weight_reply=5.0,
    weight_good_click=0.4,
    weight_profile_click=0.0,
    weight_reply_engaged=0.0,
    weight_negative=-43.2,
    weight_report=-234.0,
    reply_factor=1.0,
)
"""The weights published for X's home timeline in August 2026, for the signals that this platform has.

Source: github.com/xai-org/x-algorithm, home-mixer/params/param.rs, as of 2026-08-12. Features that this platform does
not have (quotes, shares, dwell, photos, videos) are left out. So are the bonus for a reply between mutual followers
(15), semantic diversity, and the positions of new authors. The rates are the same as in `x_algo`.
"""


@dataclass(frozen=True)
class FeedMode:
    """A built-in ranking.

    Attributes:
        order: The order and source of posts, for the ODD protocol.
        why: A phrase for `prism why` about the posts that come first; `{attribute}` is replaced by `feed.attribute`.
        weights: The weights of a mode that predicts engagement, if they are not configuration keys.
        attribute: Whether the mode needs `feed.attribute` (True), can use it (False), or ignores it (None).
    """

    order: str
    why: str
    weights: XAlgoParams | None = None
    attribute: bool | None = None


_PREDICTED: Final = "by predicted engagement, each kind with its weight, in proportion to relevance"
_X_2023: Final = FeedMode(
    "by the ranking published for Twitter in 2023, including posts by authors who are not followed", _PREDICTED
)
FEED_MODES: Final[Mapping[str, FeedMode]] = {
    "random": FeedMode("in random order, by followed agents", "redrawn each round, the highest draw first"),
    "chronological": FeedMode("the newest first, by followed agents", "the newest come first (age in rounds)"),
    "preference": FeedMode("the most relevant first, by followed agents", "the most relevant come first"),
    "x_2023": _X_2023,
    "x_2026_08": FeedMode(
        "by the weights published for X in August 2026, including posts by authors who are not followed",
        _PREDICTED,
        weights=X_2026,
    ),
    "bridging": FeedMode(
        "by how much each group of agents (feed.attribute) engages with them, by followed agents",
        "those with which all groups by {attribute} engage most (likes, replies and reshares per impression)",
        attribute=True,
    ),
    "diverse": FeedMode(
        "the most relevant first, with fewer from the same author and group of agents, by followed agents",
        "the most relevant come first, but further posts by the same author or group count less",
        attribute=False,
    ),
    "x_algo": _X_2023,
}
"""PRISM's rankings, by their name in `feed.mode`; `x_algo` is another name for `x_2023`."""
_GROUP_MODES: Final = tuple(name for name, mode in FEED_MODES.items() if mode.attribute is not None)


class CandidateParams(Params):
    """Maximum number of candidate posts per agent and round, by source."""

    followed: int | None = Field(None, ge=0, le=1_000_000, description="newest posts of followed agents; null: all")
    out_of_network: int = Field(0, ge=0, le=1000, description="posts drawn from the whole platform")
    two_hops: int = Field(0, ge=0, le=1000, description="posts drawn from authors two hops away")
    trending: int = Field(
        0, ge=0, le=1000, description="posts with the highest velocity on the platform, the same for all agents"
    )
    search: int = Field(
        0,
        ge=0,
        le=1000,
        description="search results, each round for one of the three topics nearest to the agent's interests",
    )


class SlotParams(Params):
    """Positions that every ranking reserves for trending posts and search results."""

    trending: int = Field(0, ge=0, le=100, description="number of slots for trending posts, which come first")
    search: int = Field(0, ge=0, le=100, description="number of slots for search results")
    every: Annotated[int, OnlyWith("feed.slots.trending feed.slots.search")] = Field(
        5,
        ge=1,
        le=1000,
        description="every n-th position of a feed is a slot; slots beyond the last ranked post are also filled",
    )


class FeedParams(Params):
    """The feeds of agents."""

    mode: Annotated[str, AfterValidator(lambda mode: check_name_or_object(mode, FEED_MODES))] = Field(
        "chronological",
        description="order of the feed: random, chronological, preference, x_2023 (or x_algo), x_2026_08, bridging, "
        "diverse, or module:object for your own function or expression over F",
    )
    attribute: Annotated[str | None, OnlyWith("feed.mode", *_GROUP_MODES)] = Field(
        None, min_length=1, description="attribute of agents that defines the groups for modes bridging and diverse"
    )
    size: int = Field(300, ge=1, le=MAX_FEED_SIZE, description="maximum number of posts in a feed")
    glances: int = Field(
        10,
        ge=1,
        le=1000,
        description="maximum number of posts below its band that an agent scrolls past in a tick, each an impression; "
        "1: the agent stops at every post",
    )
    window: int = Field(30, ge=1, le=1000, description="number of rounds in which a post can be shown")
    repeats: bool = Field(
        False, description="whether each reshare shows its root again, with a new mood, until the reader engages"
    )
    velocity_window: int = Field(
        3, ge=1, le=1000, description="number of recent rounds whose engagements count as velocity"
    )
    candidates: CandidateParams = Field(default_factory=CandidateParams, description="candidates of feeds")
    slots: SlotParams = Field(default_factory=SlotParams, description="positions that every ranking reserves")
    x_algo: Annotated[XAlgoParams, OnlyWith("feed.mode", "x_2023", "x_algo")] = Field(
        default_factory=XAlgoParams, description="weights of mode x_2023"
    )

    @model_validator(mode="after")
    def _check_groups(self) -> Self:
        if self.mode in FEED_MODES and FEED_MODES[self.mode].attribute and self.attribute is None:
            raise ValueError(f"mode: {self.mode} ranks by groups of agents: name an attribute (feed.attribute)")
        return self

    @property
    def ranking(self) -> str:
        """The name of the mode; for `x_algo`, this is `x_2023`."""
        return "x_2023" if self.mode == "x_algo" else self.mode

    @property
    def weights(self) -> XAlgoParams | None:
        """The weights of a mode that predicts engagement, or None."""
        mode = FEED_MODES.get(self.mode)
        if mode is _X_2023:
            return self.x_algo
        return None if mode is None else mode.weights

    @property
    def discovers(self) -> bool:
        """Whether a feed shows trending posts or search results."""
        return any((self.candidates.trending, self.candidates.search, self.slots.trending, self.slots.search))

    @property
    def shows_unfollowed(self) -> bool:
        """Whether a feed may show posts of authors that the reader does not follow."""
        n_drawn = self.weights.out_of_network if self.weights is not None else 0
        return self.discovers or any((self.candidates.out_of_network, self.candidates.two_hops, n_drawn))


def _check_effect(effect: object) -> object:
    numbers = list(effect.values()) if isinstance(effect, Mapping) else [effect]
    if all(isinstance(n, int | float) and not isinstance(n, bool) and -20 <= n <= 20 for n in numbers):
        return {value_text(key): n for key, n in effect.items()} if isinstance(effect, Mapping) else effect
    raise ValueError("give a number from -20 to 20, or such numbers by value: {VALUE: NUMBER, ...}")


class AppealByParams(Params):
    """How an attribute of a post changes its appeal to all readers, whoever shows it to them."""

    attribute: Annotated[str | None, OnlyWith("utility.appeal_by.effect")] = Field(
        None, description="attribute of posts that changes their appeal; null: none does"
    )
    effect: Annotated[dict[str, float] | float, BeforeValidator(_check_effect)] = Field(
        0.0,
        description="change in log-odds of engaging: {VALUE: NUMBER, ...} by value, or a number per unit of an "
        "attribute with a range (false news is 70 % more likely to be retweeted, which takes {false: 1} in the default "
        "world: Vosoughi, Roy and Aral 2018, doi:10.1126/science.aap9559)",
    )
    fades: Annotated[bool, OnlyWith("utility.appeal_by.effect")] = Field(
        False, description="true: the effect is part of the appeal, so that gamma reduces it; false: it always applies"
    )


class UtilityParams(Params):
    """The utility of a post to a reader, in units of relevance; an agent compares it with its band.

    Random utility (McFadden 1974): ``weight * relevance + sensitivity * (reason + reshared - theta * log(1 + age) +
    counts * log(1 + likes) + effect + mood)``. The terms in brackets are log-odds of engaging. The reason is
    ``g * appeal``. For posts by a close tie, it is the soft maximum ``log(exp(g * appeal) + exp(closeness))``: a reader
    engages because the post appeals or because a friend wrote it. Age is the age of the root, in hours; `effect` is
    that of `appeal_by`. With a sensitivity of 0, utility is relevance.
    """

    weight: float = Field(0.09, ge=0, le=100, description="weight of relevance")
    sensitivity: float = Field(
        0.03, ge=0, le=10, description="utility per unit of log-odds; 0: utility equals relevance"
    )
    appeal_sigma: float = Field(
        3.0, ge=0, le=10, description="lognormal sigma of the appeal of roots (as odds, with mean 1)"
    )
    gamma: Annotated[Share, OnlyWith("utility.appeal_sigma")] = Field(
        0.6,
        description="g, the share of the appeal that applies to reshares and to readers who do not follow the author; "
        "otherwise g is 1",
    )
    reshared: LogOdds = Field(-1.0, description="change in log-odds of engaging if the post is a reshare")
    theta: float = Field(0.1, ge=0, le=10, description="loss in log-odds per unit of log(1 + age in hours)")
    closeness: Annotated[float | None, OnlyWith("network.close_ties")] = Field(
        4.0,
        ge=-20,
        le=20,
        description="log-odds of engaging because a close tie wrote the post; null: close ties have no effect",
    )
    mood: float = Field(
        1.0, ge=0, le=10, description="scale of an agent's fixed random preference for a root (logistic), in log-odds"
    )
    per_source: Annotated[LogOdds, OnlyWith("feed.repeats")] = Field(
        0.0, description="change in log-odds for each time that the reader has already read the root (feed.repeats)"
    )
    counts: LogOdds = Field(
        0.0,
        description="change in log-odds per unit of log(1 + likes), with the likes of the root as the round opens, "
        "unless they are hidden (a first vote makes the next reader 32 % more likely to add one, which takes 0.8 in "
        "the default world: Muchnik, Aral and Taylor 2013, doi:10.1126/science.1240466); 0: readers ignore likes",
    )
    appeal_by: Annotated[AppealByParams, OnlyWith("utility.appeal_by.attribute")] = Field(
        default_factory=AppealByParams
    )
