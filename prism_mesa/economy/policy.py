"""A policy in numbers: what a nation does with its own instruments."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.markup import card_of, note_of, shown_or_plain, table_of

type Lever = Literal["policy_rate", "spending", "taxes", "tariff", "sanction", "debt"]
type Unit = Literal["points", "percent", "percent_of_gdp"]

LEVERS: tuple[Lever, ...] = get_args(Lever.__value__)
AGAINST_NATIONS: frozenset[Lever] = frozenset({"tariff", "sanction"})
"""Instruments that are set against one named nation each; the others have no target."""

DOMAINS: Mapping[str, tuple[Lever, ...]] = {
    "economic": LEVERS,
    "monetary": ("policy_rate",),
    "fiscal": ("spending", "taxes", "debt"),
    "trade": ("tariff", "sanction"),
}
"""The instruments that a nation can decide about, by domain."""

UNITS: dict[Lever, tuple[Unit, ...]] = {
    "policy_rate": ("points",),
    "spending": ("percent_of_gdp", "percent"),
    "taxes": ("percent_of_gdp", "percent"),
    "tariff": ("points",),
    "sanction": ("points",),
    "debt": ("percent_of_gdp", "percent"),
}
"""The units that a size can have, by instrument."""

ROUNDING = 0.051
"""By how much borrowing may miss the budget, in percent of GDP: nations are told levels with one decimal."""


def in_words(name: Lever | Unit) -> str:
    """Return an instrument or a unit as a text says it."""
    return name.replace("_", " ")


def moved(level: float, size: float, unit: Unit) -> float:
    """Return where a move leaves an instrument; percent of a level below zero are of its size."""
    return level + (abs(level) * size / 100 if unit == "percent" else size)


def _name(target: object) -> object:
    """Return a target as a name, which may be an LLM's words."""
    return plain(target, NAME_CAP) or None if isinstance(target, str) else target


class Measure(BaseModel):
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
    target: Annotated[str | None, BeforeValidator(_name)] = None

    def __str__(self) -> str:
        by = {"points": "points", "percent": "%", "percent_of_gdp": "% of GDP"}[self.unit]
        of = f" on {self.target}" if self.target else ""
        size = f"{self.size:.4g} {'%' if by == 'points' else by}" if self.how == "to" else f"{self.size:+.4g} {by}"
        return f"{in_words(self.lever)}{of} {self.how} {size}"


class Policy(BaseModel):
    """What a nation does in one quarter, in order; no measure means that it leaves everything as it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    measures: tuple[Measure, ...] = Field(default=())

    def __str__(self) -> str:
        return ", ".join(map(str, self.measures)) or "hold"

    @shown_or_plain
    def _repr_html_(self) -> str:
        sign = {"by": "+", "to": ""}
        rows = [
            (in_words(one.lever), one.target or "", one.how, f"{one.size:{sign[one.how]}g}", in_words(one.unit))
            for one in self.measures
        ]
        table = table_of(("instrument", "against", "moves", "size", "unit"), rows) if rows else note_of("no measure")
        return card_of("policy", str(self), table)

    @property
    def sets_budget(self) -> bool:
        """Whether it sets spending or taxes; borrowing beside them says how they are financed, and nothing else."""
        return any(measure.lever in ("spending", "taxes") for measure in self.measures)


def repeated(measures: Sequence[Measure]) -> list[int]:
    """Return which measures, by place, set what one before them sets: the same instrument against the same nation."""
    places = [(measure.lever, measure.target) for measure in measures]
    return [i for i, place in enumerate(places) if place in places[:i]]
