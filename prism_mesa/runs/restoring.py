"""Restore a stopped run from a checkpoint, without changing its folder."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import DataError, NotRestorableError, PrismWarning, shorten
from prism_mesa.llm import Ledger
from prism_mesa.runs.checkpoints.file import (
    FOLDER,
    FROM_START,
    WORLD,
    DamagedError,
    RefusedError,
    checkpoint_files,
    checkpoint_round,
    other_version_error,
    read_checkpoint,
)
from prism_mesa.runs.economy import NationsRun
from prism_mesa.runs.identity import code_version, input_text
from prism_mesa.runs.manifest import RecordedRun
from prism_mesa.runs.records.reopened import ReopenedFolder, check_parts
from prism_mesa.runs.run_files import LEDGER, check_within, read_manifest
from prism_mesa.runs.social import PlatformRun
from prism_mesa.social.world.build import KeptWorld, restore_world

_LLM_IDENTITY: Final = ("kind", "name", "digest", "decoding", "answer", "persona", "prompt_style", "temperature")
"""Facts of an LLM that must not change when a run is resumed."""

type RunFactory = Callable[[KeptWorld | None], PlatformRun]


@dataclass(frozen=True)
class RestorePoint:
    """A run's state at a checkpoint, or at its beginning.

    Attributes:
        name: The run's name in ledgers; empty before the run has one.
        checkpoint: The checkpoint's data; None at the beginning.
    """

    facts: dict[str, Any]
    folder: ReopenedFolder
    name: str
    checkpoint: dict[str, Any] | None

    @property
    def rounds(self) -> int:
        """The number of complete rounds."""
        return 0 if self.checkpoint is None else self.checkpoint["rounds"]


def load_restore_point(
    run: RecordedRun, make: RunFactory, *, from_start: bool = False, trust: bool = False
) -> tuple[PlatformRun, RestorePoint]:
    """Return a run at its newest undamaged checkpoint, else at its beginning.

    Warns of each damaged checkpoint. Raises RefusedError if the user did not sign the checkpoint, it is from another
    version, or it does not fit the ledger or the model, and DataError if the LLM, an input file or the ledger changed.
    """
    checkpoint = None if from_start else _newest_checkpoint(run.folder, trust=trust)
    if checkpoint is not None:
        return _restore(run, make, checkpoint, trust=trust)
    task = make(None)
    with close_if_refused(task):
        facts, folder = check_facts(run, task), ReopenedFolder(run.folder, task.tables, None)
        return task, RestorePoint(facts, folder, ledger_name(run.folder), None)


def _newest_checkpoint(folder: Path, *, trust: bool) -> dict[str, Any] | None:
    """Return the newest undamaged checkpoint, if any; warn about damaged checkpoints."""
    newest_first = checkpoint_files(folder)
    for file, older in zip_longest(newest_first, newest_first[1:]):
        try:
            data = read_checkpoint(file, trust=trust)
            if data["code"] != code_version():
                raise other_version_error(file)
            check_parts(folder, data["records"])
        except DamagedError as error:
            advice = "the run starts again" if older is None else f"it continues from round {checkpoint_round(older)}"
            warnings.warn(shorten(f"{error}: {advice}, and no question is asked twice"), PrismWarning, stacklevel=6)
        else:
            _check_ledger(folder, data)
            return data
    return None


def _check_ledger(folder: Path, data: Mapping[str, Any]) -> None:
    """Raise RefusedError if the ledger has lost answers or questions since a checkpoint, or gained questions."""
    counts, file = data["ledger"], folder / LEDGER
    if not file.is_file() and not (counts["answers"] or counts["asked"]):
        return
    if file.is_file():
        check_within(folder, file)
    with Ledger(file, read_only=True) as ledger:
        answers, asked = ledger.count_rows(counts["run"], data["rounds"])
    if answers < counts["answers"] or asked != counts["asked"]:
        raise RefusedError(
            f"ledger {file} has changed since the run: it has {answers:,} of {counts['answers']:,} answers and "
            f"{asked:,} of {counts['asked']:,} questions",
            f"; restore the file, or start the run again with these answers, {FROM_START}",
        )


def _restore(
    run: RecordedRun, make: RunFactory, data: dict[str, Any], *, trust: bool
) -> tuple[PlatformRun, RestorePoint]:
    task = make(_read_world(run.folder, trust=trust))
    with close_if_refused(task):
        facts = check_facts(run, task)
        try:
            task.model.restore(data["model"])
            task.timer.restore(data["clocks"])
            folder = ReopenedFolder(run.folder, task.tables, data["records"])
        except (NotRestorableError, DataError) as error:
            where = f"{run.folder}: the checkpoint of round {data['rounds']}"
            raise RefusedError(f"{where}: {error} (start the run again {FROM_START})") from error
        return task, RestorePoint(facts, folder, data["ledger"]["run"], data)


def _read_world(run: Path, *, trust: bool) -> KeptWorld | None:
    """Return the saved world, or None to draw the same world again; warn about a damaged file."""
    file = run / FOLDER / WORLD
    if not file.is_file():
        return None
    try:
        data = read_checkpoint(file, trust=trust)
    except DataError as error:
        warnings.warn(shorten(f"{error}: the world is drawn again"), PrismWarning, stacklevel=5)
        return None
    return restore_world(data) if data["code"] == code_version() else None


@contextmanager
def close_if_refused(task: PlatformRun | NationsRun) -> Iterator[None]:
    """Close the model of a run that cannot continue."""
    try:
        yield
    except BaseException:
        task.model.close()
        raise


def check_facts(run: RecordedRun, task: PlatformRun | NationsRun) -> dict[str, Any]:
    """Return the facts of a resumed run for its manifest; raises DataError if its LLM or inputs have changed."""
    facts, before = task.facts(), read_manifest(run.folder)
    for key in ("llm", "distilled", "writer"):
        current = _llm_facts(facts.get(key))
        if any(llm not in current for llm in _llm_facts(before.get(key))):  # a branch may add LLMs
            text = f"by {before.get('decided_by', 'nobody')!s:.80}, and would now be by {facts.get('decided_by')!s:.80}"
            raise DataError(f"{run.folder}: was decided {text} ({key} has changed), so its results would differ")
    if before.get("inputs", facts.get("inputs")) != facts.get("inputs"):
        raise DataError(f"{run.folder}: {_changed_inputs(before, facts)}: restore it, or start a new run")
    return facts


def _changed_inputs(before: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    inputs, earlier = current.get("inputs_one_by_one", {}), before.get("inputs_one_by_one", {})
    names = [name for name in inputs if earlier.get(name) != inputs[name]]
    return f"{' and '.join(map(input_text, names)) or 'an input'} {'has' if len(names) <= 1 else 'have'} changed"


def _llm_facts(entry: Any) -> list[Any]:
    if not isinstance(entry, Mapping):
        return [entry]
    return [{key: llm[key] for key in _LLM_IDENTITY if key in llm} for llm in entry.get("llms") or [entry]]


def ledger_name(folder: Path) -> str:
    """Return the run's name in its ledger; empty if the ledger has none yet."""
    file = folder / LEDGER
    if not file.is_file():
        return ""
    check_within(folder, file)
    with Ledger(file) as ledger:  # opened for writing, because the run may have died before the ledger had tables
        return next(iter(ledger.runs()), "")
