"""The rule that picks among the transitions of one (trigger, state) by its guards' values, for agents and columns."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from prism_mesa.statechart.guards import NEEDS_ORACLE, Expression
from prism_mesa.statechart.states import AgentState
from prism_mesa.statechart.transitions import Guard, Transition

FALSE: Final = 0
TRUE: Final = 1
NEEDS: Final = 2

type Arm = tuple[int, Transition, Guard]

type Outcome = Transition | tuple[AgentState, ...] | None
"""The transition to take; the options of an ambiguous choice; or nothing."""


def guard_value(value: Any) -> int:
    """Return what a guard gave as FALSE, TRUE or NEEDS."""
    if isinstance(value, str) and value == NEEDS_ORACLE:
        return NEEDS
    return TRUE if value else FALSE


class Cell:
    """All transitions of one (trigger, state), in list order.

    Attributes:
        declared: The concrete targets, each once: what an oracle may choose from.
        arms: Triples (weight, transition, guard): the guards' values (0, 1, 2), each times its weight
            3**i, add up to the key of `outcomes`.
        kernels: `arms` with the guards as bare functions, which for an expression cannot read mappings.
        always: The outcome, if no candidate has a guard.
        only: The guard's kernel and the outcomes for true and false, if one candidate has a guard, from when that
            guard has given its first value on.
        outcomes: What follows for each key; worked out when first asked for.
        untried: The transitions whose guards have given no value so far: never asked, or raised every time.
    """

    __slots__ = (
        "_single",
        "always",
        "arms",
        "candidates",
        "declared",
        "kernels",
        "only",
        "oracle_enabled",
        "outcomes",
        "untried",
    )

    def __init__(
        self,
        candidates: tuple[Transition, ...],
        oracle_enabled: bool,
        untried: frozenset[Transition] | None = None,
    ) -> None:
        self.candidates = candidates
        self.oracle_enabled = oracle_enabled
        self.declared = tuple(dict.fromkeys(t.target for t in candidates if t.target is not None))
        guarded = [(t, t.guard) for t in candidates if t.guard is not None]
        self.arms: tuple[Arm, ...] = tuple((3**i, t, guard) for i, (t, guard) in enumerate(guarded))
        self.kernels: tuple[Arm, ...] = tuple(
            (weight, t, guard.function if isinstance(guard, Expression) else guard) for weight, t, guard in self.arms
        )
        self.outcomes = _Outcomes(self)
        self.always = None if guarded else self.outcomes[0]
        self._single = (self.kernels[0][2], self.outcomes[TRUE], self.outcomes[FALSE]) if len(guarded) == 1 else None
        self.untried = {t for t, _ in guarded} if untried is None else set(untried)
        self.only = None if self.untried else self._single

    def __reduce__(self) -> tuple[type["Cell"], tuple[tuple[Transition, ...], bool, frozenset[Transition]]]:
        # compiled guards cannot be pickled
        return Cell, (self.candidates, self.oracle_enabled, frozenset(self.untried))

    @property
    def keys_fit(self) -> bool:
        """Whether every key is a whole number of 64 bits."""
        return bool(3 ** len(self.arms) < 2**63)

    def gave_values(self, transitions: Iterable[Transition]) -> None:
        """Note that the guards of `transitions` have given a value."""
        self.untried.difference_update(transitions)
        if not self.untried:
            self.only = self._single

    def values(self, key: int) -> list[int]:
        """Return the candidates' values; an unguarded one has TRUE."""
        digits = iter([(key // weight) % 3 for weight, _, _ in self.arms])
        return [TRUE if t.guard is None else next(digits) for t in self.candidates]

    def left(self, values: Sequence[int]) -> list[tuple[Transition, int]]:
        """Return the candidates that the guards leave: an unguarded one only if no guarded one is left."""
        alive = [(t, v) for t, v in zip(self.candidates, values, strict=True) if v != FALSE]
        return [(t, v) for t, v in alive if t.guard is not None] or alive

    def transition_to(self, target: AgentState, left: Sequence[tuple[Transition, int]]) -> Transition:
        """Return the transition that enters `target`: the first that is left, else the first declared."""
        return next(t for t in [*(t for t, _ in left), *self.candidates] if t.target is target)

    def select(self, left: Sequence[tuple[Transition, int]]) -> Outcome:
        """Return the outcome for the candidates that are left, with their values.

        Open (a target of None, or a guard that needs the oracle): ambiguous between all declared targets.
        One distinct target: its first transition. Several: ambiguous between them, in list order. Without
        an oracle an ambiguous choice takes its first option.
        """
        if any(t.target is None or value == NEEDS for t, value in left):
            options = self.declared
        else:
            options = tuple(dict.fromkeys(t.target for t, _ in left if t.target is not None))
            if len(options) == 1:
                return left[0][0]
        if self.oracle_enabled or not options:
            return options or None
        return self.transition_to(options[0], left)


def build_cells(transitions: Iterable[Transition], oracle_enabled: bool) -> dict[str, dict[AgentState, Cell]]:
    """Return the cells of a chart, by trigger and state."""
    grouped: dict[str, dict[AgentState, list[Transition]]] = {}
    for t in transitions:
        grouped.setdefault(t.trigger, {}).setdefault(t.source, []).append(t)
    return {
        trigger: {state: Cell(tuple(ts), oracle_enabled) for state, ts in row.items()}
        for trigger, row in grouped.items()
    }


class _Outcomes(dict[int, Outcome]):
    """Guard key -> outcome, filled on demand."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def __missing__(self, key: int) -> Outcome:
        outcome = self[key] = self._cell.select(self._cell.left(self._cell.values(key)))
        return outcome
