"""The economy: a small open New Keynesian model of several nations, in quarters.

`Macro.next_quarter` returns the next quarter's `World`, a frozen value; `policy.with_policies` sets instruments.

For each nation, in quarter t (gaps and budget in percent of output, rates and inflation in percent a year):

1. pass-through: the lending rate closes the share `pass_through` of its distance to the policy rate.
2. expectations: expected inflation mixes the target (share `anchoring`) and mean inflation of the last four quarters.
   An LLM's policy is not foreseeable, so expectations are not model-consistent (as in Rudebusch and Svensson 1999).
3. exchange rate: it moves towards `exchange_effect` times the real rate above the world's, plus `balance_effect`
   times the trade balance.
4. IS curve: private demand = `demand_lag_1` and `demand_lag_2` times its past, less `rate_effect` times the last
   quarter's real lending rate above the neutral rate, plus a shock.
5. budget and trade: spending, taxes, transfers and net exports count by their distance from the level to which demand
   has adapted (`adaptation`). The output gap is private demand plus these effects.
6. Phillips curve: inflation = expected + `phillips` times the gap + import prices (tariffs, exchange rate) + costs. The
   share `supply_lag` of costs stays from quarter to quarter, and a shock is added.
7. Okun's law: unemployment above the natural rate is a mean of its past (weight `unemployment_lag`) and -`okun` times
   the gap, plus a shock.
8. trade: i's imports from j grow with i's demand of the last quarter and fall with tariffs, sanctions of either side
   and a weak exchange rate; world trade balances sum to zero. Duties reduce what buyers can spend; trade that
   tariffs and sanctions stop costs both sides output (`trade_gain`).
9. debt: deficit and interest raise it, growth and inflation erode it; taxes follow the cycle and the debt.

All equations are linear except those of tariffs, sanctions, trend output and debt, so responses to interest rates are
those of a linear system.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prism_mesa.economy.nations import NationParams
from prism_mesa.economy.params import MacroParams
from prism_mesa.economy.world import MEMORY, Floats, Shocks, World
from prism_mesa.errors import ConfigError


class Macro:
    """The laws of the economies of `nations`, which share the structure `params`; all arrays have the nations' order.

    Attributes:
        spending: Government spending at the start, percent of GDP.
        taxes: The taxes that keep debt at its target in the long run, percent of GDP.
    """

    def __init__(self, nations: Sequence[NationParams], params: MacroParams) -> None:
        self.nations = tuple(nations)
        self.names = tuple(nation.name for nation in nations)
        self.params = params
        self.target = self._values("inflation_target")
        self.neutral = self._values("neutral_rate")
        self.natural = self._values("natural_unemployment")
        self.trend = self._values("trend_growth")
        self.debt_target = self._values("debt")
        self.spending = self._values("spending")
        growth, interest = self.trend + self.target, self.neutral + self.target
        self.taxes = self.spending + self.debt_target * (interest - growth) / (100 + growth / 4)

    def _values(self, name: str, long_run: Floats | None = None) -> Floats:
        """Return a parameter of all nations, with the long run's value where it is None."""
        values = np.array([getattr(nation, name) for nation in self.nations], dtype=float)
        return values if long_run is None else np.where(np.isnan(values), long_run, values)

    def start(self) -> World:
        """Return the world before the first quarter; ConfigError if a nation's output gap would be 100 % or more."""
        n = len(self.nations)
        unemployment = self._values("unemployment", self.natural)
        inflation = self._values("inflation", self.target)
        rate = self._values("policy_rate", self.neutral + self.target)
        gaps = self._starting_gaps(unemployment)
        gap = gaps[:, 0]
        vectors = ("exchange", "costs", "stimulus", "used_stimulus", "balance", "used_balance", "deficit")
        zeros: dict[str, Any] = dict.fromkeys(vectors, np.zeros(n))
        zeros |= dict.fromkeys(("tariff", "tariff_before", "sanction", "imports"), np.zeros((n, n)))
        world = World(
            quarter=0,
            demand=gap,
            demand_before=gaps[:, 1],
            gaps=gaps,
            inflations=np.repeat(inflation[:, None], MEMORY, axis=1),
            unemployment=unemployment,
            policy_rate=rate,
            lending_rate=rate,
            real_rate=rate - self._expected(inflation) - self.neutral,
            spending=self.spending,
            taxes=self.taxes,
            instalments=np.zeros((n, MEMORY)),
            debt=self.debt_target,
            potential=self._values("size") / (1 + gap / 100),
            losses=np.zeros((n, MEMORY + 1)),
            **zeros,
        )
        imports = self._imports(world)
        balance = _balance(imports, world.potential)
        deficit = world.spending - self._revenue(world, gap, imports) + rate * world.debt / 100
        return replace(world, imports=imports, balance=balance, used_balance=balance, deficit=deficit)

    def _starting_gaps(self, unemployment: Floats) -> Floats:
        """Return the output gaps before the first quarter, latest first, shape (n, 5).

        The latest gap follows from unemployment by Okun's law, the others from growth, on a straight line.
        """
        okun, slack = self.params.okun, self.natural - unemployment
        too_far = np.flatnonzero(np.abs(slack) >= 100 * okun)
        if okun and len(too_far):
            fault = f"unemployment starts {abs(slack[too_far[0]]):g} points from its natural rate"
            remedy = f"an output gap of 100 % or more with economy.macro.okun={okun:g}; move it nearer, or raise okun"
            raise ConfigError(f"economy.nations: {self.names[too_far[0]]}: {fault}, {remedy}")
        gap = slack / okun if okun else np.zeros(len(slack))
        past = self._values("growth", self.trend) - self.trend
        return gap[:, None] - np.outer(past, np.arange(MEMORY + 1) / MEMORY)

    def at_rest(self) -> World:
        """Return the world in its long run: no gaps, inflation at its targets."""
        default = dict.fromkeys(("unemployment", "inflation", "policy_rate", "growth"))
        return Macro([nation.model_copy(update=default) for nation in self.nations], self.params).start()

    def next_quarter(self, world: World, shocks: Shocks) -> World:
        """Return the world a quarter later, in the order of the module's docstring."""
        params = self.params
        lending = world.lending_rate + params.pass_through * (world.policy_rate - world.lending_rate)
        expected = self._expected(world.inflation_year)
        real = lending - expected - self.neutral
        exchange = self._exchange(world, real)
        demand = params.demand_lag_1 * world.demand + params.demand_lag_2 * world.demand_before
        demand = demand - params.rate_effect * world.real_rate + shocks.demand
        potential = world.potential * (1 + self.trend / 400)
        imports = self._imports(replace(world, potential=potential, exchange=exchange))
        stimulus = self._stimulus(replace(world, potential=potential, imports=imports))
        used_stimulus = world.used_stimulus + params.adaptation * (world.stimulus - world.used_stimulus)
        balance = _balance(imports, potential)
        used_balance = world.used_balance + params.adaptation * (world.balance - world.used_balance)
        gap = demand + (stimulus - used_stimulus) + (balance - used_balance)
        import_prices = self._import_prices(world, exchange, imports, potential)
        costs = params.supply_lag * world.costs + shocks.supply
        inflation = expected + params.phillips * gap + import_prices + costs
        lag = params.unemployment_lag
        unemployment = self.natural + lag * (world.unemployment - self.natural) - (1 - lag) * params.okun * gap
        unemployment = np.clip(unemployment + shocks.labor, 0.0, 100.0)
        loss = self._loss(world, potential)
        deficit, debt = self._budget(world, gap, inflation, imports, potential, loss)
        return replace(
            world,
            quarter=world.quarter + 1,
            demand=demand,
            demand_before=world.demand,
            gaps=np.column_stack([gap, world.gaps[:, :-1]]),
            inflations=np.column_stack([inflation, world.inflations[:, :-1]]),
            unemployment=unemployment,
            lending_rate=lending,
            real_rate=real,
            exchange=exchange,
            costs=costs,
            instalments=np.column_stack([world.instalments[:, 1:], np.zeros(len(gap))]),
            stimulus=stimulus,
            used_stimulus=used_stimulus,
            balance=balance,
            used_balance=used_balance,
            deficit=deficit,
            debt=debt,
            potential=potential,
            losses=np.column_stack([loss, world.losses[:, :-1]]),
            tariff_before=world.tariff,
            imports=imports,
        )

    def growth_year(self, world: World) -> Floats:
        """Return the growth of output over the last four quarters, percent."""
        level = world.gaps - world.losses
        return self.trend + level[:, 0] - level[:, MEMORY]

    def taylor_rate(self, world: World) -> Floats:
        """Return the policy rate of Taylor's rule (1993, doi:10.1016/0167-2231(93)90009-L), percent a year.

        Neutral rate + inflation of four quarters + half of its distance from the target + half of the output gap.
        """
        return self.neutral + world.inflation_year + 0.5 * (world.inflation_year - self.target) + 0.5 * world.gap

    def _expected(self, inflation_year: Floats) -> Floats:
        anchoring = self.params.anchoring
        return anchoring * self.target + (1 - anchoring) * inflation_year

    def _exchange(self, world: World, real: Floats) -> Floats:
        params, weights = self.params, world.potential / world.potential.sum()
        target = params.exchange_effect * (real - weights @ real) + params.balance_effect * world.balance
        return params.exchange_lag * world.exchange + (1 - params.exchange_lag) * target

    def _stimulus(self, world: World) -> Floats:
        """Return the budget's effect on demand, relative to the start; instalments are per quarter, not per year."""
        taxes = world.taxes - self.taxes - 4 * world.instalments[:, 0]
        budget = self.params.spending_effect * (world.spending - self.spending) - self.params.tax_effect * taxes
        return budget - self._duties(world)  # buyers cannot spend at home the duties that they pay

    def _base(self, potential: Floats) -> Floats:
        """Return the imports of each pair without gaps, tariffs and sanctions; they are balanced."""
        base = self.params.openness * np.outer(potential, potential) / potential.sum()
        np.fill_diagonal(base, 0.0)
        return base

    def _imports(self, world: World) -> Floats:
        params = self.params
        strength = world.exchange[:, None] - world.exchange[None, :]
        percent = params.income_elasticity * world.gap[:, None] + params.price_elasticity * strength
        return self._base(world.potential) * np.maximum(1 + percent / 100, 0.0) * self._open(world)

    def _open(self, world: World) -> Floats:
        """Return the share of each pair's imports that barriers leave, 0..1.

        Demand for imports has a constant elasticity in the price with the tariff.
        """
        factor = (1 + world.tariff / 100) ** -self.params.price_elasticity
        return factor * (1 - world.sanction / 100) * (1 - world.sanction.T / 100)

    def _loss(self, world: World, potential: Floats) -> Floats:
        """Return the percent of output that is lost because barriers stop trade."""
        barred = 1 - self._open(world)
        lost_trade = self._base(potential) * (barred + barred.T) / 2
        return self.params.trade_gain * 100 * lost_trade.sum(axis=1) / potential

    def _duties(self, world: World) -> Floats:
        """Return the revenue of tariffs, percent of GDP a year."""
        return (world.tariff * world.imports).sum(axis=1) / world.potential

    def _import_prices(self, world: World, exchange: Floats, imports: Floats, potential: Floats) -> Floats:
        """Return the points of inflation from this quarter's exchange rate and new tariffs; a tariff counts once."""
        share = self._base(world.potential) / world.potential[:, None]
        rise = exchange - world.exchange
        weakening = share @ rise - share.sum(axis=1) * rise
        tariffs = (imports / potential[:, None] * (world.tariff - world.tariff_before)).sum(axis=1)
        return 4 * self.params.import_prices * (weakening + tariffs)

    def _revenue(self, world: World, gap: Floats, imports: Floats) -> Floats:
        """Return taxes and tariffs, percent of GDP, at an output gap and a debt."""
        params = self.params
        duties = self._duties(replace(world, imports=imports))
        return world.taxes + params.stabilizer * gap + params.debt_response * (world.debt - self.debt_target) + duties

    def _budget(
        self, world: World, gap: Floats, inflation: Floats, imports: Floats, potential: Floats, loss: Floats
    ) -> tuple[Floats, Floats]:
        """Return the deficit (a year's rate) and the debt after the quarter.

        The old debt grows with interest and shrinks with nominal growth; a quarter of the primary deficit is added.
        """
        primary = world.spending - self._revenue(replace(world, potential=potential), gap, imports)
        primary = primary + 4 * world.instalments[:, 0]
        growth = self.trend / 4 + (gap - world.gap) - (loss - world.loss) + inflation / 4
        interest = world.lending_rate / 4
        debt = world.debt * (1 + interest / 100) / (1 + growth / 100) + primary / 4
        return primary + 4 * interest * world.debt / 100, debt


def _balance(imports: Floats, potential: Floats) -> Floats:
    """Return net exports, percent of potential output."""
    return 100 * (imports.sum(axis=0) - imports.sum(axis=1)) / potential
