"""The statechart engine: fire a trigger, apply a choice, explain."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from prism_mesa.errors import ChartError, counted, did_you_mean, one_line
from prism_mesa.statechart.columns import Columns
from prism_mesa.statechart.explanations import said_by_guards, why_nothing
from prism_mesa.statechart.failing import FailingGuard, failing_guards
from prism_mesa.statechart.guards import Expression
from prism_mesa.statechart.selection import Arm, Cell, Outcome, build_cells, guard_value
from prism_mesa.statechart.states import AgentState, state_of_chart
from prism_mesa.statechart.transitions import Transition, take

if TYPE_CHECKING:
    from prism_mesa.statechart.batch import Fired
    from prism_mesa.statechart.checks import Finding
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
        transitions: The transitions; every source and target is in `states`.
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
        own = partial(state_of_chart, name, self.states)
        self.initial = own(initial, "initial")
        self.timeouts: Mapping[AgentState, int] = MappingProxyType(
            {own(state, "timeouts"): ticks for state, ticks in (timeouts or {}).items()}
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
            own(transition.source, str(transition))
            if transition.target is not None:
                own(transition.target, str(transition))
        self.triggers = tuple(dict.fromkeys(t.trigger for t in self.transitions))
        self.cells = build_cells(self.transitions, oracle_enabled)

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

    @one_line
    def __repr__(self) -> str:
        size = f"{counted(len(self.states), 'state')}, {counted(len(self.transitions), 'transition')}"
        return f"<{type(self).__name__} {self.name}: {size}>"

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
            take(outcome, agent, context, now)
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
        transition, *others = self._transitions_to(agent.state, trigger, target)
        if any(other.action is not transition.action for other in others):
            transition = self.resolve(agent, trigger, target, context)
        take(transition, agent, context, now)
        return AgentState(target)

    def resolve(self, agent: Any, trigger: str, target: AgentState, context: Any = None) -> Transition:
        """Return the transition that `apply` takes; nothing is changed.

        It is the first transition to `target` whose guard holds, else the first one declared. If only one leads there
        no guard is asked. Who knows what the guards said when the trigger was fired calls `resolve_key`.

        Raises:
            ChartError: If `target` is not declared for the trigger in the agent's state.
        """
        transition, *others = self._transitions_to(agent.state, trigger, target)
        if not others:
            return transition
        cell = self.cells[trigger][AgentState(agent.state)]
        key = self._key(cell, agent, context, None if self.strict else {})  # firing has counted what raises
        return self.resolve_key(agent.state, trigger, target, key)

    def resolve_key(self, state: AgentState, trigger: str, target: AgentState, key: int) -> Transition:
        """Return the transition that leads to `target` by what the guards said (`selected`, `Fired.keys`).

        Raises:
            ChartError: If `target` is not declared for the trigger in the state.
        """
        self._transitions_to(state, trigger, target)
        cell = self.cells[trigger][AgentState(state)]
        return cell.transition_to(AgentState(target), cell.left(cell.values(key)))

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
        take(transition, agent, context, now)

    def _transitions_to(self, state: AgentState, trigger: str, target: AgentState) -> list[Transition]:
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

    def failing_guards(self) -> list[FailingGuard]:
        """Return the guards that raised when they were asked in firing, in list order; see `statechart.failing`."""
        untried = {t for row in self.cells.values() for cell in row.values() for t in cell.untried}
        return failing_guards(self.transitions, untried, self._first_errors, self._raised)

    def fire_many(self, states: Any, triggers: Any, agents: Columns, contexts: Columns) -> "Fired":
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
        return why_nothing(cell, key, errors, agent, context)

    def considered(self, agent: Any, trigger: str, context: Any = None) -> list[tuple[Transition, str, dict[str, Any]]]:
        """Return the candidates in list order, what each guard says now, and the fields that it reads.

        What a guard says is `true`, `false`, `needs the oracle`, `raised ...`, or an empty string where there is
        none. Nothing is changed.
        """
        cell = self.cells.get(trigger, _NO_CELLS).get(AgentState(agent.state))
        if cell is None:
            return []
        errors: dict[Transition, Exception] = {}
        key = self._key(cell, agent, context, errors)
        return said_by_guards(cell, key, errors, agent, context)

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
