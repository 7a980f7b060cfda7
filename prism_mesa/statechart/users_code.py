"""Code of users in a chart: what guards and actions raise, and how a transition with an action is taken."""

import re
import sysconfig
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final

from prism_mesa.errors import ChartError, OwnCodeError
from prism_mesa.statechart.transitions import Transition, recorded

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


def take(transition: Transition, agent: Any, context: Any, now: datetime | None) -> None:
    """Run the action, remember the change, enter the target: what can be wrong is found before the action runs."""
    target, depth = transition.target, agent.max_history_depth or 0
    if depth < 0:
        raise ChartError(f"{transition}: max_history_depth is {depth!r}; give whole numbers from 0, which keeps none")
    history, entry = agent.state_history, None
    if depth and target is not transition.source:
        entry = recorded(transition, now or getattr(agent, "now", None) or datetime.now(UTC), context)
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
    """Run the action of a transition; if it raises, the agent is as before, and a note on the error says where it was.

    As before are its state, its history if that is a list, and what its attributes are; not what these hold in turn.
    """
    if transition.action is None:
        return
    attributes = dict(getattr(agent, "__dict__", ()))
    history, state, ticks = agent.state_history, agent.state, agent.ticks_in_state
    entries = list(history) if isinstance(history, list) else None
    try:
        transition.action(agent, context)
    except BaseException as error:
        if attributes:
            vars(agent).clear()
            vars(agent).update(attributes)
        if entries is not None:
            history[:] = entries
        agent.state, agent.ticks_in_state = state, ticks
        add_place(error, "action", transition, agent)
        raise


type Kind = tuple[Transition, str]
"""A transition, and the kind of error that its guard raised, by its full name."""


@dataclass(frozen=True)
class FailingGuard:
    """A guard that raised.

    Attributes:
        transition: Whose guard.
        times: How often, at least 1.
        every_time: Whether it has never given a value: then `times` is how often it was asked.
        errors: What it raised, each kind once, with the first message.
        first: Which agent it raised for first, when, and on which line of the user's code.
    """

    transition: Transition
    times: int
    every_time: bool
    errors: tuple[str, ...]
    first: str = ""

    def __str__(self) -> str:
        often = f"each of the {self.times:,} times that it was asked" if self.every_time else f"{self.times:,} times"
        first = f", first for {self.first}" if self.first else ""
        return f"the guard of {self.transition} raised {often} ({'; '.join(self.errors)}){first}"


def failing_guards(
    transitions: Iterable[Transition],
    untried: Container[Transition],
    first: Mapping[Kind, str],
    raised: Mapping[Kind, int],
    places: Mapping[Transition, str],
) -> list[FailingGuard]:
    """Return the guards that raised, in the order of the chart's list.

    Args:
        transitions: Those of the chart.
        untried: Those whose guards have given no value so far.
        first: What each kind of error of a guard said first, behind the transition's own text.
        raised: How often each kind came.
        places: Where each one raised first, in words.
    """
    found = []
    for transition in dict.fromkeys(transitions):
        kinds = [kind for kind in raised if kind[0] == transition]
        if kinds:
            said = tuple(first[kind].removeprefix(f"{transition}: ") for kind in kinds)
            times = sum(raised[kind] for kind in kinds)
            found.append(FailingGuard(transition, times, transition in untried, said, places.get(transition, "")))
    return found
