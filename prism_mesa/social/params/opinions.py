"""Parameters of opinions, an attribute of agents that moves by what they read."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from prism_mesa.errors import did_you_mean
from prism_mesa.params import Params, Share, known_or_object
from prism_mesa.social.params.attributes import AttributeParams
from prism_mesa.without_effect import OnlyWith

RULES: Final = ("bounded_confidence", "assimilation_repulsion")
"""Rules of influence that come with PRISM."""


class OpinionsParams(Params):
    """How a stance, an attribute of agents, changes with what they read. Distances are shares of its range."""

    of: str | None = Field(
        None, description="attribute of agents, with a range, that moves by what they read; null: none moves"
    )
    rule: Annotated[str, AfterValidator(lambda rule: known_or_object(rule, RULES))] = Field(
        "bounded_confidence",
        description="bounded_confidence (Deffuant et al. 2000, doi:10.1142/S0219525900000078), assimilation_repulsion "
        "(Flache et al. 2017, doi:10.18564/jasss.3521), or module:function, your own rule",
    )
    by: str | None = Field(
        None, description="attribute of posts that is the stance of a post; null: the current stance of its author"
    )
    when: Literal["read", "engaged"] = Field(
        "read", description="posts that move an agent: all that it reads, or only those that it engages with"
    )
    rate: Annotated[Share, OnlyWith("opinions.rule", *RULES)] = Field(
        0.01, description="share of the distance by which one post moves its reader (assumed)"
    )
    confidence: Annotated[Share, OnlyWith("opinions.rule", "bounded_confidence")] = Field(
        0.2, description="bounded_confidence: a post that is farther away does not move its reader"
    )
    repulsion: Annotated[float, OnlyWith("opinions.rule", "assimilation_repulsion")] = Field(
        0.5,
        gt=0,
        le=1,
        description="assimilation_repulsion: distance from which a post pushes its reader away (half of the range in "
        "Flache et al. 2017); 1: never",
    )

    @property
    def user_rule(self) -> str | None:
        """The place of your own rule; None where the rule comes with PRISM, or no attribute moves."""
        return self.rule if self.of is not None and self.rule not in RULES else None


def check_opinions(opinions: OpinionsParams, attributes: Mapping[str, AttributeParams]) -> None:
    """Check that the named attributes exist and have a range; raise ValueError if not."""
    for key, name, owner in (("of", opinions.of, "agent"), ("by", opinions.by, "post")):
        known = [other for other, params in attributes.items() if params.of == owner and params.range is not None]
        if name is not None and name not in known:
            have, near = ", ".join(known) or "none", did_you_mean(name, known)
            raise ValueError(f"opinions: {key}: {name!r:.60} is no attribute of {owner}s with a range ({have}).{near}")
