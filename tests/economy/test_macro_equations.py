"""The equations of a quarter against the same ones written out here, nation by nation and pair by pair."""

from dataclasses import fields, replace
from statistics import mean

import numpy as np
import pytest
from policy_measures import FIVE

from prism_mesa.economy.macro import Macro
from prism_mesa.economy.nations import NationParams
from prism_mesa.economy.params import MacroParams
from prism_mesa.economy.world import Shocks, World
from prism_mesa.errors import ConfigError


def base(p, potential, i, j):
    return 0.0 if i == j else p.openness * potential[i] * potential[j] / sum(potential)


def left_open(p, w, i, j):
    stopped = (1 - w.sanction[i][j] / 100) * (1 - w.sanction[j][i] / 100)
    return stopped / (1 + w.tariff[i][j] / 100) ** p.price_elasticity


def imports_by_hand(p, w, potential, exchange):
    n = len(potential)

    def of(i, j):
        percent = p.income_elasticity * w.gaps[i][0] + p.price_elasticity * (exchange[i] - exchange[j])
        return base(p, potential, i, j) * max(1 + percent / 100, 0) * left_open(p, w, i, j)

    return [[of(i, j) for j in range(n)] for i in range(n)]


def balance_by_hand(imports, potential):
    n = range(len(potential))
    return [100 * (sum(imports[j][i] for j in n) - sum(imports[i][j] for j in n)) / potential[i] for i in n]


def long_run_taxes(nation):
    growth = nation.trend_growth + nation.inflation_target
    interest = nation.neutral_rate + nation.inflation_target
    return nation.spending + nation.debt * (interest - growth) / (100 + growth / 4)


def budget_by_hand(own, p, w, i, gap, inflation, loss, duties):
    revenue = w.taxes[i] + p.stabilizer * gap + p.debt_response * (w.debt[i] - own.debt) + duties
    primary = w.spending[i] - revenue + 4 * w.instalments[i][0]
    growth = own.trend_growth / 4 + gap - w.gaps[i][0] - (loss - w.losses[i][0]) + inflation / 4
    debt = w.debt[i] * (1 + w.lending_rate[i] / 400) / (1 + growth / 100) + primary / 4
    return primary + w.lending_rate[i] * w.debt[i] / 100, debt


def next_by_hand(w, found, new):
    """Return the fields of the next world: what was found of each nation, what is shifted, and what is kept."""
    n = range(len(w.demand))
    kept = {name: getattr(w, name) for name in ("policy_rate", "spending", "taxes", "tariff", "sanction")}
    shifted = {
        "gaps": [[found["gap"][i], *w.gaps[i][:4]] for i in n],
        "inflations": [[found["inflation"][i], *w.inflations[i][:3]] for i in n],
        "losses": [[found["loss"][i], *w.losses[i][:4]] for i in n],
        "instalments": [[*w.instalments[i][1:], 0] for i in n],
    }
    told = {name: found[name] for name in ("demand", "unemployment", "costs", "deficit", "debt", "stimulus")}
    before = {"demand_before": w.demand, "tariff_before": w.tariff, "quarter": w.quarter + 1}
    return kept | shifted | told | before | new


