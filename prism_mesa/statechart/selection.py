"""Select among the transitions of a trigger and a state by their guards."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from prism_mesa.statechart.guards import NEEDS_ORACLE, Expression
from prism_mesa.statechart.states import State
from prism_mesa.statechart.transitions import Guard, Transition

FALSE: Final = 0
TRUE: Final = 1
OPEN_CHOICE: Final = 2
RAISED: Final = 3
_OBJECT_CLASSES: Final[set[type]] = set()
"""Classes of contexts that are not mappings; looking them up is faster than `isinstance`."""

type WeightedGuard = tuple[int, Transition, Guard]

type Outcome = Transition | tuple[State, ...] | None
"""The transition to take, the options of an ambiguous choice, or None if nothing happens."""


class ErrorSink(Protocol):
    """Receives guards' errors."""

    def record_error(self, transition: Transition, error: Exception, agent: Any) -> None:
        """Store or raise a guard's error."""
        ...


class GuardErrors(dict[Transition, Exception]):
    """Guards' errors by transition, for explanations; the chart does not count them."""

    def record_error(self, transition: Transition, error: Exception, agent: Any) -> None:
        """Store a guard's error."""
        self[transition] = error


def asks_oracle(transition: Transition, value: int) -> bool:
    """Return whether a transition's target or its guard's value leaves the choice to the oracle."""
    return transition.target is None or value == OPEN_CHOICE


