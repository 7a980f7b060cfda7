"""The macroeconomy in the long run: trade, debt, tariffs, sanctions, borrowing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_measures import ALONE, FIVE

from prism_mesa.economy.macro import Macro
from prism_mesa.economy.nations import NATIONS, NationParams
from prism_mesa.economy.params import MacroParams
from prism_mesa.economy.world import Shocks

# -- the long run, the books -------------------------------------------------------------------------------


def test_an_economy_in_its_long_run_stays_there():
    macro = Macro(FIVE, MacroParams())
    world = rest = macro.equilibrium()
    for _ in range(100):
        world = macro.next_quarter(world, Shocks.none(len(FIVE)))
    assert world.gap == pytest.approx(np.zeros(5), abs=1e-9)
    assert world.inflation == pytest.approx(macro.inflation_target)
    assert world.unemployment == pytest.approx(macro.natural_unemployment)
    assert world.debt == pytest.approx(rest.debt, rel=0.02)
    assert world.gdp == pytest.approx(rest.gdp * (1 + macro.trend_growth / 400) ** 100)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_world_trade_sums_to_zero_whatever_nations_do(n, seed):
    draws = np.random.default_rng(seed)
    nations = [NationParams(name=f"N{i}", size=float(draws.uniform(0.1, 20))) for i in range(n)]
    macro = Macro(nations, MacroParams())
    world = macro.start()
    for _ in range(5):
        tariff, sanction = draws.uniform(0, 200, (n, n)), draws.uniform(0, 100, (n, n))
        world = replace(world, tariff=tariff, sanction=sanction, policy_rate=draws.uniform(0, 25, n))
        shocks = Shocks(*(draws.normal(0, 3, n) for _ in range(3)))
        world = macro.next_quarter(world, shocks)
        assert world.trade_balance.sum() == pytest.approx(0, abs=1e-9)
        assert world.imports.min() >= 0
        assert world.exports.sum() == pytest.approx(world.imports.sum())


def after(change, quarters=1, params=None):
    """Return (world with the change, world without it) after some quiet quarters from the long run."""
    macro = Macro(FIVE, params or MacroParams())
    worlds = [replace(macro.equilibrium(), **change(macro.equilibrium())), macro.equilibrium()]
    for _ in range(quarters):
        worlds = [macro.next_quarter(world, Shocks.none(len(FIVE))) for world in worlds]
    return worlds


def tariff_of(row, target, size):
    def change(world):
        tariff = world.tariff.copy()
        tariff[row, target] = size
        return {"tariff": tariff}

    return change


def test_a_tariff_costs_both_sides_output_and_the_importer_a_rise_of_prices_once():
    with_, without = after(tariff_of(0, 2, 20.0))
    assert with_.imports[0, 2] == pytest.approx(without.imports[0, 2] / 1.2)
    assert with_.imports[2, 0] == without.imports[2, 0]
    assert with_.gap[2] < without.gap[2] - 0.5
    assert abs((with_.gap - without.gap)[0]) < 0.05  # buyers pay as much as before, part of it to their government
    assert (with_.gdp < without.gdp)[[0, 2]].all()
    assert with_.inflation[0] > without.inflation[0]
    assert with_.deficit[0] < without.deficit[0]
    later, plain = after(tariff_of(0, 2, 20.0), quarters=2)
    assert (later.inflation - plain.inflation)[0] < (with_.inflation - without.inflation)[0]


def test_a_nation_starts_with_the_growth_of_the_data(us_data):
    growth = 100 * (us_data["realgdp"].iloc[-1] / us_data["realgdp"].iloc[-5] - 1)
    assert NATIONS["United States"].growth == pytest.approx(growth, abs=0.1)
    macro = Macro(FIVE, MacroParams())
    assert macro.growth_year(macro.start()).tolist() == pytest.approx([nation.growth for nation in FIVE])


def test_taylors_rule_is_that_of_1993():
    macro = Macro(ALONE, MacroParams())
    world = macro.equilibrium()
    assert macro.taylor_rate(world).item() == pytest.approx(4.0)
    hot = replace(world, inflations=np.full((1, 4), 4.0), gaps=np.full((1, 5), 1.0))
    assert macro.taylor_rate(hot).item() == pytest.approx(2 + 4 + 0.5 * 2 + 0.5 * 1)
