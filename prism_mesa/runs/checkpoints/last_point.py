"""Where a run goes on from: its newest checkpoint that is whole, with the ledger and the tables that it counts on."""

import warnings
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from prism_mesa.errors import PrismWarning, shortened
from prism_mesa.llm import Ledger
from prism_mesa.runs.checkpoints.file import (
    FROM_START,
    DamagedError,
    RefusedError,
    files,
    other_version,
    read_checkpoint,
    rounds_of,
)
from prism_mesa.runs.identity import code_version
from prism_mesa.runs.records.reopened import check_parts
from prism_mesa.runs.run_files import LEDGER, check_within


def whole_points(folder: Path, *, trust: bool) -> Iterator[tuple[dict[str, Any], int | None]]:
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
            say_passed_over(str(error), before)
        else:
            _check_ledger(folder, data)
            yield data, before


def say_passed_over(why: str, before: int | None) -> None:
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