def quarter_by_hand(nations, p, w, shocks):
    """Return the fields of the next world, as lists."""
    n = range(len(nations))
    expected = [
        p.anchoring * own.inflation_target + (1 - p.anchoring) * mean(w.inflations[i]) for i, own in enumerate(nations)
    ]
    lending = [was + p.pass_through * (rate - was) for was, rate in zip(w.lending_rate, w.policy_rate, strict=True)]
    real = [lending[i] - expected[i] - nations[i].neutral_rate for i in n]
    worlds = sum(real[i] * w.potential[i] for i in n) / sum(w.potential)
    pull = [p.exchange_effect * (real[i] - worlds) + p.balance_effect * w.balance[i] for i in n]
    exchange = [p.exchange_lag * w.exchange[i] + (1 - p.exchange_lag) * pull[i] for i in n]
    potential = [w.potential[i] * (1 + nations[i].trend_growth / 400) for i in n]
    imports = imports_by_hand(p, w, potential, exchange)
    balance = balance_by_hand(imports, potential)
    found = {name: [] for name in "demand gap inflation unemployment costs loss deficit debt stimulus".split()}
    used = {
        "adapted_stimulus": [
            was + p.adaptation * (new - was) for was, new in zip(w.adapted_stimulus, w.stimulus, strict=True)
        ],
        "adapted_balance": [
            was + p.adaptation * (new - was) for was, new in zip(w.adapted_balance, w.balance, strict=True)
        ],
    }
    for i, own in enumerate(nations):
        duties = sum(w.tariff[i][j] * imports[i][j] for j in n) / potential[i]
        spent = p.spending_effect * (w.spending[i] - own.spending)
        left = p.tax_effect * (4 * w.instalments[i][0] - (w.taxes[i] - long_run_taxes(own)))
        stimulus = spent + left - duties
        demand = p.demand_lag_1 * w.demand[i] + p.demand_lag_2 * w.demand_before[i]
        demand += shocks.demand[i] - p.rate_effect * w.real_rate[i]
        gap = demand + stimulus - used["adapted_stimulus"][i] + balance[i] - used["adapted_balance"][i]
        rise = [exchange[j] - w.exchange[j] for j in n]
        abroad = sum(base(p, w.potential, i, j) / w.potential[i] * (rise[j] - rise[i]) for j in n)
        dearer = sum(imports[i][j] / potential[i] * (w.tariff[i][j] - w.tariff_before[i][j]) for j in n)
        costs = p.supply_lag * w.costs[i] + shocks.supply[i]
        inflation = expected[i] + p.phillips * gap + 4 * p.import_prices * (abroad + dearer) + costs
        usual, lag = own.natural_unemployment, p.unemployment_lag
        unemployment = usual + lag * (w.unemployment[i] - usual) - (1 - lag) * p.okun * gap + shocks.labor[i]
        lost = sum(base(p, potential, i, j) * (2 - left_open(p, w, i, j) - left_open(p, w, j, i)) / 2 for j in n)
        loss = 100 * p.trade_gain * lost / potential[i]
        deficit, debt = budget_by_hand(own, p, w, i, gap, inflation, loss, duties)
        found["demand"].append(demand)
        found["gap"].append(gap)
        found["inflation"].append(inflation)
        found["unemployment"].append(min(max(unemployment, 0), 100))
        found["costs"].append(costs)
        found["loss"].append(loss)
        found["deficit"].append(deficit)
        found["debt"].append(debt)
        found["stimulus"].append(stimulus)
    new = {"lending_rate": lending, "real_rate": real, "exchange": exchange, "potential": potential}
    return next_by_hand(w, found, new | used | {"imports": imports, "balance": balance})


def drawn(seed):
    """Return nations, parameters, a world that no rule has made, and shocks."""
    draws = np.random.default_rng(seed)
    n = 1 + seed % 4
    nations = [
        NationParams(
            name=f"N{i}",
            size=draws.uniform(0.5, 9),
            natural_unemployment=draws.uniform(4, 9),
            inflation_target=draws.uniform(1, 4),
            neutral_rate=draws.uniform(0.5, 3),
            trend_growth=draws.uniform(1, 4),
            debt=draws.uniform(20, 120),
            spending=draws.uniform(25, 50),
        )
        for i in range(n)
    ]
    limits = {
        "demand_lag_1": (0.8, 1.2),
        "demand_lag_2": (-0.5, -0.3),
        "rate_effect": (0.05, 0.5),
        "price_elasticity": (0.4, 3),
        "income_elasticity": (0.5, 3),
        "exchange_effect": (0.5, 3),
        "balance_effect": (0.2, 2),
    }
    of_one = "pass_through anchoring phillips okun unemployment_lag spending_effect tax_effect adaptation openness"
    of_one += " exchange_lag trade_gain import_prices stabilizer debt_response supply_lag"
    ranges = limits | dict.fromkeys(of_one.split(), (0.1, 0.9))
    params = MacroParams(**{name: draws.uniform(*within) for name, within in ranges.items()})
    shapes = {"gaps": (n, 5), "inflations": (n, 4), "losses": (n, 5), "instalments": (n, 4)}
    shapes |= dict.fromkeys(("tariff", "tariff_before", "sanction", "imports"), (n, n))
    values = {f.name: draws.uniform(0.5, 5, shapes.get(f.name, n)) for f in fields(World) if f.name != "quarter"}
    for name in ("tariff", "tariff_before", "sanction"):
        values[name] *= 10 * (1 - np.eye(n))
    values["debt"] *= 20
    world = World(quarter=seed, **values)
    return nations, params, world, Shocks(*draws.normal(0, 1, (3, n)))


