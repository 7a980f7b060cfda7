"""Settings that change while a run goes on: parameters."""

import re
from collections.abc import Mapping
from typing import Any, Final, Self

from pydantic import Field, field_validator, model_validator

from prism_mesa.errors import did_you_mean
from prism_mesa.params import ONE_VALUE, Params, leaves
from prism_mesa.social.params.agents import ChurnParams, HomophilyParams
from prism_mesa.social.params.feed import FeedParams, UtilityParams
from prism_mesa.social.params.network import NetworkRatesParams
from prism_mesa.statechart import expression_of

_ARRAYS_DEPEND: Final = {"size", "window", "velocity_window", "repeats"}
"""Keys of feeds by which what has been shown and counted before is laid out."""

CHANGEABLE: Final = (
    *(f"feed.{key}" for key, _ in leaves(FeedParams) if key not in _ARRAYS_DEPEND),
    *(f"utility.{key}" for key, _ in leaves(UtilityParams)),
    *(f"network.rates.{key}" for key, _ in leaves(NetworkRatesParams)),
    *(f"opinions.{key}" for key in ("when", "rate", "confidence", "repulsion")),
    *(f"agents.{key}" for key in ("band", "persistence", "hours", "session", "session_sigma")),
    *(f"agents.homophily.{key}" for key, _ in leaves(HomophilyParams)),
    *(f"agents.churn.{key}" for key, _ in leaves(ChurnParams) if key != "waiting"),
    "reasoner.model",
)
"""Keys that can change in a run: all others make the world that it begins with, or say who decides."""

_WHOLE: Final = r"(feed|utility|network\.rates|agents\.homophily|agents\.churn)\..*"
_OF_ALL: Final = ("feed.glances", "feed.attribute")
OF_SOME: Final = tuple(key for key in CHANGEABLE if key.startswith("feed.") and key not in _OF_ALL)
"""Keys that can change for some agents alone."""


class InterventionParams(Params):
    """Other values of some keys, from a round on."""

    at: int = Field(ge=0, description="first round under the new settings")
    until: int | None = Field(None, ge=1, description="first round without them; null: they hold to the end")
    set: dict[str, Any] = Field(min_length=1, description="dotted key: value")
    agents: str | None = Field(
        None,
        min_length=1,
        description="for whom they hold (feed.* alone), as an expression: agent.leaning > 0.5; null: for all",
    )

    def holds_in(self, round_: int) -> bool:
        """Return whether it holds in a round."""
        return self.at <= round_ and (self.until is None or round_ < self.until)

    @property
    def said(self) -> str:
        """What it changes, when and for whom, in words."""
        settings = ", ".join(f"{key}={value}" for key, value in self.set.items())
        when = f"from round {self.at} on" if self.until is None else f"in rounds {self.at} to {self.until - 1}"
        return f"{when}: {settings}{f' for agents with {self.agents}' if self.agents else ''}"

    @field_validator("set", mode="before")
    @classmethod
    def _by_dotted_key(cls, given: object) -> object:
        if not isinstance(given, Mapping):
            return given
        pairs = _dotted(given)
        keys = [key for key, _ in pairs]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"{key} is set twice")
        return dict(pairs)

    @field_validator("set")
    @classmethod
    def _can_change(cls, given: dict[str, Any]) -> dict[str, Any]:
        for key in given:
            if key not in CHANGEABLE:
                can = dict.fromkeys(re.sub(_WHOLE, r"\1.*", k) for k in CHANGEABLE)
                alike = [k for k in CHANGEABLE if did_you_mean(key.split(".")[-1], [k.split(".")[-1]])]
                near = (
                    did_you_mean(key, alike) or " Give it to a run of its own, and compare the two with prism compare"
                )
                raise ValueError(f"{key} cannot change in a run ({', '.join(can)} can).{near}")
        return given

    @field_validator("agents")
    @classmethod
    def _are_agents(cls, text: str | None) -> str | None:
        for name in expression_of(text).fields if text is not None else ():
            if not name.startswith("agent."):
                raise ValueError(f"{name}: it says who they are by fields of agents alone")
        return text

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        if self.until is not None and self.until <= self.at:
            raise ValueError(f"until={self.until} is not after at={self.at}")
        for key in self.set if self.agents is not None else ():
            if key not in OF_SOME:
                raise ValueError(
                    f"{key} cannot change for some agents alone (feed.* can, but for {' and '.join(_OF_ALL)})"
                )
        return self


def _dotted(values: Mapping[Any, Any], before: str = "", depth: int = 0) -> list[tuple[str, Any]]:
    found = []
    for key, value in values.items():
        nested = isinstance(value, Mapping) and value and depth < _DEEPEST and f"{before}{key}" not in ONE_VALUE
        found += _dotted(value, f"{before}{key}.", depth + 1) if nested else [(f"{before}{key}", value)]
    return found


_DEEPEST: Final = 5
"""Groups within groups that are looked into: keys have fewer."""
