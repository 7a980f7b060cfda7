"""A calibration: its checked file, the studies that run its trials, and its folder."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator

from prism_mesa.arrays import Floats
from prism_mesa.errors import ConfigError, DataError, PrismError, format_count
from prism_mesa.params import Params, flatten, merge_values, nest_keys, short_repr, validate_params
from prism_mesa.runs.config import Config
from prism_mesa.runs.identity import Identity, identify_config
from prism_mesa.runs.yaml_text import read_yaml
from prism_mesa.studies.design.models import check_models
from prism_mesa.studies.design.points import check_keys, takes_integers
from prism_mesa.studies.design.study_design import StudyDesign, design_study
from prism_mesa.studies.folder import StudyFolder, read_json, write_text
from prism_mesa.studies.measures.catalogue import chart_states, check_states, find_measure
from prism_mesa.studies.params import NAME, RunLimits, study_params

RISE: Final = 3.84
"""Rise of the objective at the ends of a 95 % interval: the quantile of chi-squared with one degree of freedom."""

UNDEFINED_DISTANCE: Final = 10.0  # distance of an undefined measure from its target, in tolerances
RUNS: Final = 200  # the budget if neither the file nor the call sets runs or minutes
_MAX_SEEDS: Final = 1000


class Span(Params):
    """The range in which a parameter is fitted."""

    low: float = Field(description="lowest value to try")
    high: float = Field(description="highest value to try")
    log: bool = Field(False, description="whether the scale is logarithmic; low must then be above 0")

    @model_validator(mode="after")
    def _check_ends(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, not {self.low:g} and {self.high:g}")
        if self.log and self.low <= 0:
            raise ValueError(f"with log: true low must be above 0, not {self.low:g}")
        return self


class Target(Params):
    """The target of a measure."""

    target: float = Field(description="target value of the measure, as a mean over seeds")
    tolerance: float = Field(
        gt=0, description="largest distance from the target that counts as inside; also the unit of distances"
    )
    data: str = Field(min_length=1, max_length=200, description="name of the dataset of the target")


class CalibrationParams(Params):
    """Parameters, targets of the fit, and targets that are held out."""

    name: str | None = Field(None, pattern=NAME, description="name of the calibration's folder; null: name of the file")
    base: str | dict[str, Any] = Field(
        default_factory=dict,
        description="the configuration that all runs start from: a YAML file in the working directory or next to the "
        "calibration file, or its values",
    )
    set: dict[str, Any] = Field(default_factory=dict, description="values that override the base, by dotted key")
    parameters: dict[str, Span] = Field(
        min_length=1, max_length=20, description="parameters to fit: dotted key -> [low, high], or low, high and log"
    )
    fit: dict[str, Target] = Field(min_length=1, description="measure -> its target for the fit")
    holdout: dict[str, Target] = Field(
        default_factory=dict, description="measure -> its held-out target, from other data than `fit`"
    )
    seeds: int = Field(2, ge=1, le=_MAX_SEEDS, description="runs of each trial, with seeds 1, 2, ... in all trials")
    report_seeds: int = Field(5, ge=2, le=_MAX_SEEDS, description="runs of the fitted world, with the next seeds")
    seed: int = Field(0, ge=0, lt=2**63, description="seed of the proposals, not of the runs")
    runs: int | None = Field(
        None, ge=1, le=10_000_000, description="total number of runs; null: as many as minutes allow"
    )
    minutes: float | None = Field(None, gt=0, description="minutes of real time after which no batch starts")
    batch: int = Field(4, ge=1, le=1000, description="trials that are proposed at once, given all earlier trials")
    first: int | None = Field(
        None, ge=2, le=100_000, description="evenly spread trials at the start; null: 6 per parameter"
    )
    rise: float = Field(RISE, gt=0, description="rise of the objective that bounds an interval of a parameter")
    limits: RunLimits = Field(default_factory=RunLimits)

    @field_validator("base", mode="before")
    @classmethod
    def _check_base(cls, value: object) -> object:
        if not isinstance(value, str | Mapping):
            raise ValueError("give a file, or values by key")
        return value

    @field_validator("parameters", mode="before")
    @classmethod
    def _allow_pairs(cls, value: object) -> object:
        """Accept ``[low, high]``."""
        if not isinstance(value, Mapping):
            raise ValueError("give keys with ranges: {agents.activity: [0.05, 0.5]}")
        pairs = {key: span for key, span in value.items() if isinstance(span, list | tuple) and len(span) == 2}
        return dict(value) | {key: {"low": low, "high": high} for key, (low, high) in pairs.items()}

    @field_validator("fit", "holdout", mode="before")
    @classmethod
    def _allow_none(cls, value: object) -> object:
        return {} if value is None else value

    @model_validator(mode="after")
    def _check_holdout(self) -> Self:
        measures_by_data = {"".join(target.data.casefold().split()): measure for measure, target in self.fit.items()}
        for measure, target in self.holdout.items():
            if twin := measures_by_data.get("".join(target.data.casefold().split())):
                raise ValueError(f"holdout: {measure}: fit: {twin} has the same data {target.data!r}; move it to fit")
        return self

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        fixed_values = dict(flatten(self.set))
        if repeated_keys := fixed_values.keys() & self.parameters.keys():
            raise ValueError(f"set: {min(repeated_keys)}: is in 'parameters', too; leave it out of one of them")
        for group, keys in (("set", fixed_values), ("parameters", self.parameters)):
            if "seed" in keys:
                raise ValueError(f"{group}: seed: use the calibration's key 'seeds'")
        return self


def read_calibration(file: str | Path) -> CalibrationParams:
    """Return the parameters of a calibration file."""
    return calibration_params(read_yaml(Path(file), kind="calibration file", hint=""), str(file))


def calibration_params(values: Mapping[str, Any], where: str) -> CalibrationParams:
    """Return the parameters of a calibration."""
    return validate_params(CalibrationParams, values, where)


@dataclass(frozen=True)
class Axis:
    """A parameter and its range, scaled to 0..1, logarithmically if `log`; `whole` parameters take only integers."""

    key: str
    low: float
    high: float
    log: bool = False
    whole: bool = False

    def value(self, position: float) -> float | int:
        """Return the value at a position from 0 to 1, rounded to six digits, so that files can hold it exactly.

        >>> Axis("agents.activity", 0.01, 1, log=True).value(0.5)
        0.1
        """
        low, high = self._scale(self.low), self._scale(self.high)
        scaled_value = low + min(max(position, 0.0), 1.0) * (high - low)
        value = exp(scaled_value) if self.log else scaled_value
        return round(value) if self.whole else min(max(float(f"{value:.6g}"), self.low), self.high)

    def position(self, value: float) -> float:
        """Return the position of a value, from 0 to 1."""
        low, high = self._scale(self.low), self._scale(self.high)
        return min(max((self._scale(max(value, self.low)) - low) / (high - low), 0.0), 1.0)

    def _scale(self, value: float) -> float:
        return log(value) if self.log else value


type Values = dict[str, float | int]

_QUESTION: Final = "Which values of some parameters meet some targets?"


@dataclass(frozen=True)
class CalibrationPlan:
    """A checked calibration; `notes` has remarks, for example on keys without effect."""

    params: CalibrationParams
    name: str
    where: str
    base: Config
    axes: tuple[Axis, ...]
    identity: Identity
    notes: tuple[str, ...] = ()
    _values: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def seeds(self) -> list[int]:
        """The seeds of each trial. All trials have the same seeds, and so share random numbers."""
        return list(range(1, self.params.seeds + 1))

    @property
    def report_seeds(self) -> list[int]:
        """The seeds of the fitted world, which no trial has."""
        return [self.params.seeds + number for number in range(1, self.params.report_seeds + 1)]

    @property
    def n_initial(self) -> int:
        """Number of evenly spread trials at the start."""
        return self.params.first or max(8, 6 * len(self.axes))

    def values(self, point: Floats) -> Values:
        """Return the values of the parameters at a point, shape (axes,)."""
        return {axis.key: axis.value(float(position)) for axis, position in zip(self.axes, point, strict=True)}

    def point(self, values: Values) -> Floats:
        """Return the point with these values, shape (axes,): a position from 0 to 1 on each axis."""
        return np.array([axis.position(values[axis.key]) for axis in self.axes])

    def study(
        self, arms: Mapping[str, Values], seeds: Sequence[int], measures: Sequence[str], where: str = ""
    ) -> StudyDesign:
        """Return a study with an arm for each set of values."""
        values = {
            "question": _QUESTION,
            "base": self._values,
            "arms": arms,
            "seeds": list(seeds),
            "measures": list(dict.fromkeys(measures)),
            "keep": "measures",
            "limits": self.params.limits.model_dump(),
        }
        where = where or self.where
        return design_study(study_params(values, where), self.name, where)


def plan_calibration(params: CalibrationParams, name: str, where: str) -> CalibrationPlan:
    """Return a calibration that is ready to run; models at its bounds are built to check it."""
    check_keys(params.parameters, f"{where}: parameters")
    start_values = {"question": _QUESTION, "base": params.base, "set": params.set}
    base = design_study(study_params(start_values, where), name, where).base
    for group, targets in (("fit", params.fit), ("holdout", params.holdout)):
        for measure in targets:
            try:
                find_measure(measure)
                check_states([measure], chart_states([base.statechart.chart]))
            except PrismError as error:
                raise ConfigError(f"{where}: {group}: {str(error).removeprefix('measures: ')}") from None
    values = base.model_dump(mode="json", exclude={"seed"})
    axes = tuple(_make_axis(key, span, values, where) for key, span in params.parameters.items())
    identity, notes = identify_config(base), _notes(params)
    plan = CalibrationPlan(params, params.name or name, where, base, axes, identity, notes, values)
    lows, highs = ({axis.key: axis.value(end) for axis in axes} for end in (0.0, 1.0))
    for bounds in (lows, highs):  # errors should name parameters, not arms of the study below
        validate_params(Config, merge_values(values, nest_keys(bounds)), f"{where}: parameters")
    bounds_design = plan.study({"lowest": lows, "highest": highs}, [1], list(params.fit), f"{where}: parameters")
    effect_notes = [note for note in check_models(bounds_design) if any(axis.key in note for axis in axes)]
    return replace(plan, notes=(*plan.notes, *effect_notes))


def _make_axis(key: str, span: Span, base: Mapping[str, Any], where: str) -> Axis:
    value: Any = base
    for part in key.split("."):
        value = value[part] if isinstance(value, Mapping) else None
    if isinstance(value, str | bool | list):
        raise ConfigError(f"{where}: parameters: {key}: must be a number to be fitted, not {short_repr(value)}")
    whole = takes_integers(key)
    if whole and not (span.low.is_integer() and span.high.is_integer()):
        raise ConfigError(f"{where}: parameters: {key}: give whole numbers, not {span.low:g} to {span.high:g}")
    return Axis(key, span.low, span.high, span.log, whole)


def _notes(params: CalibrationParams) -> tuple[str, ...]:
    notes = []
    n_targets, n_parameters = len(params.fit), len(params.parameters)
    if n_targets < n_parameters:
        sizes = format_count(n_targets, "target"), format_count(n_parameters, "parameter")
        notes.append(f"{sizes[0]} cannot identify {sizes[1]}: the profiles show which are not identified")
    if not params.holdout:
        notes.append("no target is held out: nothing tests the fitted world on other data")
    return tuple(notes)


MANIFEST: Final = "calibration.json"
TRIALS: Final = "trials.json"
CALIBRATION_FILE: Final = "calibration.yaml"  # a copy of the calibration file

type Origin = Literal["spread", "likely", "probe", "guess"]


@dataclass(frozen=True)
class Trial:
    """Parameter values to try.

    Attributes:
        how: How the values were chosen: `spread` evenly; `likely` by Optuna's TPE; as a `probe` where the surrogate is
            low but no trial is yet; as a `guess` where the surrogate is lowest.
    """

    number: int
    how: Origin
    values: Values

    @property
    def name(self) -> str:
        """The name of its arm."""
        return f"trial-{self.number}"


_TRIALS: Final = TypeAdapter(list[Trial])


@dataclass(frozen=True)
class CalibrationFolder(StudyFolder):
    """The folder of a calibration: the folder of a study, with trials."""

    def write_plan_files(self, plan: CalibrationPlan, text: str) -> None:
        """Write a calibration's manifest and its file, with the content `text`."""
        self.write_files(MANIFEST, _plan_identity(plan), text, plan.params, plan.base)

    def trials(self, plan: CalibrationPlan) -> list[Trial]:
        """Return the trials proposed so far; raise DataError if their file is damaged, or has other parameters."""
        file = self.path / TRIALS
        content = read_json(file) or {"trials": []}
        try:
            trials = _TRIALS.validate_python([{**row, "number": n} for n, row in enumerate(content["trials"])])
        except (KeyError, TypeError, ValidationError):
            trials = None
        keys = {axis.key for axis in plan.axes}
        if trials is None or any(trial.values.keys() != keys for trial in trials):
            raise DataError(f"{file} is damaged, or belongs to another calibration: remove it to start again")
        return trials

    def write_trials(self, trials: Sequence[Trial]) -> None:
        """Write the file of all trials."""
        rows = [{"how": trial.how, "values": trial.values} for trial in trials]
        text = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        write_text(self.path / TRIALS, f'{{"kind": "trials", "trials": [\n{text}\n]}}\n')


def open_calibration_folder(plan: CalibrationPlan, out: str | Path) -> CalibrationFolder:
    """Return a calibration's folder, ``out/<name>``; raise DataError if the folder has another calibration."""
    folder, identity = CalibrationFolder(Path(out) / plan.name), _plan_identity(plan)
    manifest = folder.existing_manifest(MANIFEST, "calibration")
    changed_keys = [name for name in identity if manifest is not None and manifest.get(name) != identity[name]]
    if changed_keys:
        fault = f"is the folder of another calibration (different: {', '.join(changed_keys)})"
        raise DataError(f"{folder.path}: {fault}; give this one another name, or another --out")
    return folder


def _plan_identity(plan: CalibrationPlan) -> dict[str, Any]:
    """Return all values that trials depend on. Targets are not among them, because they only judge runs."""
    return {
        "kind": "calibration",
        "name": plan.name,
        "parameters": {key: span.model_dump() for key, span in plan.params.parameters.items()},
        "seeds": plan.params.seeds,
        "seed": plan.params.seed,
        "batch": plan.params.batch,
        "first": plan.n_initial,
        "base": f"{plan.identity.config}-{plan.identity.data}",
    }
