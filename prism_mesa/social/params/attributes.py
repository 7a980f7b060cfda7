"""Parameters of the attributes that you add to agents and posts, and of opinions (attributes that change)."""

import math
from collections.abc import Iterator, Mapping
from keyword import iskeyword
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from prism_mesa.errors import ConfigError, did_you_mean, shorten
from prism_mesa.llm.params import value_text
from prism_mesa.params import Params, Share, check_name_or_object
from prism_mesa.reasoner.params import ReasonerParams
from prism_mesa.social.params.feed import AppealByParams
from prism_mesa.without_effect import OnlyWith

COMMUNITY: Final = "community"
"""The value of `inherits` for attributes of agents, and of ``assign: {by: ...}`` for communities of the network."""

MAX_VALUES = 1000
"""Maximum number of values of an attribute."""

_MAX_NUMBER: Final = 1e12
"""Largest number; whole numbers up to it are stored exactly."""

type Value = StrictBool | StrictInt | StrictFloat | StrictStr
type Number = Annotated[float, Field(ge=-_MAX_NUMBER, le=_MAX_NUMBER)]


class AttributeParams(Params):
    """An attribute and the source of its values.

    Values are drawn unless `column`, `inherits` or `function` supplies them; so are values for blank cells of a file.
    """

    of: Literal["agent", "post"] = Field(description="owner of the attribute; a reshare has the attributes of its root")
    values: tuple[Value, ...] | None = Field(
        None, min_length=1, max_length=MAX_VALUES, description="possible values: booleans, numbers, or texts"
    )
    share: tuple[float, ...] | None = Field(
        None, description="relative frequency of each value, in any unit; null: equal"
    )
    range: tuple[Number, Number] | None = Field(None, description="range of numbers, instead of values")
    mean: Number | None = Field(
        None, description="with sd: mean of a normal distribution that is truncated to range; null: uniform"
    )
    sd: float | None = Field(None, gt=0, le=1e12, description="standard deviation of the normal distribution")
    column: str | None = Field(
        None, min_length=1, description="column with the values, in agents.profiles for agents or posts.file for posts"
    )
    inherits: str | None = Field(
        None,
        description="post: the author's attribute to inherit; agent: `community`, which assigns the values in order to "
        "the blocks of network.kind=stochastic_block",
    )
    noise: float = Field(
        0.0,
        ge=0,
        le=1e12,
        description="with inherits: standard deviation of noise added to a number (which stays in range); for values, "
        "the probability that a value is drawn instead",
    )
    parent: Share = Field(
        0.0, description="replies: the probability that the value is that of the answered post; for a range, its weight"
    )
    function: str | None = Field(
        None, description="module:function that takes columns (name -> array) and returns the values of all rows"
    )

    told: bool = Field(False, description="whether prompts mention it (not if reasoner.persona is archetype)")

    @property
    def text(self) -> str:
        """The values and their source as a phrase."""
        value_list = ", ".join(map(value_text, self.values or ()))
        values = f"one of {value_list}" if self.values else "{:g} to {:g}".format(*self.range or (0.0, 0.0))
        noise = f", with noise of {self.noise:g}" if self.noise else ""
        noise += f", in replies {self.parent:g} of the answered post's" if self.parent else ""
        draw = f"drawn, normal around {self.mean:g} ({self.sd:g})" if self.sd and self.mean is not None else "drawn"
        if self.column is not None:
            return f"{values}; from the column {self.column}, {draw} where it is blank"
        if self.inherits is not None:
            return f"{values}; {'its' if self.of == 'agent' else "its author's"} {self.inherits}{noise}"
        return f"{values}; {draw if self.function is None else f'computed by {self.function}'}"

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        for fault in (*self._source_faults(), *self._value_faults(), *self._range_faults()):
            raise ValueError(fault)
        return self

    def _source_faults(self) -> Iterator[str]:
        if (self.values is None) == (self.range is None):
            yield "give either values or range"
        sources = [key for key in ("column", "inherits", "function") if getattr(self, key) is not None]
        if len(sources) > 1:
            yield f"{' and '.join(sources)}: give only one of these; if you give none, values are drawn"
        if self.of == "agent" and self.inherits not in (None, COMMUNITY):
            yield f"inherits: an agent can only inherit from its {COMMUNITY}"
        if self.of == "agent" and self.inherits is not None and self.sd is not None:
            yield "mean, sd: communities determine the numbers, so nothing is drawn"
        if self.parent and self.of == "agent":
            yield "parent: agents answer no post"
        if self.noise and self.inherits is None:
            yield "noise: has an effect only with inherits"
        if self.function is not None and (self.share or self.sd is not None):
            yield "share, mean, sd: function returns the values, so nothing is drawn"

    def _value_faults(self) -> Iterator[str]:
        if self.values is None:
            return
        if self.mean is not None or self.sd is not None:
            yield "mean, sd: are for range, not for values"
        if len({str if isinstance(v, str) else bool if isinstance(v, bool) else float for v in self.values}) > 1:
            yield "values: must all be true or false, all numbers, or all texts"
        elif not all(-_MAX_NUMBER <= v <= _MAX_NUMBER for v in self.values if not isinstance(v, str)):
            yield f"values: numbers must be in {-_MAX_NUMBER:g}..{_MAX_NUMBER:g}"
        if len(set(self.values)) < len(self.values):
            yield "values: two of them are equal"
        if any(isinstance(v, str) and (not v or v != v.strip()) for v in self.values):
            yield "values: a text is empty, or begins or ends with a blank"
        if self.noise > 1:
            yield "noise: is a probability (0..1) for an attribute with values"
        if self.share is not None and len(self.share) != len(self.values):
            yield f"share: give {len(self.values)} numbers, one for each value, not {len(self.share)}"
        elif self.share is not None and (min(self.share) < 0 or not 0 < sum(self.share) < math.inf):
            yield "share: give numbers of at least 0 with a finite sum above 0"

    def _range_faults(self) -> Iterator[str]:
        if self.range is None:
            return
        low, high = self.range
        if low >= high:
            yield f"range: {low:g} is not below {high:g}"
        if self.share is not None:
            yield "share: is for values, not for range"
        if (self.mean is None) != (self.sd is None):
            yield "mean, sd: give both or neither"
        if self.mean is not None and not low <= self.mean <= high:
            yield f"mean: {self.mean:g} is not in {low:g}..{high:g}"


