"""Parameters of agents, homophily and churn."""

import math
from collections.abc import Iterable
from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from prism_mesa.params import LogOdds, Params, Share, UserPath
from prism_mesa.social.params.feed import MAX_FEED_SIZE
from prism_mesa.without_effect import OnlyWith

Sigma = Annotated[float, Field(ge=0, le=5)]
"""A standard deviation of logarithms."""


class ChurnParams(Params):
    """Agents that join, leave and return at the start of a round, from round 1 on."""

    waiting: Share = Field(0.0, description="share of agents that have not joined yet when the run starts")
    join: Annotated[Share, OnlyWith("agents.churn.waiting")] = Field(
        0.0, description="probability per round that a waiting agent joins"
    )
    leave: Share = Field(0.0, description="probability per round that an agent leaves")
    back: Share = Field(0.0, description="probability per round that an agent that has left returns")


DEFAULT_HOURS: Final = (
    0.363, 0.284, 0.264, 0.257, 0.257, 0.261, 0.293, 0.351, 0.57, 1.184, 1.625, 1.82,
    1.868, 1.793, 1.924, 1.915, 1.92, 1.744, 1.386, 1.071, 0.871, 0.718, 0.74, 0.52,
)  # fmt: skip
"""Hours of 179,974 tweets by 525 members of the US Congress (Eastern Time), mixed with 1/4 of equal hours."""


class HomophilyParams(Params):
    """How much less agents engage with and follow agents that differ from them.

    The difference of two numbers is a share of the attribute's range; that of two strings or booleans is 0 or 1.
    """

    by: str | None = Field(None, description="attribute that measures how much two agents differ; null: no homophily")
    engaging: Annotated[LogOdds, OnlyWith("utility.sensitivity")] = Field(
        1.1, description="loss in log-odds of engaging with a post whose author differs from the reader by 1 (assumed)"
    )
    following: Annotated[float, OnlyWith("network.dynamics", "live")] = Field(
        1.1,
        ge=0,
        le=20,
        description="loss in log probability of following an agent that differs by 1, for all rules in network.rates "
        "(co-partisans follow back about 3 times as often: Mosleh et al. 2021, doi:10.1073/pnas.2022761118)",
    )


class ReturnsParams(Params):
    """How much what the last sessions were worth changes how often, and for how long, agents come online.

    A session is a round in which an agent reads posts, and is worth the mean utility of these posts, in units of
    relevance. The last sessions are compared with the agent's own first ones.
    """

    online: float = Field(
        0.0,
        ge=-1000,
        le=1000,
        description="change in log-odds of coming online per unit by which the last sessions are worth more than the "
        "first ones (a feed by time instead of by rank cuts the time spent on Facebook and Instagram: Guess et al. "
        "2023, doi:10.1126/science.abp9364; no study gives a value); 0: none",
    )
    session: Annotated[float, OnlyWith("agents.session")] = Field(
        0.0, ge=-1000, le=1000, description="change in log length of sessions per such unit; 0: none"
    )
    half_life: float = Field(
        5.0, gt=0, le=1e6, description="sessions after which a session counts half as much as the last one (assumed)"
    )
    first: int = Field(
        5, ge=1, le=1_000_000, description="number of first sessions, in which nothing changes yet (assumed)"
    )


class AgentsParams(Params):
    """The agents."""

    n: int = Field(1000, ge=2, le=50_000_000, description="number of agents; a network from a file sets its own number")
    band: Share = Field(0.008, description="width of the band of utility in which choices are open")
    threshold_mean: Share = Field(0.195, description="mean engagement threshold, in units of relevance")
    threshold_sd: float = Field(0.04, ge=0, le=0.5, description="standard deviation of thresholds between agents")
    activity: Share = Field(
        0.15, description="mean probability of coming online in a round, before agents.hours caps it"
    )
    post_rate: Share = Field(0.18, description="mean probability of posting in a round")
    activity_sigma: Sigma = Field(
        0.9, description="spread of activity between agents (lognormal sigma); also for posting if post_sigma is null"
    )
    post_sigma: float | None = Field(
        4.0, ge=0, le=5, description="spread of posting between agents (lognormal sigma); null: same draws as activity"
    )
    popularity: Share = Field(
        0.9, description="correlation of log activity and log posting with the normal score of the rank by followers"
    )
    posting: Literal["always", "online"] = Field(
        "online",
        description="always: agents post in any round; online: only in rounds in which they are online (post_rate is "
        "then per round online, and its mean is weighted by activity)",
    )
    persistence: float = Field(
        0.1,
        ge=0,
        lt=1,
        description="probability that an agent keeps its draw for coming online in the next round (this makes bursts; "
        "mean activity stays the same)",
    )
    hours: tuple[float, ...] | None = Field(
        DEFAULT_HOURS,
        description="weights of the 24 hours in UTC, with any sum; activity is multiplied by the round's weight over "
        "the mean weight, up to a probability of 1; null: equal hours",
    )
    time_zone: Annotated[str | None, OnlyWith("agents.hours agents.rhythm")] = Field(
        None, description="attribute of agents that holds their offset from UTC in hours (-5, 5.5, ...); null: UTC"
    )
    rhythm: Sigma = Field(
        0.0,
        description="spread of agents' own hourly weights around agents.hours (lognormal sigma of a factor per hour, "
        "the same every day)",
    )
    session: float | None = Field(
        150.0,
        gt=0,
        le=MAX_FEED_SIZE,
        description="mean number of posts that an agent reads in a round before it leaves; null: the whole feed",
    )
    session_sigma: Annotated[Sigma, OnlyWith("agents.session")] = Field(
        0.8, description="spread of session lengths (lognormal sigma)"
    )
    like: Share = Field(0.73, description="mean share of likes among an agent's engagements")
    reply: Share = Field(0.05, description="mean share of replies among an agent's engagements")
    reshare: Share = Field(0.22, description="mean share of reshares; like, reply and reshare are scaled to sum to 1")
    propensity_sigma: float = Field(
        1.6, ge=0, le=3, description="spread of like, reply and reshare between agents (lognormal sigma)"
    )
    seed: int | None = Field(None, ge=0, lt=2**63, description="seed for drawing the agents; null: the run's seed")
    profiles: UserPath | None = Field(None, description="file of agent profiles (CSV, .tsv, .gz, Parquet)")
    homophily: Annotated[HomophilyParams, OnlyWith("agents.homophily.by")] = Field(default_factory=HomophilyParams)
    churn: ChurnParams = Field(default_factory=ChurnParams)
    returns: Annotated[ReturnsParams, OnlyWith("agents.returns.online agents.returns.session")] = Field(
        default_factory=ReturnsParams
    )

    @field_validator("hours", mode="before")
    @classmethod
    def _check_hours(cls, hours: object) -> object:
        if hours is None:
            return None
        weights = list(hours) if isinstance(hours, Iterable) and not isinstance(hours, str | bytes | dict) else []
        try:
            numbers = [float(weight) for weight in weights]
        except (TypeError, ValueError, OverflowError):
            numbers = []
        if len(numbers) != 24 or min(numbers) < 0 or not 0 < sum(numbers) < math.inf:
            fault = f"{len(weights)} were given" if weights else f"not {hours!r}"
            raise ValueError(f"give 24 weights of at least 0, one for each hour, with a finite sum above 0; {fault}")
        return weights

    @model_validator(mode="after")
    def _check_actions(self) -> Self:
        if self.like + self.reply + self.reshare <= 0:
            raise ValueError("like, reply and reshare are all 0: give at least one of them a share")
        return self
