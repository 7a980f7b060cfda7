"""The response of the economy to a rise in a policy rate."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from prism_mesa.economy.macro import Macro
from prism_mesa.economy.nations import NationParams
from prism_mesa.economy.observation import indicators
from prism_mesa.economy.params import MacroParams
from prism_mesa.economy.tables import SHOWN
from prism_mesa.economy.world import Shocks, World

type Follows = Literal["held", "taylor"]


def rate_response(
    nations: Sequence[NationParams],
    params: MacroParams | None = None,
    *,
    row: int = 0,
    size: float = 1.0,
    held: int = 4,
    follows: Follows = "held",
    quarters: int = 40,
) -> pd.DataFrame:
    """Return the effect of a rise in one nation's policy rate, from the long-run equilibrium and without other shocks.

    Args:
        nations: The nations.
        params: The structure of their economies; None for the defaults.
        row: The nation whose rate rises.
        size: The rise in percentage points.
        held: Number of quarters with the higher rate.
        follows: With `held`, all other rates stay; with `taylor`, the rise adds to the rates of Taylor's rule.
        quarters: Number of quarters from the rise on.

    Returns:
        Columns quarter (0: the first with the higher rate), nation, and the differences in output_gap, inflation (mean
        of four quarters), unemployment and policy_rate, in percent or points.
    """
    macro = Macro(nations, params or MacroParams())
    base = raised = macro.at_rest()
    resting, no_shocks = base.policy_rate, Shocks.none(len(nations))

    def next_world(world: World, rise: np.ndarray) -> World:
        rate = resting if follows == "held" else macro.taylor_rate(world)
        return macro.next_quarter(replace(world, policy_rate=rate + rise), no_shocks)

    rows = []
    for quarter in range(quarters):
        rise = np.zeros(len(nations))
        base = next_world(base, rise)
        rise[row] = size if quarter < held else 0.0
        raised = next_world(raised, rise)
        before, after = indicators(macro, base), indicators(macro, raised)
        changes = {name: after[name] - before[name] for name in SHOWN}
        rows.append(pd.DataFrame({"quarter": quarter, "nation": macro.names, **changes}))
    return pd.concat(rows, ignore_index=True)
