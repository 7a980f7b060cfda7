"""What guards and actions of users raise: in words which agent it was, when, and on which line."""

import re
import sysconfig
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final

from prism_mesa.errors import OwnCodeError
from prism_mesa.statechart.transitions import Transition

_MAY_PASS: Final = (OSError, MemoryError)
_PACKAGE: Final = str(Path(__file__).parents[1])


def add_place(error: BaseException, part: str, transition: Transition, agent: Any) -> None:
    """Add a note to what a guard or an action raised: agent, state, trigger, round, and the line of the user's code."""
    line = line_of(error)
    what = f"{transition.source.value} on {transition.trigger}: the {part} of {transition}"
    error.add_note(f"{whereabouts(agent)}, {what}{line and f', {line}'}")


def is_of_own_code(error: BaseException) -> bool:
    """Return whether a function, a guard or an action of a user's own ended a run with this error, and would again.

    What files and memory were lacking for may pass.
    """
    if isinstance(error, _MAY_PASS) or isinstance(error.__cause__, _MAY_PASS):
        return False
    notes = map(str, getattr(error, "__notes__", ()))
    return isinstance(error, OwnCodeError) or any(re.search(": the (guard|action) of ", note) for note in notes)


def whereabouts(agent: Any) -> str:
    """Return which agent it is, and when if the agent knows the `moment`, in words."""
    name = getattr(agent, "agent_id", getattr(agent, "unique_id", None))
    who = f"an agent ({type(agent).__name__})" if name is None else f"agent {name}"
    moment = getattr(agent, "moment", "")
    return f"{who} in {moment}" if moment else who


def line_of(error: BaseException) -> str:
    """Return the last line of a user's code that an error came through, or an empty string if it came through none."""
    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    called = [(code, line) for code, line in frames if not code.co_filename.startswith((_PACKAGE, "<guard "))]
    own = [(code, line) for code, line in called if not code.co_filename.startswith(_of_others())]
    if not called:
        return ""
    code, line = own[-1] if own else called[0]
    return f"{Path(code.co_filename).name}:{line} in {code.co_name}"


@cache
def _of_others() -> tuple[str, ...]:
    """Return how the paths of code begin that is installed."""
    paths = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return ("<frozen ", *paths)
