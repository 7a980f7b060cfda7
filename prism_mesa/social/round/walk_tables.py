"""What a walk needs beside the population: the chart and the trigger rules as tables, and memory for events."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import ACTIONS
from prism_mesa.kernels.lanes import aligned_zeros
from prism_mesa.kernels.programs import Programs
from prism_mesa.kernels.utility import PREVIEW
from prism_mesa.kernels.walking.arrays import FIRST_SET, GUARDED, NOTHING, UNDECIDED, ChartTables
from prism_mesa.kernels.walking.steps import COMPOSES, PASSIVE, STOPPED
from prism_mesa.kernels.walking.world import Options, WalkOutput
from prism_mesa.social.behavior import (
    COMPOSING,
    ENGAGES_BY,
    EVALUATING,
    IDLE,
    IGNORES,
    IS_BELOW,
    RELEASES_POST,
    SCROLLING,
    SEES_POST,
    TRIGGER_RULES,
    Claimed,
    TriggerRule,
    claims_below,
)
from prism_mesa.social.fields import FIELD_VALUES, REGISTERS
from prism_mesa.social.state.attributes import NO_ATTRIBUTES, Attributes
from prism_mesa.statechart import STATES, TIMEOUT, AgentState, Expression, Statechart, Transition
from prism_mesa.statechart.bytecode import Field, Programmer
from prism_mesa.statechart.selection import Cell, Outcome
from prism_mesa.streams import digest64

_FIELDS: Final = {
    name: Field(place, tuple(n for n in values.names if isinstance(n, str)), whole=values.whole or bool(values.names))
    for place, name in enumerate(REGISTERS)
    for values in (FIELD_VALUES[name],)
}
_MOST_GUARDS: Final = 10
_MOMENTARY: Final = frozenset(f"agent.{name}" for name in ("state", "ticks_in_state", "n_unread", "pending_action"))
"""Fields that change between a glance at a post and the decision about it."""

type OptionSets = tuple[tuple[AgentState, ...], ...]


class WalkTables:
    """A chart and the trigger rules as tables.

    Attributes:
        triggers: Each trigger's index in the chart.
        chart: The tables of chart and rules.
        programs: The guards as programs.
        claimed: The posts below the band that `decides` claims (`behavior.claims_below`); None if no program can tell.
        why_each: Why agents meet posts one at a time, whatever `feed.glances` says; empty if they may glance.
        option_sets: The options of open choices; `options` are the same as numbers.
        is_whole: Whether the walk never stops to ask the chart.
    """

    def __init__(self, chart: Statechart, declared: Attributes = NO_ATTRIBUTES) -> None:
        self._acts = any(t.action is not None for t in chart.transitions)  # which transition is taken then matters
        self.triggers = {trigger: i for i, trigger in enumerate(chart.triggers)}
        self._programmer = Programmer(_FIELDS | _declared(declared))
        self._guards: dict[int, tuple[Cell, Transition]] = {}
        self._sets: dict[tuple[AgentState, ...], int] = {}
        self._arms: list[list[int]] = []
        self._outcomes: list[list[int]] = []
        cell = np.full((len(chart.triggers), len(STATES)), NOTHING, np.int32)
        for trigger, by_state in chart.cells.items():
            for state, state_cell in by_state.items():
                cell[self.triggers[trigger], state.code] = len(self._arms)
                self._add(state_cell)
        self.claimed, claims = claims_below(chart), None
        if isinstance(self.claimed, Expression):
            claims = self._programmer.add(self.claimed)
            self.claimed = None if claims is None else self.claimed
        self.why_each = _why_each(chart, self.claimed)
        fired = [rule for rule in map(self._under_chart, TRIGGER_RULES) if rule is not None]
        rules = [[rule for rule in fired if rule.state is state] for state in STATES]
        flat = [rule for of_state in rules for rule in of_state]
        conditions = [self._condition(rule) for rule in flat]
        by_cell = [
            outcomes[0] if not arms else GUARDED for arms, outcomes in zip(self._arms, self._outcomes, strict=True)
        ]
        self.chart = ChartTables(
            timeout=_places([chart.timeouts.get(state, 0) for state in STATES]),
            timeout_trigger=self.triggers.get(TIMEOUT, NOTHING),
            sees_trigger=self.triggers.get(SEES_POST, NOTHING),
            rule_start=_starts(rules),
            rule_program=_ints(conditions),
            rule_trigger=_ints([self.triggers.get(rule.trigger, NOTHING) for rule in flat]),
            claims=NOTHING if claims is None else claims,
            cell=cell,
            arm_start=_starts(self._arms),
            arm_program=_places([program for arms in self._arms for program in arms]),
            outcome_start=_starts(self._outcomes),
            outcome=_ints([outcome for outcomes in self._outcomes for outcome in outcomes]),
            fixed=np.array([*by_cell, NOTHING], np.int32)[cell],
            composes=np.array([state is COMPOSING for state in STATES], np.uint8),
            engages=_ints([ENGAGES_BY.get(state) for state in STATES]),
            releases_post=np.array([state in RELEASES_POST for state in STATES], np.uint8),
            idle=IDLE.code,
        )
        self.programs: Programs = self._programmer.programs()
        self.option_sets: OptionSets = tuple(self._sets)
        self.options = _options(self.option_sets, chart.triggers)
        self.is_whole = UNDECIDED not in self.chart.outcome

    def _under_chart(self, rule: TriggerRule) -> TriggerRule | None:
        """Return a rule as the walk applies it; None for `IGNORES` if all posts are claimed or only Python can tell."""
        if rule.trigger != IGNORES or self.claimed is False:
            return rule
        return replace(rule, when=IS_BELOW & ~self.claimed) if isinstance(self.claimed, Expression) else None

    def _condition(self, rule: TriggerRule) -> int:
        """Return the program of a rule's condition, `NOTHING` without one."""
        program = NOTHING if rule.when is None else self._programmer.add(rule.when)
        if program is None:
            raise ValueError(f"{rule.trigger} in {rule.state.value}: kernels cannot read all fields of {rule.when}")
        return program

    def note_values(self, gave_value: npt.NDArray[np.uint8]) -> None:
        """Note the guards that gave a value in the walk."""
        for program in [program for program in self._guards if gave_value[program]]:
            cell, transition = self._guards.pop(program)
            cell.mark_tried([transition])

    def _add(self, cell: Cell) -> None:
        """Add a cell. If a guard has no program, or there are too many guards, its outcome is undecided."""
        programs = [self._programmer.add(guard) if isinstance(guard, Expression) else None for _, _, guard in cell.arms]
        known = [program for program in programs if program is not None]
        if len(known) < len(programs) or len(programs) > _MOST_GUARDS:
            self._arms.append([])
            self._outcomes.append([UNDECIDED])
            return
        weights = [weight for weight, _, _ in cell.arms]
        keys = [sum(w for i, w in enumerate(weights) if bits >> i & 1) for bits in range(2 ** len(weights))]
        self._arms.append(known)
        self._guards.update((program, (cell, t)) for program, (_, t, _) in zip(known, cell.arms, strict=True))
        self._outcomes.append([self._code(cell.outcomes[key]) for key in keys])

    def _code(self, outcome: Outcome) -> int:
        if outcome is None:
            return NOTHING
        if isinstance(outcome, Transition):
            return UNDECIDED if outcome.action is not None or outcome.target is None else outcome.target.code
        return UNDECIDED if self._acts else FIRST_SET - self._sets.setdefault(outcome, len(self._sets))


