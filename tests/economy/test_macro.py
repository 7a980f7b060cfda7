"""The economy: what it does to a rate, a tariff, a budget; its moments beside those of the United States; its books."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.datasets import macrodata
from statsmodels.tsa.filters.hp_filter import hpfilter

from prism_mesa.economy.impulse_response import rate_response
from prism_mesa.economy.macro import Macro
from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.nations import NATIONS, NationParams
from prism_mesa.economy.params import MacroParams
from prism_mesa.economy.world import Shocks
from prism_mesa.errors import ConfigError
from prism_mesa.runs.measures import business_cycle, hp_cycle

FIVE = tuple(NATIONS.values())
ALONE = (NationParams(name="Alone"),)
SEEDS = range(20)
QUARTERS = 200


@pytest.fixture(scope="module")
def us_data():
    return macrodata.load_pandas().data


# -- the numbers of the United States come from the data ------------------------------------------------


def test_the_united_states_start_where_the_data_end(us_data):
    us, last = NATIONS["United States"], us_data.iloc[-1]
    assert (last["year"], last["quarter"]) == (2009, 3)
    assert us.unemployment == last["unemp"]
    assert us.policy_rate == last["tbilrate"]
    assert us.inflation == pytest.approx(us_data["infl"].iloc[-4:].mean(), abs=0.05)


def test_the_long_run_of_the_united_states_is_the_mean_of_the_data(us_data):
    us = NATIONS["United States"]
    assert us.natural_unemployment == pytest.approx(us_data["unemp"].mean(), abs=0.05)
    assert us.trend_growth == pytest.approx(400 * np.diff(np.log(us_data["realgdp"])).mean(), abs=0.05)


def test_the_filter_is_that_of_statsmodels(us_data):
    series = 100 * np.log(us_data["realgdp"])
    assert hp_cycle(series) == pytest.approx(np.asarray(hpfilter(series, 1600)[0]), abs=1e-6)


def test_the_measures_of_the_data_are_the_known_ones(us_data):
    found = business_cycle(us_data["realgdp"], us_data["unemp"], us_data["infl"])
    known = {"okun": -0.42, "correlation": -0.88, "output_ar1": 0.86, "output_sd": 1.54, "accelerationist": -1.73}
    assert {name: round(found[name], 2) for name in known} == known
    assert found["phillips_level"] > 0  # the level slope is not negative in the data either


# -- moments ---------------------------------------------------------------------------------------------


def moments(model, row):
    table = model.datacollector.get_agent_vars_dataframe().xs(row + 1, level="AgentID")
    quarterly = np.array([world.inflation[row] for world in model.worlds])
    return business_cycle(table["gdp"], table["unemployment"], quarterly)


class Kept(EconomyModel):
    """Remembers every quarter's world."""

    def step(self):
        super().step()
        self.worlds = [*getattr(self, "worlds", []), self.world]


@pytest.fixture(scope="module")
def twenty_runs():
    found = []
    for seed in SEEDS:
        model = Kept(rng=seed, economy_policy="taylor")
        model.run_for(QUARTERS)
        found.append([moments(model, row) for row in range(len(FIVE))])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("row", range(len(FIVE)), ids=list(NATIONS))
def test_under_taylors_rule_an_economy_has_the_moments_of_real_ones(twenty_runs, row):
    mean = {name: np.mean([run[row][name] for run in twenty_runs]) for name in twenty_runs[0][row]}
    assert mean["okun"] == pytest.approx(-0.42, abs=0.15)
    assert mean["correlation"] < -0.6
    assert mean["accelerationist"] < 0
    assert 1.0 <= mean["output_sd"] <= 2.5
    assert mean["output_ar1"] == pytest.approx(0.86, abs=0.1)
    assert mean["phillips_level"] > 0.5 * mean["accelerationist"]  # a level slope is no law, in the data it is positive


@pytest.mark.slow
def test_in_the_united_states_every_single_run_has_them(twenty_runs):
    for run in twenty_runs:
        us = run[0]
        assert us["okun"] == pytest.approx(-0.42, abs=0.15)
        assert us["correlation"] < -0.6
        assert us["accelerationist"] < 0
        assert 1.0 <= us["output_sd"] <= 2.5
        assert us["output_ar1"] == pytest.approx(0.86, abs=0.1)


@pytest.mark.slow
def test_unemployment_stays_between_three_and_eleven_percent_in_every_nation(twenty_runs):
    assert min(nation["unemployment_min"] for run in twenty_runs for nation in run) >= 3
    assert max(nation["unemployment_max"] for run in twenty_runs for nation in run) <= 11


# -- the response to a rate, against the linear system written down by hand -------------------------------


