"""The statechart engine: fire a trigger, apply a choice, explain. It never calls the oracle."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from prism_mesa.errors import ChartError, did_you_mean
from prism_mesa.statechart.guards import NEEDS_ORACLE, Expression, readable
from prism_mesa.statechart.selection import FALSE, NEEDS, TRUE, Cell
from prism_mesa.statechart.states import AgentState
from prism_mesa.statechart.transitions import Guard, Transition, recorded

if TYPE_CHECKING:
    from prism_mesa.statechart.checks import Finding
    from prism_mesa.statechart.tables import Columns, Fired

TIMEOUT: Final = "timeout"
_NO_CELLS: Final[dict[AgentState, Cell]] = {}


class Statechart:
    """States, and the transitions between them; shared by all agents.

    For a trigger in a state the candidates are the transitions in list order. A guard gives True, False
    or `NEEDS_ORACLE`; one that raises counts as False and is counted in `guard_errors`. An unguarded
    transition means *else*: it counts only if no guarded one is left.

    Args:
        states: The states of this chart, at least one.
        transitions: Its arrows; every source and target is in `states`.
        initial: The state of a new agent.
        oracle_enabled: If False, an ambiguous fire takes its first option.
        timeouts: Ticks after which ``timeout`` fires in a state, for all agents; in the other states each
            agent's own `timeout_threshold` counts.
        invariant: An expression that holds for every agent (say ``F.agent.low <= F.agent.high``); only
            the static checks read it.
        strict: Let a guard's exception pass, instead of counting it.
        name: What messages call the chart.

    Raises:
        ChartError: (a ValueError) if a state is unknown or not in `states`, or a timeout is below 1.
    """

    def __init__(
        self,
        states: Iterable[AgentState],
        transitions: Sequence[Transition],
        initial: AgentState,
        *,
        oracle_enabled: bool = True,
        timeouts: Mapping[AgentState, int] | None = None,
        invariant: Expression | None = None,
        strict: bool = False,
        name: str = "chart",
    ) -> None:
        self.name = name
        self.states = frozenset(AgentState(state) for state in states)
        self.transitions = tuple(transitions)
        self.initial = self._own(initial, "initial")
        self.timeouts = {self._own(state, "timeouts"): ticks for state, ticks in (timeouts or {}).items()}
        self.invariant = invariant
        self.oracle_enabled = oracle_enabled
        self.strict = strict
        self.guard_errors: Counter[str] = Counter()
        for state, ticks in self.timeouts.items():
            if not isinstance(ticks, int) or ticks < 1:
                raise ChartError(f"{name}: timeouts: {state.value} is {ticks!r}; give whole ticks, at least 1")
        for transition in self.transitions:
            self._own(transition.source, str(transition))
            if transition.target is not None:
                self._own(transition.target, str(transition))
        self.triggers = tuple(dict.fromkeys(t.trigger for t in self.transitions))
        self.cells = self._build_cells()

    def _own(self, state: AgentState, where: str) -> AgentState:
        try:
            found = AgentState(state)
        except ChartError as error:
            raise ChartError(f"{self.name}: {where}: {error}") from None
        if found not in self.states:
            names = sorted(s.value for s in self.states)
            raise ChartError(
                f"{self.name}: {where}: {found.value!r} is not a state of this chart "
                f"({', '.join(names)}).{did_you_mean(found.value, names)}"
            )
        return found

    def _build_cells(self) -> dict[str, dict[AgentState, Cell]]:
        grouped: dict[str, dict[AgentState, list[Transition]]] = {}
        for t in self.transitions:
            grouped.setdefault(t.trigger, {}).setdefault(t.source, []).append(t)
        return {
            trigger: {state: Cell(tuple(ts), self.oracle_enabled) for state, ts in row.items()}
            for trigger, row in grouped.items()
        }

    def fire(
        self, agent: Any, trigger: str, context: Any = None, *, now: datetime | None = None
    ) -> AgentState | tuple[AgentState, ...] | None:
        """Fire `trigger` on `agent`.

        Args:
            agent: Any object with the fields `state`, `state_history`, `ticks_in_state` and
                `max_history_depth`.
            context: What guards read as ``F.post``: an object or a mapping.
            now: Simulated time in UTC, for the history. Without it the agent's own `now` counts, and
                without that the wall clock.

        Returns:
            The new state; or the options, as a tuple, if the choice is ambiguous (nothing is changed
            then: ask, and call `apply`); or None if no transition is enabled.
        """
        try:
            cell = self.cells[trigger][agent.state]
        except KeyError:
            return None
        outcome = cell.always
        if outcome is None:
            outcome = cell.outcomes[self._key(cell, agent, context)]
        if outcome.__class__ is not Transition:
            return outcome  # type: ignore[return-value]  # a tuple or None: mypy does not narrow on `__class__`
        self._take(outcome, agent, context, now)
        return outcome.target

    def apply(
        self,
        agent: Any,
        trigger: str,
        target: AgentState,
        context: Any = None,
        *,
        now: datetime | None = None,
    ) -> AgentState:
        """Enter `target`, one of the options of an ambiguous fire, and return it.

        The first transition to `target` whose guard holds runs its action, else the first one declared.

        Raises:
            ChartError: If `target` is not declared for the trigger in the agent's state.
        """
        cell = self.cells.get(trigger, _NO_CELLS).get(agent.state)
        arrows = cell.to(target) if cell else []
        if not cell or not arrows:
            declared = ", ".join(s.value for s in cell.declared) if cell else "none"
            raise ChartError(
                f"{self.name}: {agent.state} --{trigger}--> {target}: not declared (targets: {declared or 'none'})"
            )
        if len(arrows) > 1:
            left = [t for t, _ in cell.left(cell.values(self._key(cell, agent, context)))]
            arrows = [t for t in arrows if t in left] or arrows
        self._take(arrows[0], agent, context, now)
        return target

    def _key(self, cell: Cell, agent: Any, context: Any) -> int:
        """Return the guards' values, packed as `Cell.outcome` wants them."""
        key = 0
        for weight, kernel, guard in cell.arms:
            try:
                value = kernel(agent, context)
            except Exception as error:
                value = self._retried(cell, guard, agent, context, error)
            if value is True:
                key += weight
            elif value is not False:
                key += weight * guard_value(value)
        return key

    def _retried(self, cell: Cell, guard: Guard, agent: Any, context: Any, error: Exception) -> Any:
        """Return the value of a guard whose kernel raised: an expression may yet read a mapping.

        SCXML: a guard that fails is false. It is counted, never silent.
        """
        try:
            if isinstance(guard, Expression) and isinstance(context, Mapping):
                return guard(agent, context)
        except Exception as second:
            error = second
        if self.strict:
            raise error
        self.count_guard_error(cell, guard, error)
        return False

    def count_guard_error(self, cell: Cell, guard: Any, error: Exception, times: int = 1) -> None:
        """Count a guard that raised, under its transition and the kind of error."""
        transition = next(t for t in cell.candidates if t.guard is guard)
        self.guard_errors[f"{transition}: {type(error).__name__}: {error}"] += times

    @staticmethod
    def _take(transition: Transition, agent: Any, context: Any, now: datetime | None) -> None:
        if transition.action is not None:
            transition.action(agent, context)
        target = transition.target
        agent.state = target
        agent.ticks_in_state = 0
        if agent.max_history_depth and target is not transition.source:
            if now is None:
                now = getattr(agent, "now", None) or datetime.now(UTC)
            history = agent.state_history
            history.append(recorded(transition, now, context))
            while len(history) > agent.max_history_depth:
                del history[0]

    def fire_many(self, states: Any, triggers: Any, agents: "Columns", contexts: "Columns") -> "Fired":
        """Select for many agents at once, over columns; see `prism_mesa.statechart.tables.fire_many`."""
        from prism_mesa.statechart.tables import fire_many

        return fire_many(self, states, triggers, agents, contexts)

    def valid_triggers(self, state: AgentState) -> list[str]:
        """Return the triggers that have a transition from `state`, in list order."""
        return [trigger for trigger, row in self.cells.items() if state in row]

    def valid_targets(self, state: AgentState, trigger: str) -> list[AgentState]:
        """Return the concrete targets declared for the trigger in the state, in list order, each once."""
        cell = self.cells.get(trigger, _NO_CELLS).get(state)
        return list(cell.declared) if cell else []

    def enabled(self, agent: Any, trigger: str, context: Any = None) -> list[Transition]:
        """Return the transitions that the guards leave now, in list order; nothing is changed."""
        cell = self.cells.get(trigger, _NO_CELLS).get(agent.state)
        return [t for t, _ in cell.left(cell.values(self._key(cell, agent, context)))] if cell else []

    def why_not(self, agent: Any, trigger: str, context: Any = None) -> str:
        """Return why `trigger` would do nothing now, or an empty string if it would do something."""
        state = AgentState(agent.state)
        if trigger not in self.triggers:
            return f"{trigger!r} is no trigger of {self.name}.{did_you_mean(trigger, self.triggers)}"
        cell = self.cells[trigger].get(state)
        if cell is None:
            known = ", ".join(self.valid_triggers(state)) or "none"
            return f"{state.value} has no transition on {trigger!r} (its triggers: {known})"
        key = self._key(cell, agent, context)
        if cell.outcomes[key] is not None:
            return ""
        if cell.left(cell.values(key)):
            return f"{state.value} --{trigger}--> ?: no concrete target is declared to choose from"
        return "; ".join(f"{t}: the guard is false{_field_values(t, agent, context)}" for t in cell.candidates)

    def timeout_threshold(self, agent: Any) -> int:
        """Return the ticks after which ``timeout`` fires: the state's own, else the agent's."""
        return self.timeouts.get(agent.state) or int(agent.timeout_threshold)

    def check(self, fired: Iterable[str] | None = None) -> "list[Finding]":
        """Find faults without running; see `prism_mesa.statechart.checks.check`."""
        from prism_mesa.statechart.checks import check

        return check(self, fired)

    def replaced(self, *, oracle_enabled: bool, strict: bool | None = None) -> "Statechart":
        """Return a chart of the same transitions with its own settings and its own count of guard errors."""
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


def guard_value(value: Any) -> int:
    """Return what a guard gave as FALSE, TRUE or NEEDS."""
    if isinstance(value, str) and value == NEEDS_ORACLE:
        return NEEDS
    return TRUE if value else FALSE


def _field_values(transition: Transition, agent: Any, context: Any) -> str:
    if not isinstance(transition.guard, Expression):
        return ""
    roots = {"agent": agent, "post": readable(context)}
    shown = []
    for name in sorted(transition.guard.fields):
        root, attribute = name.split(".", 1)
        shown.append(f"{name} = {getattr(roots[root], attribute, 'missing')}")
    return f" ({', '.join(shown)})"
