"""Sets of nations to run an economy of."""

from prism_mesa.economy.nations import NATIONS, NationParams

FIVE = tuple(NATIONS.values())


ALONE = (NationParams(name="Alone"),)
