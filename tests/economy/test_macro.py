"""The macroeconomy against data and against the linear system written down by hand."""

import numpy as np
import pytest
from policy_measures import ALONE, FIVE

from prism_mesa.economy.impulse_response import rate_response
from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.nations import NATIONS
from prism_mesa.economy.params import MacroParams
from prism_mesa.runs.measures import business_cycle

SEEDS = range(6)
QUARTERS = 200


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


def test_the_measures_of_the_data_are_the_known_ones(us_data):
    found = business_cycle(us_data["realgdp"], us_data["unemp"], us_data["infl"])
    known = {"okun": -0.42, "correlation": -0.88, "output_ar1": 0.86, "output_sd": 1.54, "accelerationist": -1.73}
    assert {name: round(found[name], 2) for name in known} == known
    assert found["phillips_level"] > 0  # the level slope is not negative in the data either


# -- moments ---------------------------------------------------------------------------------------------


def moments(model):
    """Return the moments of each nation of a run."""
    collected = model.datacollector.get_agent_vars_dataframe()
    inflation = np.array([world.inflation for world in model.worlds])
    tables = (collected.xs(row + 1, level="AgentID") for row in range(len(FIVE)))
    return [business_cycle(table["gdp"], table["unemployment"], inflation[:, row]) for row, table in enumerate(tables)]


class Kept(EconomyModel):
    """Remembers every quarter's world."""

    def step(self):
        super().step()
        self.worlds = [*getattr(self, "worlds", []), self.world]


@pytest.fixture(scope="module")
def six_runs():
    found = []
    for seed in SEEDS:
        model = Kept(rng=seed, economy_policy="taylor")
        model.run_for(QUARTERS)
        found.append(moments(model))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("row", range(len(FIVE)), ids=list(NATIONS))
def test_under_taylors_rule_an_economy_has_the_moments_of_real_ones(six_runs, row):
    mean = {name: np.mean([run[row][name] for run in six_runs]) for name in six_runs[0][row]}
    assert mean["okun"] == pytest.approx(-0.42, abs=0.15)
    assert mean["correlation"] < -0.6
    assert mean["accelerationist"] < 0
    assert 1.0 <= mean["output_sd"] <= 2.5
    assert mean["output_ar1"] == pytest.approx(0.86, abs=0.1)
    assert min(run[row]["unemployment_min"] for run in six_runs) >= 3
    assert max(run[row]["unemployment_max"] for run in six_runs) <= 11
    assert mean["phillips_level"] > 0.5 * mean["accelerationist"]  # a level slope is no law, in the data it is positive


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
    response = rate_response(ALONE, params, raised_quarters=held, rate_rule=follows, quarters=60)
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
