"""Run the actions of transitions, and locate errors in users' guards and actions."""

import re
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final

from prism_mesa.errors import ChartError, OwnCodeError
from prism_mesa.statechart.states import State
from prism_mesa.statechart.transitions import StateTransition, Transition, history_entry

_TRANSIENT_ERRORS: Final = (OSError, MemoryError)
_PACKAGE: Final = str(Path(__file__).parents[1])


def add_location_note(error: BaseException, part: str, transition: Transition, agent: Any) -> None:
    """Add a note to a guard's or an action's error: agent, state, trigger, round, and line of the user's code."""
    line = user_code_line(error)
    where = f"{transition.source.value} on {transition.trigger}: the {part} of {transition}"
    error.add_note(f"{agent_location(agent)}, {where}{line and f', {line}'}")


def is_user_code_error(error: BaseException) -> bool:
    """Return whether a user's function, guard or action raised the error, and would raise it again.

    Input/output errors and lack of memory may be temporary, so they are excluded.
    """
    if isinstance(error, _TRANSIENT_ERRORS) or isinstance(error.__cause__, _TRANSIENT_ERRORS):
        return False
    notes = map(str, getattr(error, "__notes__", ()))
    return isinstance(error, OwnCodeError) or any(re.search(": the (guard|action) of ", note) for note in notes)


def agent_location(agent: Any) -> str:
    """Return an agent's name, and its `moment` if it has one, for messages."""
    name = getattr(agent, "agent_id", getattr(agent, "unique_id", None))
    label = f"an agent ({type(agent).__name__})" if name is None else f"agent {name}"
    moment = getattr(agent, "moment", "")
    return f"{label} in {moment}" if moment else label


def user_code_line(error: BaseException) -> str:
    """Return the last line of users' code in an error's traceback, or an empty string."""
    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    foreign_lines = [(code, line) for code, line in frames if not code.co_filename.startswith((_PACKAGE, "<guard "))]
    user_lines = [(code, line) for code, line in foreign_lines if not code.co_filename.startswith(_installed_paths())]
    if not foreign_lines:
        return ""
    code, line = user_lines[-1] if user_lines else foreign_lines[0]
    return f"{Path(code.co_filename).name}:{line} in {code.co_name}"


@cache
def _installed_paths() -> tuple[str, ...]:
    paths = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return ("<frozen ", *paths)


def take_transition(
    transition: Transition, agent: Any, context: Any, now: datetime | None = None, slot: Any = None
) -> State:
    """Run exits and the action, add the change to the history, enter the target, run entries; return the target.

    `slot` holds the state of one of several charts of the agent; by default it is the agent. Checks come first.
    """
    slot = agent if slot is None else slot
    target, depth = transition.target, slot.max_history_depth or 0
    if depth < 0:
        raise ChartError(f"{transition}: max_history_depth is {depth!r}; give 0 (no history) or a whole number above 0")
    if transition.placement.recalls is not None:  # into a parent with history
        last_states = getattr(slot, "last_states", {}) | dict.fromkeys(
            transition.placement.remembers, transition.source
        )
        target = last_states.get(transition.placement.recalled, target)
    history, entry = slot.state_history, None
    if depth and target is not transition.source:
        entry = history_entry(transition, target, now or getattr(agent, "now", None) or datetime.now(UTC), context)
    if not transition.has_effects:
        _enter(slot, history, entry, depth, target)
        return target
    if entry is not None and hasattr(history, "check"):
        history.check(entry)
    placement = transition.placement
    with _restored_if_raised(transition, agent, slot):
        for function in (*placement.exits, *filter(None, [transition.action])):
            function(agent, context)
        if placement.remembers:
            remembered = dict.fromkeys(placement.remembers, transition.source)
            slot.last_states = getattr(slot, "last_states", {}) | remembered
        _enter(slot, slot.state_history, entry, depth, target)
        for function in placement.entries if placement.recalls is None else placement.recalls[target]:
            function(agent, context)
    return target


def _enter(slot: Any, history: Any, entry: StateTransition | None, depth: int, target: State) -> None:
    if entry is not None:
        history.append(entry)
    while len(history) > depth:
        del history[0]
    slot.state = target
    slot.ticks_in_state = 0


def run_action(transition: Transition, agent: Any, context: Any) -> None:
    """Run only the action of a transition; if it raises, restore the agent and add a note to the error.

    The agent's state, attributes and history (if it is a list) are restored, but objects inside them are not.
    """
    if transition.action is not None:
        with _restored_if_raised(transition, agent, agent):
            transition.action(agent, context)


@contextmanager
def _restored_if_raised(transition: Transition, agent: Any, slot: Any) -> Iterator[None]:
    attributes = dict(getattr(agent, "__dict__", ()))
    history, state, ticks = slot.state_history, slot.state, slot.ticks_in_state
    history_before = list(history) if isinstance(history, list) else None
    restore = slot.restore_point() if hasattr(slot, "restore_point") else None
    try:
        yield
    except BaseException as error:
        if attributes:
            vars(agent).clear()
            vars(agent).update(attributes)
        if history_before is not None:
            history[:] = history_before
        if restore is not None:
            restore()
        slot.state, slot.ticks_in_state = state, ticks
        add_location_note(error, "action", transition, agent)
        raise


@dataclass(frozen=True)
class FailingGuard:
    """A guard that raised.

    Attributes:
        transition: The guard's transition.
        n_errors: The number of errors, at least 1.
        always_fails: Whether the guard never returned a value.
        errors: The first message of each kind of error.
        first_location: The agent and the moment of the first error, and the line of the user's code.
    """

    transition: Transition
    n_errors: int
    always_fails: bool
    errors: tuple[str, ...]
    first_location: str = ""

    def __str__(self) -> str:
        times = f"{self.n_errors:,} times"
        frequency = f"each of the {times} it was asked" if self.always_fails else times
        first = f", first for {self.first_location}" if self.first_location else ""
        return f"the guard of {self.transition} raised {frequency} ({'; '.join(self.errors)}){first}"
