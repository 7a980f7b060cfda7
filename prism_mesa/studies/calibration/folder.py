"""The folder of a calibration: what was tried, as data, beside the journal of the runs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from prism_mesa.errors import DataError, said_openly
from prism_mesa.runs.process.machine import provenance
from prism_mesa.studies.calibration.plan import CalibrationPlan, Values
from prism_mesa.studies.folder import StudyFolder, write_text

MANIFEST: Final = "calibration.json"
TRIALS: Final = "trials.json"
COPY: Final = "calibration.yaml"
"""What the calibration file said."""
_LARGEST: Final = 100_000_000

type How = Literal["spread", "likely", "probe", "guess"]


@dataclass(frozen=True)
class Trial:
    """Values that are tried.

    Attributes:
        number: From 0.
        how: How they were chosen: `spread` evenly, `likely` by Optuna's TPE, `probe`: where a profile is low and
            no trial says so, `guess`: where the surrogate is least.
        values: By key.
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
        """Write down what the calibration is; `text` is its file."""
        before = _read(self.path / MANIFEST)
        made = provenance() if before is None else before.get("made")
        base = yaml.safe_dump(plan.base.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        said = text or yaml.safe_dump(plan.params.model_dump(mode="json", exclude_unset=True), sort_keys=False)
        for name, content in (
            (MANIFEST, json.dumps({**_identity(plan), "made": made}, indent=2) + "\n"),
            (COPY, said),
            ("base.yaml", base),
        ):
            write_text(self.path / name, said_openly(content))

    def trials(self, plan: CalibrationPlan) -> list[Trial]:
        """Return what was proposed so far.

        Raises:
            DataError: If the file is none that a calibration writes.
        """
        file = self.path / TRIALS
        values = _read(file)
        if values is None:
            return []
        keys = {axis.key for axis in plan.space.axes}
        try:
            found = [Trial(number, one["how"], dict(one["values"])) for number, one in enumerate(values["trials"])]
            whole = all(trial.values.keys() == keys and trial.how in _HOWS for trial in found)
            numbers = all(type(value) in (int, float) for trial in found for value in trial.values.values())
        except (KeyError, TypeError, ValueError):
            whole = numbers = False
        if not (whole and numbers):
            raise DataError(f"{file}: is not what a calibration writes: remove it, and all is proposed anew")
        return found

    def keep_trials(self, trials: Sequence[Trial]) -> None:
        """Write down all that was proposed, in one piece."""
        rows = [{"how": trial.how, "values": trial.values} for trial in trials]
        text = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        write_text(self.path / TRIALS, f'{{"kind": "trials", "trials": [\n{text}\n]}}\n')


_HOWS: Final = ("spread", "likely", "probe", "guess")


def open_calibration_folder(plan: CalibrationPlan, out: str | Path) -> CalibrationFolder:
    """Return the folder of a calibration, ``out/<name>``, which may not be there yet.

    Raises:
        DataError: If something else is there, or a calibration of other parameters, seeds or base.
    """
    path = Path(out) / plan.name
    if path.exists() and not path.is_dir():
        raise DataError(f"{path}: is no folder; give the calibration another name, or another --out")
    folder = CalibrationFolder(path)
    folder.check()
    before = _read(path / MANIFEST)
    if before is None:
        if path.is_dir() and any(not inside.name.startswith(".lock") for inside in path.iterdir()):
            raise DataError(
                f"{path}: holds no calibration but something else; give this one another name, or another --out"
            )
        return folder
    now = _identity(plan)
    differs = [name for name in now if before.get(name) != now[name]]
    if differs:
        raise DataError(
            f"{path}: is the folder of another calibration (it differs in {', '.join(differs)}); give this one another "
            "name, or another --out"
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


def _read(file: Path) -> Mapping[str, Any] | None:
    """Return what a file of the folder holds, or None if there is none.

    Raises:
        DataError: If it cannot be read, or holds something else.
    """
    if not file.exists():
        return None
    try:
        values = json.loads(file.read_text("utf-8")) if file.stat().st_size < _LARGEST else None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from None
    if not isinstance(values, dict):
        raise DataError(f"{file}: is not what a calibration writes: give the calibration another name")
    return values
