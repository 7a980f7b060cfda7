"""What a calibration file holds, and its check as a whole."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from pydantic import Field, field_validator, model_validator

from prism_mesa.errors import ConfigError
from prism_mesa.params import Params, validated
from prism_mesa.runs.yaml_text import read_yaml
from prism_mesa.studies.params import NAME, flat

RISE: Final = 3.84
"""How far the objective may rise above its least: the 95 % quantile of chi-squared with one degree of freedom."""

FAR: Final = 10.0  # tolerances that a measure counts as off that is not defined in any run of a trial
RUNS: Final = 200  # runs of a calibration whose file and command say nothing of runs or minutes
_MOST_SEEDS: Final = 1000


class Span(Params):
    """Where a parameter is looked for."""

    low: float = Field(description="lowest value that is tried")
    high: float = Field(description="highest value that is tried")
    log: bool = Field(False, description="whether equal factors, not equal steps, count as equally far; low above 0")

    @model_validator(mode="after")
    def _is_a_span(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, not {self.low:g} and {self.high:g}")
        if self.log and self.low <= 0:
            raise ValueError(f"with log: true low must be above 0, not {self.low:g}")
        return self


class Target(Params):
    """What a measure is wanted to be."""

    target: float = Field(description="wanted value of the measure, as a mean over seeds")
    tolerance: float = Field(gt=0, description="how far from it is one unit of distance; up to one is inside")
    data: str = Field(min_length=1, max_length=200, description="name of the dataset that it was computed from")


class RunLimits(Params):
    """What a run may take; null: no limit."""

    seconds: float | None = Field(None, gt=0, description="wall seconds, after which it is ended")
    memory_gb: float | None = Field(None, gt=0, description="memory in GB, above which it is ended")


class CalibrationParams(Params):
    """Parameters, what they are fitted to, and what the fit is held against that it did not see."""

    name: str | None = Field(None, pattern=NAME, description="name of its folder; null: that of the file")
    base: str | dict[str, Any] = Field(
        default_factory=dict,
        description="the configuration that all runs start from: a YAML file, looked for in the working directory, "
        "then beside the calibration file; or its values",
    )
    set: dict[str, Any] = Field(default_factory=dict, description="values on top of it, by dotted key")
    parameters: dict[str, Span] = Field(
        min_length=1, max_length=20, description="what is fitted: dotted key -> [low, high], or low, high and log"
    )
    fit: dict[str, Target] = Field(min_length=1, description="measure -> what it is fitted to")
    holdout: dict[str, Target] = Field(
        default_factory=dict, description="measure -> what the fitted world is held against; from other data than `fit`"
    )
    seeds: int = Field(2, ge=1, le=_MOST_SEEDS, description="runs of each trial, with seeds 1, 2, ...: the same in all")
    report_seeds: int = Field(
        5, ge=2, le=_MOST_SEEDS, description="runs of the fitted world, with the seeds after those of the trials"
    )
    seed: int = Field(0, ge=0, lt=2**63, description="of what is tried, not of the runs")
    runs: int | None = Field(
        None, ge=1, le=10_000_000, description="runs of all trials; null: as many as minutes allow"
    )
    minutes: float | None = Field(None, gt=0, description="wall minutes, after which no further batch is begun")
    batch: int = Field(4, ge=1, le=1000, description="trials that are proposed together, from all that were before")
    first: int | None = Field(
        None, ge=2, le=100_000, description="trials that are spread evenly at first; null: 6 for each parameter"
    )
    rise: float = Field(RISE, gt=0, description="how far the objective may rise within an interval of a parameter")
    limits: RunLimits = Field(default_factory=RunLimits)

    @field_validator("base", mode="before")
    @classmethod
    def _is_text_or_values(cls, given: object) -> object:
        if not isinstance(given, str | Mapping):
            raise ValueError("give a file, or values by key")
        return given

    @field_validator("parameters", mode="before")
    @classmethod
    def _may_be_pairs(cls, given: object) -> object:
        """Take ``[low, high]`` for what it says."""
        if not isinstance(given, Mapping):
            raise ValueError("give each key its range, as {agents.activity: [0.05, 0.5]}")
        pairs = {key: one for key, one in given.items() if isinstance(one, list | tuple) and len(one) == 2}
        return dict(given) | {key: {"low": low, "high": high} for key, (low, high) in pairs.items()}

    @field_validator("fit", "holdout", mode="before")
    @classmethod
    def _may_be_empty(cls, given: object) -> object:
        return {} if given is None else given

    @model_validator(mode="after")
    def _holds_out_other_data(self) -> Self:
        fitted = {_plain(target.data): measure for measure, target in self.fit.items()}
        for measure, target in self.holdout.items():
            if _plain(target.data) in fitted:
                raise ValueError(
                    f"holdout: {measure}: {target.data!r} is data of fit: {fitted[_plain(target.data)]} too: hold out "
                    "what the fit does not see, or move it to fit"
                )
        return self

    @model_validator(mode="after")
    def _each_key_has_one_owner(self) -> Self:
        both = dict(flat(self.set)).keys() & self.parameters.keys()
        if both:
            raise ValueError(f"set: {min(both)}: stands in 'parameters' too; leave it out of one of them")
        for group, keys in (("set", dict(flat(self.set))), ("parameters", self.parameters)):
            if "seed" in keys:
                raise ValueError(f"{group}: seed: the calibration's own key 'seeds' says which seeds there are")
        return self


def _plain(name: str) -> str:
    """Return the name of a dataset without what does not tell two apart."""
    return "".join(name.casefold().split())


def read_calibration(file: str | Path) -> CalibrationParams:
    """Return what a calibration file holds."""
    return calibration_params(read_yaml(Path(file), what="calibration file", hint=""), str(file))


def calibration_params(values: Mapping[str, Any], where: str) -> CalibrationParams:
    """Return values as the parameters of a calibration.

    Raises:
        ConfigError: One line: where, which key, what is allowed.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where}: a calibration is written as keys and values")
    return validated(CalibrationParams, values, where)
