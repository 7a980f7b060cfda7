"""The statechart engine: it fires triggers, applies choices, and explains both."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from prism_mesa.arrays import Rows
from prism_mesa.errors import ChartError, did_you_mean
from prism_mesa.statechart.batch import Columns, FireResult, fire_many
from prism_mesa.statechart.checks import Finding, Values, check
from prism_mesa.statechart.definition import ChartDefinition
from prism_mesa.statechart.exchange import read_scxml, to_scxml, to_xstate
from prism_mesa.statechart.guards import Expression, with_attributes
from prism_mesa.statechart.selection import Cell, GuardErrors, Outcome, evaluate_guards
from prism_mesa.statechart.states import State
from prism_mesa.statechart.transitions import Transition
from prism_mesa.statechart.users_code import take_transition

_NO_CELLS: Final[dict[State, Cell]] = {}


class Statechart(ChartDefinition):
    """States and the transitions between them, shared by all agents; its parts cannot be set later.

    For a trigger in a state, the candidates are the transitions in list order. A guard returns True, False or
    `NEEDS_ORACLE`; a guard that raises is false, and `guard_errors` counts the error. Unguarded transitions and markers
    (target None, and a guard that returns `NEEDS_ORACLE`) mean *else*: they apply only if no guarded transition with a
    target is enabled.

    Args:
        states: The states of this chart, at least one.
        transitions: The transitions; their sources and targets must be in `states`.
        initial: The state of a new agent.
        oracle_enabled: If False, an ambiguous choice takes its first option.
        timeouts: Ticks after which ``timeout`` fires in a state, for all agents; other states use each agent's
            `timeout_threshold`.
        on_enter: Functions ``(agent, context)`` to run after entering a state, by state or parent. If one raises,
            everything is restored.
        on_exit: Functions to run before leaving a state.
        nested: Names of parents, each with its states or other parents. A transition from a parent leaves from each
            state in it, unless the state's own transition on the trigger is enabled. A parent as a target enters its
            first state.
        history: The parents that enter the state in which they were left.
        invariant: An expression that is true for every agent, such as ``F.agent.low <= F.agent.high``; the static
            checks use it.
        strict: Whether to raise a guard's error, with a note on its place, instead of counting it.
        name: The chart's name in messages.

    Raises:
        ChartError: (a ValueError) If a state is unknown or not in `states`, a transition is not a `Transition`, or a
            timeout is below 1.
    """

    def fire(
        self, agent: Any, trigger: str, context: Any = None, *, now: datetime | None = None
    ) -> State | list[State] | None:
        """Fire `trigger` on `agent`.

        Args:
            agent: Any object with the fields `state`, `state_history`, `ticks_in_state` and `max_history_depth`.
            trigger: The event; an unknown event has no effect.
            context: An object or a mapping that guards read as ``F.post``.
            now: Simulated time in UTC, for the history; by default the agent's `now`, or else the wall clock.

        Returns:
            The new state, or None if no transition is enabled. If the choice is ambiguous, nothing changes, and the
            list of options is returned: ask the oracle, then call `apply` with its choice.
        """
        try:
            cell = self.cells[trigger][agent.state]
        except KeyError:
            return None
        node = cell.unguarded_root or evaluate_guards(cell, agent, context, self)
        target = node.target
        if target is not None and not agent.max_history_depth and not agent.state_history:
            agent.state = target  # like `take`, without an action or a history
            agent.ticks_in_state = 0
            return target
        if node.transition is None:
            return list(node.options) if node.options else None
        return take_transition(node.transition, agent, context, now)

    def apply(
        self, agent: Any, trigger: str, target: State, context: Any = None, *, now: datetime | None = None
    ) -> State:
        """Enter `target`, one of the options of an ambiguous choice, and return it.

        If several transitions lead to `target`, `resolve` evaluates the guards again.
        """
        return take_transition(self.resolve(agent, trigger, target, context), agent, context, now)

    def resolve(self, agent: Any, trigger: str, target: State, context: Any = None) -> Transition:
        """Return the transition that `apply` takes, without changing anything.

        This is the first transition to `target` whose guard is true, or else the first declared transition to `target`.
        If you have the key of the guards' answers from firing, call `resolve_key` instead.

        Raises:
            ChartError: If `target` is not declared for the trigger in the agent's state.
        """
        transition, *others = self._transitions_to(agent.state, trigger, target)
        if not others:
            return transition
        cell = self.cells[trigger][transition.source]
        # firing has counted the errors
        node = evaluate_guards(cell.copy(), agent, context, self if self.strict else GuardErrors())
        return self.resolve_key(agent.state, trigger, target, node.key)

    def resolve_key(self, state: State, trigger: str, target: State, key: int) -> Transition:
        """Return the transition to `target` for a key from `select` or `FireResult.keys`, or raise ChartError."""
        transition, *_ = self._transitions_to(state, trigger, target)
        cell = self.cells[trigger][transition.source]
        return cell.transition_to(transition.target, cell.enabled(key))

    def select(self, agent: Any, trigger: str, context: Any = None) -> tuple[Outcome, int]:
        """Return the outcome of firing (the transition, the options, or None) and the key of the guards' answers.

        This is the first half of `fire`; `take` is the second. Guards' errors are counted; the agent does not change.
        """
        cell = self.cells.get(trigger, _NO_CELLS).get(agent.state)
        if cell is None:
            return None, 0
        node = evaluate_guards(cell, agent, context, self)
        return node.transition or node.options, node.key

    def take(self, transition: Transition, agent: Any, context: Any = None, *, now: datetime | None = None) -> None:
        """Run a transition's functions and enter its target; if one raises, the agent stays unchanged."""
        take_transition(transition, agent, context, now)

    def _transitions_to(self, state: State, trigger: str, target: State) -> list[Transition]:
        """Return the transitions that lead to `target`, at least one."""
        state, target = self.find_state(state, trigger), self.find_state(target, trigger)
        cell = self.cells.get(trigger, _NO_CELLS).get(state)
        if cell is None or target not in cell.targets:
            declared = ", ".join(s.value for s in cell.targets) if cell else ""
            place = f"{self.name}: {state.value} --{trigger}--> {target.value}"
            raise ChartError(f"{place}: not declared (targets: {declared or 'none'})")
        return [t for t in cell.candidates if t.target is target]

    def fire_many(self, states: Rows, triggers: Rows | str, agents: Columns, contexts: Columns) -> FireResult:
        """Select transitions for many agents at once; see `prism_mesa.statechart.batch.fire_many`."""
        return fire_many(self, states, triggers, agents, contexts)

    def valid_triggers(self, state: State) -> list[str]:
        """Return the triggers that have a transition from `state`, in list order."""
        return [trigger for trigger, row in self.cells.items() if state in row]

    def valid_targets(self, state: State, trigger: str) -> list[State]:
        """Return the distinct concrete targets of the trigger in the state, in list order."""
        cell = self.cells.get(trigger, _NO_CELLS).get(state)
        return list(cell.targets) if cell else []

    def enabled(self, agent: Any, trigger: str, context: Any = None) -> list[Transition]:
        """Return the transitions that are enabled now, in list order, without changing anything."""
        cell = self.cells.get(trigger, _NO_CELLS).get(agent.state)
        if cell is None:
            return []
        return [t for t, _ in cell.enabled(evaluate_guards(cell.copy(), agent, context, GuardErrors()).key)]

    def why_not(self, agent: Any, trigger: str, context: Any = None) -> str:
        """Return the reason why `trigger` has no effect now, or an empty string if it has an effect."""
        state = self.find_state(agent.state, trigger)
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
            return f"{cell.label} ?: no concrete target is declared to choose from"
        reasons = []
        for transition, answer, field_values in candidates:
            values = ", ".join(f"{name} = {value}" for name, value in field_values.items())
            answer = "is false" if answer == "false" else answer
            reasons.append(f"{transition}: the guard {answer}{values and f' ({values})'}")
        return "; ".join(reasons)

    def explain(
        self, agent: Any, trigger: str, context: Any = None, reader: Any = None
    ) -> list[tuple[Transition, str, dict[str, Any]]]:
        """Return the candidates in list order, each with its guard's current answer and the fields that it reads.

        An answer is `true`, `false`, `needs the oracle`, `raised ...`, or an empty string without a guard. Guards read
        `reader` if it is given, instead of `agent`. The call changes nothing.
        """
        cell = self.cells.get(trigger, _NO_CELLS).get(self.find_state(agent.state, trigger))
        return [] if cell is None else _answers(cell, agent if reader is None else reader, context)[1]

    def timeout_threshold(self, agent: Any) -> int:
        """Return the ticks after which ``timeout`` fires: the number for the state if any, else the agent's."""
        return self.timeouts.get(agent.state) or int(agent.timeout_threshold)

    def check(
        self, fired: Iterable[str] | None = None, fields: Iterable[str] | Mapping[str, Values] | None = None
    ) -> list[Finding]:
        """Find faults without running; see `prism_mesa.statechart.checks.check`."""
        return check(self, fired, fields)

    def to_scxml(self) -> str:
        """Return the chart as SCXML; guards and actions are names."""
        return to_scxml(self)

    def to_xstate(self) -> dict[str, Any]:
        """Return the chart as the configuration of an XState machine, in JSON types."""
        return to_xstate(self)

    @classmethod
    def from_scxml(
        cls,
        text: str,
        guards: Mapping[str, Any] | None = None,
        actions: Mapping[str, Callable[[Any, Any], None]] | None = None,
        **options: Any,
    ) -> "Statechart":
        """Return the chart of an SCXML document, which may have what `to_scxml` writes.

        Args:
            text: The document, without a DTD.
            guards: A guard for each ``cond``; its text is a name and is never evaluated.
            actions: A function for each name of an action.
            options: Further arguments of the chart.

        Raises:
            ChartError: If the document has parts that charts lack, or names that are not given.
        """
        return cls(**(read_scxml(text, guards, actions) | options))

    def with_settings(
        self,
        *,
        oracle_enabled: bool | None = None,
        strict: bool | None = None,
        more: Sequence[Transition] = (),
        triggers: Sequence[str] = (),
    ) -> "Statechart":
        """Return a chart with other settings, `more` transitions at the end, and no counted guard errors."""
        return Statechart(
            states=self.ordered_states,
            transitions=[*self.declared, *more],
            initial=self.initial,
            oracle_enabled=self.oracle_enabled if oracle_enabled is None else oracle_enabled,
            timeouts=self.timeouts,
            on_enter=self.hierarchy.on_enter,
            on_exit=self.hierarchy.on_exit,
            nested=self.hierarchy.children,
            history=self.hierarchy.history,
            invariant=self.invariant,
            strict=self.strict if strict is None else strict,
            name=self.name,
            triggers=triggers or self.triggers,
        )


def _answers(cell: Cell, agent: Any, context: Any) -> tuple[int, list[tuple[Transition, str, dict[str, Any]]]]:
    """Return the key of the guards' current answers, and the result of `Statechart.explain`."""
    errors = GuardErrors()
    key = evaluate_guards(cell.copy(), agent, context, errors).key
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
    roots = {"agent": agent, "post": with_attributes(context), "model": getattr(agent, "model", None)}
    field_names = ((name, *name.split(".", 1)) for name in sorted(transition.guard.fields))
    return {name: getattr(roots[root], field, "missing") for name, root, field in field_names}
