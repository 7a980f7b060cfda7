"""The statechart engine: fires triggers, applies choices, and explains both."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from prism_mesa.errors import ChartError, did_you_mean
from prism_mesa.statechart.batch import Codes, Columns, Fired, fire_many
from prism_mesa.statechart.checks import Finding, Values, check
from prism_mesa.statechart.definition import ChartDefinition
from prism_mesa.statechart.guards import Expression, readable
from prism_mesa.statechart.selection import Cell, Errors, Outcome, walk
from prism_mesa.statechart.states import AgentState
from prism_mesa.statechart.transitions import Transition
from prism_mesa.statechart.users_code import take

_NO_CELLS: Final[dict[AgentState, Cell]] = {}


class Statechart(ChartDefinition):
    """States and the transitions between them, shared by all agents; you cannot set its parts later.

    For a trigger in a state the candidates are the transitions in list order. A guard returns True, False or
    `NEEDS_ORACLE`; if it raises, it is false, and `guard_errors` counts the error. An unguarded transition means
    *else*, and so does a marker (target None, and a guard that returns `NEEDS_ORACLE`): they count only if no guarded
    transition with a target is enabled.

    Args:
        states: The states of this chart, at least one.
        transitions: The transitions; their sources and targets are in `states`.
        initial: The state of a new agent.
        oracle_enabled: If False, an ambiguous choice takes its first option.
        timeouts: Ticks after which ``timeout`` fires in a state, for all agents; other states use each agent's
            `timeout_threshold`.
        invariant: An expression that is true for every agent, such as ``F.agent.low <= F.agent.high``; the static
            checks use it.
        strict: Whether to raise a guard's error, with a note on its place, instead of counting it.
        name: The chart's name in messages.

    Raises:
        ChartError: (a ValueError) if a state is unknown or not in `states`, a transition is not a `Transition`, or a
            timeout is below 1.
    """

    def fire(
        self, agent: Any, trigger: str, context: Any = None, *, now: datetime | None = None
    ) -> AgentState | list[AgentState] | None:
        """Fire `trigger` on `agent`.

        Args:
            agent: Any object with the fields `state`, `state_history`, `ticks_in_state` and `max_history_depth`.
            trigger: The event; an unknown one does nothing.
            context: An object or a mapping that guards read as ``F.post``.
            now: Simulated time in UTC, for the history; by default the agent's `now`, or else the wall clock.

        Returns:
            The new state; the list of options if the choice is ambiguous (nothing has changed: ask the oracle and call
            `apply` with its choice); None if no transition is enabled.
        """
        try:
            cell = self.cells[trigger][agent.state]
        except KeyError:
            return None
        node = cell.always
        if node is None:
            node = walk(cell, agent, context, self)
        target = node.target
        if target is not None and not agent.max_history_depth and not agent.state_history:
            agent.state = target  # like `take`, without an action or a history
            agent.ticks_in_state = 0
            return target
        if node.transition is None:
            return list(node.options) if node.options else None
        take(node.transition, agent, context, now)
        return node.transition.target

    def apply(
        self, agent: Any, trigger: str, target: AgentState, context: Any = None, *, now: datetime | None = None
    ) -> AgentState:
        """Enter `target`, one of the options of an ambiguous choice, and return it.

        If several transitions lead to it and their actions differ, `resolve` evaluates the guards again.
        """
        transition, *others = self._transitions_to(agent.state, trigger, target)
        if any(other.action is not transition.action for other in others):
            transition = self.resolve(agent, trigger, target, context)
        take(transition, agent, context, now)
        return AgentState(target)

    def resolve(self, agent: Any, trigger: str, target: AgentState, context: Any = None) -> Transition:
        """Return the transition that `apply` takes, without changing anything.

        It is the first transition to `target` whose guard is true, or else the first declared one. If you know the key
        of the guards' answers from firing, call `resolve_key`.

        Raises:
            ChartError: If `target` is not declared for the trigger in the agent's state.
        """
        transition, *others = self._transitions_to(agent.state, trigger, target)
        if not others:
            return transition
        cell = self.cells[trigger][AgentState(agent.state)]
        node = walk(cell.copy(), agent, context, self if self.strict else Errors())  # firing has counted the errors
        return self.resolve_key(agent.state, trigger, target, node.key)

    def resolve_key(self, state: AgentState, trigger: str, target: AgentState, key: int) -> Transition:
        """Return the transition to `target` by a key (`selected`, `Fired.keys`); ChartError if it is not declared."""
        self._transitions_to(state, trigger, target)
        cell = self.cells[trigger][AgentState(state)]
        return cell.transition_to(AgentState(target), cell.enabled(key))

    def selected(self, agent: Any, trigger: str, context: Any = None) -> tuple[Outcome, int]:
        """Return the outcome of firing (the transition, the options, or None) and the key of the guards' answers.

        This is the first half of `fire`; `take` is the second. It counts guards' errors but does not change the agent.
        """
        cell = self.cells.get(trigger, _NO_CELLS).get(agent.state)
        if cell is None:
            return None, 0
        node = walk(cell, agent, context, self)
        return node.transition or node.options, node.key

    def take(self, transition: Transition, agent: Any, context: Any = None, *, now: datetime | None = None) -> None:
        """Run a transition's action and enter its target; if the action raises, the agent stays unchanged."""
        take(transition, agent, context, now)

    def _transitions_to(self, state: AgentState, trigger: str, target: AgentState) -> list[Transition]:
        """Return the transitions that lead to `target`, at least one."""
        state, target = AgentState(state), AgentState(target)
        cell = self.cells.get(trigger, _NO_CELLS).get(state)
        if cell is None or target not in cell.declared:
            declared = ", ".join(s.value for s in cell.declared) if cell else ""
            place = f"{self.name}: {state.value} --{trigger}--> {target.value}"
            raise ChartError(f"{place}: not declared (targets: {declared or 'none'})")
        return [t for t in cell.candidates if t.target is target]

    def fire_many(self, states: Codes, triggers: Codes | str, agents: Columns, contexts: Columns) -> Fired:
        """Select transitions for many agents at once, over columns; see `prism_mesa.statechart.batch.fire_many`."""
        return fire_many(self, states, triggers, agents, contexts)

    def valid_triggers(self, state: AgentState) -> list[str]:
        """Return the triggers that have a transition from `state`, in list order."""
        return [trigger for trigger, row in self.cells.items() if state in row]

    def valid_targets(self, state: AgentState, trigger: str) -> list[AgentState]:
        """Return the distinct concrete targets of the trigger in the state, in list order."""
        cell = self.cells.get(trigger, _NO_CELLS).get(state)
        return list(cell.declared) if cell else []

    def enabled(self, agent: Any, trigger: str, context: Any = None) -> list[Transition]:
        """Return the transitions that the guards enable now, in list order, without changing anything."""
        cell = self.cells.get(trigger, _NO_CELLS).get(agent.state)
        if cell is None:
            return []
        return [t for t, _ in cell.enabled(walk(cell.copy(), agent, context, Errors()).key)]

    def why_not(self, agent: Any, trigger: str, context: Any = None) -> str:
        """Return why `trigger` would have no effect now; empty if it would have one."""
        state = AgentState(agent.state)
        if trigger not in self.triggers:
            return f"{trigger!r} is not a trigger of {self.name}.{did_you_mean(trigger, self.triggers)}"
        cell = self.cells[trigger].get(state)
        if cell is None:
            triggers = ", ".join(self.valid_triggers(state)) or "none"
            return f"{state.value} has no transition on {trigger!r} (its triggers: {triggers})"
        key, candidates = _answers(cell, agent, context)
        if cell.outcomes[key] is not None:
            return ""
        if cell.enabled(key):
            return f"{cell.place} ?: no concrete target is declared to choose from"
        reasons = []
        for transition, answer, field_values in candidates:
            values = ", ".join(f"{name} = {value}" for name, value in field_values.items())
            answer = "is false" if answer == "false" else answer
            reasons.append(f"{transition}: the guard {answer}{values and f' ({values})'}")
        return "; ".join(reasons)

    def considered(self, agent: Any, trigger: str, context: Any = None) -> list[tuple[Transition, str, dict[str, Any]]]:
        """Return the candidates in list order, each with its guard's answer now and the fields that the guard reads.

        An answer is `true`, `false`, `needs the oracle`, `raised ...`, or an empty string without a guard. The call
        changes nothing.
        """
        cell = self.cells.get(trigger, _NO_CELLS).get(AgentState(agent.state))
        return [] if cell is None else _answers(cell, agent, context)[1]

    def timeout_threshold(self, agent: Any) -> int:
        """Return the ticks after which ``timeout`` fires: the state's own number, else the agent's."""
        return self.timeouts.get(agent.state) or int(agent.timeout_threshold)

    def check(
        self, fired: Iterable[str] | None = None, fields: Iterable[str] | Mapping[str, Values] | None = None
    ) -> list[Finding]:
        """Find faults without running; see `prism_mesa.statechart.checks.check`."""
        return check(self, fired, fields)

    def replaced(self, *, oracle_enabled: bool, strict: bool | None = None) -> "Statechart":
        """Return a chart with the same transitions but other settings, and without guard errors."""
        return Statechart(
            self.states,
            self.transitions,
            self.initial,
            oracle_enabled=oracle_enabled,
            timeouts=self.timeouts,
            invariant=self.invariant,
            strict=self.strict if strict is None else strict,
            name=self.name,
        )


def _answers(cell: Cell, agent: Any, context: Any) -> tuple[int, list[tuple[Transition, str, dict[str, Any]]]]:
    """Return the key of the guards' answers now, and the result of `Statechart.considered`."""
    errors = Errors()
    key = walk(cell.copy(), agent, context, errors).key
    answers = []
    for transition, value in zip(cell.candidates, cell.values(key), strict=True):
        answer = ("false", "true", "needs the oracle")[value] if transition.guard is not None else ""
        if error := errors.get(transition):
            answer = f"raised {type(error).__name__}: {error}"
        answers.append((transition, answer, _fields(transition, agent, context)))
    return key, answers


def _fields(transition: Transition, agent: Any, context: Any) -> dict[str, Any]:
    """Return the current values of the fields that an expression reads; empty for a callable."""
    if not isinstance(transition.guard, Expression):
        return {}
    roots = {"agent": agent, "post": readable(context)}
    field_names = ((name, *name.split(".", 1)) for name in sorted(transition.guard.fields))
    return {name: getattr(roots[root], field, "missing") for name, root, field in field_names}
