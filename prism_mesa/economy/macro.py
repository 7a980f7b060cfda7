"""The economy: a small open New Keynesian model of several nations, in quarters.

`Macro.next_quarter` returns the next quarter's `World`, a frozen value; `policy.with_policies` sets instruments.

For each nation and quarter (gaps and budget in percent of output, rates and inflation in percent a year):

1. pass-through: the lending rate closes the share `pass_through` of its distance to the policy rate.
2. expectations: expected inflation is a mean of the target (weight `anchoring`) and inflation over four quarters. An
   LLM's policy is not foreseeable, so expectations are not model-consistent (as in Rudebusch and Svensson 1999).
3. exchange rate: it moves towards `exchange_effect` times the gap between the nation's real rate and the world's, plus
   `balance_effect` times the trade balance.
4. IS curve: private demand is `demand_lag_1` and `demand_lag_2` times its past values, less `rate_effect` times the
   last quarter's gap between the real lending rate and the neutral rate, plus a shock.
5. budget and trade: spending, taxes, transfers and net exports affect demand by their distance from the level to which
   demand has adapted (`adaptation`). The output gap is private demand plus these effects.
6. Phillips curve: inflation = expected inflation + `phillips` times the gap + import prices (tariffs, exchange rate) +
   costs. The share `supply_lag` of costs persists each quarter, and a shock is added.
7. Okun's law: the gap between unemployment and its natural rate is a weighted mean of its past value (weight
   `unemployment_lag`) and -`okun` times the output gap, plus a shock.
8. trade: imports grow with the importer's demand in the last quarter, and fall with tariffs, sanctions by either side
   and a weak exchange rate; the world's trade balances add up to zero. Duties reduce what buyers can spend. Trade lost
   to tariffs and sanctions costs both sides output (`trade_gain`).
9. debt: deficits and interest raise debt, growth and inflation erode it. Taxes respond to the output gap and to debt.

All equations are linear except those of tariffs, sanctions, trend output and debt. Responses to interest rates are
therefore those of a linear system.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prism_mesa.arrays import Floats
from prism_mesa.economy.nations import NationParams
from prism_mesa.economy.params import MacroParams
from prism_mesa.economy.world import PAST_QUARTERS, Shocks, World
from prism_mesa.errors import ConfigError


class Macro:
    """The equations of the economies of `nations`, which share `params`; all arrays are in the order of the nations.

    Attributes:
        spending: Government spending at the start, percent of GDP.
        taxes: The taxes that keep debt at its target in the long run, percent of GDP.
    """

    def __init__(self, nations: Sequence[NationParams], params: MacroParams) -> None:
        self.nations = tuple(nations)
        self.names = tuple(nation.name for nation in nations)
        self.params = params
        self.inflation_target = self._nation_values("inflation_target")
        self.neutral_rate = self._nation_values("neutral_rate")
        self.natural_unemployment = self._nation_values("natural_unemployment")
        self.trend_growth = self._nation_values("trend_growth")
        self.debt_target = self._nation_values("debt")
        self.spending = self._nation_values("spending")
        growth, interest = self.trend_growth + self.inflation_target, self.neutral_rate + self.inflation_target
        self.taxes = self.spending + self.debt_target * (interest - growth) / (100 + growth / 4)

    def _nation_values(self, name: str, long_run: Floats | None = None) -> Floats:
        """Return a parameter of all nations, with the long-run value in place of None."""
        values = np.array([getattr(nation, name) for nation in self.nations], dtype=float)
        return values if long_run is None else np.where(np.isnan(values), long_run, values)

    def start(self) -> World:
        """Return the world before the first quarter; raise ConfigError for an output gap of 100 % or more."""
        n = len(self.nations)
        unemployment = self._nation_values("unemployment", self.natural_unemployment)
        inflation = self._nation_values("inflation", self.inflation_target)
        rate = self._nation_values("policy_rate", self.neutral_rate + self.inflation_target)
        gaps = self._starting_gaps(unemployment)
        gap = gaps[:, 0]
        zero_vectors = ("exchange", "costs", "stimulus", "adapted_stimulus", "balance", "adapted_balance", "deficit")
        zeros: dict[str, Any] = dict.fromkeys(zero_vectors, np.zeros(n))
        zeros |= dict.fromkeys(("tariff", "tariff_before", "sanction", "imports"), np.zeros((n, n)))
        world = World(
            quarter=0,
            demand=gap,
            demand_before=gaps[:, 1],
            gaps=gaps,
            inflations=np.repeat(inflation[:, None], PAST_QUARTERS, axis=1),
            unemployment=unemployment,
            policy_rate=rate,
            lending_rate=rate,
            real_rate=rate - self._expected_inflation(inflation) - self.neutral_rate,
            spending=self.spending,
            taxes=self.taxes,
            instalments=np.zeros((n, PAST_QUARTERS)),
            debt=self.debt_target,
            potential=self._nation_values("size") / (1 + gap / 100),
            losses=np.zeros((n, PAST_QUARTERS + 1)),
            **zeros,
        )
        imports = self._imports(world)
        balance = _balance(imports, world.potential)
        deficit = world.spending - self._revenue(world, gap, imports) + rate * world.debt / 100
        return replace(world, imports=imports, balance=balance, adapted_balance=balance, deficit=deficit)

    def _starting_gaps(self, unemployment: Floats) -> Floats:
        """Return the output gaps before the first quarter, latest first, shape (n, 5).

        Okun's law gives the latest gap from unemployment. Earlier gaps are on a straight line that fits growth.
        """
        okun, unemployment_gap = self.params.okun, self.natural_unemployment - unemployment
        implausible_rows = np.flatnonzero(np.abs(unemployment_gap) >= 100 * okun)
        if okun and len(implausible_rows):
            fault = f"unemployment starts {abs(unemployment_gap[implausible_rows[0]]):g} points from its natural rate"
            remedy = f"an output gap of 100 % or more with economy.macro.okun={okun:g}; move it nearer, or raise okun"
            raise ConfigError(f"economy.nations: {self.names[implausible_rows[0]]}: {fault}, {remedy}")
        gap = unemployment_gap / okun if okun else np.zeros(len(unemployment_gap))
        excess_growth = self._nation_values("growth", self.trend_growth) - self.trend_growth
        return gap[:, None] - np.outer(excess_growth, np.arange(PAST_QUARTERS + 1) / PAST_QUARTERS)

    def equilibrium(self) -> World:
        """Return the world in its long-run equilibrium: no gaps, and inflation at its target."""
        defaults = dict.fromkeys(("unemployment", "inflation", "policy_rate", "growth"))
        return Macro([nation.model_copy(update=defaults) for nation in self.nations], self.params).start()

    def next_quarter(self, world: World, shocks: Shocks) -> World:
        """Return the world a quarter later; the module's docstring lists the equations in order."""
        params = self.params
        lending_rate = world.lending_rate + params.pass_through * (world.policy_rate - world.lending_rate)
        expected_inflation = self._expected_inflation(world.inflation_year)
        real_rate = lending_rate - expected_inflation - self.neutral_rate
        exchange = self._exchange_rate(world, real_rate)
        demand = params.demand_lag_1 * world.demand + params.demand_lag_2 * world.demand_before
        demand = demand - params.rate_effect * world.real_rate + shocks.demand
        potential = world.potential * (1 + self.trend_growth / 400)
        imports = self._imports(replace(world, potential=potential, exchange=exchange))
        stimulus = self._stimulus(replace(world, potential=potential, imports=imports))
        adapted_stimulus = world.adapted_stimulus + params.adaptation * (world.stimulus - world.adapted_stimulus)
        balance = _balance(imports, potential)
        adapted_balance = world.adapted_balance + params.adaptation * (world.balance - world.adapted_balance)
        gap = demand + (stimulus - adapted_stimulus) + (balance - adapted_balance)
        import_prices = self._import_prices(world, exchange, imports, potential)
        costs = params.supply_lag * world.costs + shocks.supply
        inflation = expected_inflation + params.phillips * gap + import_prices + costs
        lag = params.unemployment_lag
        natural = self.natural_unemployment
        unemployment = natural + lag * (world.unemployment - natural) - (1 - lag) * params.okun * gap
        unemployment = np.clip(unemployment + shocks.labor, 0.0, 100.0)
        loss = self._trade_loss(world, potential)
        deficit, debt = self._budget(world, gap, inflation, imports, potential, loss)
        return replace(
            world,
            quarter=world.quarter + 1,
            demand=demand,
            demand_before=world.demand,
            gaps=np.column_stack([gap, world.gaps[:, :-1]]),
            inflations=np.column_stack([inflation, world.inflations[:, :-1]]),
            unemployment=unemployment,
            lending_rate=lending_rate,
            real_rate=real_rate,
            exchange=exchange,
            costs=costs,
            instalments=np.column_stack([world.instalments[:, 1:], np.zeros(len(gap))]),
            stimulus=stimulus,
            adapted_stimulus=adapted_stimulus,
            balance=balance,
            adapted_balance=adapted_balance,
            deficit=deficit,
            debt=debt,
            potential=potential,
            losses=np.column_stack([loss, world.losses[:, :-1]]),
            tariff_before=world.tariff,
            imports=imports,
        )

    def growth_year(self, world: World) -> Floats:
        """Return the growth of output over the last four quarters, percent."""
        output_level = world.gaps - world.losses
        return self.trend_growth + output_level[:, 0] - output_level[:, PAST_QUARTERS]

    def taylor_rate(self, world: World) -> Floats:
        """Return the policy rate of Taylor's rule (1993, doi:10.1016/0167-2231(93)90009-L), percent a year.

        Neutral rate + inflation over four quarters + half of the gap to target inflation + half of the output gap.
        """
        inflation_gap = world.inflation_year - self.inflation_target
        return self.neutral_rate + world.inflation_year + 0.5 * inflation_gap + 0.5 * world.gap

    def _expected_inflation(self, inflation_year: Floats) -> Floats:
        anchoring = self.params.anchoring
        return anchoring * self.inflation_target + (1 - anchoring) * inflation_year

    def _exchange_rate(self, world: World, real_rate: Floats) -> Floats:
        params, weights = self.params, world.potential / world.potential.sum()
        target = params.exchange_effect * (real_rate - weights @ real_rate) + params.balance_effect * world.balance
        return params.exchange_lag * world.exchange + (1 - params.exchange_lag) * target

    def _stimulus(self, world: World) -> Floats:
        """Return the budget's effect on demand, relative to the start."""
        taxes = world.taxes - self.taxes - 4 * world.instalments[:, 0]  # instalments are per quarter
        budget = self.params.spending_effect * (world.spending - self.spending) - self.params.tax_effect * taxes
        return budget - self._duties(world)  # duties reduce what buyers can spend at home

    def _free_trade_imports(self, potential: Floats) -> Floats:
        """Return the imports of each pair without gaps, tariffs and sanctions; trade is then balanced."""
        free_trade = self.params.openness * np.outer(potential, potential) / potential.sum()
        np.fill_diagonal(free_trade, 0.0)
        return free_trade

    def _imports(self, world: World) -> Floats:
        params = self.params
        relative_exchange = world.exchange[:, None] - world.exchange[None, :]
        percent_change = params.income_elasticity * world.gap[:, None] + params.price_elasticity * relative_exchange
        free_trade = self._free_trade_imports(world.potential)
        return free_trade * np.maximum(1 + percent_change / 100, 0.0) * self._open_share(world)

    def _open_share(self, world: World) -> Floats:
        """Return the share of each pair's imports that remains with trade barriers, from 0 to 1.

        Demand has a constant elasticity in the price including the tariff.
        """
        factor = (1 + world.tariff / 100) ** -self.params.price_elasticity
        return factor * (1 - world.sanction / 100) * (1 - world.sanction.T / 100)

    def _trade_loss(self, world: World, potential: Floats) -> Floats:
        closed_share = 1 - self._open_share(world)
        lost_trade = self._free_trade_imports(potential) * (closed_share + closed_share.T) / 2
        return self.params.trade_gain * 100 * lost_trade.sum(axis=1) / potential

    def _duties(self, world: World) -> Floats:
        """Return the revenue of tariffs, percent of GDP a year."""
        return (world.tariff * world.imports).sum(axis=1) / world.potential

    def _import_prices(self, world: World, exchange: Floats, imports: Floats, potential: Floats) -> Floats:
        """Return the points of inflation due to this quarter's changes of exchange rates and tariffs."""
        share = self._free_trade_imports(world.potential) / world.potential[:, None]
        exchange_rise = exchange - world.exchange
        weakening = share @ exchange_rise - share.sum(axis=1) * exchange_rise
        tariffs = (imports / potential[:, None] * (world.tariff - world.tariff_before)).sum(axis=1)
        return 4 * self.params.import_prices * (weakening + tariffs)

    def _revenue(self, world: World, gap: Floats, imports: Floats) -> Floats:
        """Return taxes and duties, percent of GDP, given the output gap and debt."""
        params = self.params
        duties = self._duties(replace(world, imports=imports))
        return world.taxes + params.stabilizer * gap + params.debt_response * (world.debt - self.debt_target) + duties

    def _budget(
        self, world: World, gap: Floats, inflation: Floats, imports: Floats, potential: Floats, loss: Floats
    ) -> tuple[Floats, Floats]:
        """Return the deficit (a year's rate) and the debt after the quarter.

        Debt grows with interest, shrinks relative to nominal growth, and rises by a quarter of the primary deficit.
        """
        primary = world.spending - self._revenue(replace(world, potential=potential), gap, imports)
        primary = primary + 4 * world.instalments[:, 0]
        growth = self.trend_growth / 4 + (gap - world.gap) - (loss - world.loss) + inflation / 4
        interest = world.lending_rate / 4
        debt = world.debt * (1 + interest / 100) / (1 + growth / 100) + primary / 4
        return primary + 4 * interest * world.debt / 100, debt


def _balance(imports: Floats, potential: Floats) -> Floats:
    """Return net exports, percent of potential output."""
    return 100 * (imports.sum(axis=0) - imports.sum(axis=1)) / potential
