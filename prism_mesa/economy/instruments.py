"""What measures do to a nation's own instruments."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from prism_mesa.economy.policy import AGAINST_NATIONS, LEVERS, Measure, Policy, moved
from prism_mesa.economy.world import MEMORY, World

_DIGITS: Final = 9
"""Of instruments that count; what is smaller is the rounding of sums."""


def level_of(world: World, row: int, measure: Measure, names: Sequence[str]) -> float:
    """Return where an instrument stands: a rate, a budget or a debt in percent, a tariff or sanction in percent.

    Raises:
        ValueError: If the target is no nation.
    """
    return float(getattr(world, measure.lever)[_place(row, measure, names)])


def _place(row: int, measure: Measure, names: Sequence[str]) -> int | tuple[int, int]:
    """Return where in the world's field of its name an instrument stands."""
    return (row, names.index(measure.target or "")) if measure.lever in AGAINST_NATIONS else row


def level_after(world: World, row: int, measure: Measure, names: Sequence[str]) -> float:
    """Return where a measure would set its instrument, in the unit of `level_of`.

    Raises:
        ValueError: If the target is no nation.
    """
    if measure.how == "to":
        return round(measure.size, _DIGITS)
    now = level_of(world, row, measure, names)
    return round(moved(now, measure.size, measure.unit), _DIGITS)


def with_policies(world: World, policies: Mapping[int, Policy], names: Sequence[str]) -> World:
    """Return the world with the instruments of some nations set; each policy reaches the row of its own nation only.

    Borrowing comes in four equal instalments. Beside spending or taxes it says how these are financed, which has no
    effect of its own: what the budget lacks is borrowed anyway.

    Raises:
        ValueError: If a target is no nation.
    """
    own = {lever: getattr(world, lever).copy() for lever in LEVERS if lever != "debt"}
    instalments = world.instalments.copy()
    for row, policy in policies.items():
        for measure in policy.measures:
            after = level_after(world, row, measure, names)
            if measure.lever != "debt":
                own[measure.lever][_place(row, measure, names)] = after
            elif not policy.sets_budget:
                instalments[row] += np.full(MEMORY, (after - world.debt[row]) / MEMORY)
    return replace(world, **own, instalments=instalments)