def analytic(params, nation, held, quarters, *, taylor):
    """Return (gap, four-quarter inflation, unemployment) after a rise by a point, by powers of a matrix.

    One nation alone, as deviations from the long run. State: gap now and before, real rate, lending rate,
    inflation of the last four quarters, unemployment; the policy rate comes in from outside, or by Taylor's rule.
    """
    a1, a2, sigma, omega = params.demand_lag_1, params.demand_lag_2, params.rate_effect, params.pass_through
    anchoring, kappa, okun, lag = params.anchoring, params.phillips, params.okun, params.unemployment_lag
    matrix, rate = np.zeros((9, 9)), np.zeros(9)
    memory = np.zeros(9)
    memory[4:8] = 0.25
    gap = np.zeros(9)
    gap[0], gap[1], gap[2] = a1, a2, -sigma
    matrix[0] = gap
    matrix[1, 0] = 1
    lending = np.zeros(9)
    lending[3] = 1 - omega
    matrix[3], rate[3] = lending, omega
    matrix[2], rate[2] = lending - (1 - anchoring) * memory, omega
    matrix[4] = (1 - anchoring) * memory + kappa * gap
    matrix[5, 4] = matrix[6, 5] = matrix[7, 6] = 1
    matrix[8] = -(1 - lag) * okun * gap
    matrix[8, 8] += lag
    if taylor:
        rule = 1.5 * memory
        rule[0] += 0.5
        matrix = matrix + np.outer(rate, rule)
    state, found = np.zeros(9), []
    for quarter in range(quarters):
        state = matrix @ state + rate * (quarter < held)
        found.append((state[0], state[4:8].mean(), state[8]))
    return np.array(found)


@pytest.mark.parametrize("held", [1, 4, 60])
@pytest.mark.parametrize("follows", ["held", "taylor"])
def test_the_response_to_a_higher_rate_is_that_of_the_linear_system(held, follows):
    params = MacroParams()
    response = rate_response(ALONE, params, held=held, follows=follows, quarters=60)
    found = response[["output_gap", "inflation", "unemployment"]].to_numpy()
    assert found == pytest.approx(analytic(params, ALONE[0], held, 60, taylor=follows == "taylor"), abs=1e-9)


def test_other_parameters_have_another_response_and_it_is_theirs():
    params = MacroParams(rate_effect=0.3, pass_through=0.2, anchoring=0.6, phillips=0.5, okun=0.3, unemployment_lag=0.5)
    found = rate_response(ALONE, params, quarters=40)[["output_gap", "inflation", "unemployment"]].to_numpy()
    assert found == pytest.approx(analytic(params, ALONE[0], 4, 40, taylor=False), abs=1e-9)


@pytest.mark.parametrize("nations", [ALONE, FIVE], ids=["alone", "five"])
def test_a_higher_rate_lowers_output_before_inflation_and_raises_unemployment(nations):
    home = rate_response(nations).query("nation == @nations[0].name").set_index("quarter")
    assert home["output_gap"].iloc[1:20].max() < 0
    assert home["inflation"].iloc[1:20].max() < 0
    assert home["unemployment"].iloc[1:20].min() > 0
    assert 3 <= home["output_gap"].idxmin() < home["inflation"].idxmin() <= 16


def analytic_of_two(params, held, quarters):
    """Return the output gaps (home, abroad) of two nations of equal size after a rise of the home rate by a point.

    Everything goes by the sum and the difference of the two: in the sum there is no trade and no exchange rate, it is
    one nation with half the rise; in the difference each nation has half of it, and its trade balance, its exchange
    rate and import prices besides.
    """
    sigma, omega, anchoring = params.rate_effect, params.pass_through, params.anchoring
    rho, pull = params.exchange_lag, 1 - params.exchange_lag
    share, eta, eps = params.openness / 2, params.income_elasticity, params.price_elasticity
    names = ["d", "d1", "real", "lending", "q", "balance", "used", "gap", "p0", "p1", "p2", "p3"]
    at = {name: i for i, name in enumerate(names)}
    unit = np.eye(len(names) + 1)  # the last place is the rise
    now = {name: unit[at[name]] for name in names}
    memory = (now["p0"] + now["p1"] + now["p2"] + now["p3"]) / 4
    new = {"d1": now["d"], "p1": now["p0"], "p2": now["p1"], "p3": now["p2"]}
    new["d"] = params.demand_lag_1 * now["d"] + params.demand_lag_2 * now["d1"] - sigma * now["real"]
    new["lending"] = now["lending"] + omega * (unit[-1] - now["lending"])
    new["real"] = new["lending"] - (1 - anchoring) * memory
    # the world's real rate is the mean of both, which in the difference is none
    new["q"] = rho * now["q"] + pull * (params.exchange_effect * new["real"] + params.balance_effect * now["balance"])
    # home's imports rise with its gap and with both sides' exchange rates; the other side's mirror them
    imports = share * (eta * now["gap"] + eps * 2 * new["q"])
    new["balance"] = -2 * imports
    new["used"] = now["used"] + params.adaptation * (now["balance"] - now["used"])
    new["gap"] = new["d"] + new["balance"] - new["used"]
    dearer = 4 * params.import_prices * share * -2 * (new["q"] - now["q"])
    new["p0"] = (1 - anchoring) * memory + params.phillips * new["gap"] + dearer
    matrix = np.array([new[name] for name in names])
    state, found = np.zeros(len(names)), []
    for quarter in range(quarters):
        state = matrix @ np.append(state, 0.5 * (quarter < held))
        found.append(state[at["gap"]])
    half = 0.5 * analytic(params, ALONE[0], held, quarters, taylor=False)[:, 0]
    return np.column_stack([half + found, half - np.array(found)])


