"""Run the actions of transitions, and locate errors in users' guards and actions."""

import re
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final

from prism_mesa.errors import ChartError, OwnCodeError
from prism_mesa.statechart.states import State
from prism_mesa.statechart.transitions import StateTransition, Transition, history_entry

_TRANSIENT_ERRORS: Final = (OSError, MemoryError)
PACKAGE: Final = str(Path(__file__).parents[1])


def add_location_note(error: BaseException, part: str, transition: Transition, agent: Any) -> None:
    """Add a note to a guard's or an action's error: agent, state, trigger, round, and line of the user's code."""
    line = user_code_line(error)
    where = f"{transition.source.value} on {transition.trigger}: the {part} of {transition}"
    error.add_note(f"{agent_location(agent)}, {where}{line and f', {line}'}")


def with_note(function: Callable[..., Any], part: str, transition: Transition, agent: Any, context: Any) -> Any:
    """Return ``function(agent, context)``; an error gets a note."""
    try:
        return function(agent, context)
    except Exception as error:
        add_location_note(error, part, transition, agent)
        raise


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
    foreign_lines = [(code, line) for code, line in frames if not code.co_filename.startswith((PACKAGE, "<guard "))]
    user_lines = [(code, line) for code, line in foreign_lines if not code.co_filename.startswith(_installed_paths())]
    if not foreign_lines:
        return ""
    code, line = user_lines[-1] if user_lines else foreign_lines[0]
    return f"{Path(code.co_filename).name}:{line} in {code.co_name}"


@cache
def _installed_paths() -> tuple[str, ...]:
    paths = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return ("<frozen ", *paths)


def take_transition(transition: Transition, agent: Any, context: Any, now: datetime | None = None) -> State:
    """Take a transition of an agent with the fields of `Statechart.fire`, and return the new state.

    Everything is checked first.
    """
    history, depth = agent.state_history, agent.max_history_depth or 0
    if depth < 0:
        raise ChartError(f"{transition}: max_history_depth is {depth!r}; give 0 (no history) or a whole number above 0")
    has_effects, entry = transition.has_effects, None
    target: State = entered_state(transition, agent) if has_effects else transition.target
    if depth and target is not transition.source:
        entry = history_entry(transition, target, now or getattr(agent, "now", None) or datetime.now(UTC), context)
    if has_effects:
        if entry is not None and hasattr(history, "check"):
            history.check(entry)
        run_effects(transition, agent, context, partial(_enter, agent, target, entry, depth), _restore_point(agent))
        return target
    if entry is not None:  # like `_enter`, without the time of a call
        history.append(entry)
    while len(history) > depth:
        del history[0]
    agent.state = target
    agent.ticks_in_state = 0
    return target


def entered_state(transition: Transition, agent: Any, memory: str = "last_states") -> State:
    """Return the state that a transition enters: in a parent with history, the state in which the parent was left.

    The attribute `memory` of the agent has these states by the parent's name.
    """
    place = transition.placement
    if not place.recalled:
        return transition.target
    last_states = getattr(agent, memory, {}) | dict.fromkeys(place.remembers, transition.source)
    return last_states.get(place.recalled, transition.target)


def _enter(agent: Any, target: State, entry: StateTransition | None, depth: int) -> None:
    history = agent.state_history
    if entry is not None:
        history.append(entry)
    while len(history) > depth:
        del history[0]
    agent.state = target
    agent.ticks_in_state = 0


def run_effects(
    transition: Transition,
    agent: Any,
    context: Any,
    enter: Callable[[], None],
    restore: Callable[[], None],
    memory: str = "last_states",
) -> None:
    """Run exits and the action, call `enter`, and run entries.

    If one raises, the agent's attributes are restored (but not objects inside them), `restore` is called, and the error
    gets a note.
    """
    place, attributes = transition.placement, dict(getattr(agent, "__dict__", ()))
    entries = place.entries.get(entered_state(transition, agent, memory), ())
    try:
        for function in (*place.exits, *filter(None, [transition.action])):
            function(agent, context)
        if place.remembers:
            setattr(agent, memory, getattr(agent, memory, {}) | dict.fromkeys(place.remembers, transition.source))
        enter()
        for function in entries:
            function(agent, context)
    except BaseException as error:
        if attributes:
            vars(agent).clear()
            vars(agent).update(attributes)
        restore()
        add_location_note(error, "action", transition, agent)
        raise


def run_action(transition: Transition, agent: Any, context: Any) -> None:
    """Run only the action of a transition; if it raises, restore the agent and add a note to the error."""
    if transition.action is not None:
        run_effects(transition, agent, context, lambda: None, _restore_point(agent))


def _restore_point(agent: Any) -> Callable[[], None]:
    """Return a function that restores the state, the ticks, and a history that is a list."""
    history, state, ticks = agent.state_history, agent.state, agent.ticks_in_state
    entries = list(history) if isinstance(history, list) else None

    def restore() -> None:
        if entries is not None:
            history[:] = entries
        agent.state, agent.ticks_in_state = state, ticks

    return restore


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
