"""A calibration that is ready to run: its space, its targets, and the studies that its trials are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from typing import Any, Final

import numpy as np

from prism_mesa.errors import ConfigError, PrismError, counted
from prism_mesa.params import merged, nested, shown, validated
from prism_mesa.runs.config import Config
from prism_mesa.runs.identity import Identity, identity_of
from prism_mesa.streams import Floats
from prism_mesa.studies.calibration.params import CalibrationParams, Span
from prism_mesa.studies.design.models import check_models
from prism_mesa.studies.design.points import check_keys, is_whole
from prism_mesa.studies.design.study_design import StudyDesign, design_study
from prism_mesa.studies.measures.catalogue import find_measure
from prism_mesa.studies.params import study_params


@dataclass(frozen=True)
class Axis:
    """A parameter and its range.

    Attributes:
        log: Whether places go by the logarithm.
        whole: Whether only whole numbers are values.
    """

    key: str
    low: float
    high: float
    log: bool = False
    whole: bool = False

    def value(self, place: float) -> float | int:
        """Return the value at a place, with six digits, so that a file says what was run.

        >>> Axis("agents.activity", 0.01, 1, log=True).value(0.5)
        0.1
        """
        inside = min(max(place, 0.0), 1.0)
        if self.log:
            found = exp(log(self.low) + inside * (log(self.high) - log(self.low)))
        else:
            found = self.low + inside * (self.high - self.low)
        rounded = min(max(float(f"{found:.6g}"), self.low), self.high)
        return round(found) if self.whole else rounded

    def place(self, value: float) -> float:
        """Return the place of a value, 0 to 1."""
        if self.log:
            found = (log(max(value, self.low)) - log(self.low)) / (log(self.high) - log(self.low))
        else:
            found = (value - self.low) / (self.high - self.low)
        return min(max(found, 0.0), 1.0)


@dataclass(frozen=True)
class Space:
    """All parameters of a calibration."""

    axes: tuple[Axis, ...]

    def values(self, place: Floats) -> dict[str, float | int]:
        """Return the values at a place, by key."""
        return {axis.key: axis.value(float(at)) for axis, at in zip(self.axes, place, strict=True)}

    def place(self, values: dict[str, float | int]) -> Floats:
        """Return the place of values."""
        return np.array([axis.place(values[axis.key]) for axis in self.axes])


_QUESTION: Final = "Which values of some parameters meet some targets?"
_PER_PARAMETER: Final = 6
_FEWEST: Final = 8

type Values = dict[str, float | int]


@dataclass(frozen=True)
class CalibrationPlan:
    """A calibration, checked.

    Attributes:
        notes: What has no effect, or cannot be told.
    """

    params: CalibrationParams
    name: str
    where: str
    base: Config
    space: Space
    identity: Identity
    notes: tuple[str, ...] = ()
    _values: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def seeds(self) -> list[int]:
        """The seeds of each trial: the same in all, so that trials share their random numbers."""
        return list(range(1, self.params.seeds + 1))

    @property
    def report_seeds(self) -> list[int]:
        """The seeds of the fitted world, which no trial has had."""
        return [self.params.seeds + number for number in range(1, self.params.report_seeds + 1)]

    @property
    def first(self) -> int:
        """How many trials are spread evenly at first."""
        return self.params.first or max(_FEWEST, _PER_PARAMETER * len(self.space.axes))

    def study(
        self, arms: Mapping[str, Values], seeds: Sequence[int], measures: Sequence[str], where: str = ""
    ) -> StudyDesign:
        """Return the runs of some values of the parameters as a study: an arm for each."""
        values = {
            "question": _QUESTION,
            "base": self._values,
            "arms": {name: dict(own) for name, own in arms.items()},
            "seeds": list(seeds),
            "measures": list(dict.fromkeys(measures)),
            "keep": "measures",
            "limits": self.params.limits.model_dump(),
        }
        where = where or self.where
        return design_study(study_params(values, where), self.name, where)


def plan_calibration(params: CalibrationParams, name: str, where: str) -> CalibrationPlan:
    """Return a calibration as it is to be run; small models of its bounds are made, so that what cannot run is said.

    Raises:
        ConfigError: One line: where, what, what is allowed.
    """
    check_keys(params.parameters, f"{where}: parameters")
    for group, targets in (("fit", params.fit), ("holdout", params.holdout)):
        for measure in targets:
            try:
                find_measure(measure)
            except PrismError as error:
                raise ConfigError(f"{where}: {group}: {str(error).removeprefix('measures: ')}") from None
    start = {"question": _QUESTION, "base": params.base, "set": params.set}
    base = design_study(study_params(start, where), name, where).base
    own = base.model_dump(mode="json", exclude={"seed"})
    space = Space(tuple(_axis(key, span, own, where) for key, span in params.parameters.items()))
    plan = CalibrationPlan(
        params,
        params.name or name,
        where,
        base,
        space,
        identity_of(base),
        tuple(_notes(params)),
        own,
    )
    lows, highs = ({axis.key: axis.value(end) for axis in space.axes} for end in (0.0, 1.0))
    for values in (lows, highs):  # as arms of the study below their faults would be those of arms
        validated(Config, merged(own, nested(values)), f"{where}: parameters")
    ends = plan.study({"lowest": lows, "highest": highs}, [1], list(params.fit), f"{where}: parameters")
    without_effect = [note for note in check_models(ends) if any(axis.key in note for axis in space.axes)]
    return replace(plan, notes=(*plan.notes, *without_effect))


def _axis(key: str, span: Span, own: Mapping[str, Any], where: str) -> Axis:
    value: Any = own
    for part in key.split("."):
        value = value[part] if isinstance(value, Mapping) else None
    if isinstance(value, str | bool | list):
        raise ConfigError(f"{where}: parameters: {key}: choices cannot be fitted, only numbers (here: {shown(value)})")
    whole = is_whole(key)
    if whole and not (span.low.is_integer() and span.high.is_integer()):
        raise ConfigError(f"{where}: parameters: {key}: takes whole numbers, not {span.low:g} to {span.high:g}")
    return Axis(key, span.low, span.high, span.log, whole)


def _notes(params: CalibrationParams) -> list[str]:
    said = []
    n_targets, n_parameters = len(params.fit), len(params.parameters)
    if n_targets < n_parameters:
        said.append(
            f"{counted(n_targets, 'target')} cannot identify {counted(n_parameters, 'parameter')}: "
            "the profiles show which are left open"
        )
    if not params.holdout:
        said.append("nothing is held out: how the fitted world does on data that it was not fitted to is not known")
    return said
