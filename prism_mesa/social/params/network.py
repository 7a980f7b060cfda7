"""Parameters of the network."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from prism_mesa.params import Params, Share, UserPath
from prism_mesa.without_effect import OnlyWith

Direction = Literal["dst_follows_src", "src_follows_dst", "both"]
_DRAWN: Final = ("erdos_renyi", "barabasi_albert", "watts_strogatz", "stochastic_block", "configuration")
_CONFIGURATION: Final = OnlyWith("network.kind", "configuration")
_BLOCKS: Final = OnlyWith("network.kind", "stochastic_block")


class NetworkRatesParams(Params):
    """Probabilities of following, unfollowing, muting, blocking and reporting, with network.dynamics=live."""

    follow: Share = Field(
        0.002,
        description="of following the author of a post, per post read by an author whom the reader does not follow "
        "(assumed)",
    )
    engaged: float = Field(
        20.0,
        ge=0,
        le=1_000_000,
        description="factor of follow for a post that the reader engaged with in that round (assumed)",
    )
    follow_back: Share = Field(0.1, description="of following a new follower back, once, in the next round (assumed)")
    triad: Share = Field(
        0.001,
        description="of following a drawn followee of a drawn followee, per round in which the agent reads (assumed)",
    )
    unfollow: Share = Field(
        4e-5,
        description="of unfollowing, per post of a followee that is read, is below the reader's band and gets no "
        "engagement (in the default world 29 % of agents unfollow within 51 days; 43 % of active users did in "
        "Kwak et al. 2011, doi:10.1145/1978942.1979104)",
    )
    reciprocal: Share = Field(
        0.5,
        description="factor of unfollow for mutual follows (Kwak et al. 2011; the size is assumed)",
    )
    mute: Share = Field(
        5e-6,
        description="of muting the author, per such post by any author (assumed)",
    )
    block: Share = Field(
        2e-6,
        description="of blocking the author, per such post by any author (assumed)",
    )
    report: Share = Field(
        1e-5, description="of reporting, per such post by any author (assumed): reports are only counted"
    )


class NetworkParams(Params):
    """The follow network."""

    kind: Literal["erdos_renyi", "barabasi_albert", "watts_strogatz", "stochastic_block", "configuration", "edges"] = (
        Field("configuration", description="how the network is made; edges: read from network.edges")
    )
    edges: UserPath | None = Field(
        None, description="edges, columns src,dst: dst follows src (CSV, .tsv, .gz, Parquet)"
    )
    direction: Annotated[Direction | None, OnlyWith("network.edges")] = Field(
        None,
        description="direction of rows of network.edges: dst_follows_src: posts of src reach dst; src_follows_dst: "
        "the reverse; both: undirected; null: dst_follows_src, or by the names of columns; Source,Target and from,to "
        "need this key",
    )
    seed: int | None = Field(None, ge=0, lt=2**63, description="seed that draws the network; null: the run's seed")
    mean_degree: Annotated[float, OnlyWith("network.kind", *_DRAWN)] = Field(
        100, gt=0, le=1_000_000, description="mean number of followees"
    )
    follower_sigma: Annotated[float, _CONFIGURATION] = Field(
        0.72, ge=0, le=4, description="configuration: sigma of the lognormal of followers (2.13 in VoterFraud2020)"
    )
    followee_sigma: Annotated[float, _CONFIGURATION] = Field(
        0.8,
        ge=0,
        le=4,
        description="configuration: sigma of the lognormal of followees, at least one per agent; 0: Poisson",
    )
    correlation: Annotated[Share, _CONFIGURATION, OnlyWith("network.followee_sigma")] = Field(
        0.75,
        description="configuration: correlation of log expected followers and log followees (.70 and .74 realised in "
        "two Twitter graphs)",
    )
    mutual: Annotated[Share, _CONFIGURATION] = Field(
        0.5,
        description="configuration: mutual follows as a share of the possible ones; reciprocity is .46 in the default "
        "world, and .29 at .86 in the calibrated one",
    )
    close_ties: Annotated[int, OnlyWith("utility.sensitivity")] = Field(
        5,
        ge=0,
        le=100,
        description="most close ties of an agent (utility.closeness): mutual follows of agents with few followers",
    )
    reciprocity: Annotated[Share, OnlyWith("network.kind", "barabasi_albert")] = Field(
        0.33, description="barabasi_albert: share of follows returned (.32 to .35 in two Twitter graphs)"
    )
    rewire: Annotated[Share, OnlyWith("network.kind", "watts_strogatz")] = Field(
        0.1, description="watts_strogatz: probability of rewiring an edge"
    )
    blocks: Annotated[int, _BLOCKS] = Field(
        4, ge=1, le=1_000_000, description="stochastic_block: number of equal blocks"
    )
    within: Annotated[Share, _BLOCKS] = Field(
        0.8, description="stochastic_block: share of follows inside the agent's block"
    )

    dynamics: Literal["fixed", "live"] = Field(
        "fixed",
        description="fixed: only scripts and tools change follows; live: agents also decide about others by what they "
        "read (network.rates)",
    )
    rates: Annotated[NetworkRatesParams, OnlyWith("network.dynamics", "live")] = Field(
        default_factory=NetworkRatesParams
    )

    @model_validator(mode="after")
    def _edges_imply_their_kind(self) -> Self:
        if self.edges and self.kind != "edges":
            if self.kind != type(self).model_fields["kind"].default:
                self._overruled["kind"] = self.kind
            self.__dict__["kind"] = "edges"  # a frozen model can be changed while it is being made
        return self

    @model_validator(mode="after")
    def _kind_edges_needs_a_file(self) -> Self:
        if self.kind == "edges" and self.edges is None:
            raise ValueError("kind is 'edges' and network.edges names no file")
        return self
