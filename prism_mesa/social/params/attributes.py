"""Parameters of the attributes that you add to agents and posts, and of opinions, which are attributes that move."""

import math
from collections.abc import Iterator, Mapping
from keyword import iskeyword
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from prism_mesa.errors import ConfigError, did_you_mean, shortened
from prism_mesa.llm.params import value_text
from prism_mesa.params import Params, Share, known_or_object
from prism_mesa.reasoner.params import ReasonerParams
from prism_mesa.without_effect import OnlyWith

COMMUNITY: Final = "community"
"""The value of `inherits` for attributes of agents."""

MAX_VALUES = 1000
"""The most values of an attribute."""

_MAX_NUMBER: Final = 1e12
"""All whole numbers up to this one are stored exactly."""

type Value = StrictBool | StrictInt | StrictFloat | StrictStr
type Number = Annotated[float, Field(ge=-_MAX_NUMBER, le=_MAX_NUMBER)]


class AttributeParams(Params):
    """An attribute, and the source of its values.

    Values are drawn unless `column`, `inherits` or `function` gives them; blank cells of a file are drawn, too.
    """

    of: Literal["agent", "post"] = Field(description="what it belongs to; a reshare has the attributes of its root")
    values: tuple[Value, ...] | None = Field(
        None, min_length=1, max_length=MAX_VALUES, description="its values: truth values, numbers, or texts"
    )
    share: tuple[float, ...] | None = Field(
        None, description="relative frequency of each value, in any unit; null: equal"
    )
    range: tuple[Number, Number] | None = Field(None, description="a range of numbers instead of values")
    mean: Number | None = Field(
        None, description="with sd: mean of a normal distribution, truncated to range; null: uniform"
    )
    sd: float | None = Field(None, gt=0, le=1e12, description="standard deviation of that normal distribution")
    column: str | None = Field(
        None, min_length=1, description="column with the values, in agents.profiles for agents or posts.file for posts"
    )
    inherits: str | None = Field(
        None,
        description="post: the author's attribute that it inherits; agent: `community`, with values spread over the "
        "blocks of network.kind=stochastic_block in order",
    )
    noise: float = Field(
        0.0,
        ge=0,
        le=1e12,
        description="with inherits: standard deviation of the noise added to a number, which stays in range; for "
        "values, the probability of drawing one instead",
    )
    function: str | None = Field(
        None, description="module:function that receives columns (name -> array) and returns the values of all rows"
    )

    told: bool = Field(False, description="whether prompts mention it to an LLM (not if reasoner.persona is archetype)")

    @property
    def text(self) -> str:
        """The values and their source in a phrase."""
        value_list = ", ".join(map(value_text, self.values or ()))
        values = f"one of {value_list}" if self.values else "{:g} to {:g}".format(*self.range or (0.0, 0.0))
        noise = f", with noise of {self.noise:g}" if self.noise else ""
        draw = f"drawn, normal around {self.mean:g} ({self.sd:g})" if self.sd and self.mean is not None else "drawn"
        if self.column is not None:
            return f"{values}; from the column {self.column}, {draw} where it is blank"
        if self.inherits is not None:
            return f"{values}; {'its' if self.of == 'agent' else "its author's"} {self.inherits}{noise}"
        return f"{values}; {draw if self.function is None else f'worked out by {self.function}'}"

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        for fault in (*self._faults(), *self._value_faults(), *self._range_faults()):
            raise ValueError(fault)
        return self

    def _faults(self) -> Iterator[str]:
        if (self.values is None) == (self.range is None):
            yield "give either values or range"
        sources = [key for key in ("column", "inherits", "function") if getattr(self, key) is not None]
        if len(sources) > 1:
            yield f"{' and '.join(sources)}: give one of them; without any the values are drawn"
        if self.of == "agent" and self.inherits not in (None, COMMUNITY):
            yield f"inherits: an agent can only inherit from its {COMMUNITY}"
        if self.of == "agent" and self.inherits is not None and self.sd is not None:
            yield "mean, sd: communities give the numbers, nothing is drawn"
        if self.noise and self.inherits is None:
            yield "noise: it is only for inherits"
        if self.function is not None and (self.share or self.sd is not None):
            yield "share, mean, sd: function gives the values, nothing is drawn"

    def _value_faults(self) -> Iterator[str]:
        if self.values is None:
            return
        if self.mean is not None or self.sd is not None:
            yield "mean, sd: are for range, not for values"
        if len({str if isinstance(v, str) else bool if isinstance(v, bool) else float for v in self.values}) > 1:
            yield "values: give all true and false, all numbers, or all texts"
        elif not all(-_MAX_NUMBER <= v <= _MAX_NUMBER for v in self.values if not isinstance(v, str)):
            yield f"values: a number has to lie in {-_MAX_NUMBER:g}..{_MAX_NUMBER:g}"
        if len(set(self.values)) < len(self.values):
            yield "values: two of them are equal"
        if any(isinstance(v, str) and (not v or v != v.strip()) for v in self.values):
            yield "values: a text is empty, or begins or ends with a blank"
        if self.noise > 1:
            yield "noise: is a probability (0..1) where there are values"
        if self.share is not None and len(self.share) != len(self.values):
            yield f"share: give {len(self.values)} numbers, one for each value, not {len(self.share)}"
        elif self.share is not None and (min(self.share) < 0 or not 0 < sum(self.share) < math.inf):
            yield "share: give numbers from 0 on with a finite sum above 0"

    def _range_faults(self) -> Iterator[str]:
        if self.range is None:
            return
        low, high = self.range
        if low >= high:
            yield f"range: {low:g} is not below {high:g}"
        if self.share is not None:
            yield "share: is for values, not for range"
        if (self.mean is None) != (self.sd is None):
            yield "mean, sd: give both or none"
        if self.mean is not None and not low <= self.mean <= high:
            yield f"mean: {self.mean:g} is not in {low:g}..{high:g}"


