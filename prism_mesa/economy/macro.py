"""The economy: a small open New Keynesian model of several nations, by quarters.

`Macro.next_quarter` makes of a `World`, a frozen value, that of the next quarter; `policy.with_policies` sets
what nations can set.

For each nation, in quarter t (gaps and budget in percent of output, rates and inflation in percent a year):

1. pass-through: the lending rate goes `pass_through` of the way from where it was to the policy rate.
2. expectations: expected inflation is `anchoring` parts target, the rest the mean inflation of the last four quarters.
   Policy may be anything, an LLM's whim included, so nobody can know it in advance: expectations that are consistent
   with the model do not exist here, and people go by the target and by what they have seen (as in Rudebusch and
   Svensson 1999).
3. exchange rate: it goes from where it was towards `exchange_effect` times the real rate beyond the world's, and
   `balance_effect` times the trade balance.
4. IS curve: private demand = `demand_lag_1` and `_2` parts of its past, less `rate_effect` times the real lending rate
   of the last quarter beyond the neutral one, plus a shock.
5. the budget and trade: spending, taxes and transfers, and net exports, count as far as they differ from what demand
   has got used to (`adaptation`). The output gap is private demand and these together.
6. Phillips curve: inflation = expected + `phillips` times the gap + dearer imports (tariffs, exchange rate) + costs, of
   which a share stays from quarter to quarter (`supply_lag`) and a shock is new.
7. Okun's law: unemployment beyond the natural rate = `unemployment_lag` parts of its past, the rest -`okun` times the
   gap, plus a shock.
8. trade: imports of i from j grow with i's demand of the last quarter and fall with tariffs, sanctions of either side,
   and a weak exchange rate; what i buys is what j sells, so world trade balances sum to zero. Who pays duties has less
   to spend; trade that tariffs and sanctions stop costs both sides output (`trade_gain`).
9. debt: deficit and interest raise it, growth and inflation wear it down; taxes follow the cycle and the debt.

All of it is linear but for tariffs, sanctions, the trend of output, and debt: responses to interest rates are exactly
those of a linear system.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from prism_mesa.economy.nations import NationParams
from prism_mesa.economy.params import MacroParams
from prism_mesa.economy.world import MEMORY, Floats, Shocks, World
from prism_mesa.errors import ConfigError


class Macro:
    """The laws of some nations' economies.

    Args:
        nations: The nations, in the order of all arrays.
        params: The structure that they share.

    Attributes:
        spending: Of the governments at the start, percent of GDP.
        taxes: Those that keep debt at its target in the long run, percent of GDP.
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
        """Return a parameter of all nations; where it is None, the long run's value."""
        values = np.array([getattr(nation, name) for nation in self.nations], dtype=float)
        return values if long_run is None else np.where(np.isnan(values), long_run, values)

    def start(self) -> World:
        """Return the world before the first quarter: trade and deficits as the gaps then make them.

        Raises:
            ConfigError: If a gap would leave a nation no output, or more than double it.
        """
        n = len(self.nations)
        unemployment = self._values("unemployment", self.natural)
        inflation = self._values("inflation", self.target)
        rate = self._values("policy_rate", self.neutral + self.target)
        gaps = self._starting_gaps(unemployment)
        gap = gaps[:, 0]
        zero, square = np.zeros(n), np.zeros((n, n))
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
            exchange=zero,
            costs=zero,
            spending=self.spending,
            taxes=self.taxes,
            instalments=np.zeros((n, MEMORY)),
            stimulus=zero,
            used_stimulus=zero,
            balance=zero,
            used_balance=zero,
            deficit=zero,
            debt=self.debt_target,
            potential=self._values("size") / (1 + gap / 100),
            losses=np.zeros((n, MEMORY + 1)),
            tariff=square,
            tariff_before=square,
            sanction=square,
            imports=square,
        )
        imports = self._imports(world)
        balance = _balance(imports, world.potential)
        deficit = world.spending - self._revenue(world, gap, imports) + rate * world.debt / 100
        return replace(world, imports=imports, balance=balance, used_balance=balance, deficit=deficit)

    def _starting_gaps(self, unemployment: Floats) -> Floats:
        """Return the output gaps before the first quarter, latest first, shape (n, 5).

        The last is the one that unemployment tells by Okun's law; those before it are those which growth tells, a
        straight line.

        Raises:
            ConfigError: If a gap would leave a nation no output, or more than double it.
        """
        okun, slack = self.params.okun, self.natural - unemployment
        bad = np.flatnonzero(np.abs(slack) >= 100 * okun)
        if okun and len(bad):
            points, name = slack[bad[0]], self.names[bad[0]]
            where = "below" if points > 0 else "above"
            raise ConfigError(
                f"economy.nations: {name}: starts with unemployment {abs(points):g} points {where} "
                f"its natural rate: with economy.macro.okun={okun:g} that is an output gap of 100 % or more; take "
                "unemployment nearer to the natural rate, or a larger okun"
            )
        gap = slack / okun if okun else np.zeros(len(slack))
        past = self._values("growth", self.trend) - self.trend
        return gap[:, None] - np.outer(past, np.arange(MEMORY + 1) / MEMORY)

    def at_rest(self) -> World:
        """Return the world in its long run: no gaps, inflation at its targets."""
        own = {"unemployment": None, "inflation": None, "policy_rate": None, "growth": None}
        return Macro([nation.model_copy(update=own) for nation in self.nations], self.params).start()

    def next_quarter(self, world: World, shocks: Shocks) -> World:
        """Return the world a quarter later, with its instruments as they stand; see the module's text for the order."""
        own = self.params
        lending = world.lending_rate + own.pass_through * (world.policy_rate - world.lending_rate)
        expected = self._expected(world.inflation_year)
        real = lending - expected - self.neutral
        exchange = self._exchange(world, real)
        demand = own.demand_lag_1 * world.demand + own.demand_lag_2 * world.demand_before
        demand = demand - own.rate_effect * world.real_rate + shocks.demand
        potential = world.potential * (1 + self.trend / 400)
        imports = self._imports(replace(world, potential=potential, exchange=exchange))
        stimulus = self._stimulus(replace(world, potential=potential, imports=imports))
        used_stimulus = world.used_stimulus + own.adaptation * (world.stimulus - world.used_stimulus)
        balance = _balance(imports, potential)
        used_balance = world.used_balance + own.adaptation * (world.balance - world.used_balance)
        gap = demand + (stimulus - used_stimulus) + (balance - used_balance)
        dearer = self._import_prices(world, exchange, imports, potential)
        costs = own.supply_lag * world.costs + shocks.supply
        inflation = expected + own.phillips * gap + dearer + costs
        lag = own.unemployment_lag
        unemployment = self.natural + lag * (world.unemployment - self.natural) - (1 - lag) * own.okun * gap
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
        """Return the policy rate of Taylor's rule, percent a year, for what the last quarter brought.

        Neutral rate + inflation of the last four quarters + half of what it is beyond its target + half of the output
        gap (Taylor 1993, doi:10.1016/0167-2231(93)90009-L).
        """
        beyond = world.inflation_year - self.target
        return self.neutral + world.inflation_year + 0.5 * beyond + 0.5 * world.gap

    def _expected(self, inflation_year: Floats) -> Floats:
        anchoring = self.params.anchoring
        return anchoring * self.target + (1 - anchoring) * inflation_year

    def _exchange(self, world: World, real: Floats) -> Floats:
        own, weights = self.params, world.potential / world.potential.sum()
        pull = own.exchange_effect * (real - weights @ real) + own.balance_effect * world.balance
        return own.exchange_lag * world.exchange + (1 - own.exchange_lag) * pull

    def _stimulus(self, world: World) -> Floats:
        """Return what the budget does to demand, beyond that of the start; instalments are of quarters, not years."""
        own = self.params
        spending = world.spending - self.spending
        taxes = world.taxes - self.taxes
        budget = own.spending_effect * spending + own.tax_effect * (4 * world.instalments[:, 0] - taxes)
        return budget - self._duties(world)  # what buyers pay on top they cannot spend at home

    def _base(self, potential: Floats) -> Floats:
        """Return the imports of each pair without gaps, tariffs and sanctions: the same both ways, so in balance."""
        base = self.params.openness * np.outer(potential, potential) / potential.sum()
        np.fill_diagonal(base, 0.0)
        return base

    def _imports(self, world: World) -> Floats:
        own = self.params
        stronger = world.exchange[:, None] - world.exchange[None, :]
        percent = own.income_elasticity * world.gap[:, None] + own.price_elasticity * stronger
        return self._base(world.potential) * np.maximum(1 + percent / 100, 0.0) * self._open(world)

    def _open(self, world: World) -> Floats:
        """Return what barriers leave of the imports of each pair, 0..1.

        Demand for imports has a constant elasticity of their price with the tariff: at 1, buyers pay as much as
        before, and part of it to their government.
        """
        dearer = (1 + world.tariff / 100) ** -self.params.price_elasticity
        return dearer * (1 - world.sanction / 100) * (1 - world.sanction.T / 100)

    def _loss(self, world: World, potential: Floats) -> Floats:
        """Return the percent of output that barriers cost, by the trade that they stop, as a share of it."""
        stopped = 1 - self._open(world)
        lost = self._base(potential) * (stopped + stopped.T) / 2
        return self.params.trade_gain * 100 * lost.sum(axis=1) / potential

    def _duties(self, world: World) -> Floats:
        """Return what tariffs bring, percent of GDP a year."""
        return (world.tariff * world.imports).sum(axis=1) / world.potential

    def _import_prices(self, world: World, exchange: Floats, imports: Floats, potential: Floats) -> Floats:
        """Return the points of inflation that this quarter's exchange rate and new tariffs make; a tariff's once."""
        share = self._base(world.potential) / world.potential[:, None]
        rise = exchange - world.exchange
        weaker = share @ rise - share.sum(axis=1) * rise
        tariffs = (imports / potential[:, None] * (world.tariff - world.tariff_before)).sum(axis=1)
        return 4 * self.params.import_prices * (weaker + tariffs)

    def _revenue(self, world: World, gap: Floats, imports: Floats) -> Floats:
        """Return taxes and tariffs, percent of GDP, at an output gap and a debt."""
        own = self.params
        duties = self._duties(replace(world, imports=imports))
        return world.taxes + own.stabilizer * gap + own.debt_response * (world.debt - self.debt_target) + duties

    def _budget(
        self, world: World, gap: Floats, inflation: Floats, imports: Floats, potential: Floats, loss: Floats
    ) -> tuple[Floats, Floats]:
        """Return deficit (a year's rate) and debt after the quarter.

        Debt is what there was, with interest, worn down by nominal growth, and a quarter of the deficit without
        interest.
        """
        primary = world.spending - self._revenue(replace(world, potential=potential), gap, imports)
        primary = primary + 4 * world.instalments[:, 0]
        growth = self.trend / 4 + (gap - world.gap) - (loss - world.loss) + inflation / 4
        interest = world.lending_rate / 4
        debt = world.debt * (1 + interest / 100) / (1 + growth / 100) + primary / 4
        return primary + 4 * interest * world.debt / 100, debt


def _balance(imports: Floats, potential: Floats) -> Floats:
    """Return net exports, percent of output without gaps."""
    return 100 * (imports.sum(axis=0) - imports.sum(axis=1)) / potential
