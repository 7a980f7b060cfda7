"""The state of all economies in a quarter, as a frozen value; `macro` computes the next quarter."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from prism_mesa.arrays import Floats

PAST_QUARTERS = 4
"""The number of past quarters in expectations and yearly growth, and of instalments of borrowing."""


@dataclass(frozen=True)
class Shocks:
    """The shocks of a quarter, each of shape (n,): percent of output, points of inflation, points of unemployment."""

    demand: Floats
    supply: Floats
    labor: Floats

    @classmethod
    def none(cls, n: int) -> Self:
        """Return a quarter without shocks."""
        return cls(np.zeros(n), np.zeros(n), np.zeros(n))


@dataclass(frozen=True)
class World:
    """The state of all economies at the end of a quarter. Arrays have shape (n,) unless stated otherwise.

    Attributes:
        quarter: Quarters since the start; 0 is the start itself.
        demand: Gap of private demand, percent of output; `demand_before` is the gap one quarter earlier.
        gaps: Output gaps of the last quarters, latest first, shape (n, 5).
        inflations: Inflation of the last four quarters, latest first, shape (n, 4).
        unemployment: Percent.
        policy_rate: The central bank's rate, percent a year; `lending_rate` is what borrowers pay, less the margin.
        real_rate: Lending rate less expected inflation and the neutral rate.
        exchange: Real exchange rate, percent above its long-run level; higher is stronger.
        costs: The part of inflation that supply shocks cause, points a year.
        spending: Government spending, percent of GDP; `taxes` are the taxes at normal activity and debt.
        instalments: Borrowing in the next four quarters, percent of GDP, shape (n, 4); repayments are negative.
        stimulus: The budget's effect on demand, percent of output; `adapted_stimulus` is the part without effect,
            because demand has adapted to it.
        balance: Net exports, percent of GDP; demand has adapted to `adapted_balance`.
        deficit: The government's deficit, percent of GDP a year; `debt` is in percent of GDP.
        potential: Output without a gap and without trade barriers, in the unit of `NationParams.size`.
        losses: Output lost to trade barriers in the last quarters, percent, latest first, shape (n, 5).
        tariff: Tariffs of importers (rows) on exporters (columns), percent of value, shape (n, n); `tariff_before` has
            the tariffs of the quarter before.
        sanction: Sanctions of nations (rows) against others (columns), percent of trade both ways, shape (n, n).
        imports: Imports of nations (rows) from others (columns), in the unit of `potential` a year, shape (n, n).
    """

    quarter: int
    demand: Floats
    demand_before: Floats
    gaps: Floats
    inflations: Floats
    unemployment: Floats
    policy_rate: Floats
    lending_rate: Floats
    real_rate: Floats
    exchange: Floats
    costs: Floats
    spending: Floats
    taxes: Floats
    instalments: Floats
    stimulus: Floats
    adapted_stimulus: Floats
    balance: Floats
    adapted_balance: Floats
    deficit: Floats
    debt: Floats
    potential: Floats
    losses: Floats
    tariff: Floats
    tariff_before: Floats
    sanction: Floats
    imports: Floats

    @property
    def gap(self) -> Floats:
        """Output gap, percent."""
        return self.gaps[:, 0]

    @property
    def inflation(self) -> Floats:
        """Inflation of the quarter, percent a year."""
        return self.inflations[:, 0]

    @property
    def inflation_year(self) -> Floats:
        """Mean inflation of the last four quarters."""
        return self.inflations.mean(axis=1)

    @property
    def gdp(self) -> Floats:
        """Real output a year, in the unit of `NationParams.size`."""
        return self.potential * (1 - self.loss / 100) * (1 + self.gap / 100)

    @property
    def loss(self) -> Floats:
        """Output lost to trade barriers in the quarter, percent."""
        return self.losses[:, 0]

    @property
    def exports(self) -> Floats:
        """Exports per year, in the unit of `NationParams.size`."""
        return self.imports.sum(axis=0)

    @property
    def trade_balance(self) -> Floats:
        """Exports less imports, in the unit of `NationParams.size`; the sum over the world is zero."""
        return self.exports - self.imports.sum(axis=1)

    def equals(self, other: "World") -> bool:
        """Return whether all numbers of two worlds are equal."""
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