def check_attributes(attributes: Mapping[str, AttributeParams]) -> None:
    """Check the names of attributes, and the attributes that they inherit.

    Raises:
        ValueError: For an invalid name, or an inherited attribute that does not exist or has other values.
    """
    for name, params in attributes.items():
        if not name.isidentifier() or iskeyword(name) or name.startswith("_") or not name.isascii():
            raise ValueError(f"attributes: {name!r:.60} is not a name (letters, digits and _, a letter first)")
        if params.inherits is None or params.of == "agent":
            continue
        source = attributes.get(params.inherits)
        where = f"attributes: {name}.inherits: "
        if source is None or source.of != "agent":
            known_names = ", ".join(known for known, other in attributes.items() if other.of == "agent") or "none"
            raise ValueError(f"{where}{params.inherits!r:.60} is not an attribute of agents ({known_names})")
        if (source.values is None) != (params.values is None) or not {*(source.values or ())} <= {
            *(params.values or ())
        }:
            raise ValueError(f"{where}{params.inherits} has other values than {name}")
        low, high = params.range or (-math.inf, math.inf)
        if source.range and not low <= source.range[0] <= source.range[1] <= high:
            raise ValueError(f"{where}the range of {params.inherits} is not within that of {name}")


def check_model_by(reasoner: ReasonerParams, attributes: Mapping[str, AttributeParams]) -> None:
    """Check that the keys of `model` are the values of the attribute `model_by`; raise ConfigError if they are not."""
    if reasoner.model_by is None or not isinstance(model := reasoner.model, dict):
        return
    attribute = attributes.get(reasoner.model_by)
    values = list(map(value_text, attribute.values or ())) if attribute is not None and attribute.of == "agent" else []
    if not values:
        names = ", ".join(n for n, params in attributes.items() if params.of == "agent" and params.values) or "none"
        fault = f"{reasoner.model_by!r:.60} is not an attribute of agents with values ({names})"
        raise ConfigError(f"reasoner.model_by: {fault}")
    if differing := [value for value in (*values, *model) if (value in values) != (value in model)]:
        known = shortened(", ".join(values), 200)
        allowed = f"give an LLM for each value of {reasoner.model_by} ({known}), not for {', '.join(model)}"
        raise ConfigError(f"reasoner.model: {differing[0]!r:.60}: {allowed}")


RULES: Final = ("bounded_confidence", "assimilation_repulsion")
"""Rules of influence that come with PRISM."""


class OpinionsParams(Params):
    """How the posts that agents read change their stance, an attribute. Distances are shares of its range."""

    of: str | None = Field(
        None, description="attribute of agents that holds their stance and has a range; null: no opinions"
    )
    rule: Annotated[str, AfterValidator(lambda rule: known_or_object(rule, RULES))] = Field(
        "bounded_confidence",
        description="bounded_confidence (Deffuant et al. 2000, doi:10.1142/S0219525900000078), assimilation_repulsion "
        "(Flache et al. 2017, doi:10.18564/jasss.3521), or module:function for your own rule",
    )
    by: str | None = Field(
        None, description="attribute of posts that holds a post's stance; null: the author's current stance"
    )
    when: Literal["read", "engaged"] = Field(
        "read", description="posts that move an agent: all posts it reads, or only posts it engages with"
    )
    rate: Annotated[Share, OnlyWith("opinions.rule", *RULES)] = Field(
        0.01, description="share of the distance that a reader moves per post (assumed)"
    )
    confidence: Annotated[Share, OnlyWith("opinions.rule", "bounded_confidence")] = Field(
        0.2, description="bounded_confidence: maximum distance at which a post moves its reader"
    )
    repulsion: Annotated[float, OnlyWith("opinions.rule", "assimilation_repulsion")] = Field(
        0.5,
        gt=0,
        le=1,
        description="assimilation_repulsion: distance beyond which a post pushes its reader away (0.5 in Flache et al. "
        "2017); 1: never",
    )

    @property
    def user_rule(self) -> str | None:
        """Your own rule as ``module:function``; None if the rule comes with PRISM or no attribute moves."""
        return self.rule if self.of is not None and self.rule not in RULES else None


def check_opinions(opinions: OpinionsParams, attributes: Mapping[str, AttributeParams]) -> None:
    """Check that the named attributes exist and have a range; raise ValueError if not."""
    for key, name, owner in (("of", opinions.of, "agent"), ("by", opinions.by, "post")):
        known = [other for other, params in attributes.items() if params.of == owner and params.range is not None]
        if name is not None and name not in known:
            names, near = ", ".join(known) or "none", did_you_mean(name, known)
            fault = f"{name!r:.60} is not an attribute of {owner}s with a range ({names}).{near}"
            raise ValueError(f"opinions: {key}: {fault}")
