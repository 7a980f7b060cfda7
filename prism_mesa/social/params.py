"""The parameters of the social platform, with defaults, units and sources."""

import codecs
import math
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AwareDatetime, Field, field_validator, model_validator

from prism_mesa.deliberation.params import DeliberationParams
from prism_mesa.params import Params
from prism_mesa.reasoner.params import ReasonerParams
from prism_mesa.social.state.clock import Clock
from prism_mesa.statechart.params import StatechartParams


class AgentsParams(Params):
    """Who the agents are."""

    n: int = Field(1000, ge=2, le=50_000_000, description="number of agents; a graph from a file brings its own")
    band: float = Field(0.06, ge=0, le=1, description="width of the band of relevance in which the oracle is asked")
    threshold_mean: float = Field(0.6, ge=0, le=1, description="mean engagement threshold, in units of relevance")
    threshold_sd: float = Field(0.06, ge=0, le=0.5, description="its standard deviation between agents")
    activity: float = Field(0.5, ge=0, le=1, description="mean probability of coming online in a round")
    post_rate: float = Field(0.15, ge=0, le=1, description="mean probability of posting in a round")
    activity_sigma: float = Field(
        1.6,
        ge=0,
        le=5,
        description="spread of activity and posting between agents (sigma of a lognormal, capped at 1); 1.6 gives "
        "the Gini of .74 of VoterFraud2020 where no cap bites, with these means .43 online and .67 posting",
    )
    like: float = Field(0.57, ge=0, le=1, description="mean share of likes among an agent's engagements")
    reply: float = Field(0.18, ge=0, le=1, description="mean share of replies")
    reshare: float = Field(0.25, ge=0, le=1, description="mean share of reshares; the three are scaled to add up to 1")
    propensity_sigma: float = Field(
        0.5, ge=0, le=3, description="spread of the shares between agents (lognormal sigma)"
    )
    profiles: str | None = Field(None, description="file with agents' own profiles (CSV, .gz, Parquet)")

    @model_validator(mode="after")
    def _some_action(self) -> Self:
        if self.like + self.reply + self.reshare <= 0:
            raise ValueError("like, reply and reshare are all 0: give at least one of them a share")
        return self


class NetworkParams(Params):
    """Who follows whom."""

    kind: Literal["erdos_renyi", "barabasi_albert", "watts_strogatz", "stochastic_block", "configuration", "edges"] = (
        Field("configuration", description="how the network is made; edges: read from network.edges")
    )
    edges: str | None = Field(None, description="edge list with columns src,dst: dst follows src (CSV, .gz, Parquet)")
    direction: Literal["dst_follows_src", "src_follows_dst"] = Field(
        "dst_follows_src",
        description="how a row of network.edges is read: dst_follows_src: what src posts reaches dst; src_follows_dst: "
        "the other way round (the summary says who has most followers and who follows most)",
    )
    mean_degree: float = Field(20, gt=0, le=1_000_000, description="mean number of agents that an agent follows")
    follower_sigma: float = Field(
        1.5, ge=0, le=4, description="configuration: sigma of the lognormal of followers (2.13 in VoterFraud2020)"
    )
    reciprocity: float = Field(
        0.33, ge=0, le=1, description="barabasi_albert: share of follows returned (.32-.35 in two Twitter graphs)"
    )
    rewire: float = Field(0.1, ge=0, le=1, description="watts_strogatz: probability of rewiring an edge")
    blocks: int = Field(4, ge=1, le=1_000_000, description="stochastic_block: number of equal blocks")
    within: float = Field(0.8, ge=0, le=1, description="stochastic_block: share of follows inside the own block")

    @model_validator(mode="after")
    def _edges_imply_their_kind(self) -> Self:
        if self.edges and self.kind != "edges":
            if self.kind != type(self).model_fields["kind"].default:
                self._overruled["kind"] = self.kind
            self.__dict__["kind"] = "edges"  # what is frozen is only being made
        return self

    @model_validator(mode="after")
    def _kind_edges_needs_a_file(self) -> Self:
        if self.kind == "edges" and self.edges is None:
            raise ValueError("kind is 'edges' and network.edges names no file")
        return self


class SeededParams(Params):
    """Posts that you place; their authors are drawn among those who fit in size and position, and take turns.

    Each has a text of the corpus that is drawn for it, the same whoever writes it. The summary says who was chosen.
    """

    count: int = Field(0, ge=0, le=10_000, description="posts that are placed")
    round: int = Field(0, ge=0, le=10_000_000, description="round of the first one; the others follow, one a round")
    size: Literal["any", "small", "large"] = Field(
        "any", description="followers of the author: small: of the tenth with fewest, large: of that with most"
    )
    position: Literal["any", "bridge", "periphery"] = Field(
        "any",
        description="share of the author's followers who are of other communities: of those of that size, bridge: of "
        "the fifth where it is highest, periphery: where it is lowest; communities: the blocks of stochastic_block, in "
        "other networks agents with the same main interest",
    )


