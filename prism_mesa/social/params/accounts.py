"""Parameters of accounts: further agents that differ from the others, such as bots or news pages."""

from collections.abc import Sequence
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from prism_mesa.domain import ActionName
from prism_mesa.errors import format_count
from prism_mesa.params import Params, Share
from prism_mesa.social.params.attributes import AttributeParams
from prism_mesa.social.params.interventions import PostExpression

ACCOUNT: Final = "account"
"""The attribute that holds the kind of an account."""
NO_ACCOUNT: Final = "agent"
"""The value of this attribute for all other agents."""


class AccountParams(Params):
    """A kind of account, such as bots. Its members have rows after those of all other agents."""

    name: str = Field(
        min_length=1, max_length=60, description="name of the kind, which the attribute `account` of its members has"
    )
    n: int = Field(ge=1, le=50_000_000, description="number of accounts")
    post_rate: Share | None = Field(
        None, description="probability that each posts in a round; null: drawn as for other agents"
    )
    activity: Share | None = Field(
        None,
        description="probability that each comes online in a round, before agents.hours; null: drawn as for other "
        "agents",
    )
    follows: Annotated[int, Field(ge=0)] | None = Field(
        None, description="number of other agents that each follows, drawn at random; null: their mean"
    )
    followers: Annotated[int, Field(ge=0)] | None = Field(
        None, description="number of other agents that follow each, drawn at random; null: their mean"
    )
    engages: dict[ActionName, PostExpression] = Field(
        default_factory=dict,
        description="expression for each of like, reply and reshare: an account engages with a post if one is true, "
        "whatever its band, and passes by all others; if several are true, one is drawn by propensity",
    )
    chart: str | None = Field(None, description="module:object of a chart; null: the chart of the other agents")

    @property
    def text(self) -> str:
        """The number of accounts and what they do, as a phrase."""
        rules = "; ".join(f"{action} if {text}" for action, text in self.engages.items())
        behaviour = f" that {rules}" if rules else f" with the chart {self.chart}" if self.chart else ""
        return f"{format_count(self.n, 'account')} `{self.name}`{behaviour}"

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.engages and self.chart is not None:
            raise ValueError("engages and chart: give only one of them")
        if self.name == NO_ACCOUNT or self.name != self.name.strip():
            raise ValueError(f"name: {self.name!r}: choose another; other agents are {NO_ACCOUNT!r}")
        return self


def account_attribute(names: Sequence[str]) -> AttributeParams:
    """Return the attribute `account` for kinds with these names."""
    share = (1.0, *(0.0 for _ in names))  # agents that join later are none of them
    return AttributeParams(of="agent", values=(NO_ACCOUNT, *names), share=share)
