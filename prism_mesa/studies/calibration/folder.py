"""The folder of a calibration, with its trials beside the journal of the runs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter, ValidationError

from prism_mesa.errors import DataError
from prism_mesa.studies.calibration.plan import CalibrationPlan, Values
from prism_mesa.studies.folder import StudyFolder, read_json, write_text

MANIFEST: Final = "calibration.json"
TRIALS: Final = "trials.json"
COPY: Final = "calibration.yaml"  # a copy of the calibration file

type How = Literal["spread", "likely", "probe", "guess"]


@dataclass(frozen=True)
class Trial:
    """Values of the parameters to try.

    Attributes:
        how: How they were chosen: `spread` evenly; `likely` by Optuna's TPE; `probe`: where a profile is low without
            a trial that is; `guess`: where the surrogate is lowest.
    """

    number: int
    how: How
    values: Values

    @property
    def name(self) -> str:
        """The name of its arm."""
        return f"trial-{self.number}"


_TRIALS: Final = TypeAdapter(list[Trial])


@dataclass(frozen=True)
class CalibrationFolder(StudyFolder):
    """The folder of a calibration: that of a study, with trials."""

    def describe_plan(self, plan: CalibrationPlan, text: str) -> None:
        """Write the manifest of a calibration, and its file (`text`)."""
        self.describe(MANIFEST, _identity(plan), text, plan.params, plan.base)

    def trials(self, plan: CalibrationPlan) -> list[Trial]:
        """Return the trials proposed so far.

        Raises:
            DataError: If the file is damaged, or of other parameters.
        """
        file = self.path / TRIALS
        content = read_json(file) or {"trials": []}
        try:
            trials = _TRIALS.validate_python([{**row, "number": n} for n, row in enumerate(content["trials"])])
        except (KeyError, TypeError, ValidationError):
            trials = None
        keys = {axis.key for axis in plan.axes}
        if trials is None or any(trial.values.keys() != keys for trial in trials):
            raise DataError(f"{file}: is not what a calibration writes: remove it, and all is proposed anew")
        return trials

    def keep_trials(self, trials: Sequence[Trial]) -> None:
        """Write all trials at once."""
        rows = [{"how": trial.how, "values": trial.values} for trial in trials]
        text = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        write_text(self.path / TRIALS, f'{{"kind": "trials", "trials": [\n{text}\n]}}\n')


def open_calibration_folder(plan: CalibrationPlan, out: str | Path) -> CalibrationFolder:
    """Return the folder of a calibration, ``out/<name>``, which may not exist yet.

    Raises:
        DataError: If it holds something else, or a calibration of other parameters, seeds or base.
    """
    folder, now = CalibrationFolder(Path(out) / plan.name), _identity(plan)
    before = folder.opened(MANIFEST, "calibration")
    differs = [name for name in now if before is not None and before.get(name) != now[name]]
    if differs:
        raise DataError(
            f"{folder.path}: is the folder of another calibration (it differs in {', '.join(differs)}); give this one "
            "another name, or another --out"
        )
    return folder


def _identity(plan: CalibrationPlan) -> dict[str, Any]:
    """Return everything that trials depend on. Targets are left out: if they change, runs are judged anew."""
    return {
        "kind": "calibration",
        "name": plan.name,
        "parameters": {key: span.model_dump() for key, span in plan.params.parameters.items()},
        "seeds": plan.params.seeds,
        "seed": plan.params.seed,
        "batch": plan.params.batch,
        "first": plan.first,
        "base": f"{plan.identity.config}-{plan.identity.data}",
    }
