"""The response of the economy to a rise in a policy rate."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from prism_mesa.economy.macro import Macro
from prism_mesa.economy.nations import NationParams
from prism_mesa.economy.observation import compute_indicators
from prism_mesa.economy.params import MacroParams
from prism_mesa.economy.tables import RESPONSE_INDICATORS
from prism_mesa.economy.world import Shocks, World

type RateRule = Literal["held", "taylor"]


def rate_response(
    nations: Sequence[NationParams],
    params: MacroParams | None = None,
    *,
    raised_quarters: int = 4,
    rate_rule: RateRule = "held",
    quarters: int = 40,
) -> pd.DataFrame:
    """Return the effect of a rise by 1 point in the first nation's policy rate, from equilibrium, without other shocks.

    The rate is higher for `raised_quarters` of `quarters`. With the rule `held`, rates are otherwise constant; with
    `taylor`, the rise is added to Taylor's rule. `params` are the structure of the economies; None for the defaults.

    Returns:
        The columns quarter (0: the first with the higher rate), nation, and the effects on output_gap, inflation (mean
        of four quarters), unemployment and policy_rate, in percent or points.
    """
    macro = Macro(nations, params or MacroParams())
    base_world = raised_world = macro.equilibrium()
    long_run_rate, no_shocks = base_world.policy_rate, Shocks.none(len(nations))

    def next_world(world: World, raised_rate: np.ndarray) -> World:
        rate = long_run_rate if rate_rule == "held" else macro.taylor_rate(world)
        return macro.next_quarter(replace(world, policy_rate=rate + raised_rate), no_shocks)

    rows = []
    for quarter in range(quarters):
        raised_rate = np.zeros(len(nations))
        base_world = next_world(base_world, raised_rate)
        raised_rate[0] = 1.0 if quarter < raised_quarters else 0.0
        raised_world = next_world(raised_world, raised_rate)
        base_values, raised_values = compute_indicators(macro, base_world), compute_indicators(macro, raised_world)
        changes = {name: raised_values[name] - base_values[name] for name in RESPONSE_INDICATORS}
        rows.append(pd.DataFrame({"quarter": quarter, "nation": macro.names, **changes}))
    return pd.concat(rows, ignore_index=True)