class Cell:
    """All transitions of a trigger and a state, in list order.

    Attributes:
        targets: The distinct concrete targets: the oracle's options.
        guards: Triples (weight, transition, guard). The sum of the guards' values (0, 1, 2) times their
            weights 3**i is the key of `outcomes`.
        outcomes: The outcome of each key, computed on demand.
        root: The node of the first guard, for contexts that are objects. It calls compiled expressions.
        mapping_root: The node of the first guard, for contexts that are mappings.
        unguarded_root: `root` if no candidate has a guard, else None.
        untried: The transitions whose guards have not returned a value yet.
    """

    __slots__ = "candidates guards mapping_root oracle_enabled outcomes root targets unguarded_root untried".split()

    def __init__(
        self, candidates: tuple[Transition, ...], oracle_enabled: bool, untried: frozenset[Transition] | None = None
    ) -> None:
        self.candidates = candidates
        self.oracle_enabled = oracle_enabled
        self.targets = tuple(dict.fromkeys(t.target for t in candidates if t.target is not None))
        guarded = [(t, t.guard) for t in candidates if t.guard is not None]
        self.guards: tuple[WeightedGuard, ...] = tuple((3**i, t, guard) for i, (t, guard) in enumerate(guarded))
        self.outcomes = _Outcomes(self)
        self.untried = {t for t, _ in guarded} if untried is None else set(untried)
        self.root = Node(self, [guard.function if isinstance(guard, Expression) else guard for _, guard in guarded])
        self.mapping_root = Node(self, [guard for _, guard in guarded])
        self.unguarded_root = None if guarded else self.root

    def __reduce__(self) -> tuple[type["Cell"], tuple[tuple[Transition, ...], bool, frozenset[Transition]]]:
        # compiled guards cannot be pickled
        return Cell, (self.candidates, self.oracle_enabled, frozenset(self.untried))

    @property
    def label(self) -> str:
        """The state and the trigger as text, for messages."""
        first = self.candidates[0]
        return f"{first.source.value} --{first.trigger}-->"

    def copy(self) -> "Cell":
        """Return a new cell; evaluating its guards does not change this cell."""
        return Cell(self.candidates, self.oracle_enabled)

    @property
    def fits_int64(self) -> bool:
        """Whether 64-bit integers can hold every key."""
        return bool(3 ** len(self.guards) < 2**63)

    def mark_tried(self, transitions: Iterable[Transition]) -> None:
        """Mark the guards of `transitions` as having returned a value."""
        self.untried.difference_update(transitions)

    def values(self, key: int) -> list[int]:
        """Return the value of each candidate's guard; TRUE without a guard."""
        answers = iter([(key // weight) % 3 for weight, _, _ in self.guards])
        return [TRUE if t.guard is None else next(answers) for t in self.candidates]

    def enabled(self, key: int) -> list[tuple[Transition, int]]:
        """Return the enabled candidates with their values.

        An enabled guarded transition with a target disables unguarded transitions and markers (guard NEEDS_ORACLE, no
        target). Any enabled transition of a state disables those of its parents.
        """
        true_or_open = [(t, v) for t, v in zip(self.candidates, self.values(key), strict=True) if v != FALSE]
        lowest = min((t.placement.level for t, _ in true_or_open), default=0)
        true_or_open = [(t, v) for t, v in true_or_open if t.placement.level == lowest]
        if all(t.guard is None or t.target is None for t, _ in true_or_open):
            return true_or_open
        return [(t, v) for t, v in true_or_open if t.guard is not None and (t.target or v != OPEN_CHOICE)]

    def transition_to(self, target: State, enabled: Sequence[tuple[Transition, int]]) -> Transition:
        """Return the first enabled transition to `target`, or else the first declared transition to `target`."""
        return next(t for t in [*(t for t, _ in enabled), *self.candidates] if t.target is target)

    def select(self, key: int) -> Outcome:
        """Return the outcome of a key.

        A target of None, or a guard that needs the oracle, leaves the choice open between all declared targets.
        Otherwise, a single target gives its first transition, and several targets are the options, in list order.
        Without an oracle, the first option is taken.
        """
        enabled = self.enabled(key)
        if any(asks_oracle(t, value) for t, value in enabled):
            level = enabled[0][0].placement.level
            options = tuple(dict.fromkeys(t.target for t in self.candidates if t.target and t.placement.level == level))
        else:
            options = tuple(dict.fromkeys(t.target for t, _ in enabled if t.target is not None))
            if len(options) == 1:
                return enabled[0][0]
        if self.oracle_enabled or not options:
            return options or None
        return self.transition_to(options[0], enabled)


class Node:
    """A node in the tree of a cell's guards, reached by the answers of the earlier guards.

    Attributes:
        guard: The next guard; None in the last node.
        guard_transition: The transition of `guard`.
        next_nodes: The next node for each answer (FALSE, TRUE, OPEN_CHOICE or RAISED) that has occurred.
        key: The answers of the earlier guards, as a key of `Cell.outcomes`.
        raised: The transitions whose guards raised.
        transition: In the last node, the transition to take, if any.
        options: In the last node, the options, if the choice is ambiguous.
        target: The target of `transition`, if the transition has no effects.
    """

    __slots__ = "_cell _guards _index guard guard_transition key next_nodes options raised target transition".split()

    def __init__(
        self, cell: Cell, guards: Sequence[Guard], index: int = 0, key: int = 0, raised: tuple[Transition, ...] = ()
    ) -> None:
        self._cell, self._guards, self._index = cell, guards, index
        self.key, self.raised = key, raised
        self.next_nodes: dict[int, Node] = {}
        self.guard: Guard | None = None
        self.transition: Transition | None = None
        self.target: State | None = None
        self.options: tuple[State, ...] | None = None
        if index < len(guards):
            self.guard, self.guard_transition = guards[index], cell.guards[index][1]
            return
        cell.mark_tried(t for _, t, _ in cell.guards if t not in raised)
        outcome = cell.outcomes[key]
        if isinstance(outcome, Transition):
            self.transition = outcome
            self.target = None if outcome.has_effects else outcome.target
        else:
            self.options = outcome

    def add_answer(self, answer: int) -> "Node":
        """Add and return the node for an answer."""
        weight, guard_transition, _ = self._cell.guards[self._index]
        raised = (*self.raised, guard_transition) if answer == RAISED else self.raised
        key = self.key + weight * (answer if answer != RAISED else FALSE)
        node = self.next_nodes[answer] = Node(self._cell, self._guards, self._index + 1, key, raised)
        return node


def evaluate_guards(cell: Cell, agent: Any, context: Any, errors: ErrorSink) -> Node:
    """Evaluate each guard of a cell once, in list order, and return the last node.

    Answers other than `NEEDS_ORACLE` are converted to bool. A guard that raises is false, as in SCXML.
    """
    node = cell.root if context.__class__ in _OBJECT_CLASSES or _is_object(context) else cell.mapping_root
    while (guard := node.guard) is not None:
        try:
            answer = guard(agent, context)
            if answer is not True and answer is not False:
                is_marker = isinstance(answer, str) and answer == NEEDS_ORACLE
                answer = OPEN_CHOICE if is_marker else TRUE if answer else FALSE
        except Exception as error:
            errors.record_error(node.guard_transition, error, agent)
            answer = RAISED
        try:
            node = node.next_nodes[answer]
        except KeyError:
            node = node.add_answer(answer)
    return node


def _is_object(context: Any) -> bool:
    """Return whether guards read a context by attribute, and remember the class of such contexts."""
    if isinstance(context, Mapping):
        return False
    _OBJECT_CLASSES.add(context.__class__)
    return True


def build_cells(transitions: Iterable[Transition], oracle_enabled: bool) -> dict[str, dict[State, Cell]]:
    """Return the cells of a chart, by trigger and state."""
    by_trigger: dict[str, dict[State, list[Transition]]] = {}
    for t in transitions:
        by_trigger.setdefault(t.trigger, {}).setdefault(t.source, []).append(t)
    return {
        trigger: {state: Cell(tuple(ts), oracle_enabled) for state, ts in row.items()}
        for trigger, row in by_trigger.items()
    }


class _Outcomes(dict[int, Outcome]):
    """Outcomes by key, computed on demand."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def __missing__(self, key: int) -> Outcome:
        outcome = self[key] = self._cell.select(key)
        return outcome
