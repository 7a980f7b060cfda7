"""Where a run goes on from: its newest checkpoint that is whole, with the ledger and the tables that it counts on."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import DataError, PrismWarning, shortened
from prism_mesa.llm import Ledger
from prism_mesa.runs.checkpoints.file import FORMAT, DamagedError, read_checkpoint
from prism_mesa.runs.checkpoints.names import files, rounds_of
from prism_mesa.runs.identity import code_version
from prism_mesa.runs.records.reopened import check_parts
from prism_mesa.runs.rounds import RunTimer
from prism_mesa.runs.run_files import LEDGER, check_within
from prism_mesa.social.tables import SOCIAL_TABLES

FROM_START: Final = "with --from-start (in Python from_start=True)"
"""How a run is started again although it has a checkpoint."""


class RefusedError(DataError):
    """A checkpoint that is whole, but from which the run cannot go on.

    Attributes:
        why: Why, without what can be done.
    """

    def __init__(self, why: str, way: str = "") -> None:
        super().__init__(f"{why}{way}")
        self.why = why


@dataclass(frozen=True)
class Point:
    """A checkpoint that is whole.

    Attributes:
        data: What it holds.
        before: The round of the one before it; None if there is none.
    """

    data: dict[str, Any]
    before: int | None

    @property
    def rounds(self) -> int:
        """How many rounds were complete."""
        return int(self.data["rounds"])


def whole_points(folder: Path) -> Iterator[Point]:
    """Yield the checkpoints that are whole, with all that they count on, the newest first.

    Warns:
        PrismWarning: If one is damaged.

    Raises:
        RefusedError: If another version of PRISM wrote one, or the ledger has less than when it was made.
        DataError: If the ledger is missing or damaged.
    """
    found = files(folder)
    for file, older in zip_longest(found, found[1:]):
        before = None if older is None else rounds_of(older)
        try:
            data = _read(file)
            _check_counted_on(folder, file, data)
        except DamagedError as error:
            say_passed_over(str(error), before)
        else:
            _check_ledger(folder, data)
            yield Point(data, before)


def say_passed_over(why: str, before: int | None) -> None:
    """Warn of a checkpoint that is passed over; `before` is the round of the one before it, if there is one."""
    way = "the run starts again" if before is None else f"it goes on from round {before}"
    warnings.warn(shortened(f"{why}: {way}, and nothing is asked twice"), PrismWarning, stacklevel=6)


def _check_counted_on(folder: Path, file: Path, data: Mapping[str, Any]) -> None:
    """Check what a checkpoint says beside the model's state, and that the parts of tables are there that it counts on.

    Raises:
        DamagedError: If not.
    """
    try:
        check_parts(folder, data["records"], SOCIAL_TABLES)
        RunTimer().restore(data["clocks"])
        kept, told = data["ledger"], data["records"]
        str(kept["run"]), int(kept["answers"]), int(kept["asked"])
        int(told["rounds"]), float(told["cpu_s"]), [*told["notes"]], data["model"]
    except DataError as error:
        raise DamagedError(str(error)) from None
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise DamagedError(f"{file}: is damaged: {type(error).__name__}: {error}") from None


def _check_ledger(folder: Path, data: Mapping[str, Any]) -> None:
    """Check that the ledger has what it had when a checkpoint was made.

    Raises:
        RefusedError: If it has less.
        DataError: If it is missing or damaged.
    """
    kept = data["ledger"]
    name, sizes = str(kept["run"]), (int(kept["answers"]), int(kept["asked"]))
    file = folder / LEDGER
    if not file.is_file() and not any(sizes):
        return
    if file.is_file():
        check_within(folder, file)
    with Ledger(file, read_only=True) as ledger:
        now = ledger.sizes(name, int(data["rounds"]))
    if now[0] < sizes[0] or now[1] != sizes[1]:
        raise RefusedError(
            f"ledger {file}: is not as the run left it: it has {now[0]:,} of {sizes[0]:,} answers and {now[1]:,} of "
            f"{sizes[1]:,} questions",
            f"; put the file back, or start the run again with what is there, {FROM_START}",
        )


def _read(file: Path) -> dict[str, Any]:
    """Return what a checkpoint holds.

    Raises:
        DamagedError: If it cannot be read.
        RefusedError: If another version of PRISM wrote it.
    """
    data = read_checkpoint(file)
    if data.get("format") != FORMAT or data.get("code") != code_version():
        raise RefusedError(
            f"{file}: another version of PRISM wrote it, in which a run may take another course",
            f": go on with that version, or start the run again in this one {FROM_START}",
        )
    if data.get("rounds") != rounds_of(file):
        raise DamagedError(f"{file}: is damaged: it is of round {data.get('rounds')!s:.20}")
    return data
