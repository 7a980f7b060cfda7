"""A run that was stopped, made again as it stood then; nothing is changed in its folder yet."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import DataError, NotRestorableError
from prism_mesa.llm import Ledger
from prism_mesa.runs.checkpoints.kept_world import world_of
from prism_mesa.runs.checkpoints.last_point import FROM_START, Point, RefusedError, say_passed_over, whole_points
from prism_mesa.runs.config import Config
from prism_mesa.runs.economy import NationsRun
from prism_mesa.runs.identity import in_words
from prism_mesa.runs.manifest import RecordedRun
from prism_mesa.runs.records.reopened import ReopenedFolder
from prism_mesa.runs.run_files import LEDGER, check_within, read_manifest
from prism_mesa.runs.social import PlatformRun
from prism_mesa.social.world.kept import KeptWorld

_START_AGAIN: Final = f" (start the run again {FROM_START})"
_SAME: Final = ("kind", "name", "digest", "decoding", "answer", "persona", "prompt_style")
"""What has to be as it was of who is asked."""


type Make = Callable[[KeptWorld | None], PlatformRun]


@dataclass(frozen=True)
class Stood:
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
        return 0 if self.point is None else int(self.point["rounds"])


def as_it_stood(run: RecordedRun, config: Config, make: Make, *, from_start: bool = False) -> tuple[PlatformRun, Stood]:
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
    for found in () if from_start else whole_points(run.folder):
        try:
            stood = _taken(run, config, make, found)
            break
        except _NotTakenError as error:
            passed.append((str(error), found.before))
    if passed and stood is None and any(run.manifest.made_in_python):
        raise RefusedError(passed[0][0], _START_AGAIN)
    for why, before in passed:
        say_passed_over(why, before)
    return _at_its_beginning(run, make) if stood is None else stood


def _at_its_beginning(run: RecordedRun, make: Make) -> tuple[PlatformRun, Stood]:
    work = make(None)
    with closed_if_refused(work):
        facts, folder = same_facts(run, work), ReopenedFolder(run.folder, work.tables, None)
        return work, Stood(facts, folder, name_in(run.folder), None)


class _NotTakenError(DataError):
    """A checkpoint whose state the run cannot take."""


def _taken(run: RecordedRun, config: Config, make: Make, found: Point) -> tuple[PlatformRun, Stood]:
    """Return a run as it stood at a checkpoint.

    Raises:
        RefusedError: If what the run was given in Python cannot take back what is its.
        _NotTakenError: If its state is none of this run.
        DataError: As `as_it_stood`.
    """
    point, what = found.data, f"{run.folder}: the checkpoint of round {found.rounds}: "
    work = make(world_of(run.folder, config, point))
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
        return work, Stood(facts, folder, str(point["ledger"]["run"]), point)


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
