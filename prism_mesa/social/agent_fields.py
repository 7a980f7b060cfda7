"""Fields of `SocialAgent`: properties over columns of the population, and the checks of what is set."""

from numbers import Real
from typing import Any

import numpy as np

from prism_mesa.domain import BIG_FIVE
from prism_mesa.errors import AgentError


def whole_number(name: str, value: int, least: int) -> int:
    """Return `value` as a whole number that fits its column."""
    if not isinstance(value, int | np.integer) or not least <= value < 2**31:
        raise AgentError(f"SocialAgent.{name}: {value!r} is no whole number from {least} on")
    return int(value)


def share_property(name: str, doc: str) -> property:
    """Return a property over a column of numbers in 0..1."""

    def get(agent: Any) -> float:
        return float(getattr(agent._platform.population, name)[agent.row])

    def put(agent: Any, value: float) -> None:
        getattr(agent._platform.population, name)[agent.row] = number_between(name, value, 0.0, 1.0)

    return property(get, put, doc=doc)


def trait_property(name: str) -> property:
    """Return a property over one of the Big Five."""
    place = BIG_FIVE.index(name)

    def get(agent: Any) -> float:
        return float(agent._platform.population.traits[agent.row, place])

    def put(agent: Any, value: float) -> None:
        agent._platform.population.traits[agent.row, place] = number_between(name, value, 1.0, 5.0)

    return property(get, put, doc=f"{name.capitalize()}, 1..5.")


def number_between(name: str, value: Any, low: float, high: float) -> float:
    """Return `value` as a float, if it is a number from `low` to `high`."""
    if not isinstance(value, Real) or not low <= float(value) <= high:
        raise AgentError(f"SocialAgent.{name}: {value!r} is not in {low:g}..{high:g}")
    return float(value)


class DeclaredFields:
    """The attributes of an agent that the configuration declares, as attributes in Python (docs/attributes.md)."""

    def __getattr__(self: Any, name: str) -> Any:
        """Return an attribute that the configuration declares (`attributes`)."""
        if not name.startswith("_") and self._is_made:
            known = self._platform.attributes.known
            if name in known.agents:
                place, own = known.of_agents(name)
                return own.value(float(self._platform.population.attributes[self.row, place]))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self: Any, name: str, value: Any) -> None:
        """Set an attribute; one that the configuration declares is set in its column.

        Raises:
            AgentError: If it is declared, and the value is none of its values.
        """
        known = self._platform.attributes.known if self._is_made else None
        if known is None or name not in known.agents:
            super().__setattr__(name, value)
            return
        place, own = known.of_agents(name)
        try:
            self._platform.population.attributes[self.row, place] = own.number(value)
        except ValueError as error:
            raise AgentError(f"{type(self).__name__}.{name}: {error}") from None
