"""The statechart engine: fire a trigger, apply a choice, explain. It never calls the oracle."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from prism_mesa.errors import ChartError, did_you_mean
from prism_mesa.statechart.guards import NEEDS_ORACLE, Expression, readable
from prism_mesa.statechart.selection import FALSE, NEEDS, TRUE, Arm, Cell, Outcome
from prism_mesa.statechart.states import AgentState
from prism_mesa.statechart.transitions import Transition, recorded

if TYPE_CHECKING:
    from prism_mesa.statechart.batch import Columns, Fired
    from prism_mesa.statechart.checks import Finding
    from prism_mesa.statechart.failing import FailingGuard
    from prism_mesa.statechart.values import Values

TIMEOUT: Final = "timeout"
_FIXED: Final = frozenset("states transitions initial timeouts oracle_enabled triggers cells".split())
_NO_CELLS: Final[dict[AgentState, Cell]] = {}
_PLAIN: Final[set[type]] = set()
"""Classes of contexts seen so far that are no mappings: asking the set is faster than `isinstance`."""


class Statechart:
    """States, and the transitions between them; shared by all agents. What a chart is made of cannot be set later.

    For a trigger in a state the candidates are the transitions in list order. A guard gives True, False
    or `NEEDS_ORACLE`; one that raises counts as False and is counted in `guard_errors`, by transition and
    kind of error. An unguarded transition means *else*: it counts only if no guarded one is left.

    Args:
        states: The states of this chart, at least one.
        transitions: Its arrows; every source and target is in `states`.
        initial: The state of a new agent.
        oracle_enabled: If False, an ambiguous fire takes its first option.
        timeouts: Ticks after which ``timeout`` fires in a state, for all agents; in the other states each
            agent's own `timeout_threshold` counts.
        invariant: An expression that holds for every agent (say ``F.agent.low <= F.agent.high``); only
            the static checks read it.
        strict: When firing, let a guard's exception pass instead of counting it.
        name: What messages call the chart.

    Raises:
        ChartError: (a ValueError) if a state is unknown or not in `states`, a transition is no
            `Transition`, or a timeout is below 1.
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
        self.timeouts: Mapping[AgentState, int] = MappingProxyType(
            {self._own(state, "timeouts"): ticks for state, ticks in (timeouts or {}).items()}
        )
        self.invariant = invariant
        self.oracle_enabled = oracle_enabled
        self.strict = strict
        self.guard_errors: Counter[str] = Counter()
        self._first_errors: dict[tuple[Transition, type[Exception]], str] = {}
        self._raised: Counter[tuple[Transition, type[Exception]]] = Counter()
        for state, ticks in self.timeouts.items():
            if not isinstance(ticks, int) or ticks < 1:
                raise ChartError(f"{name}: timeouts: {state.value} is {ticks!r}; give whole ticks, at least 1")
        for transition in self.transitions:
            if not isinstance(transition, Transition):
                raise ChartError(f"{name}: transitions: {transition!r} is no Transition(trigger, source, target)")
            self._own(transition.source, str(transition))
            if transition.target is not None:
                self._own(transition.target, str(transition))
        self.triggers = tuple(dict.fromkeys(t.trigger for t in self.transitions))
        self.cells = self._build_cells()

    def __setattr__(self, name: str, value: object) -> None:
        if name in _FIXED and name in vars(self):
            raise ChartError(
                f"{self.name}: {name} cannot be set: tables have been made from it. Make another chart, or use "
                "replaced(oracle_enabled=...)"
            )
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"timeouts": dict(self.timeouts)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, timeouts=MappingProxyType(state["timeouts"]))

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
            trigger: The event; one that the chart does not know does nothing.
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
        only = cell.only
        if only is not None and context.__class__ in _PLAIN:
            try:  # what `_key` and `outcomes` do, without their detours, for the one guard that most cells have
                value = only[0](agent, context)
                if value is True:
                    outcome = only[1]
                elif value is False:
                    outcome = only[2]
                else:
                    outcome = cell.outcomes[guard_value(value)]
            except Exception as error:
                if self.strict:
                    raise
                self.count_guard_error(cell.arms[0][1], error)
                outcome = only[2]
        else:
            outcome = cell.always
            if outcome is None:
                outcome = cell.outcomes[self._key(cell, agent, context)]
        if outcome.__class__ is not Transition:
            return outcome  # type: ignore[return-value]  # a tuple or None: mypy does not narrow on `__class__`
        if outcome.action is None and not agent.max_history_depth and not agent.state_history:
            agent.state = outcome.target
            agent.ticks_in_state = 0
        else:
            _take(outcome, agent, context, now)
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

        Of several transitions to it `resolve` says which; guards are asked again only if these differ in their action.
        """
        arrow, *others = self._arrows(agent.state, trigger, target)
        if any(other.action is not arrow.action for other in others):
            arrow = self.resolve(agent, trigger, target, context)
        _take(arrow, agent, context, now)
        return AgentState(target)

    def resolve(self, agent: Any, trigger: str, target: AgentState, context: Any = None) -> Transition:
        """Return the transition that `apply` takes; nothing is changed.

        It is the first transition to `target` whose guard holds, else the first one declared. If only one leads there
        no guard is asked. Who knows what the guards said when the trigger was fired calls `resolve_key`.

        Raises:
            ChartError: If `target` is not declared for the trigger in the agent's state.
        """
        arrow, *others = self._arrows(agent.state, trigger, target)
        if not others:
            return arrow
        cell = self.cells[trigger][AgentState(agent.state)]
        key = self._key(cell, agent, context, None if self.strict else {})  # firing has counted what raises
        return self.resolve_key(agent.state, trigger, target, key)

    def resolve_key(self, state: AgentState, trigger: str, target: AgentState, key: int) -> Transition:
        """Return the transition that leads to `target` by what the guards said (`selected`, `Fired.keys`).

        Raises:
            ChartError: If `target` is not declared for the trigger in the state.
        """
        self._arrows(state, trigger, target)
        cell = self.cells[trigger][AgentState(state)]
        return cell.arrow(AgentState(target), cell.left(cell.values(key)))

    def selected(self, agent: Any, trigger: str, context: Any = None) -> tuple[Outcome, int]:
        """Return what firing comes to (the transition, the options, or None) and what the guards said; nothing changes.

        Guards that raise are counted: it is the first half of a `fire`, and `take` the second.
        """
        cell = self.cells.get(trigger, _NO_CELLS).get(agent.state)
        if cell is None:
            return None, 0
        key = self._key(cell, agent, context)
        return cell.outcomes[key], key

    def take(self, transition: Transition, agent: Any, context: Any = None, *, now: datetime | None = None) -> None:
        """Run the action of a transition and let the agent enter its target; an error leaves the agent as it was."""
        _take(transition, agent, context, now)

    def _arrows(self, state: AgentState, trigger: str, target: AgentState) -> list[Transition]:
        """Return the transitions that lead to `target`, at least one."""
        state, target = AgentState(state), AgentState(target)
        cell = self.cells.get(trigger, _NO_CELLS).get(state)
        if cell is None or target not in cell.declared:
            declared = ", ".join(s.value for s in cell.declared) if cell else ""
            raise ChartError(
                f"{self.name}: {state.value} --{trigger}--> {target.value}: not declared "
                f"(targets: {declared or 'none'})"
            )
        return [t for t in cell.candidates if t.target is target]

    def _key(self, cell: Cell, agent: Any, context: Any, errors: dict[Transition, Exception] | None = None) -> int:
        """Return the guards' values, packed as `Cell.outcomes` wants them.

        SCXML: a guard that fails is false. It is counted, or put into `errors` if those are given.
        """
        key = 0
        failed: list[Transition] = []
        for weight, transition, guard in cell.kernels if context.__class__ in _PLAIN else _arms(cell, context):
            try:
                value = guard(agent, context)
                if value is True:
                    key += weight
                elif value is not False:
                    key += weight * guard_value(value)
            except Exception as error:
                if errors is not None:
                    errors[transition] = error
                elif self.strict:
                    raise
                else:
                    self.count_guard_error(transition, error)
                    failed.append(transition)
        if cell.untried and errors is None:
            cell.gave_values(t for _, t, _ in cell.arms if t not in failed)
        return key

    def count_guard_error(self, transition: Transition, error: Exception) -> None:
        """Count a guard that raised, under its transition and kind of error; the first message stands for all."""
        kind = transition, type(error)
        text = f"{transition}: {type(error).__name__}: {error}"
        self.guard_errors[self._first_errors.setdefault(kind, text)] += 1
        self._raised[kind] += 1

    def failing_guards(self) -> "list[FailingGuard]":
        """Return the guards that raised when they were asked in firing, in list order; see `statechart.failing`."""
        from prism_mesa.statechart.failing import failing_guards

        return failing_guards(self, self._first_errors, self._raised)

    def fire_many(self, states: Any, triggers: Any, agents: "Columns", contexts: "Columns") -> "Fired":
        """Select for many agents at once, over columns; see `prism_mesa.statechart.batch.fire_many`."""
        from prism_mesa.statechart.batch import fire_many

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
        return [t for t, _ in cell.left(cell.values(self._key(cell, agent, context, {})))] if cell else []

    def why_not(self, agent: Any, trigger: str, context: Any = None) -> str:
        """Return why `trigger` would do nothing now, or an empty string if it would do something."""
        state = AgentState(agent.state)
        if trigger not in self.triggers:
            return f"{trigger!r} is no trigger of {self.name}.{did_you_mean(trigger, self.triggers)}"
        cell = self.cells[trigger].get(state)
        if cell is None:
            known = ", ".join(self.valid_triggers(state)) or "none"
            return f"{state.value} has no transition on {trigger!r} (its triggers: {known})"
        errors: dict[Transition, Exception] = {}
        key = self._key(cell, agent, context, errors)
        if cell.outcomes[key] is not None:
            return ""
        if cell.left(cell.values(key)):
            return f"{state.value} --{trigger}--> ?: no concrete target is declared to choose from"
        said = {t: f"raised {type(error).__name__}: {error}" for t, error in errors.items()}
        return "; ".join(
            f"{t}: the guard {said.get(t, 'is false')}{_field_values(t, agent, context)}" for t in cell.candidates
        )

    def considered(self, agent: Any, trigger: str, context: Any = None) -> list[tuple[Transition, str, dict[str, Any]]]:
        """Return the candidates in list order, what each guard says now, and the fields that it reads.

        What a guard says is `true`, `false`, `needs the oracle`, `raised ...`, or an empty string where there is
        none. Nothing is changed.
        """
        cell = self.cells.get(trigger, _NO_CELLS).get(AgentState(agent.state))
        if cell is None:
            return []
        errors: dict[Transition, Exception] = {}
        values = cell.values(self._key(cell, agent, context, errors))
        found = []
        for transition, value in zip(cell.candidates, values, strict=True):
            error = errors.get(transition)
            said = ("false", "true", "needs the oracle")[value] if transition.guard is not None else ""
            said = said if error is None else f"raised {type(error).__name__}: {error}"
            found.append((transition, said, _fields(transition, agent, context)))
        return found

    def timeout_threshold(self, agent: Any) -> int:
        """Return the ticks after which ``timeout`` fires: the state's own, else the agent's."""
        return self.timeouts.get(agent.state) or int(agent.timeout_threshold)

    def check(
        self, fired: Iterable[str] | None = None, fields: "Iterable[str] | Mapping[str, Values] | None" = None
    ) -> "list[Finding]":
        """Find faults without running; see `prism_mesa.statechart.checks.check`."""
        from prism_mesa.statechart.checks import check

        return check(self, fired, fields)

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


def _arms(cell: Cell, context: Any) -> tuple[Arm, ...]:
    """Return the guards in the form that can read `context`, and remember its class if that is no mapping."""
    if isinstance(context, Mapping):
        return cell.arms
    _PLAIN.add(context.__class__)
    return cell.kernels


def _take(transition: Transition, agent: Any, context: Any, now: datetime | None) -> None:
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
        transition.action(agent, context)
        history = agent.state_history
    if entry is not None:
        history.append(entry)
    while len(history) > depth:
        del history[0]
    agent.state = target
    agent.ticks_in_state = 0


def guard_value(value: Any) -> int:
    """Return what a guard gave as FALSE, TRUE or NEEDS."""
    if isinstance(value, str) and value == NEEDS_ORACLE:
        return NEEDS
    return TRUE if value else FALSE


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
