"""Runs actions of transitions, and locates errors in users' guards and actions."""

import re
import sysconfig
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final

from prism_mesa.errors import ChartError, OwnCodeError
from prism_mesa.statechart.transitions import Transition, history_entry

_TRANSIENT_ERRORS: Final = (OSError, MemoryError)
_PACKAGE: Final = str(Path(__file__).parents[1])


def add_place(error: BaseException, part: str, transition: Transition, agent: Any) -> None:
    """Add a note to a guard's or an action's error: agent, state, trigger, round, and line of the user's code."""
    line = users_line(error)
    where = f"{transition.source.value} on {transition.trigger}: the {part} of {transition}"
    error.add_note(f"{whereabouts(agent)}, {where}{line and f', {line}'}")


def is_users_error(error: BaseException) -> bool:
    """Return whether a user's function, guard or action raised the error and would raise it again.

    I/O errors and lack of memory may be temporary, so they do not count.
    """
    if isinstance(error, _TRANSIENT_ERRORS) or isinstance(error.__cause__, _TRANSIENT_ERRORS):
        return False
    notes = map(str, getattr(error, "__notes__", ()))
    return isinstance(error, OwnCodeError) or any(re.search(": the (guard|action) of ", note) for note in notes)


def whereabouts(agent: Any) -> str:
    """Return an agent's name, and its `moment` if there is one, for messages."""
    name = getattr(agent, "agent_id", getattr(agent, "unique_id", None))
    label = f"an agent ({type(agent).__name__})" if name is None else f"agent {name}"
    moment = getattr(agent, "moment", "")
    return f"{label} in {moment}" if moment else label


def users_line(error: BaseException) -> str:
    """Return the last line of a user's code in an error's traceback, or an empty string."""
    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    outside = [(code, line) for code, line in frames if not code.co_filename.startswith((_PACKAGE, "<guard "))]
    users = [(code, line) for code, line in outside if not code.co_filename.startswith(_installed_paths())]
    if not outside:
        return ""
    code, line = users[-1] if users else outside[0]
    return f"{Path(code.co_filename).name}:{line} in {code.co_name}"


@cache
def _installed_paths() -> tuple[str, ...]:
    """Return the path prefixes of installed code."""
    paths = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return ("<frozen ", *paths)


def take(transition: Transition, agent: Any, context: Any, now: datetime | None) -> None:
    """Run the action, record the change, and enter the target; check everything before the action runs."""
    target, depth = transition.target, agent.max_history_depth or 0
    if depth < 0:
        raise ChartError(f"{transition}: max_history_depth is {depth!r}; give whole numbers from 0, which keeps none")
    history, entry = agent.state_history, None
    if depth and target is not transition.source:
        entry = history_entry(transition, now or getattr(agent, "now", None) or datetime.now(UTC), context)
    if transition.action is not None:
        if entry is not None and hasattr(history, "check"):
            history.check(entry)
        act(transition, agent, context)
        history = agent.state_history
    if entry is not None:
        history.append(entry)
    while len(history) > depth:
        del history[0]
    agent.state = target
    agent.ticks_in_state = 0


def act(transition: Transition, agent: Any, context: Any) -> None:
    """Run the action of a transition; if it raises, restore the agent and add a note to the error.

    The agent's state, attributes and history (if it is a list) are restored, but not objects inside them.
    """
    if transition.action is None:
        return
    attributes = dict(getattr(agent, "__dict__", ()))
    history, state, ticks = agent.state_history, agent.state, agent.ticks_in_state
    old_entries = list(history) if isinstance(history, list) else None
    try:
        transition.action(agent, context)
    except BaseException as error:
        if attributes:
            vars(agent).clear()
            vars(agent).update(attributes)
        if old_entries is not None:
            history[:] = old_entries
        agent.state, agent.ticks_in_state = state, ticks
        add_place(error, "action", transition, agent)
        raise


@dataclass(frozen=True)
class FailingGuard:
    """A guard that raised.

    Attributes:
        transition: The guard's transition.
        times: How often it raised, at least 1.
        every_time: Whether it never returned a value.
        errors: The kinds of errors, each with its first message.
        first: The first agent for which it raised, the agent's moment, and the line of the user's code.
    """

    transition: Transition
    times: int
    every_time: bool
    errors: tuple[str, ...]
    first: str = ""

    def __str__(self) -> str:
        frequency = f"each of the {self.times:,} times it was asked" if self.every_time else f"{self.times:,} times"
        first = f", first for {self.first}" if self.first else ""
        return f"the guard of {self.transition} raised {frequency} ({'; '.join(self.errors)}){first}"
