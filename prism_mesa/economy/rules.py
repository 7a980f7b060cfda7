"""The rules that nations can follow instead of an LLM: Taylor's rule, no policy, and random policy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from prism_mesa.economy.macro import Macro
from prism_mesa.economy.params import LimitsParams
from prism_mesa.economy.policy import Lever, Measure, Policy, Unit
from prism_mesa.economy.world import World
from prism_mesa.streams import Streams


@dataclass(frozen=True)
class RuleContext:
    """The inputs of a rule: the world, its equations, the limits of a quarter, and keyed draws."""

    world: World
    macro: Macro
    limits: LimitsParams
    streams: Streams


class Rule(NamedTuple):
    """A rule that sets policy: its label in summaries, and a function that returns a nation's policy and the reason."""

    label: str
    policy: Callable[[RuleContext, int], tuple[Policy, str]]


def taylor_rule(context: RuleContext, row: int) -> tuple[Policy, str]:
    """Return the policy rate of Taylor's rule (1993), within the limits of a quarter."""
    limits, world = context.limits, context.world
    target, current = float(context.macro.taylor_rate(world)[row]), float(world.policy_rate[row])
    rate = float(np.clip(target, limits.lower_bound, limits.highest_rate))
    rate = float(np.clip(rate, current - limits.rate_step, current + limits.rate_step))  # one step at most
    indicators = f"inflation {world.inflation_year[row]:.2f}, output gap {world.gap[row]:.2f}"
    reason = f"Taylor's rule gives {target:.2f}: {indicators}"
    return Policy(measures=(Measure(lever="policy_rate", how="to", size=rate, unit="points"),)), reason


_RANDOM_MEASURES: Final[tuple[tuple[Lever, Unit, float], ...]] = (
    ("policy_rate", "points", 0.5),
    ("spending", "percent_of_gdp", 0.5),
    ("taxes", "percent_of_gdp", 0.5),
)


def random_policy(context: RuleContext, row: int) -> tuple[Policy, str]:
    """Return a measure with a random instrument and size: at most half a point, or a tariff up to 10 percent."""
    quarter, streams, names = context.world.quarter, context.streams, context.macro.names
    n_nations = len(names)
    n_levers = len(_RANDOM_MEASURES) + (n_nations > 1)
    lever = int(streams.integers("random/lever", row, n_levers, index=quarter)[0])
    size = float(streams.uniform("random/size", row, index=quarter)[0])
    if lever < len(_RANDOM_MEASURES):
        name, unit, max_size = _RANDOM_MEASURES[lever]
        measure = Measure(lever=name, size=round((2 * size - 1) * max_size, 2), unit=unit)
    else:
        other_index = int(streams.integers("random/target", row, n_nations - 1, index=quarter)[0])
        target = names[other_index + (other_index >= row)]
        measure = Measure(lever="tariff", how="to", size=round(10 * size, 1), unit="points", target=target)
    return Policy(measures=(measure,)), "drawn at random"


RULES: Final = {
    "taylor": Rule("Taylor's rule (1993)", taylor_rule),
    "nothing": Rule("nobody", lambda context, row: (Policy(), "nothing is done in this run")),
    "random": Rule("chance", random_policy),
}
"""The rules by name in `economy.policy`."""
