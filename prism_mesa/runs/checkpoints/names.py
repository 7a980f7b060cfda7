"""Where the checkpoints of a run lie, and of which rounds they are. Little is loaded for it: many runs are listed."""

import re
from pathlib import Path
from typing import Final

FOLDER: Final = "checkpoints"
"""Of a run, where its checkpoints lie."""
WORLD: Final = "world.npz"
"""In it, what was drawn of the run's world, if that is dear to make."""
_NAME: Final = re.compile(r"round-(\d{1,9})\.npz", re.ASCII)


def name_of(done: int) -> str:
    """Return the name of the checkpoint that is made when so many rounds are complete."""
    return f"round-{done:09d}.npz"


def files(run: Path) -> list[Path]:
    """Return the files of a run's checkpoints, the newest first."""
    try:
        there = [file for file in (run / FOLDER).iterdir() if file.is_file()]  # nobody waits at a pipe
        found = [(int(name[1]), file) for file in there if (name := _NAME.fullmatch(file.name))]
    except OSError:
        return []
    return [file for _, file in sorted(found, reverse=True)]


def rounds_of(file: Path) -> int:
    """Return how many rounds were complete when a checkpoint was made, as its name says."""
    return int(file.stem.rpartition("-")[2])


def last_round(run: Path) -> int | None:
    """Return how many rounds were complete at the newest checkpoint of a run, by its name; None if there is none."""
    return next(map(rounds_of, files(run)), None)