def check_attributes(attributes: Mapping[str, AttributeParams]) -> None:
    """Check the names of attributes and their inheritance.

    Raises:
        ValueError: If a name is invalid, or an inherited attribute does not exist or has values that do not fit.
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
            raise ValueError(f"{where}{params.inherits} has values that {name} does not have")
        low, high = params.range or (-math.inf, math.inf)
        if source.range and not low <= source.range[0] <= source.range[1] <= high:
            raise ValueError(f"{where}the range of {params.inherits} is not within that of {name}")


def check_model_by(reasoner: ReasonerParams, attributes: Mapping[str, AttributeParams]) -> None:
    """Raise ConfigError unless the keys of `model` are the values of the attribute `model_by`."""
    if reasoner.model_by is None or not isinstance(model := reasoner.model, dict):
        return
    attribute = attributes.get(reasoner.model_by)
    values = list(map(value_text, attribute.values or ())) if attribute is not None and attribute.of == "agent" else []
    if not values:
        names = ", ".join(n for n, params in attributes.items() if params.of == "agent" and params.values) or "none"
        fault = f"{reasoner.model_by!r:.60} is not an attribute of agents with values ({names})"
        raise ConfigError(f"reasoner.model_by: {fault}")
    if differing := [value for value in (*values, *model) if (value in values) != (value in model)]:
        known = shorten(", ".join(values), 200)
        allowed = f"give an LLM for each value of {reasoner.model_by} ({known}), not for {', '.join(model)}"
        raise ConfigError(f"reasoner.model: {differing[0]!r:.60}: {allowed}")


def check_appeal_by(appeal: AppealByParams, attributes: Mapping[str, AttributeParams]) -> None:
    """Raise ValueError unless the attribute of `appeal` exists, and its effect is for the attribute's values."""
    name, effect = appeal.attribute, appeal.effect
    names = [other for other, params in attributes.items() if params.of == "post"]
    if name is not None and name not in names:
        fault = f"{name!r:.60} is not an attribute of posts ({', '.join(names) or 'none'}).{did_you_mean(name, names)}"
        raise ValueError(f"utility.appeal_by.attribute: {fault}")
    values = [value_text(value) for value in (name and attributes[name].values) or ()]
    wrong = (
        [key for key in effect if key not in values] if isinstance(effect, dict) else [effect] * bool(values and effect)
    )
    if name is not None and wrong:
        allowed = f"{{VALUE: NUMBER, ...}} for {shorten(', '.join(values), 200)}" if values else "a number per unit"
        raise ValueError(f"utility.appeal_by.effect: {name}: give {allowed}, not {wrong[0]!r:.60}")


RULES: Final = ("bounded_confidence", "assimilation_repulsion")
"""PRISM's rules of influence."""


class OpinionsParams(Params):
    """How posts change the stance of their readers, which is an attribute. Distances are shares of its range."""

    of: str | None = Field(
        None, description="attribute of agents that holds their stance and has a range; null: no opinions"
    )
    rule: Annotated[str, AfterValidator(lambda rule: check_name_or_object(rule, RULES))] = Field(
        "bounded_confidence",
        description="bounded_confidence (Deffuant et al. 2000, doi:10.1142/S0219525900000078), assimilation_repulsion "
        "(Flache et al. 2017, doi:10.18564/jasss.3521), or module:function for your own rule",
    )
    by: str | None = Field(
        None, description="attribute of posts that holds a post's stance; null: the author's current stance"
    )
    when: Literal["read", "engaged"] = Field(
        "read", description="posts that move an agent: all posts that it reads, or only posts that it engages with"
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
        """Your own rule as ``module:function``; None with one of PRISM's rules or without opinions."""
        return self.rule if self.of is not None and self.rule not in RULES else None


def check_opinions(opinions: OpinionsParams, attributes: Mapping[str, AttributeParams]) -> None:
    """Raise ValueError unless the attributes that `opinions` names exist and have a range."""
    for key, name, owner in (("of", opinions.of, "agent"), ("by", opinions.by, "post")):
        ranged = [other for other, params in attributes.items() if params.of == owner and params.range is not None]
        if name is not None and name not in ranged:
            names, near = ", ".join(ranged) or "none", did_you_mean(name, ranged)
            fault = f"{name!r:.60} is not an attribute of {owner}s with a range ({names}).{near}"
            raise ValueError(f"opinions: {key}: {fault}")
