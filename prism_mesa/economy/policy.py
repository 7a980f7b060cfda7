"""Policies in numbers: measures that set a nation's own instruments."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal, get_args

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict

from prism_mesa.economy.world import PAST_QUARTERS, World
from prism_mesa.errors import printable
from prism_mesa.llm.text import NAME_CAP
from prism_mesa.markup import card_html, html_or_repr, note_html, table_html

type Lever = Literal["policy_rate", "spending", "taxes", "tariff", "sanction", "debt"]
type Unit = Literal["points", "percent", "percent_of_gdp"]

LEVERS: Final[tuple[Lever, ...]] = get_args(Lever.__value__)
AGAINST_NATIONS: Final[frozenset[Lever]] = frozenset({"tariff", "sanction"})
"""Instruments that target a named nation; the others have no target."""
DOMAINS: Final[Mapping[str, tuple[Lever, ...]]] = {
    "economic": LEVERS,
    "monetary": ("policy_rate",),
    "fiscal": ("spending", "taxes", "debt"),
    "trade": ("tariff", "sanction"),
}
"""The instruments of a nation, by domain."""
UNITS: Final[Mapping[Lever, tuple[Unit, ...]]] = {
    "policy_rate": ("points",),
    "spending": ("percent_of_gdp", "percent"),
    "taxes": ("percent_of_gdp", "percent"),
    "tariff": ("points",),
    "sanction": ("points",),
    "debt": ("percent_of_gdp", "percent"),
}
"""The units of sizes by instrument."""
_DECIMALS: Final = 9
"""The number of decimals of an instrument; smaller differences are rounding errors."""


def spell_out(name: Lever | Unit) -> str:
    """Return the name of an instrument or a unit with spaces instead of underscores."""
    return name.replace("_", " ")


def _clean_name(target: object) -> object:
    """Return a target as a printable name, because an LLM may have written it."""
    return printable(target)[:NAME_CAP] or None if isinstance(target, str) else target


class Measure(BaseModel):  # its docstring is part of schemas, and so of the keys of recorded answers
    """One instrument and what is done with it.

    Attributes:
        lever: The instrument. `policy_rate`: the central bank's rate, percent a year. `spending` and `taxes`: of the
            government, a year. `tariff`: on imports from `target`, percent of their value. `sanction`: percent of the
            trade with `target`, both ways, that is stopped. `debt`: the government's, borrowed or paid back over the
            next four quarters.
        how: Whether the instrument moves `by` the size, or is set `to` it.
        size: With `by` above 0 to raise and below 0 to lower; with `to` the level.
        unit: `points` are percentage points of the instrument itself, `percent` is relative to where it stands,
            `percent_of_gdp` is percent of a year's GDP.
        target: The nation that a tariff or sanction is set against; None for all other instruments.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    lever: Lever
    how: Literal["by", "to"] = "by"
    size: float
    unit: Unit
    target: Annotated[str | None, BeforeValidator(_clean_name)] = None

    def __str__(self) -> str:
        unit = {"points": "points", "percent": "%", "percent_of_gdp": "% of GDP"}[self.unit]
        target_text = f" on {self.target}" if self.target else ""
        if self.how == "by":
            return f"{spell_out(self.lever)}{target_text} by {self.size:+.4g} {unit}"
        return f"{spell_out(self.lever)}{target_text} to {self.size:.4g} {'%' if unit == 'points' else unit}"


class Policy(BaseModel):
    """What a nation does in one quarter, in order; no measure means that it leaves everything as it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    measures: tuple[Measure, ...] = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self.measures)) or "hold"

    @html_or_repr
    def _repr_html_(self) -> str:
        rows = [
            (spell_out(m.lever), m.target or "", m.how, f"{m.size:{'+' if m.how == 'by' else ''}g}", spell_out(m.unit))
            for m in self.measures
        ]
        titles = ("instrument", "against", "moves", "size", "unit")
        return card_html("policy", str(self), table_html(titles, rows) if rows else note_html("no measure"))

    @property
    def sets_budget(self) -> bool:
        """Whether the policy sets spending or taxes; borrowing then only finances these."""
        return any(measure.lever in ("spending", "taxes") for measure in self.measures)


def find_repeats(measures: Sequence[Measure]) -> list[int]:
    """Return the indices of measures that repeat an earlier measure's instrument and target."""
    instruments = [(measure.lever, measure.target) for measure in measures]
    return [i for i, instrument in enumerate(instruments) if instrument in instruments[:i]]


def level_before(world: World, row: int, measure: Measure, names: Sequence[str]) -> float:
    """Return an instrument's level before a measure, in percent; for budgets and debt in percent of GDP."""
    return float(getattr(world, measure.lever)[_index(row, measure, names)])


def level_after(world: World, row: int, measure: Measure, names: Sequence[str]) -> float:
    """Return an instrument's level after a measure; a percentage of a negative level refers to its absolute value."""
    level = level_before(world, row, measure, names)
    change = abs(level) * measure.size / 100 if measure.unit == "percent" else measure.size
    return round(measure.size if measure.how == "to" else level + change, _DECIMALS)


def _index(row: int, measure: Measure, names: Sequence[str]) -> int | tuple[int, int]:
    return (row, names.index(measure.target or "")) if measure.lever in AGAINST_NATIONS else row


def with_policies(world: World, policies: Mapping[int, Policy], names: Sequence[str]) -> World:
    """Return the world after policies, given by row; a policy sets only its own nation's instruments.

    Borrowing comes in four equal instalments. It has no separate effect if the policy sets spending or taxes: the
    government then borrows any deficit. Raises ValueError if a target is not a nation.
    """
    levels = {lever: getattr(world, lever).copy() for lever in LEVERS if lever != "debt"}
    instalments = world.instalments.copy()
    for row, policy in policies.items():
        for measure in policy.measures:
            new_level = level_after(world, row, measure, names)
            if measure.lever != "debt":
                levels[measure.lever][_index(row, measure, names)] = new_level
            elif not policy.sets_budget:
                instalments[row] += np.full(PAST_QUARTERS, (new_level - world.debt[row]) / PAST_QUARTERS)
    return replace(world, **levels, instalments=instalments)
