"""Where a run goes on from: its newest checkpoint that is whole, with the ledger and the tables that it counts on."""

import warnings
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from prism_mesa.errors import DataError, PrismWarning, shortened
from prism_mesa.llm import Ledger
from prism_mesa.runs.checkpoints.file import FORMAT, DamagedError, read_checkpoint
from prism_mesa.runs.checkpoints.names import files, rounds_of
from prism_mesa.runs.identity import code_version
from prism_mesa.runs.records.reopened import check_parts
from prism_mesa.runs.rounds import RunTimer
from prism_mesa.runs.run_files import LEDGER, check_within
from prism_mesa.social.tables import SOCIAL_TABLES


def last_point(folder: Path) -> dict[str, Any] | None:
    """Return the newest checkpoint that is whole, with all that it counts on; None if there is none.

    Warns:
        PrismWarning: If a newer one is damaged.

    Raises:
        DataError: If another version of PRISM wrote it, or the ledger is not that of the run.
    """
    found = files(folder)
    for file, before in zip_longest(found, found[1:]):
        try:
            data = _read(file)
            _check_counted_on(folder, file, data)
        except DamagedError as error:
            way = "the run starts again" if before is None else f"it goes on from round {rounds_of(before)}"
            warnings.warn(shortened(f"{error}: {way}, and nothing is asked twice"), PrismWarning, stacklevel=5)
        else:
            _check_ledger(folder, data)
            return data
    return None


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
        DataError: If it is missing, damaged, or has less.
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
        raise DataError(
            f"ledger {file}: is not as the run left it: it has {now[0]:,} of {sizes[0]:,} answers and {now[1]:,} of "
            f"{sizes[1]:,} questions; put the file back, or start the run again with what is there, with --from-start "
            "(in Python from_start=True)"
        )


def _read(file: Path) -> dict[str, Any]:
    """Return what a checkpoint holds.

    Raises:
        DamagedError: If it cannot be read.
        DataError: If another version of PRISM wrote it.
    """
    data = read_checkpoint(file)
    if data.get("format") != FORMAT or data.get("code") != code_version():
        raise DataError(
            f"{file}: another version of PRISM wrote it, in which a run may take another course: go on with that "
            "version, or start the run again in this one with --from-start (in Python from_start=True)"
        )
    if data.get("rounds") != rounds_of(file):
        raise DamagedError(f"{file}: is damaged: it is of round {data.get('rounds')!s:.20}")
    return data