@pytest.mark.parametrize("held", [1, 4, 40])
def test_with_trade_the_response_is_that_of_the_linear_system_too(held):
    params = MacroParams(income_elasticity=1.2, balance_effect=0.7)
    pair = [NationParams(name="Home"), NationParams(name="Abroad")]
    found = rate_response(pair, params, held=held, quarters=40)["output_gap"].to_numpy().reshape(40, 2)
    assert found == pytest.approx(analytic_of_two(params, held, 40), abs=1e-9)


def test_in_the_quarter_of_the_rise_only_the_exchange_rate_is_felt():
    assert rate_response(ALONE, quarters=1)["output_gap"].item() == 0
    assert rate_response(FIVE, quarters=1).query("nation == 'United States'")["output_gap"].item() < 0


def test_a_rise_twice_as_large_has_twice_the_response():
    once, twice = rate_response(FIVE), rate_response(FIVE, size=2.0)
    for name in ("output_gap", "inflation", "unemployment"):
        assert twice[name].to_numpy() == pytest.approx(2 * once[name].to_numpy(), abs=1e-9)


# -- the long run, the books -------------------------------------------------------------------------------


def test_an_economy_in_its_long_run_stays_there():
    macro = Macro(FIVE, MacroParams())
    world = rest = macro.at_rest()
    for _ in range(100):
        world = macro.next_quarter(world, Shocks.none(len(FIVE)))
    assert world.gap == pytest.approx(np.zeros(5), abs=1e-9)
    assert world.inflation == pytest.approx(macro.target)
    assert world.unemployment == pytest.approx(macro.natural)
    assert world.debt == pytest.approx(rest.debt, rel=0.02)
    assert world.gdp == pytest.approx(rest.gdp * (1 + macro.trend / 400) ** 100)


def test_without_any_policy_the_economy_goes_far_off_but_does_not_explode():
    macro = Macro(FIVE, MacroParams())
    world = macro.start()
    for _ in range(1000):
        world = macro.next_quarter(world, Shocks.none(len(FIVE)))
    assert np.abs(world.gap).max() < 15
    assert np.abs(world.inflation).max() < 25


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
    worlds = [replace(macro.at_rest(), **change(macro.at_rest())), macro.at_rest()]
    for _ in range(quarters):
        worlds = [macro.next_quarter(world, Shocks.none(len(FIVE))) for world in worlds]
    return worlds


def test_debt_grows_by_deficit_and_interest_and_shrinks_with_nominal_growth():
    macro = Macro(FIVE, MacroParams())
    world = replace(macro.start(), policy_rate=np.full(5, 6.0))
    later = macro.next_quarter(world, Shocks.none(5))
    growth = macro.trend / 4 + (later.gap - world.gap) + later.inflation / 4  # no barriers to trade here
    primary = later.deficit - world.lending_rate * world.debt / 100
    owed = world.debt * (1 + world.lending_rate / 400) / (1 + growth / 100) + primary / 4
    assert later.debt == pytest.approx(owed)


def tariff_of(row, target, size):
    def change(world):
        tariff = world.tariff.copy()
        tariff[row, target] = size
        return {"tariff": tariff}

    return change


def sanction_of(row, target, size=100.0):
    def change(world):
        sanction = world.sanction.copy()
        sanction[row, target] = size
        return {"sanction": sanction}

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


def test_no_tariff_makes_the_nation_richer_that_imposes_it():
    for size in (5.0, 25.0, 100.0, 200.0):
        others = [0, 1, 2, 3]
        for quarters in (1, 4, 40):
            with_, without = after(tariff_of(4, others, size), quarters=quarters)
            assert with_.gdp[4] < without.gdp[4]
            assert abs((with_.gap - without.gap)[4]) < 2