def _why_each(chart: Statechart, claimed: Claimed) -> str:
    """Return why agents cannot glance: a glance stands for `sees_post` and `ignores` of the default chart."""
    for trigger, state, target in ((SEES_POST, SCROLLING, EVALUATING), (IGNORES, EVALUATING, SCROLLING)):
        cell = chart.cells.get(trigger, {}).get(state)
        leads = [t for t in cell.candidates if t.guard is None and t.action is None] if cell else []
        if cell is None or [t.target for t in leads] != [target] or len(cell.candidates) > 1:
            return f"{state.value} --{trigger}--> is not as in the default chart"
    if claimed is True or claimed is None:
        reason = "decides may claim any post"
        return reason if claimed else "only an evaluation agent by agent can tell which posts decides claims"
    fields = claimed.fields & _MOMENTARY if isinstance(claimed, Expression) else ()
    if fields or "/" in str(claimed):
        return f"a guard of decides {f'reads {min(fields)}' if fields else 'divides'}"
    return ""


def _declared(attributes: Attributes) -> dict[str, Field]:
    """Return the declared fields; their registers come last, those of agents before those of posts."""
    return {
        name: Field(place, tuple(text for text in values.names if isinstance(text, str)), whole=bool(values.names))
        for place, (name, values) in enumerate(attributes.fields.items(), start=len(REGISTERS))
    }