class PostsParams(Params):
    """What is written."""

    file: str | None = Field(None, description="posts with a column text (CSV, .gz, Parquet); null: the corpus inside")
    circulating: int = Field(
        16,
        ge=1,
        le=1_000_000,
        description="texts that agents post at a time of their own accord (agents.post_rate): what is talked about; "
        "each round one new text takes the place of the oldest",
    )
    authors: Literal["id", "rank"] = Field(
        "id", description="how the file's authors become agents: by id, or most posts to most followers"
    )
    n_topics: int = Field(16, ge=2, le=512, description="dimensions of topics and interests")
    embedder: Literal["hashing", "wordllama"] = Field(
        "hashing", description="text to topics; wordllama needs the extra 'embeddings'"
    )
    label_weight: float = Field(
        0.7, ge=0, le=1, description="weight of a post's topic label against its words, where the file has topics"
    )
    media_share: float | None = Field(
        None,
        ge=0,
        le=1,
        description="share of the texts that have media, those of a smaller share among those of a larger; an image "
        "where a text brings none; null: as they come. Media count only inside the band: for the rule "
        "(reasoner.rule.media), a distilled model, and in prompts; no feed looks at them",
    )
    seeded: SeededParams = Field(default_factory=SeededParams)


Weight = Annotated[float, Field(ge=-1e6, le=1e6)]


class XAlgoParams(Params):
    """The ranking published for Twitter's home timeline in 2023, on what this platform can observe.

    Weights: github.com/twitter/the-algorithm-ml, projects/home/recap/README.md (2023); `reply` was 27 in a
    later and 13.5 in the first copy. Factors: github.com/twitter/the-algorithm, home-mixer (2023). Rates
    per impression: 9.7 million impressions of one account's posts, 2016-2021 (rOpenSci), as prior means.
    """

    out_of_network: int = Field(10, ge=0, le=1000, description="candidates drawn from the whole platform per agent")
    weight_like: Weight = Field(0.5, description="weight of a predicted like")
    weight_reshare: Weight = Field(1.0, description="weight of a predicted reshare")
    weight_reply: Weight = Field(27.0, description="weight of a predicted reply")
    weight_good_click: Weight = Field(11.0, description="weight of a predicted good click")
    weight_profile_click: Weight = Field(12.0, description="weight of a predicted profile click")
    weight_reply_engaged: Weight = Field(75.0, description="weight of a predicted reply that the author engages with")
    weight_negative: Weight = Field(-74.0, description="weight of predicted negative feedback")
    weight_report: Weight = Field(-369.0, description="weight of a predicted report")
    rate_like: float = Field(0.00234, ge=0, le=1, description="likes per impression, before anything is observed")
    rate_reshare: float = Field(0.00117, ge=0, le=1, description="reshares per impression")
    rate_reply: float = Field(0.0001, ge=0, le=1, description="replies per impression")
    rate_good_click: float = Field(0.00466, ge=0, le=1, description="clicks per impression")
    rate_profile_click: float = Field(0.00114, ge=0, le=1, description="profile clicks per impression")
    rate_negative: float = Field(0.0001, ge=0, le=1, description="negative feedback per impression (assumed)")
    rate_report: float = Field(0.00001, ge=0, le=1, description="reports per impression (assumed)")
    reply_engaged: float = Field(0.1, ge=0, le=1, description="share of replies the author engages with (assumed)")
    prior_impressions: float = Field(20.0, gt=0, le=1e9, description="impressions that a prior rate is worth (assumed)")
    out_of_network_factor: float = Field(
        0.75, ge=0, le=1, description="score factor of a post from outside the network"
    )
    reply_factor: float = Field(0.75, ge=0, le=1, description="score factor of a reply")
    author_decay: float = Field(0.5, ge=0, le=1, description="score factor for each further post of one author")
    author_floor: float = Field(0.25, ge=0, le=1, description="lowest such factor")


class FeedParams(Params):
    """What an agent is shown."""

    mode: Literal["random", "chronological", "preference", "x_algo"] = Field(
        "chronological",
        description="order of the feed: random, chronological, preference, x_algo; the first three hold posts of "
        "followed agents only",
    )
    size: int = Field(10, ge=1, le=255, description="most posts in a feed")
    window: int = Field(3, ge=1, le=1000, description="rounds for which a post can be shown")
    velocity_window: int = Field(3, ge=1, le=1000, description="rounds over which engagements make velocity")
    x_algo: XAlgoParams = Field(default_factory=XAlgoParams, description="weights of mode x_algo")


