"""Columns of one's own, of agents and of posts: parameters."""

import math
from collections.abc import Mapping
from keyword import iskeyword
from typing import Annotated, Final, Literal, Self

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from prism_mesa.errors import ConfigError, shortened
from prism_mesa.llm.params import value_text
from prism_mesa.params import Params
from prism_mesa.reasoner.params import ReasonerParams

COMMUNITY: Final = "community"
"""What an attribute of agents can inherit from."""

MOST_VALUES = 1000
"""Values that an attribute can be declared with."""

_MOST: Final = 1e12
"""Of a number: all whole ones up to it are kept exactly."""

type Value = StrictBool | StrictInt | StrictFloat | StrictStr
type Number = Annotated[float, Field(ge=-_MOST, le=_MOST)]


class AttributeParams(Params):
    """What an attribute is, and where its values come from.

    They are drawn, unless `column`, `inherits` or `function` says otherwise; what a file leaves blank is drawn too.
    """

    of: Literal["agent", "post"] = Field(description="whose it is; a reshare has those of its root")
    values: tuple[Value, ...] | None = Field(
        None, min_length=1, max_length=MOST_VALUES, description="its values: all true and false, all numbers, or texts"
    )
    share: tuple[float, ...] | None = Field(
        None, description="how often each value is drawn, in any unit; null: all alike"
    )
    range: tuple[Number, Number] | None = Field(
        None, description="numbers from the first to the second, in place of values"
    )
    mean: Number | None = Field(
        None, description="with sd: what is drawn is normal, cut at the ends of range; null: uniform"
    )
    sd: float | None = Field(None, gt=0, le=1e12, description="standard deviation of that normal distribution")
    column: str | None = Field(
        None, min_length=1, description="column with the values: of agents.profiles for agents, of posts.file for posts"
    )
    inherits: str | None = Field(
        None,
        description="post: the attribute of its author that it takes; agent: community, its block "
        "(network.kind=stochastic_block), over which the values are spread in their order",
    )
    noise: float = Field(
        0.0,
        ge=0,
        le=1e12,
        description="with inherits: standard deviation of what is added to a number, which stays in range; of values "
        "the probability that one is drawn instead",
    )
    function: str | None = Field(
        None, description="module:function that is given columns (name -> array) and returns the values of all rows"
    )

    told: bool = Field(False, description="whether prompts tell an LLM of it (not where reasoner.persona is archetype)")

    @property
    def said(self) -> str:
        """What its values are and where they come from, in words."""
        kinds = ", ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in self.values or ())
        what = f"one of {kinds}" if self.values else "{:g} to {:g}".format(*self.range or (0.0, 0.0))
        noise = f", with noise of {self.noise:g}" if self.noise else ""
        drawn = f"drawn, normal around {self.mean:g} ({self.sd:g})" if self.sd and self.mean is not None else "drawn"
        whose = "its" if self.of == "agent" else "its author's"
        sources = {
            self.column: f"from the column {self.column}, {drawn} where it is blank",
            self.inherits: f"{whose} {self.inherits}{noise}",
            self.function: f"worked out by {self.function}",
        }
        return f"{what}; {next((told for given, told in sources.items() if given is not None), drawn)}"

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if (self.values is None) == (self.range is None):
            raise ValueError("give either values or range")
        sources = [key for key in ("column", "inherits", "function") if getattr(self, key) is not None]
        if len(sources) > 1:
            raise ValueError(f"{' and '.join(sources)}: give one of them; without any the values are drawn")
        if self.of == "agent" and self.inherits not in (None, COMMUNITY):
            raise ValueError(f"inherits: an agent has no author; it can inherit from its {COMMUNITY} alone")
        if self.of == "agent" and self.inherits is not None and self.sd is not None:
            raise ValueError("mean, sd: nothing normal is drawn where communities give the numbers")
        if self.noise and self.inherits is None:
            raise ValueError("noise: there is nothing that it could be added to without inherits")
        if self.function is not None and (self.share or self.sd is not None):
            raise ValueError("share, mean, sd: nothing is drawn where function gives the values")
        return self

    @model_validator(mode="after")
    def _values_can_be_drawn(self) -> Self:
        if self.values is None:
            return self
        if self.mean is not None or self.sd is not None:
            raise ValueError("mean, sd: are for range, not for values")
        kinds = {str if isinstance(v, str) else bool if isinstance(v, bool) else float for v in self.values}
        if len(kinds) > 1:
            raise ValueError("values: give all true and false, all numbers, or all texts")
        if not all(-_MOST <= v <= _MOST for v in self.values if not isinstance(v, str)):
            raise ValueError(f"values: a number has to lie in {-_MOST:g}..{_MOST:g}")
        if len(set(self.values)) < len(self.values):
            raise ValueError("values: one of them stands twice")
        if any(isinstance(v, str) and not v.strip() for v in self.values):
            raise ValueError("values: a text is blank, which stands for no value in files")
        if any(isinstance(v, str) and v != v.strip() for v in self.values):
            raise ValueError("values: a text begins or ends with a blank, which files are read without")
        if self.noise > 1:
            raise ValueError("noise: is a probability (0..1) where there are values")
        if self.share is not None:
            if len(self.share) != len(self.values):
                raise ValueError(f"share: give {len(self.values)} numbers, one for each value, not {len(self.share)}")
            if min(self.share) < 0 or not 0 < sum(self.share) < math.inf:
                raise ValueError("share: give numbers from 0 on with a finite sum above 0")
        return self

    @model_validator(mode="after")
    def _range_is_one(self) -> Self:
        if self.range is None:
            return self
        low, high = self.range
        if low >= high:
            raise ValueError(f"range: {low:g} is not below {high:g}")
        if self.share is not None:
            raise ValueError("share: is for values, not for range")
        if (self.mean is None) != (self.sd is None):
            raise ValueError("mean, sd: give both or none")
        if self.mean is not None and not low <= self.mean <= high:
            raise ValueError(f"mean: {self.mean:g} is not in {low:g}..{high:g}")
        return self


