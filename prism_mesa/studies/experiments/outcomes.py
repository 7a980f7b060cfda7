"""The file of outcomes: what field experiments found, and how each outcome is simulated."""

from collections.abc import Mapping
from math import copysign, inf, nan
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from prism_mesa.errors import ConfigError, did_you_mean, printable
from prism_mesa.params import Params, validate_params
from prism_mesa.runs.yaml_text import read_yaml

type Role = Literal["put in", "given", "predicted", "extra"]
type Compare = Literal["value", "percent", "difference", "ratio", "matched"]

FACTOR: Final = 1.5
"""A published number without an interval allows this factor either way."""


class Outcome(Params):
    """An outcome of a field experiment, and how it is simulated."""

    what: str = Field(min_length=1, max_length=200, description="what was measured")
    unit: str = Field("", max_length=40, description="unit of the numbers")
    role: Role = Field(
        description="put in: a number that the simulation is given; given: it follows from the world; predicted; "
        "extra: it does not count, because the field experiment has no such number or another outcome says the same"
    )
    published: float | Literal["higher", "lower"] | None = Field(
        None, description="published number, or only its direction; 0: a null result; null: not looked up"
    )
    range: tuple[float, float] | None = Field(
        None, description="published interval; null: a factor of 1.5 either way of the published number"
    )
    mark: str = Field("", max_length=20, description="how the number was read from its source")
    measure: str | None = Field(None, description="measure of a run; null: `measures` with the name of the outcome")
    arm: str | None = Field(None, description="arm of the study; null: that of the experiment")
    against: str | None = Field(None, description="arm to compare with; null: that of the experiment")
    compare: Compare = Field(
        "value",
        description="value: the measure in `arm`; percent, difference, ratio: against the arm in `against`; matched: "
        "a function of two runs, that of `arm` and that of `against` (needs `keep: tables`)",
    )

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if self.range is not None and self.range[0] >= self.range[1]:
            raise ValueError("range: give the lower end first")
        if self.published == 0 and self.range is None:
            raise ValueError("range: a null result needs one, because a factor of 0 is 0")
        if self.range is not None and not isinstance(self.published, float):
            raise ValueError("range: needs a published number")
        return self

    @property
    def neutral(self) -> float:
        """The value that means no effect: 1 for ratios, else 0."""
        return 1.0 if self.unit == "ratio" else 0.0

    @property
    def is_null(self) -> bool:
        """Whether the published result is that there is no effect."""
        return self.published == 0

    @property
    def sign(self) -> float:
        """1 if the published value is above no effect, -1 if it is below, 0 if it is null or unknown."""
        if isinstance(self.published, str):
            return 1.0 if self.published == "higher" else -1.0
        if not self.published or self.published == self.neutral:
            return 0.0
        return copysign(1.0, self.published - self.neutral)

    @property
    def allowed(self) -> tuple[float, float]:
        """The range in which a simulated value counts as right; NaN if nothing is published."""
        if isinstance(self.published, str):
            return (self.neutral, inf) if self.published == "higher" else (-inf, self.neutral)
        if self.published is None:
            return nan, nan
        low, high = sorted((self.published / FACTOR, self.published * FACTOR))
        return self.range or (low, high)


class Experiment(Params):
    """A field experiment: its study, and its outcomes."""

    title: str = Field(min_length=1, max_length=200, description="treatment, authors, year and journal")
    source: str = Field("", max_length=200, description="address of the publication")
    study: str = Field(description="study file, beside the file of outcomes")
    small: dict[str, Any] = Field(default_factory=dict, description="values of the study's `set` with --scale small")
    measures: str = Field("", description="module of the measures that outcomes name")
    arm: str | None = Field(None, description="arm of outcomes that name none")
    against: str | None = Field(None, description="arm that outcomes are compared with if they name none")
    outcomes: dict[str, Outcome] = Field(min_length=1, description="outcomes by name")

    def measure(self, name: str) -> str:
        """Return the measure of an outcome."""
        return self.outcomes[name].measure or f"{self.measures}:{name}"

    def column(self, name: str) -> str:
        """Return the column of an outcome in the table of runs."""
        return f"matched {name}" if self.outcomes[name].compare == "matched" else self.measure(name)


class FigureParams(Params):
    """A figure of outcomes: a line for each series, a point for each outcome."""

    title: str = Field(min_length=1, max_length=120, description="what the figure shows")
    xlabel: str = Field("", max_length=80, description="label of the horizontal axis")
    ylabel: str = Field("", max_length=80, description="label of the vertical axis")
    x: list[str | float] = Field(min_length=1, description="labels of the points")
    series: dict[str, list[str]] = Field(min_length=1, description="outcomes by series, as EXPERIMENT.OUTCOME")


class OutcomesFile(Params):
    """Field experiments by name, and figures of their outcomes."""

    experiments: dict[str, Experiment] = Field(min_length=1)
    figures: dict[str, FigureParams] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_figures(self) -> Self:
        known = [f"{name}.{outcome}" for name, item in self.experiments.items() for outcome in item.outcomes]
        for name, figure in self.figures.items():
            for series, outcomes in figure.series.items():
                if len(outcomes) != len(figure.x):
                    raise ValueError(
                        f"figures.{name}.series.{series}: give an outcome for each of the {len(figure.x)} x"
                    )
                for outcome in outcomes:
                    if outcome not in known:
                        hint = did_you_mean(outcome, known)
                        raise ValueError(f"figures.{name}.series.{series}: {outcome!r} is no outcome.{hint}")
        return self


def read_outcomes(file: Path) -> OutcomesFile:
    """Return the experiments in a file of outcomes; raises ConfigError for a wrong key or value."""
    return validate_params(OutcomesFile, read_yaml(file, kind="file of outcomes", hint=""), str(file))


def select_experiments(known: Mapping[str, Experiment], names: tuple[str, ...]) -> dict[str, Experiment]:
    """Return experiments by name, in the order of the file; all of them if no name is given."""
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f" (known: {', '.join(known)})"
            raise ConfigError(f"experiments: {printable(name)}: no such experiment.{hint}")
    return {name: item for name, item in known.items() if not names or name in names}
