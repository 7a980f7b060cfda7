"""The rules that nations can follow instead of an LLM: Taylor's, none, and chance."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from prism_mesa.economy.policy import Measure, Policy

if TYPE_CHECKING:
    from prism_mesa.economy.model import EconomyModel


type Rule = Callable[["EconomyModel", int], tuple[Policy, str]]
"""Returns the policy of the nation in a row, and why, for the model as it stands."""


def taylor_rule(model: "EconomyModel", row: int) -> tuple[Policy, str]:
    """Return the policy rate of Taylor's rule (1993), as far as the limits of a quarter allow."""
    limits, world = model.params.economy.limits, model.world
    wished, now = float(model.macro.taylor_rate(world)[row]), float(world.policy_rate[row])
    rate = float(np.clip(wished, limits.lower_bound, limits.highest_rate))
    rate = float(np.clip(rate, now - limits.rate_step, now + limits.rate_step))  # a rate too high comes down in steps
    seen = f"inflation {world.inflation_year[row]:.2f}, output gap {world.gap[row]:.2f}"
    why = f"Taylor's rule gives {wished:.2f}: {seen}"
    return Policy(measures=(Measure(lever="policy_rate", how="to", size=rate, unit="points"),)), why


def no_policy(model: "EconomyModel", row: int) -> tuple[Policy, str]:
    """Return a policy that does nothing."""
    return Policy(), "nothing is done in this run"


_RANDOM: Final = (("policy_rate", "points", 0.5), ("spending", "percent_of_gdp", 0.5), ("taxes", "percent_of_gdp", 0.5))


def random_policy(model: "EconomyModel", row: int) -> tuple[Policy, str]:
    """Return one measure of a drawn instrument and size: half a point at most, tariffs up to 10 percent."""
    quarter, streams, n = model.world.quarter, model.streams, len(model.macro.names)
    n_levers = len(_RANDOM) + (n > 1)
    lever = int(streams.integers("random/lever", row, n_levers, index=quarter)[0])
    size = float(streams.uniform("random/size", row, index=quarter)[0])
    if lever < len(_RANDOM):
        name, unit, most = _RANDOM[lever]
        values: dict[str, Any] = {"lever": name, "size": round((2 * size - 1) * most, 2), "unit": unit}
    else:
        other = int(streams.integers("random/target", row, n - 1, index=quarter)[0])
        target = model.macro.names[other + (other >= row)]
        values = {"lever": "tariff", "how": "to", "size": round(10 * size, 1), "unit": "points", "target": target}
    return Policy(measures=(Measure(**values),)), "drawn at random"


_DECIDED_BY: Final = {"taylor": "Taylor's rule (1993)", "nothing": "nobody", "random": "chance"}


RULES: Final[dict[str, Rule]] = {"taylor": taylor_rule, "nothing": no_policy, "random": random_policy}
