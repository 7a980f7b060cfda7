"""Parameters of interventions, which change settings during a run."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from pydantic import Field, field_validator, model_validator

from prism_mesa.errors import did_you_mean
from prism_mesa.params import ONE_VALUE, Params, leaves
from prism_mesa.social.params.agents import ChurnParams, HomophilyParams
from prism_mesa.social.params.feed import FeedParams, UtilityParams
from prism_mesa.social.params.network import NetworkRatesParams
from prism_mesa.statechart import parse_expression

_ARRAY_SIZE_KEYS: Final = {"size", "window", "velocity_window", "repeats"}
"""Keys of feeds that determine array shapes."""

CHANGEABLE: Final = (
    *(f"feed.{key}" for key, _ in leaves(FeedParams) if key not in _ARRAY_SIZE_KEYS),
    *(f"utility.{key}" for key, _ in leaves(UtilityParams)),
    *(f"network.rates.{key}" for key, _ in leaves(NetworkRatesParams)),
    *(f"opinions.{key}" for key in ("when", "rate", "confidence", "repulsion")),
    *(f"agents.{key}" for key in ("band", "persistence", "hours", "session", "session_sigma")),
    *(f"agents.homophily.{key}" for key, _ in leaves(HomophilyParams)),
    *(f"agents.churn.{key}" for key, _ in leaves(ChurnParams) if key != "waiting"),
    "reasoner.model",
)
"""Keys that can change in a run. The other keys are fixed when the run starts."""

_GROUPS: Final = ("feed", "utility", "network.rates", "agents.homophily", "agents.churn")
_FOR_ALL: Final = ("feed.glances", "feed.attribute")
CHANGEABLE_FOR_SOME: Final = tuple(key for key in CHANGEABLE if key.startswith("feed.") and key not in _FOR_ALL)
"""Keys that can change for only some of the agents."""


@dataclass(frozen=True)
class Act:
    """Marks a key of `InterventionParams` as something that an intervention does.

    To add an act, add a field with this mark. The notes of a run and ODD use its text.

    Attributes:
        text: Returns a phrase for the effect of a value of the key.
    """

    text: Callable[[Any], str]


def _settings_text(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items())


class InterventionParams(Params):
    """New values of some keys, from a given round on."""

    at: int = Field(ge=0, description="first round with the new settings")
    until: int | None = Field(None, ge=1, description="first round without them; null: they stay to the end")
    set: Annotated[dict[str, Any], Act(_settings_text)] = Field(default_factory=dict, description="dotted key: value")
    agents: str | None = Field(
        None,
        min_length=1,
        description="the agents concerned (feed.* only), as an expression: agent.leaning > 0.5; null: all",
    )

    def holds_in(self, round_: int) -> bool:
        """Return whether it is in force in a round."""
        return self.at <= round_ and (self.until is None or round_ < self.until)

    @property
    def text(self) -> str:
        """Its acts, rounds and agents as text."""
        acts = ", ".join(act.text(getattr(self, name)) for name, act in acts_by_key().items() if getattr(self, name))
        when = f"from round {self.at} on" if self.until is None else f"in rounds {self.at} to {self.until - 1}"
        return f"{when}: {acts}{f' for agents with {self.agents}' if self.agents else ''}"

    @field_validator("set", mode="before")
    @classmethod
    def _by_dotted_key(cls, settings: object) -> object:
        if not isinstance(settings, Mapping):
            return settings
        flat: dict[str, Any] = {}
        for key, value in _dotted(settings):
            if key in flat:
                raise ValueError(f"{key} is set twice")
            flat[key] = value
        return flat

    @field_validator("set")
    @classmethod
    def _can_change(cls, settings: dict[str, Any]) -> dict[str, Any]:
        for key in settings:
            if key not in CHANGEABLE:
                keys = [name for name in CHANGEABLE if not name.startswith(tuple(f"{group}." for group in _GROUPS))]
                allowed = ", ".join((*(f"{group}.*" for group in _GROUPS), *keys))
                advice = did_you_mean(key, CHANGEABLE) or " Set it in another run, and use prism compare"
                raise ValueError(f"{key} cannot change in a run ({allowed} can).{advice}")
        return settings

    @field_validator("agents")
    @classmethod
    def _reads_only_agents(cls, text: str | None) -> str | None:
        for name in parse_expression(text).fields if text is not None else ():
            if not name.startswith("agent."):
                raise ValueError(f"{name}: only fields of agents are allowed here")
        return text

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.until is not None and self.until <= self.at:
            raise ValueError(f"until={self.until} is not after at={self.at}")
        if not any(getattr(self, name) for name in acts_by_key()):
            raise ValueError(f"does nothing: give {' or '.join(acts_by_key())}")
        for key in self.set if self.agents is not None else ():
            if key not in CHANGEABLE_FOR_SOME:
                raise ValueError(f"{key} cannot change for some agents (feed.* can, except {' and '.join(_FOR_ALL)})")
        return self


def acts_by_key() -> dict[str, Act]:
    """Return the acts of interventions by their key."""
    fields = InterventionParams.model_fields.items()
    return {name: mark for name, field in fields for mark in field.metadata if isinstance(mark, Act)}


def _dotted(values: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value and f"{prefix}{key}" not in ONE_VALUE:
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
