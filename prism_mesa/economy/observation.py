"""The world as a nation sees it: its own indicators exactly, those of other nations with an error."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from prism_mesa.economy.macro import Macro
from prism_mesa.economy.tables import INDICATOR_COLUMNS
from prism_mesa.economy.world import World
from prism_mesa.streams import Streams

INDICATORS = tuple(column.name for column in INDICATOR_COLUMNS)
"""The indicators of a nation, in the order of the table's columns."""
_PUBLIC = frozenset({"policy_rate", "lending_rate", "exports", "imports", "trade_balance", "exchange_rate"})
"""Indicators that all nations see exactly: markets quote rates, and customs count trade."""


class NationState(BaseModel):
    """A nation in a quarter; the defaults describe a nation without trade in its long-run equilibrium.

    Attributes:
        gdp: Real output per year, in the unit of `NationParams.size`; also called `economic_strength`.
        gdp_growth: Growth of real output over the last four quarters, percent.
        output_gap: Output above its potential, percent.
        inflation: Mean of the last four quarters, percent a year.
        unemployment: Percent.
        policy_rate: Percent a year; `lending_rate` is the rate that borrowers pay.
        spending: Government spending, percent of GDP, like `taxes`, `deficit` and `debt`.
        exports: Per year, in the unit of `gdp`, like `imports`. `trade_balance` is their difference, percent of GDP.
        exchange_rate: The real exchange rate, percent above its long-run level; higher is stronger.
        inflation_target: The central bank's target; `natural_unemployment` is unemployment without a gap.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    gdp: float = Field(1.0, validation_alias=AliasChoices("gdp", "economic_strength"))
    gdp_growth: float = 2.5
    output_gap: float = 0.0
    inflation: float = 2.0
    unemployment: float = 6.0
    policy_rate: float = 4.0
    lending_rate: float = 4.0
    spending: float = 35.0
    taxes: float = 35.0
    deficit: float = 0.0
    debt: float = 60.0
    exports: float = 0.0
    imports: float = 0.0
    trade_balance: float = 0.0
    exchange_rate: float = 0.0
    inflation_target: float = 2.0
    natural_unemployment: float = 6.0

    @property
    def economic_strength(self) -> float:
        """The same as `gdp`."""
        return self.gdp


class GlobalState(BaseModel):
    """The world in a quarter.

    Attributes:
        interest_rate: Mean of the policy rates, weighted by output.
        total_economic_value: Real output of all nations per year.
        tariffs: Tariffs above 0, percent, by importer and exporter; `sanctions` has the same form.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    interest_rate: float
    total_economic_value: float
    tariffs: Mapping[str, Mapping[str, float]] = {}
    sanctions: Mapping[str, Mapping[str, float]] = {}


class SimulationState(BaseModel):
    """The world as a nation sees it when it decides.

    Attributes:
        turn: The quarter of the decision, from 0; all values are from the end of the previous quarter.
        quarter: The quarter's name, such as 2009Q4; prompts omit an empty name.
        agents: All nations by name; values of other nations have an error.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    turn: int
    quarter: str = ""
    agents: Mapping[str, NationState]
    global_state: GlobalState


@dataclass(frozen=True)
class PastDecision:
    """A past decision: why it was refused (empty if it was not), and the nation's state before it."""

    quarter: str
    action: str
    reason: str
    before: NationState | None = None


def compute_indicators(macro: Macro, world: World) -> dict[str, np.ndarray]:
    """Return the indicators of all nations, each of shape (n,), in the order of `INDICATORS`."""
    derived_values = {
        "gdp_growth": macro.growth_year(world),
        "output_gap": world.gap,
        "inflation": world.inflation_year,
        "imports": world.imports.sum(axis=1),
        "trade_balance": 100 * world.trade_balance / world.gdp,
        "exchange_rate": world.exchange,
    }
    return {name: derived_values[name] if name in derived_values else getattr(world, name) for name in INDICATORS}


def observe_nations(macro: Macro, world: World, quarter: str, streams: Streams, noise: float) -> list[SimulationState]:
    """Return the state that each nation sees, in the order of rows.

    `world` is the world at the end of the last quarter, `quarter` the name of the quarter of the decisions, and `noise`
    the sd of errors, in points (for GDP in percent). The key of an error has the indicator, observer, observed nation
    and quarter.
    """
    n = len(macro.names)
    observed_values = {}  # shape (observer, nation)
    for name, values in compute_indicators(macro, world).items():
        is_exact = name in _PUBLIC or not noise
        errors = np.zeros((n, n)) if is_exact else _draw_errors(name, n, world.quarter, streams, noise)
        observed_values[name] = values * (1 + errors / 100) if name == "gdp" else values + errors
    observed_values["unemployment"] = np.maximum(observed_values["unemployment"], 0.0)
    weights = world.gdp / world.gdp.sum()
    global_state = GlobalState(
        interest_rate=float(weights @ world.policy_rate),
        total_economic_value=float(world.gdp.sum()),
        tariffs=_nonzero_by_pair(world.tariff, macro.names),
        sanctions=_nonzero_by_pair(world.sanction, macro.names),
    )
    states = []
    for observer in range(n):
        nations = nation_states(macro, {name: values[observer] for name, values in observed_values.items()})
        agents = dict(zip(macro.names, nations, strict=True))
        states.append(SimulationState(turn=world.quarter, quarter=quarter, agents=agents, global_state=global_state))
    return states


def nation_states(macro: Macro, observed_values: Mapping[str, np.ndarray]) -> tuple[NationState, ...]:
    """Convert the indicators of all nations, each of shape (n,), to one state per nation."""
    targets = {"inflation_target": macro.inflation_target, "natural_unemployment": macro.natural_unemployment}
    columns = {**observed_values, **targets}
    return tuple(
        NationState(name=name, **{column: float(values[row]) for column, values in columns.items()})
        for row, name in enumerate(macro.names)
    )


def _draw_errors(indicator: str, n: int, quarter: int, streams: Streams, noise: float) -> np.ndarray:
    """Return the errors of an indicator, shape (observers, nations); a nation sees itself without error."""
    observer, nation = np.divmod(np.arange(n * n), n)
    errors = streams.normal(f"seen/{indicator}", observer, index=quarter * n + nation).reshape(n, n)
    np.fill_diagonal(errors, 0.0)
    return noise * errors


def _nonzero_by_pair(matrix: np.ndarray, names: tuple[str, ...]) -> dict[str, dict[str, float]]:
    pairs: dict[str, dict[str, float]] = {}
    for i, j in np.argwhere(matrix != 0).tolist():
        pairs.setdefault(names[i], {})[names[j]] = float(matrix[i, j])
    return pairs