def test_a_tariff_on_trade_that_is_stopped_costs_nothing_more():
    def both(world):
        return sanction_of(0, 2)(world) | tariff_of(0, 2, 100.0)(world)

    stopped, taxed = after(sanction_of(0, 2))[0], after(both)[0]
    assert taxed.inflation == pytest.approx(stopped.inflation)
    assert taxed.gdp == pytest.approx(stopped.gdp)


def test_a_full_sanction_stops_trade_both_ways_with_nobody_else_and_costs_both_output():
    with_, without = after(sanction_of(0, 4))
    assert with_.imports[0, 4] == with_.imports[4, 0] == 0
    others = np.ones((5, 5), bool)
    others[[0, 4], [4, 0]] = False
    assert with_.imports[others] == pytest.approx(without.imports[others])
    lost = 1 - with_.gdp / without.gdp
    assert lost[4] > lost[0] > 0  # the small side depends more on the other
    assert lost[1:4] == pytest.approx(np.zeros(3))
    base = MacroParams().openness * without.potential[0] / without.potential.sum()
    assert lost[4] == pytest.approx(MacroParams().trade_gain * base)


def test_a_nation_starts_with_the_growth_of_the_data(us_data):
    growth = 100 * (us_data["realgdp"].iloc[-1] / us_data["realgdp"].iloc[-5] - 1)
    assert NATIONS["United States"].growth == pytest.approx(growth, abs=0.1)
    macro = Macro(FIVE, MacroParams())
    assert macro.growth_year(macro.start()).tolist() == pytest.approx([nation.growth for nation in FIVE])


def test_the_deficit_at_the_start_is_reckoned_as_in_any_other_quarter():
    macro = Macro(FIVE, MacroParams())
    rest = macro.at_rest()
    assert macro.next_quarter(rest, Shocks.none(5)).deficit == pytest.approx(rest.deficit, abs=0.05)


@pytest.mark.parametrize(("part", "sign"), [("spending", 1), ("taxes", -1)])
def test_a_wider_budget_lifts_output_for_a_time_and_leaves_debt(part, sign):
    def wider(world):
        levels = getattr(world, part).copy()
        levels[0] += sign
        return {part: levels}

    with_, without = after(wider, quarters=2)
    effect = {"spending": MacroParams().spending_effect, "taxes": MacroParams().tax_effect}[part]
    assert 0.5 * effect < (with_.gap - without.gap)[0] <= 1.2 * effect
    later, plain = after(wider, quarters=40)
    assert later.debt[0] > plain.debt[0]
    assert abs((later.gap - plain.gap)[0]) < 0.5 * effect


def test_borrowing_comes_in_four_instalments_and_raises_debt_by_its_sum():
    def borrowed(world):
        instalments = world.instalments.copy()
        instalments[0] += 0.5
        return {"instalments": instalments}

    with_, without = after(borrowed, quarters=4)
    assert with_.instalments[0].tolist() == [0, 0, 0, 0]
    assert 0 < (with_.debt - without.debt)[0] < 2.0  # growth and taxes pay part of it back
    with_, without = after(borrowed, quarters=4, params=MacroParams(tax_effect=0, debt_response=0))
    assert (with_.debt - without.debt)[0] == pytest.approx(2.0, abs=0.05)


def test_the_zero_of_unemployment_is_a_floor():
    macro = Macro(ALONE, MacroParams())
    world = replace(macro.at_rest(), demand=np.array([40.0]), demand_before=np.array([40.0]))
    assert macro.next_quarter(world, Shocks.none(1)).unemployment.item() == 0


def test_taylors_rule_is_that_of_1993():
    macro = Macro(ALONE, MacroParams())
    world = macro.at_rest()
    assert macro.taylor_rate(world).item() == pytest.approx(4.0)
    hot = replace(world, inflations=np.full((1, 4), 4.0), gaps=np.full((1, 5), 1.0))
    assert macro.taylor_rate(hot).item() == pytest.approx(2 + 4 + 0.5 * 2 + 0.5 * 1)


@pytest.mark.parametrize("okun", [5e-324, 1e-9, 0.03])
def test_a_start_without_output_is_refused(okun):
    with pytest.raises(
        ConfigError, match=r"United States: starts with unemployment 3\.7 points above .*economy\.macro\.okun="
    ):
        EconomyModel(economy_macro_okun=okun, rng=1)
    assert (EconomyModel(economy_macro_okun=0, rng=1).world.gap == 0).all()
