"""How a run stands: what its manifest says, and whether the process that it calls running is still there."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import in_command
from prism_mesa.runs.checkpoints.file import last_round
from prism_mesa.runs.process.lock import held, last_holder

STATUSES: Final = ("running", "done", "failed", "interrupted")
"""What a manifest may say."""
_CORRECT: Final = "correct that code, and run it anew: it would fail again in it"


@dataclass(frozen=True)
class RunState:
    """How a run stands.

    Attributes:
        status: `done`, `failed`, `interrupted`, `running`, or `died`: its manifest says `running`, and nobody is.
        round: Of a run that is running or died the round that it is or was in, from 0, so that as many are complete; it
            may be a second behind. None if nobody knows.
        rounds: The rounds, or quarters, that it was to have; None if it does not say.
    """

    status: str
    round: int | None = None
    rounds: int | None = None

    def __str__(self) -> str:
        if self.round is None or self.rounds is None:
            return self.status
        between = " in" if self.status == "died" else ","
        return f"{self.status}{between} round {self.round} of {self.rounds}"

    @property
    def unfinished(self) -> bool:
        """Whether its manifest says that it is running."""
        return self.status in ("running", "died")

    def way_on(
        self, folder: Path, *, from_python: bool = False, from_start: bool = False, of_own_code: bool = False
    ) -> str:
        """Return what can be done with a run that has not come to a good end; an empty string if nothing is known.

        Args:
            folder: The run's folder.
            from_python: Whether it was given things in Python, which its folder does not hold.
            from_start: Whether it can only be started again, as all its rounds are done.
            of_own_code: Whether it failed in code of a user's own, in which it would fail again.
        """
        if self.status == "running":
            return "wait until it has ended"
        if self.status not in ("died", "interrupted", "failed"):
            return ""
        if of_own_code:
            return _CORRECT
        last = last_round(folder)
        does = "starts it again, and asks nothing twice" if last is None else f"continues it from round {last}"
        if from_python:
            said = "resume(..., from_start=True)" if from_start else "resume(...)"
            return f"{said} in Python, with what it was given there, {does}"
        return f"'prism resume {in_command(folder)}{' --from-start' if from_start else ''}' {does}"


def state_of(folder: Path, status: str, rounds: int | None) -> RunState:
    """Return how a run stands.

    Args:
        folder: Its folder.
        status: What its manifest says.
        rounds: What its manifest says that it was to have.
    """
    if status != "running":
        return RunState(status, None, rounds)
    goes_on, holder = held(folder), last_holder(folder)
    if not goes_on and (now := _status_in(folder)) in STATUSES and now != "running":
        return RunState(now, None, rounds)  # it came to its end since the manifest was read
    seen = [0 if holder.round is None else holder.round] if holder is not None else []
    seen += [] if (last := last_round(folder)) is None else [last]
    known = min(max(seen), rounds) if seen and rounds is not None else None
    return RunState("running" if goes_on else "died", known, rounds)


def _status_in(folder: Path) -> Any:
    with suppress(OSError, ValueError, AttributeError, RecursionError):
        return json.loads((folder / "manifest.json").read_bytes()).get("status")
    return None
