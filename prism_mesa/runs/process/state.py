"""The state of a run, from its manifest and its process."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prism_mesa.runs.checkpoints.file import last_round
from prism_mesa.runs.process.lock import is_locked, last_holder

STATUSES: Final = ("running", "done", "failed", "interrupted")
"""The statuses in manifests."""


@dataclass(frozen=True)
class RunState:
    """The state of a run.

    Attributes:
        status: `done`, `failed`, `interrupted`, `running`, or `died` if the process of a running run is gone.
        round: The current or last round, from 0, at most a second old; None if unknown.
        rounds: The planned rounds or quarters; None if unknown.
    """

    status: str
    round: int | None = None
    rounds: int | None = None

    def __str__(self) -> str:
        if self.round is None or self.rounds is None:
            return self.status
        separator = " in" if self.status == "died" else ","
        return f"{self.status}{separator} round {self.round} of {self.rounds}"

    @property
    def is_unfinished(self) -> bool:
        """Whether the manifest says that the run is running."""
        return self.status in ("running", "died")


def read_state(folder: Path, status: str, rounds: int | None) -> RunState:
    """Return the state of a run from its folder, and the status and planned rounds in its manifest."""
    if status != "running":
        return RunState(status, None, rounds)
    is_running, holder = is_locked(folder), last_holder(folder)
    if not is_running and (new_status := _read_status(folder)) in STATUSES and new_status != "running":
        return RunState(new_status, None, rounds)  # the run ended after the manifest was read
    rounds_seen = [] if holder is None else [holder.round or 0]
    rounds_seen += [] if (checkpoint := last_round(folder)) is None else [checkpoint]
    round_ = min(max(rounds_seen), rounds) if rounds_seen and rounds is not None else None
    return RunState("running" if is_running else "died", round_, rounds)


def _read_status(folder: Path) -> Any:
    with suppress(OSError, ValueError, AttributeError, RecursionError):
        return json.loads((folder / "manifest.json").read_bytes()).get("status")
    return None
