"""Parameters of the network."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from prism_mesa.params import Params, Share, UserPath
from prism_mesa.without_effect import OnlyWith

Direction = Literal["dst_follows_src", "src_follows_dst", "both"]
_GENERATED_KINDS: Final = ("erdos_renyi", "barabasi_albert", "watts_strogatz", "stochastic_block", "configuration")
_WITH_CONFIGURATION: Final = OnlyWith("network.kind", "configuration")
_WITH_BLOCKS: Final = OnlyWith("network.kind", "stochastic_block")


class NetworkRatesParams(Params):
    """Probabilities of following, unfollowing, muting, blocking and reporting (with network.dynamics=live)."""

    follow: Share = Field(
        0.002, description="probability of following the author, per post read from an unfollowed author (assumed)"
    )
    engaged: float = Field(
        20.0, ge=0, le=1_000_000, description="factor on follow for posts that the reader engages with (assumed)"
    )
    follow_back: Share = Field(
        0.1, description="probability of following back in the round after a new follow (assumed)"
    )
    triad: Share = Field(
        0.001, description="probability of following a random followee of a followee, per round of reading (assumed)"
    )
    unfollow: Share = Field(
        4e-5,
        description="probability of unfollowing a followee, per ignored post below the band (in the default world, 29 "
        "% of agents unfollow somebody within 51 days; in Kwak et al. 2011, doi:10.1145/1978942.1979104, 43 % of "
        "active users do)",
    )
    reciprocal: Share = Field(
        0.5,
        description="factor on unfollow for mutual follows, which last longer (Kwak et al. 2011; the value is assumed)",
    )
    mute: Share = Field(5e-6, description="probability of muting the author, per ignored post below the band (assumed)")
    block: Share = Field(
        2e-6, description="probability of blocking the author, per ignored post below the band (assumed)"
    )
    report: Share = Field(
        1e-5, description="probability of reporting an ignored post below the band (assumed); reports are only counted"
    )


class NetworkParams(Params):
    """The follow network."""

    kind: Literal["erdos_renyi", "barabasi_albert", "watts_strogatz", "stochastic_block", "configuration", "edges"] = (
        Field("configuration", description="model of the network; edges: a file (network.edges)")
    )
    edges: UserPath | None = Field(
        None, description="file of follows with the columns src,dst: dst follows src (CSV, .tsv, .gz, Parquet)"
    )
    direction: Annotated[Direction | None, OnlyWith("network.edges")] = Field(
        None,
        description="who follows whom in network.edges (both: undirected); null: as the column names say, otherwise "
        "dst_follows_src; required for columns Source,Target and from,to",
    )
    seed: int | None = Field(None, ge=0, lt=2**63, description="seed for drawing the network; null: the run's seed")
    mean_degree: Annotated[float, OnlyWith("network.kind", *_GENERATED_KINDS)] = Field(
        100, gt=0, le=1_000_000, description="mean number of followees"
    )
    follower_sigma: Annotated[float, _WITH_CONFIGURATION] = Field(
        0.72, ge=0, le=4, description="configuration: lognormal sigma of numbers of followers (2.13 in VoterFraud2020)"
    )
    followee_sigma: Annotated[float, _WITH_CONFIGURATION] = Field(
        0.8, ge=0, le=4, description="configuration: lognormal sigma of numbers of followees, at least 1; 0: Poisson"
    )
    correlation: Annotated[Share, _WITH_CONFIGURATION, OnlyWith("network.followee_sigma")] = Field(
        0.75,
        description="configuration: correlation of the logs of expected followers and followees (.70 and .74 in two "
        "Twitter graphs)",
    )
    mutual: Annotated[Share, _WITH_CONFIGURATION] = Field(
        0.5,
        description="configuration: mutual follows as a share of the maximum possible number (by default, reciprocity "
        "is .46; in the calibrated world, the share is .86 and reciprocity .29)",
    )
    close_ties: Annotated[int, OnlyWith("utility.sensitivity")] = Field(
        5, ge=0, le=100, description="maximum close ties per agent: the mutual follows with the fewest followers"
    )
    reciprocity: Annotated[Share, OnlyWith("network.kind", "barabasi_albert")] = Field(
        0.33, description="barabasi_albert: share of follows that are returned (.32 to .35 in two Twitter graphs)"
    )
    rewire: Annotated[Share, OnlyWith("network.kind", "watts_strogatz")] = Field(
        0.1, description="watts_strogatz: probability that an edge is rewired"
    )
    blocks: Annotated[int, _WITH_BLOCKS] = Field(
        4, ge=1, le=1_000_000, description="stochastic_block: number of equal blocks"
    )
    within: Annotated[Share, _WITH_BLOCKS] = Field(
        0.8, description="stochastic_block: share of follows inside the agent's block"
    )

    dynamics: Literal["fixed", "live"] = Field(
        "fixed",
        description="fixed: only scripts and tools change follows; live: agents also follow, unfollow, mute and block "
        "because of posts that they read (network.rates)",
    )
    rates: Annotated[NetworkRatesParams, OnlyWith("network.dynamics", "live")] = Field(
        default_factory=NetworkRatesParams
    )

    @model_validator(mode="after")
    def _set_kind_of_edges(self) -> Self:
        if self.edges and self.kind != "edges":
            if self.kind != type(self).model_fields["kind"].default:
                self._overruled["kind"] = self.kind
            self.__dict__["kind"] = "edges"  # a frozen model can be changed while it is being made
        return self

    @model_validator(mode="after")
    def _check_edges(self) -> Self:
        if self.kind == "edges" and self.edges is None:
            raise ValueError("kind is 'edges', but network.edges does not name a file")
        return self