class FilesParams(Params):
    """How the files that network.edges, posts.file and agents.profiles name are read."""

    encoding: str = Field("utf-8", description="encoding of CSV files: utf-8, latin-1, cp1252, utf-16, ...")
    max_bytes: int = Field(
        8_000_000_000, ge=1, lt=2**63, description="most bytes that a file may unpack to; a larger one is refused"
    )

    @field_validator("encoding")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            codecs.lookup(name)
            "é".encode(name, "replace").decode(name, "replace")
        except (LookupError, ValueError):
            raise ValueError("no encoding of text (utf-8, latin-1, cp1252, utf-16, ...)") from None
        return name


class ClockParams(Params):
    """Simulated time."""

    start: AwareDatetime = Field(datetime(2026, 1, 1, tzinfo=UTC), description="when round 0 opens")
    round_minutes: float = Field(60, gt=0, le=525_600, description="simulated minutes in a round")

    @field_validator("start", mode="before")
    @classmethod
    def _is_no_number(cls, start: Any) -> Any:
        """Refuse what would count as seconds since 1970: who writes 2030 means a year."""
        if _is_number(start):
            raise ValueError("Input should be a time with its offset, as 2026-01-01T00:00:00Z")
        return start

    @field_validator("start")
    @classmethod
    def _is_a_time_in_utc(cls, start: datetime) -> datetime:
        try:
            start.astimezone(UTC)
        except OverflowError:
            raise ValueError("Input should lie in the years 1 to 9999 in UTC too") from None
        return start


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, datetime) and math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


class RecordsParams(Params):
    """What is recorded of each agent, as shares of agents; whoever is drawn stays in all rounds and tables."""

    transitions: float | None = Field(
        None,
        ge=0,
        le=1,
        description="share of agents whose transitions are recorded; null: all of up to 100,000 agents, of more about "
        "10,000 agents",
    )
    impressions: float | None = Field(
        None, ge=0, le=1, description="share of agents whose impressions are recorded; null: as for transitions"
    )
    engagements: float | None = Field(
        None, ge=0, le=1, description="share of agents whose engagements are recorded; null: all"
    )


class SocialParams(Params):
    """Everything a `SocialModel` is made from."""

    seed: int = Field(42, ge=0, lt=2**63, description="seed of all keyed draws")
    rounds: int = Field(20, ge=1, le=10_000_000, description="rounds of a run")
    ticks_per_round: int = Field(10, ge=1, le=10_000, description="ticks in a round; an agent fires once a tick")
    scheduler: Literal["columns", "mesa"] = Field(
        "columns",
        description="mesa: every agent's step() is called one by one; same result, slower (but that a limit of the "
        "reasoner is then spent in the order of agents)",
    )
    threads: int = Field(1, ge=1, le=1024, description="threads that share the work of a round; same result")
    content: Literal["none", "template", "llm"] = Field(
        "none",
        description="words of replies and reshares; none: they have none; template: sentences about the topic, "
        "friendly from agreeable agents, doubting from others; llm: the reasoner's LLM writes them, and agents' own "
        "posts (templates where kind auto finds no LLM)",
    )
    agents: AgentsParams = Field(default_factory=AgentsParams)
    network: NetworkParams = Field(default_factory=NetworkParams)
    posts: PostsParams = Field(default_factory=PostsParams)
    feed: FeedParams = Field(default_factory=FeedParams)
    files: FilesParams = Field(default_factory=FilesParams)
    clock: ClockParams = Field(default_factory=ClockParams)
    statechart: StatechartParams = Field(default_factory=StatechartParams)
    reasoner: ReasonerParams = Field(default_factory=ReasonerParams)
    deliberation: DeliberationParams = Field(default_factory=DeliberationParams)
    records: RecordsParams = Field(default_factory=RecordsParams)

    @model_validator(mode="after")
    def _seeded_posts_have_a_round(self) -> Self:
        seeded, needed = self.posts.seeded, self.posts.seeded.round + self.posts.seeded.count
        if seeded.count and needed > self.rounds:
            raise ValueError(
                f"posts.seeded.count={seeded.count} posts, one a round from posts.seeded.round={seeded.round} on, need "
                f"rounds={needed} or more, not {self.rounds}"
            )
        return self

    @model_validator(mode="after")
    def _time_does_not_run_out(self) -> Self:
        minutes, ticks = self.clock.round_minutes, self.rounds * (self.ticks_per_round + 2)
        if ticks >= _MOST_TICKS:
            raise ValueError(
                f"rounds={self.rounds} of ticks_per_round={self.ticks_per_round} are more ticks than can be told apart "
                f"({_MOST_TICKS:,})"
            )
        try:
            Clock(self.clock.start.astimezone(UTC), timedelta(minutes=minutes), self.ticks_per_round).at(ticks)
        except OverflowError:
            raise ValueError(
                f"rounds={self.rounds} of clock.round_minutes={minutes:g} from clock.start={self.clock.start} run past "
                "the year 9999: give fewer or shorter rounds, or an earlier start"
            ) from None
        return self


_MOST_TICKS: Final = 2**31
