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
    """Probabilities of following, unfollowing, muting, blocking and reporting (network.dynamics=live)."""

    follow: Share = Field(
        0.002, description="probability of following an author, per post read from an author not yet followed (assumed)"
    )
    engaged: float = Field(
        20.0, ge=0, le=1_000_000, description="factor on follow for posts that the reader engaged with (assumed)"
    )
    follow_back: Share = Field(
        0.1, description="probability of following back, in the round after a new follow (assumed)"
    )
    triad: Share = Field(
        0.001, description="probability of following a random followee of a followee, per round of reading (assumed)"
    )
    unfollow: Share = Field(
        4e-5,
        description="probability of unfollowing, per followee's read and ignored post below the band (29 % of "
        "agents unfollow within 51 days in the default world, 43 % of active users in Kwak et al. 2011, "
        "doi:10.1145/1978942.1979104)",
    )
    reciprocal: Share = Field(
        0.5, description="factor on unfollow for mutual follows, which last longer (Kwak et al. 2011; value assumed)"
    )
    mute: Share = Field(
        5e-6, description="probability of muting the author, per read and ignored post below the band (assumed)"
    )
    block: Share = Field(
        2e-6, description="probability of blocking the author, per read and ignored post below the band (assumed)"
    )
    report: Share = Field(
        1e-5, description="probability of reporting a read and ignored post below the band (assumed); only counted"
    )


class NetworkParams(Params):
    """The follow network."""

    kind: Literal["erdos_renyi", "barabasi_albert", "watts_strogatz", "stochastic_block", "configuration", "edges"] = (
        Field("configuration", description="how the network is made; edges: read from network.edges")
    )
    edges: UserPath | None = Field(
        None, description="file of follows with columns src,dst: dst follows src (CSV, .tsv, .gz, Parquet)"
    )
    direction: Annotated[Direction | None, OnlyWith("network.edges")] = Field(
        None,
        description="who follows whom in network.edges (both: undirected); null: by the column names, else "
        "dst_follows_src; required for Source,Target and from,to",
    )
    seed: int | None = Field(None, ge=0, lt=2**63, description="seed for drawing the network; null: the run's seed")
    mean_degree: Annotated[float, OnlyWith("network.kind", *_DRAWN)] = Field(
        100, gt=0, le=1_000_000, description="mean number of followees"
    )
    follower_sigma: Annotated[float, _CONFIGURATION] = Field(
        0.72, ge=0, le=4, description="configuration: lognormal sigma of numbers of followers (2.13 in VoterFraud2020)"
    )
    followee_sigma: Annotated[float, _CONFIGURATION] = Field(
        0.8, ge=0, le=4, description="configuration: lognormal sigma of numbers of followees, at least 1; 0: Poisson"
    )
    correlation: Annotated[Share, _CONFIGURATION, OnlyWith("network.followee_sigma")] = Field(
        0.75,
        description="configuration: correlation of log expected followers and log followees (.70 and .74 in two "
        "Twitter graphs)",
    )
    mutual: Annotated[Share, _CONFIGURATION] = Field(
        0.5,
        description="configuration: mutual follows as a share of the possible number (.5 gives a reciprocity "
        "of .46; .86 gives .29 in the calibrated world)",
    )
    close_ties: Annotated[int, OnlyWith("utility.sensitivity")] = Field(
        5, ge=0, le=100, description="maximum close ties per agent: mutual follows, those with fewest followers first"
    )
    reciprocity: Annotated[Share, OnlyWith("network.kind", "barabasi_albert")] = Field(
        0.33, description="barabasi_albert: share of follows returned (.32 to .35 in two Twitter graphs)"
    )
    rewire: Annotated[Share, OnlyWith("network.kind", "watts_strogatz")] = Field(
        0.1, description="watts_strogatz: probability that an edge is rewired"
    )
    blocks: Annotated[int, _BLOCKS] = Field(
        4, ge=1, le=1_000_000, description="stochastic_block: number of equal blocks"
    )
    within: Annotated[Share, _BLOCKS] = Field(
        0.8, description="stochastic_block: share of follows inside the agent's block"
    )

    dynamics: Literal["fixed", "live"] = Field(
        "fixed",
        description="fixed: only scripts and tools change follows; live: agents also follow, unfollow, mute and block "
        "because of posts they read (network.rates)",
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
