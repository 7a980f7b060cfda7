"""Parameters of interventions, which change settings during a run."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from pydantic import Field, field_validator, model_validator

from prism_mesa.errors import did_you_mean
from prism_mesa.params import MAPPING_KEYS, Params, list_leaves
from prism_mesa.social.params.agents import ChurnParams, HomophilyParams
from prism_mesa.social.params.feed import FeedParams, UtilityParams
from prism_mesa.social.params.network import NetworkRatesParams
from prism_mesa.statechart import parse_expression

_ARRAY_SIZE_KEYS: Final = {"size", "window", "velocity_window", "repeats"}
"""Keys of feeds that determine array shapes."""

CHANGEABLE: Final = (
    *(f"feed.{key}" for key, _ in list_leaves(FeedParams) if key not in _ARRAY_SIZE_KEYS),
    *(f"utility.{key}" for key, _ in list_leaves(UtilityParams)),
    *(f"network.rates.{key}" for key, _ in list_leaves(NetworkRatesParams)),
    *(f"opinions.{key}" for key in ("when", "rate", "confidence", "repulsion")),
    *(f"agents.{key}" for key in ("band", "persistence", "hours", "session", "session_sigma")),
    *(f"agents.homophily.{key}" for key, _ in list_leaves(HomophilyParams)),
    *(f"agents.churn.{key}" for key, _ in list_leaves(ChurnParams) if key != "waiting"),
    "reasoner.model",
)
"""Keys that can change during a run; all other keys are fixed when the run starts."""

_GROUPS: Final = ("feed", "utility", "network.rates", "agents.homophily", "agents.churn")
_UNIFORM_KEYS: Final = ("feed.glances", "feed.attribute")
TARGETABLE_KEYS: Final = tuple(key for key in CHANGEABLE if key.startswith("feed.") and key not in _UNIFORM_KEYS)
"""Keys that can change for only some of the agents."""


@dataclass(frozen=True)
class Act:
    """Marks a field of `InterventionParams` as an act of the intervention.

    To add an act, add a field with this mark. The notes of a run and the ODD protocol describe the act by its text.

    Attributes:
        text: Function that returns a phrase for a value of the field.
    """

    text: Callable[[Any], str]


COMMUNITY: Final = "community"
"""The value of `by` for communities of the network."""


class AssignParams(Params):
    """How agents are assigned to a random share."""

    by: str = Field(
        COMMUNITY,
        min_length=1,
        max_length=100,
        description="assign whole groups: community (of network.kind: stochastic_block), or an attribute of agents",
    )


def _settings_text(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items())


class InterventionParams(Params):
    """New values for some keys, from a given round on, for all agents, some agents, or a random share of these."""

    name: str | None = Field(
        None,
        pattern="^[a-z][a-z0-9_]{0,39}$",
        description="name of the intervention, a column of table agents; needed with share",
    )

    at: int = Field(ge=0, description="first round with the new settings")
    until: int | None = Field(None, ge=1, description="first round without these settings; null: they stay")
    set: Annotated[dict[str, Any], Act(_settings_text)] = Field(default_factory=dict, description="dotted key: value")
    agents: str | None = Field(
        None,
        min_length=1,
        description="expression that selects agents, such as agent.leaning > 0.5 (only for feed.*); null: all agents",
    )

    share: float | None = Field(
        None,
        ge=0,
        le=1,
        description="share of the agents that is treated at random, the others are its control; null: all of them",
    )
    assign: AssignParams | None = Field(None, description="assign whole groups of agents; null: agent by agent")

    @property
    def is_targeted(self) -> bool:
        """Whether the intervention may apply to only some of the agents."""
        return self.agents is not None or self.share is not None

    def applies_in(self, round_: int) -> bool:
        """Return whether the intervention applies in a round."""
        return self.at <= round_ and (self.until is None or round_ < self.until)

    @property
    def text(self) -> str:
        """The acts, rounds and agents of the intervention as text."""
        acts = ", ".join(act.text(getattr(self, name)) for name, act in acts_by_key().items() if getattr(self, name))
        when = f"from round {self.at} on" if self.until is None else f"in rounds {self.at} to {self.until - 1}"
        agents = f"agents with {self.agents}" if self.agents else "the agents"
        if self.share is not None:
            agents = f"a random {self.share:.4g} of {agents}" + (f", by {self.assign.by}" if self.assign else "")
        return f"{when}: {acts}{f' for {agents}' if self.is_targeted else ''}"

    @field_validator("set", mode="before")
    @classmethod
    def _flatten_settings(cls, settings: object) -> object:
        if not isinstance(settings, Mapping):
            return settings
        flat: dict[str, Any] = {}
        for key, value in _flatten(settings):
            if key in flat:
                raise ValueError(f"{key} is set twice")
            flat[key] = value
        return flat

    @field_validator("set")
    @classmethod
    def _check_keys(cls, settings: dict[str, Any]) -> dict[str, Any]:
        for key in settings:
            if key not in CHANGEABLE:
                keys = [name for name in CHANGEABLE if not name.startswith(tuple(f"{group}." for group in _GROUPS))]
                allowed = ", ".join((*(f"{group}.*" for group in _GROUPS), *keys))
                advice = did_you_mean(key, CHANGEABLE) or " Set it in another run, and use prism compare"
                raise ValueError(f"{key} cannot change during a run ({allowed} can).{advice}")
        return settings

    @field_validator("agents")
    @classmethod
    def _check_fields(cls, text: str | None) -> str | None:
        for name in parse_expression(text).fields if text is not None else ():
            if not name.startswith("agent."):
                raise ValueError(f"{name}: use only fields of agents here")
        return text

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.until is not None and self.until <= self.at:
            raise ValueError(f"until={self.until} is not after at={self.at}")
        if not any(getattr(self, name) for name in acts_by_key()):
            raise ValueError(f"the intervention does nothing: give {' or '.join(acts_by_key())}")
        if self.share is not None and self.name is None:
            raise ValueError("share: give the intervention a name, which its draws and its column of agents have")
        if self.assign is not None and self.share is None:
            raise ValueError("assign: give a share, which is treated")
        for key in self.set if self.is_targeted else ():
            if key not in TARGETABLE_KEYS:
                exceptions = " and ".join(_UNIFORM_KEYS)
                raise ValueError(f"{key} cannot change for some agents (feed.* can, except {exceptions})")
        return self


def acts_by_key() -> dict[str, Act]:
    """Return the acts of interventions, by key."""
    fields = InterventionParams.model_fields.items()
    return {name: mark for name, field in fields for mark in field.metadata if isinstance(mark, Act)}


def _flatten(values: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value and f"{prefix}{key}" not in MAPPING_KEYS:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
