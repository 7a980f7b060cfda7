"""A run that was stopped, made again as it stood then; nothing is changed in its folder yet."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import DataError, NotRestorableError, PrismWarning, shortened
from prism_mesa.llm import Ledger
from prism_mesa.runs.checkpoints.file import (
    FOLDER,
    FROM_START,
    WORLD,
    DamagedError,
    RefusedError,
    files,
    other_version,
    read_checkpoint,
    rounds_of,
)
from prism_mesa.runs.economy import NationsRun
from prism_mesa.runs.identity import code_version, in_words
from prism_mesa.runs.manifest import RecordedRun
from prism_mesa.runs.records.reopened import ReopenedFolder, check_parts
from prism_mesa.runs.run_files import LEDGER, check_within, read_manifest
from prism_mesa.runs.social import PlatformRun
from prism_mesa.social.world.kept import KeptWorld, kept_world

_START_AGAIN: Final = f" (start the run again {FROM_START})"
_SAME: Final = ("kind", "name", "digest", "decoding", "answer", "persona", "prompt_style")
"""What has to be as it was of who is asked."""


type Make = Callable[[KeptWorld | None], PlatformRun]


@dataclass(frozen=True)
class RestorePoint:
    """How a run stood at a checkpoint, or at its beginning; until it goes on nothing is changed on the disk.

    Attributes:
        facts: What its manifest says.
        folder: Its folder.
        name: What ledgers call it; empty if they have nothing of it.
        point: What the checkpoint holds; None: it is its beginning.
    """

    facts: dict[str, Any]
    folder: ReopenedFolder
    name: str
    point: dict[str, Any] | None

    @property
    def rounds(self) -> int:
        """How many rounds were complete."""
        return 0 if self.point is None else self.point["rounds"]


def load_restore_point(
    run: RecordedRun, make: Make, *, from_start: bool = False, trust: bool = False
) -> tuple[PlatformRun, RestorePoint]:
    """Return a run, made again, and how it stood at the newest checkpoint that can be taken, else at its beginning.

    Warns:
        PrismWarning: Of each checkpoint that is passed over.

    Raises:
        RefusedError: If a checkpoint is refused; of a run that was given objects in Python also if none can be taken
            with what is given now, which may be something else.
        DataError: If something else would be asked, or an input file or the ledger is not what it was.
    """
    passed: list[tuple[str, int | None]] = []
    stood = None
    for point, before in () if from_start else _whole_points(run.folder, trust=trust):
        try:
            stood = _taken(run, make, point, trust=trust)
            break
        except _NotTakenError as error:
            passed.append((str(error), before))
    if passed and stood is None and any(run.manifest.made_in_python):
        raise RefusedError(passed[0][0], _START_AGAIN)
    for why, before in passed:
        _say_passed_over(why, before)
    return _at_its_beginning(run, make) if stood is None else stood


def _whole_points(folder: Path, *, trust: bool) -> Iterator[tuple[dict[str, Any], int | None]]:
    """Yield the checkpoints that are whole, the newest first, and of each the round of the one before it, if any.

    Warns:
        PrismWarning: If one is damaged.

    Raises:
        RefusedError: If the user's key did not sign one, another version of PRISM wrote it, or the ledger has less than
            when it was made.
        DataError: If the ledger is missing or damaged.
    """
    newest_first = files(folder)
    for file, older in zip_longest(newest_first, newest_first[1:]):
        before = None if older is None else rounds_of(older)
        try:
            data = read_checkpoint(file, trust=trust)
            if data["code"] != code_version():
                raise other_version(file)
            check_parts(folder, data["records"])
        except DamagedError as error:
            _say_passed_over(str(error), before)
        else:
            _check_ledger(folder, data)
            yield data, before


def _say_passed_over(why: str, before: int | None) -> None:
    """Warn of a checkpoint that is passed over; `before` is the round of the one before it, if there is one."""
    way = "the run starts again" if before is None else f"it goes on from round {before}"
    warnings.warn(shortened(f"{why}: {way}, and nothing is asked twice"), PrismWarning, stacklevel=6)


def _check_ledger(folder: Path, data: Mapping[str, Any]) -> None:
    """Check that the ledger has what it had when a checkpoint was made.

    Raises:
        RefusedError: If it has less.
        DataError: If it is missing or damaged.
    """
    kept, file = data["ledger"], folder / LEDGER
    if not file.is_file() and not (kept["answers"] or kept["asked"]):
        return
    if file.is_file():
        check_within(folder, file)
    with Ledger(file, read_only=True) as ledger:
        answers, asked = ledger.sizes(kept["run"], data["rounds"])
    if answers < kept["answers"] or asked != kept["asked"]:
        raise RefusedError(
            f"ledger {file}: is not as the run left it: it has {answers:,} of {kept['answers']:,} answers and "
            f"{asked:,} of {kept['asked']:,} questions",
            f"; put the file back, or start the run again with what is there, {FROM_START}",
        )


def _at_its_beginning(run: RecordedRun, make: Make) -> tuple[PlatformRun, RestorePoint]:
    work = make(None)
    with closed_if_refused(work):
        facts, folder = same_facts(run, work), ReopenedFolder(run.folder, work.tables, None)
        return work, RestorePoint(facts, folder, name_in(run.folder), None)


class _NotTakenError(DataError):
    """A checkpoint whose state the run cannot take."""


def _taken(run: RecordedRun, make: Make, point: dict[str, Any], *, trust: bool) -> tuple[PlatformRun, RestorePoint]:
    """Return a run as it stood at a checkpoint.

    Raises:
        RefusedError: If what the run was given in Python cannot take back what is its.
        _NotTakenError: If its state is none of this run.
        DataError: As `load_restore_point`.
    """
    what = f"{run.folder}: the checkpoint of round {point['rounds']}: "
    work = make(_world_of(run.folder, trust=trust))
    with closed_if_refused(work):
        facts = same_facts(run, work)
        try:
            work.model.restore(point["model"])
            work.watch.restore(point["clocks"])
            folder = ReopenedFolder(run.folder, work.tables, point["records"])
        except NotRestorableError as error:
            raise RefusedError(f"{what}{error}", _START_AGAIN) from error
        except DataError as error:
            raise _NotTakenError(f"{what}{error}") from None
        return work, RestorePoint(facts, folder, point["ledger"]["run"], point)


def _world_of(run: Path, *, trust: bool) -> KeptWorld | None:
    """Return the world of a run as it was drawn; None if it is to be drawn again, which gives the same.

    Warns:
        PrismWarning: If the file is damaged.
    """
    file = run / FOLDER / WORLD
    if not file.is_file():
        return None
    try:
        kept = read_checkpoint(file, trust=trust)
    except DataError as error:
        warnings.warn(shortened(f"{error}: the world is made again"), PrismWarning, stacklevel=5)
        return None
    return kept_world(kept) if kept["code"] == code_version() else None


@contextmanager
def closed_if_refused(work: PlatformRun | NationsRun) -> Iterator[None]:
    """Close the model of a run that cannot go on."""
    try:
        yield
    except BaseException:
        work.model.close()
        raise


def same_facts(run: RecordedRun, work: PlatformRun | NationsRun) -> dict[str, Any]:
    """Return what the manifest of a run says that goes on.

    Raises:
        DataError: If it would take another course: something else would be asked, or read.
    """
    facts = work.facts()
    _check_same(run, facts)
    return facts


def _check_same(run: RecordedRun, facts: Mapping[str, Any]) -> None:
    """Check that the same is asked as before, and that input files hold what they held.

    Raises:
        DataError: If not.
    """
    before = read_manifest(run.folder)
    told = {key: (_who(before.get(key)), _who(facts.get(key))) for key in ("llm", "distilled", "writer")}
    for key, (then, now) in told.items():
        if any(one not in now for one in then):  # a branch may add LLMs
            by = f"by {before.get('decided_by', 'nobody')!s:.80}, and would now be by {facts.get('decided_by')!s:.80}"
            raise DataError(f"{run.folder}: was decided {by} ({key} is not what it was): it would take another course")
    if before.get("inputs", facts.get("inputs")) != facts.get("inputs"):
        raise DataError(f"{run.folder}: {_changed(before, facts)}: put it back, or run it anew")


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return which file or module is not what it was; of a run that keeps no digest of each, all that it may be."""
    each, then = now.get("inputs_one_by_one", {}), before.get("inputs_one_by_one")
    if isinstance(then, Mapping) and (names := [name for name in each if then.get(name) != each[name]]):
        return f"{' and '.join(map(in_words, names))}{' is' if len(names) == 1 else ' are'} not what it was"
    return f"{' or '.join(map(in_words, each)) or 'what it reads'} is not what it was"


def _who(said: Any) -> list[Any]:
    """Return the identifying facts of each LLM in a manifest."""
    if not isinstance(said, Mapping):
        return [said]
    return [{key: own[key] for key in (*_SAME, "temperature") if key in own} for own in said.get("llms") or [said]]


def name_in(folder: Path) -> str:
    """Return what the run's ledger calls it; empty if it has nothing of it."""
    file = folder / LEDGER
    if not file.is_file():
        return ""
    check_within(folder, file)
    with Ledger(file) as ledger:  # to write: it may have been killed before it had tables
        return next(iter(ledger.runs()), "")