@pytest.mark.parametrize("seed", range(12))
def test_a_quarter_is_what_its_equations_say(seed):
    nations, params, world, shocks = drawn(seed)
    later = Macro(nations, params).next_quarter(world, shocks)
    by_hand = quarter_by_hand(nations, params, world, shocks)
    assert set(by_hand) == {f.name for f in fields(World)}
    for name, values in by_hand.items():
        assert getattr(later, name) == pytest.approx(np.array(values), rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize(("demand", "unemployment"), [(400.0, 0.0), (-400.0, 100.0)])
def test_unemployment_is_a_share_of_all(demand, unemployment):
    nations, params, world, shocks = drawn(0)
    world = replace(world, demand=np.array([demand]))
    assert Macro(nations, params).next_quarter(world, shocks).unemployment.item() == unemployment


def test_no_imports_are_below_none_however_weak_demand_is():
    nations, params, world, shocks = drawn(3)
    gaps = world.gaps.copy()
    gaps[1] = -400.0
    later = Macro(nations, params).next_quarter(replace(world, gaps=gaps), shocks)
    assert not later.imports[1].any()
    assert (later.imports[[0, 2, 3]].sum(axis=1) > 0).all()


@pytest.mark.parametrize("nations", [FIVE, FIVE[:1], drawn(3)[0]], ids=["known", "one", "own"])
def test_the_start_is_what_nations_say_and_the_long_run_where_they_say_nothing(nations):
    params = MacroParams()
    world = Macro(nations, params).start()
    gap = [
        0 if own.unemployment is None else (own.natural_unemployment - own.unemployment) / params.okun
        for own in nations
    ]
    growth = [0 if own.growth is None else own.growth - own.trend_growth for own in nations]
    rate = [own.neutral_rate + own.inflation_target if own.policy_rate is None else own.policy_rate for own in nations]
    inflation = [own.inflation_target if own.inflation is None else own.inflation for own in nations]
    taxes = [long_run_taxes(own) for own in nations]
    expected = [
        params.anchoring * own.inflation_target + (1 - params.anchoring) * said
        for own, said in zip(nations, inflation, strict=True)
    ]
    potential = [own.size / (1 + of / 100) for own, of in zip(nations, gap, strict=True)]
    n = len(nations)
    by_hand = {
        "quarter": 0,
        "gaps": [[of - before * k / 4 for k in range(5)] for of, before in zip(gap, growth, strict=True)],
        "demand": gap,
        "demand_before": [of - before / 4 for of, before in zip(gap, growth, strict=True)],
        "inflations": [[said] * 4 for said in inflation],
        "unemployment": [own.natural_unemployment if own.unemployment is None else own.unemployment for own in nations],
        "policy_rate": rate,
        "lending_rate": rate,
        "real_rate": [rate[i] - expected[i] - own.neutral_rate for i, own in enumerate(nations)],
        "spending": [own.spending for own in nations],
        "taxes": taxes,
        "debt": [own.debt for own in nations],
        "deficit": [
            own.spending - taxes[i] - params.stabilizer * gap[i] + rate[i] * own.debt / 100
            for i, own in enumerate(nations)
        ],
        "potential": potential,
        "imports": imports_by_hand(params, world, potential, [0] * n),
        "instalments": np.zeros((n, 4)),
        "losses": np.zeros((n, 5)),
    }
    by_hand["balance"] = by_hand["adapted_balance"] = balance_by_hand(by_hand["imports"], potential)
    by_hand |= dict.fromkeys(("tariff", "tariff_before", "sanction"), np.zeros((n, n)))
    by_hand |= dict.fromkeys(("exchange", "costs", "stimulus", "adapted_stimulus"), np.zeros(n))
    assert set(by_hand) == {f.name for f in fields(World)}
    for name, values in by_hand.items():
        assert getattr(world, name) == pytest.approx(np.array(values), rel=1e-12, abs=1e-12), name


@pytest.mark.parametrize(
    ("unemployment", "okun", "refused"),
    [(46.0, 0.4, True), (2.0, 0.04, True), (46.0, 0.401, False), (2.0, 0.041, False), (46.0, 0.0, False)],
)
def test_a_gap_of_all_output_is_no_start_either_way(unemployment, okun, refused):
    near = NationParams(name="Near")
    far = NationParams(name="Far", natural_unemployment=6.0, unemployment=unemployment)
    macro = Macro([near, far, far.model_copy(update={"name": "Farther"})], MacroParams(okun=okun))
    if refused:
        with pytest.raises(ConfigError, match=rf"Far: .*economy\.macro\.okun={okun}"):
            macro.start()
    else:
        assert macro.start().gap[1] == pytest.approx((6.0 - unemployment) / okun if okun else 0.0)
