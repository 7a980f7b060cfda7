"""The folder of a calibration: what was tried, as data, beside the journal of the runs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypedDict

from pydantic import ConfigDict, TypeAdapter, ValidationError

from prism_mesa.errors import DataError
from prism_mesa.studies.calibration.plan import CalibrationPlan, Values
from prism_mesa.studies.folder import StudyFolder, read_json, write_text

MANIFEST: Final = "calibration.json"
TRIALS: Final = "trials.json"
COPY: Final = "calibration.yaml"  # the calibration file, as it was read

type How = Literal["spread", "likely", "probe", "guess"]


class _Row(TypedDict):
    """A trial as its file has it."""

    how: How
    values: Values


_ROWS: Final = TypeAdapter(list[_Row], config=ConfigDict(strict=True))


@dataclass(frozen=True)
class Trial:
    """Values that are tried.

    Attributes:
        how: How they were chosen: `spread` evenly, `likely` by Optuna's TPE, `probe`: where a profile is low and
            no trial says so, `guess`: where the surrogate is least.
    """

    number: int
    how: How
    values: Values

    @property
    def name(self) -> str:
        """Of its arm."""
        return f"trial-{self.number}"


@dataclass(frozen=True)
class CalibrationFolder(StudyFolder):
    """A calibration's folder: what a study's holds, and the trials."""

    def describe_plan(self, plan: CalibrationPlan, text: str) -> None:
        """Write what the calibration is; `text` is its file."""
        self.describe(MANIFEST, _identity(plan), text, plan.params, plan.base)

    def trials(self, plan: CalibrationPlan) -> list[Trial]:
        """Return what was proposed so far.

        Raises:
            DataError: If the file is not one that a calibration writes.
        """
        file = self.path / TRIALS
        values = read_json(file) or {"trials": []}
        try:
            rows = _ROWS.validate_python(values["trials"])
        except (KeyError, ValidationError):
            rows = None
        keys = {axis.key for axis in plan.space.axes}
        if rows is None or any(row["values"].keys() != keys for row in rows):
            raise DataError(f"{file}: is not what a calibration writes: remove it, and all is proposed anew")
        return [Trial(number, row["how"], row["values"]) for number, row in enumerate(rows)]

    def keep_trials(self, trials: Sequence[Trial]) -> None:
        """Write down all that was proposed, in one piece."""
        rows = [{"how": trial.how, "values": trial.values} for trial in trials]
        text = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        write_text(self.path / TRIALS, f'{{"kind": "trials", "trials": [\n{text}\n]}}\n')


def open_calibration_folder(plan: CalibrationPlan, out: str | Path) -> CalibrationFolder:
    """Return the folder of a calibration, ``out/<name>``, which may not be there yet.

    Raises:
        DataError: If something else is there, or a calibration of other parameters, seeds or base.
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
    """Return what trials depend on besides targets: those may change, and what was run is judged anew."""
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