def _options(sets: OptionSets, triggers: Sequence[str]) -> Options:
    flat = [option for options in sets for option in options]
    does = [ENGAGES_BY.get(option, COMPOSES if option is COMPOSING else PASSIVE) for option in flat]
    left = [[1.0 - (action in map(ENGAGES_BY.get, options)) for action in range(len(ACTIONS))] for options in sets]
    return Options(
        start=_starts(sets),
        target=_places([option.code for option in flat]),
        does=_ints(does),
        left=np.array(left, np.float64).reshape(len(sets), len(ACTIONS)),
        trigger=np.array([digest64(trigger) for trigger in triggers], np.uint64),
    )


def _ints(values: list[int | None] | list[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array([NOTHING if value is None else value for value in values], np.int32)


def _places(values: Sequence[int]) -> npt.NDArray[np.uint32]:
    """Return numbers as uint32: kernels then index without a check for negative places."""
    return np.array(values, np.uint32)


def _starts(groups: Sequence[Sequence[object]]) -> npt.NDArray[np.uint32]:
    return np.cumsum([0, *map(len, groups)]).astype(np.uint32)


type Int32 = npt.NDArray[np.int32]
type Columns = tuple[Int32, ...]


class WalkEvents(NamedTuple):
    """The events of one part of a walk, as columns (see `WalkOutput`)."""

    stopped: Int32
    impressions: Columns
    engagements: Columns
    moves: Columns


class WalkBuffers:
    """Memory for the events of one part of the agents; events stay there until the next round.

    Attributes:
        out: The arrays that kernels write to.
    """

    def __init__(self, ticks: int, n_sets: int, programs: Programs) -> None:
        self.out = WalkOutput(
            size=aligned_zeros(4, np.int64),
            counts=aligned_zeros((ticks, len(STATES)), np.int64),
            answered=aligned_zeros(n_sets, np.int64),
            stopped=np.empty((4, 0), np.int32),
            impressions=np.empty((3, 0), np.int32),
            engagements=np.empty((4, 0), np.int32),
            moves=np.empty((5, 0), np.int32),
            gave_value=aligned_zeros(len(programs.reads_post), np.uint8),
            register=aligned_zeros(programs.registers.shape, np.float64),
        )
        self.out.register[:] = programs.registers

    def begin_walk(self) -> None:
        """Start the counts of a walk at 0."""
        self.out.size[STOPPED] = 0
        self._before = self.out.size.copy()
        for counts in (self.out.counts, self.out.answered, self.out.gave_value):
            counts[:] = 0

    def make_room(self, *more: int) -> None:
        """Make room for so many more stopped agents, impressions, engagements and moves."""
        for name, used, n in zip(_EVENTS, self.out.size.tolist(), more, strict=True):
            columns: Int32 = getattr(self.out, name)
            if used + n > columns.shape[1]:
                grown = np.empty((len(columns), max(used + n, 2 * columns.shape[1])), np.int32)
                grown[:, :used] = columns[:, :used]
                self.out = self.out._replace(**{name: grown})

    def events(self) -> WalkEvents:
        """Return the events since the walk began: views of this memory."""
        parts = zip(_EVENTS, self._before.tolist(), self.out.size.tolist(), strict=True)
        stopped, *others = (getattr(self.out, name)[:, first:last] for name, first, last in parts)
        return WalkEvents(stopped, *map(tuple, others))


_EVENTS: Final = WalkEvents._fields
"""In the order of `WalkOutput.size`."""


class WalkBufferPool:
    """The buffers of a platform: one for each part of its agents, used again from round to round.

    Attributes:
        previews: A preview of each visible post.
        previewed: Their round, the first post and the number of posts.
    """

    def __init__(self) -> None:
        self.previews, self.previewed = np.empty(0, PREVIEW), (-1, 0, 0)
        self._buffers: list[WalkBuffers] = []
        self._made_for: tuple[int, Programs] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)()

    def begin_round(self) -> None:
        """Forget all events."""
        for buffers in self._buffers:
            buffers.out.size[:] = 0

    def take(self, parts: int, ticks: int, n_sets: int, programs: Programs) -> list[WalkBuffers]:
        """Return buffers for so many parts, ready for a walk."""
        if self._made_for is None or self._made_for[0] != ticks or self._made_for[1] is not programs:
            self._buffers, self._made_for = [], (ticks, programs)
        while len(self._buffers) < parts:
            self._buffers.append(WalkBuffers(ticks, n_sets, programs))
        for buffers in self._buffers[:parts]:
            buffers.begin_walk()
        return self._buffers[:parts]
