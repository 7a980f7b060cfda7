"""What the guards of one (trigger, state) said, in words, and the fields that they read."""

from typing import Any

from prism_mesa.statechart.guards import Expression, readable
from prism_mesa.statechart.selection import Cell
from prism_mesa.statechart.transitions import Transition


class Errors(dict[Transition, Exception]):
    """What guards raised when they were asked for an explanation: kept for it, and not counted."""

    def guard_raised(self, transition: Transition, error: Exception, agent: Any) -> None:
        """Keep what a guard raised."""
        self[transition] = error


def why_nothing(cell: Cell, key: int, errors: Errors, agent: Any, context: Any) -> str:
    """Return why no transition of a cell would be taken, or an empty string if one would, or the choice is open.

    Args:
        cell: Whose transitions.
        key: What their guards said, as `Cell.outcomes` has it.
        errors: What those that failed raised.
        agent: What expressions read as ``F.agent``.
        context: What they read as ``F.post``.
    """
    if cell.outcomes[key] is not None:
        return ""
    if cell.left(cell.values(key)):
        return f"{cell.place} ?: no concrete target is declared to choose from"
    said = {t: f"raised {type(error).__name__}: {error}" for t, error in errors.items()}
    return "; ".join(
        f"{t}: the guard {said.get(t, 'is false')}{_field_values(t, agent, context)}" for t in cell.candidates
    )


def said_by_guards(
    cell: Cell, key: int, errors: Errors, agent: Any, context: Any
) -> list[tuple[Transition, str, dict[str, Any]]]:
    """Return the candidates in list order, what each guard said, and the fields that it reads; see `why_nothing`."""
    found = []
    for transition, value in zip(cell.candidates, cell.values(key), strict=True):
        error = errors.get(transition)
        said = ("false", "true", "needs the oracle")[value] if transition.guard is not None else ""
        said = said if error is None else f"raised {type(error).__name__}: {error}"
        found.append((transition, said, _fields(transition, agent, context)))
    return found


def _fields(transition: Transition, agent: Any, context: Any) -> dict[str, Any]:
    """Return the fields that an expression reads, with their values now; nothing of a callable is known."""
    if not isinstance(transition.guard, Expression):
        return {}
    roots = {"agent": agent, "post": readable(context)}
    split = ((name, *name.split(".", 1)) for name in sorted(transition.guard.fields))
    return {name: getattr(roots[root], attribute, "missing") for name, root, attribute in split}


def _field_values(transition: Transition, agent: Any, context: Any) -> str:
    shown = [f"{name} = {value}" for name, value in _fields(transition, agent, context).items()]
    return f" ({', '.join(shown)})" if shown else ""