def check_attributes(given: Mapping[str, AttributeParams]) -> None:
    """Check names, and what attributes say of each other.

    Raises:
        ValueError: If a name is none, or an attribute inherits from one that is not there or is of another kind.
    """
    for name, own in given.items():
        if not name.isidentifier() or iskeyword(name) or name.startswith("_") or not name.isascii():
            raise ValueError(f"attributes: {name!r:.60} is no name (letters, digits and _, a letter first)")
        if own.inherits is None or own.of == "agent":
            continue
        source = given.get(own.inherits)
        if source is None or source.of != "agent":
            have = ", ".join(known for known, other in given.items() if other.of == "agent") or "none"
            raise ValueError(f"attributes: {name}.inherits: {own.inherits!r:.60} is no attribute of agents ({have})")
        if (source.values is None) != (own.values is None) or not set(source.values or ()) <= set(own.values or ()):
            raise ValueError(f"attributes: {name}.inherits: {own.inherits} has other values than {name}")
        if own.range and source.range and not own.range[0] <= source.range[0] <= source.range[1] <= own.range[1]:
            raise ValueError(f"attributes: {name}.inherits: the range of {own.inherits} is not within that of {name}")


def check_model_by(reasoner: ReasonerParams, attributes: Mapping[str, AttributeParams]) -> None:
    """Check that the keys of `model` are the values of the attribute `model_by`.

    Raises:
        ConfigError: If they are not.
    """
    if reasoner.model_by is None or not isinstance(model := reasoner.model, dict):
        return
    by = attributes.get(reasoner.model_by)
    values = list(map(value_text, by.values or ())) if by is not None and by.of == "agent" else []
    if not values:
        have = ", ".join(name for name, each in attributes.items() if each.of == "agent" and each.values) or "none"
        wanted = f"is no attribute of agents with values (there are: {have}): declare it under attributes"
        raise ConfigError(f"reasoner.model_by: {reasoner.model_by!r:.60} {wanted}")
    if differ := [value for value in (*values, *model) if (value in values) != (value in model)]:
        known = shortened(", ".join(values), 200)
        allowed = f"give an LLM for each value of {reasoner.model_by} ({known}), not for {', '.join(model)}"
        raise ConfigError(f"reasoner.model: {differ[0]!r:.60}: {allowed}")
