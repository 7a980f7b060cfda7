"""Where all nations stand in a quarter, as one frozen value. It holds numbers; how they move is `macro`'s affair."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import numpy.typing as npt

type Floats = npt.NDArray[np.float64]

MEMORY = 4
"""Quarters of the past that expectations, growth over the year, and borrowing in instalments look at."""


@dataclass(frozen=True)
class Shocks:
    """What comes from outside in one quarter, each of shape (n,).

    In percent of output (`demand`), and in points of inflation (`supply`) and of unemployment (`labor`).
    """

    demand: Floats
    supply: Floats
    labor: Floats

    @classmethod
    def none(cls, n: int) -> Self:
        """Return a quarter in which nothing comes from outside."""
        return cls(np.zeros(n), np.zeros(n), np.zeros(n))


@dataclass(frozen=True)
class World:
    """Where all nations stand at the end of a quarter. Arrays have shape (n,) where nothing else is said.

    Attributes:
        quarter: Quarters since the start; 0 is the start itself.
        demand: Gap of private demand, percent of output; `demand_before` that of the quarter before.
        gaps: Output gaps of the last quarters, latest first, shape (n, 5).
        inflations: Inflation of the last four quarters, latest first, shape (n, 4).
        unemployment: Percent.
        policy_rate: Percent a year, set by the central bank; `lending_rate` what borrowers pay beyond a constant
            margin.
        real_rate: Lending rate less expected inflation and the neutral rate.
        exchange: Real exchange rate, percent above its long run; up is stronger.
        costs: What inflation has from dear or cheap supply, points a year.
        spending: Of the government, percent of GDP; `taxes` at normal activity, without what debt and the cycle do.
        instalments: Borrowing that is still to come, percent of GDP, for the next four quarters, shape (n, 4); below 0
            is paying back.
        stimulus: What the budget does to demand, percent of output; `used_stimulus` what demand has got used to.
        balance: Net exports, percent of GDP; `used_balance` what demand has got used to.
        deficit: Of the government, percent of GDP a year; `debt` percent of GDP.
        potential: Output without a gap, and without barriers to trade, in the unit of `NationParams.size`.
        loss: Output that barriers to trade cost, percent; `losses` of the last quarters, latest first, shape (n, 5).
        tariff: Of the row's nation on imports from the column's, percent of value, shape (n, n); `tariff_before` that
            of the quarter before.
        sanction: Of the row's nation against the column's, percent of trade both ways, shape (n, n).
        imports: Of the row's nation from the column's, in the unit of `potential` a year, shape (n, n).
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
    used_stimulus: Floats
    balance: Floats
    used_balance: Floats
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
        """Output that barriers to trade cost, percent."""
        return self.losses[:, 0]

    @property
    def exports(self) -> Floats:
        """Exports a year, in that unit."""
        return self.imports.sum(axis=0)

    @property
    def trade_balance(self) -> Floats:
        """Exports less imports, in that unit; it sums to zero over the world."""
        return self.imports.sum(axis=0) - self.imports.sum(axis=1)

    def equals(self, other: "World") -> bool:
        """Return whether every number is the same."""
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
