"""Nations, measures written shortly, and how they are judged."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from prism_mesa.economy.macro import Macro
from prism_mesa.economy.nations import NATIONS, NationParams
from prism_mesa.economy.params import LimitsParams, MacroParams
from prism_mesa.economy.policy import LEVERS, UNITS, Measure, Policy
from prism_mesa.economy.validator import judge

FIVE = tuple(NATIONS.values())
ALONE = (NationParams(name="Alone"),)
NAMES = tuple(NATIONS)
US, UK, CANADA, AUSTRALIA, SWEDEN = range(5)
MACRO = Macro(FIVE, MacroParams())
WORLD = MACRO.start()
LIMITS = LimitsParams()


def rate(size, how="by"):
    return Measure(lever="policy_rate", how=how, size=size, unit="points")


def budget(lever, size, unit="percent_of_gdp", how="by"):
    return Measure(lever=lever, how=how, size=size, unit=unit)


def against(lever, target, size, how="to"):
    return Measure(lever=lever, how=how, size=size, unit="points", target=target)


def judged(*measures, row=US, world=WORLD, limits=LIMITS):
    return judge(Policy(measures=measures), world, row, NAMES, limits)


def failed(judgement):
    return [(verdict.measure, verdict.check) for verdict in judgement.verdicts if not verdict.passed]


def owing(debt, deficit=2.0):
    return replace(WORLD, debt=np.full(5, debt), deficit=np.full(5, deficit))


def measures():
    def made(lever, how, size, place, target):
        units = UNITS[lever]
        return Measure(lever=lever, how=how, size=size, unit=units[place % len(units)], target=target)

    return st.builds(
        made,
        st.sampled_from(LEVERS),
        st.sampled_from(["by", "to"]),
        st.floats(-1e6, 1e6),
        st.integers(0, 1),
        st.sampled_from([None, *NAMES, "Atlantis"]),
    )
