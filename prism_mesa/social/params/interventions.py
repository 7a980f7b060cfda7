"""Settings that change while a run goes on: parameters."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field, field_validator

from prism_mesa.errors import did_you_mean
from prism_mesa.params import Params, leaves
from prism_mesa.social.params.feed import FeedParams
from prism_mesa.social.params.network import NetworkRatesParams
from prism_mesa.social.params.utility import UtilityParams

_ARRAYS_DEPEND: Final = {"size", "window", "velocity_window"}
"""Keys of feeds by which what has been shown and counted before is laid out."""

CHANGEABLE: Final = (
    *(f"feed.{key}" for key, _ in leaves(FeedParams) if key not in _ARRAYS_DEPEND),
    *(f"utility.{key}" for key, _ in leaves(UtilityParams)),
    *(f"network.rates.{key}" for key, _ in leaves(NetworkRatesParams)),
    *(f"agents.{key}" for key in ("band", "persistence", "hours", "session", "session_sigma")),
)
"""Keys that can change in a run: all others make the world that it begins with, or say who decides."""


class InterventionParams(Params):
    """Other values of some keys, from a round on."""

    at: int = Field(ge=0, description="first round under the new settings")
    set: dict[str, Any] = Field(min_length=1, description="dotted key: value")

    @field_validator("set", mode="before")
    @classmethod
    def _by_dotted_key(cls, given: object) -> object:
        return dict(_dotted(given)) if isinstance(given, Mapping) else given

    @field_validator("set")
    @classmethod
    def _can_change(cls, given: dict[str, Any]) -> dict[str, Any]:
        for key in given:
            if key not in CHANGEABLE:
                what = "feed.*, utility.*, network.rates.*, agents.band, .persistence, .hours, .session, .session_sigma"
                raise ValueError(f"{key} cannot change in a run ({what} can).{did_you_mean(key, CHANGEABLE)}")
        return given


def _dotted(values: Mapping[Any, Any], before: str = "") -> list[tuple[str, Any]]:
    found = []
    for key, value in values.items():
        nested = isinstance(value, Mapping) and value
        found += _dotted(value, f"{before}{key}.") if nested else [(f"{before}{key}", value)]
    return found
