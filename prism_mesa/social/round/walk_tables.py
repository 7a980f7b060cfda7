"""The inputs of a walk apart from the population: chart and trigger rules as tables, and memory for events."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Self

import numpy as np

from prism_mesa.arrays import Int32, UInt8, UInt32
from prism_mesa.domain import ACTIONS, ActionName, AgentState
from prism_mesa.kernels.lanes import aligned_zeros
from prism_mesa.kernels.programs import Programs
from prism_mesa.kernels.utility import PREVIEW
from prism_mesa.kernels.walking.arrays import FIRST_SET, GUARDED, NOTHING, UNDECIDED, ChartTables
from prism_mesa.kernels.walking.steps import COMPOSES, PASSIVE, STOPPED
from prism_mesa.kernels.walking.world import Options, WalkOutput
from prism_mesa.social.behavior import (
    ABANDONS,
    ACTION_INDICES,
    COMPOSING,
    EVALUATING,
    IDLE,
    IGNORES,
    IS_BELOW,
    SCROLLING,
    SEES_POST,
    STATES_WITHOUT_POST,
    TRIGGER_RULES,
    ClaimCondition,
    TriggerRule,
    claim_condition,
)
from prism_mesa.social.fields import FIELD_VALUES, REGISTERS
from prism_mesa.social.state.attributes import NO_ATTRIBUTES, Attributes
from prism_mesa.social.state.chunks import mapped_zeros, release_memory
from prism_mesa.statechart import TIMEOUT, Expression, Statechart, Transition
from prism_mesa.statechart.bytecode import Compiler, Field
from prism_mesa.statechart.selection import Cell, Outcome
from prism_mesa.streams import digest64

_FIELDS: Final = {
    name: Field(i, tuple(n for n in values.names if isinstance(n, str)), is_int32=values.whole or bool(values.names))
    for i, name in enumerate(REGISTERS)
    for values in (FIELD_VALUES[name],)
}
_MAX_GUARDS: Final = 10
VOLATILE: Final = frozenset(f"agent.{name}" for name in ("state", "ticks_in_state", "n_unread", "pending_action"))
"""Fields that change between a glance at a post and the decision about the post."""

NO_CONDITIONS: Final[Mapping[ActionName, Expression]] = {}

type OptionSets = tuple[tuple[AgentState, ...], ...]


class WalkTables:
    """A chart and the trigger rules as tables, with the conditions of the actions that accounts choose from.

    Attributes:
        engages: The condition of each action (`accounts`); without conditions, agents choose from all actions.
        triggers: Each trigger's index in the chart.
        chart: The tables of chart and rules.
        programs: The guards as programs.
        claim_condition: Condition for agents to stop at a post below the band (`behavior.claim_condition`); None if no
            program can evaluate it.
        no_glance_reason: Why agents stop at every post, whatever `feed.glances` says; empty if they can glance.
        option_sets: The options of open choices; `options` has the same as numbers.
        is_complete: Whether the walk never needs the chart itself.
    """

    def __init__(
        self,
        chart: Statechart,
        attributes: Attributes = NO_ATTRIBUTES,
        engages: Mapping[ActionName, Expression] = NO_CONDITIONS,
    ) -> None:
        self._has_actions = any(t.action is not None for t in chart.transitions)  # then the chosen transition matters
        self.triggers = {trigger: i for i, trigger in enumerate(chart.triggers)}
        fields = _FIELDS | _declared_fields(attributes)
        names = tuple(state.value for state in chart.members)
        self._compiler = Compiler(fields | {"agent.state": replace(fields["agent.state"], names=names)})
        self._guards: dict[int, tuple[Cell, Transition]] = {}
        self._sets: dict[tuple[AgentState, ...], int] = {}
        self._arms: list[list[int]] = []
        self._outcomes: list[list[int]] = []
        states: Sequence[AgentState] = chart.members
        cell = np.full((len(chart.triggers), len(states)), NOTHING, np.int32)
        for trigger, by_state in chart.cells.items():
            for state, state_cell in by_state.items():
                cell[self.triggers[trigger], state.code] = len(self._arms)
                self._add(state_cell)
        self.claim_condition, claim_program = claim_condition(chart), None
        if isinstance(self.claim_condition, Expression):
            claim_program = self._compiler.add(self.claim_condition)
            self.claim_condition = None if claim_program is None else self.claim_condition
        self.no_glance_reason = _no_glance_reason(chart, self.claim_condition)
        chart_rules = [rule for rule in map(self._adapt_rule, TRIGGER_RULES) if rule is not None]
        rules = [[rule for rule in chart_rules if rule.state is state.resembled] for state in states]
        all_rules = [rule for state_rules in rules for rule in state_rules]
        conditions = [self._condition(rule) for rule in all_rules]
        self.engages = engages
        action_programs = [self._compiler.add(engages[action]) if action in engages else None for action in ACTIONS]
        fixed_outcomes = [row[0] if not arms else GUARDED for arms, row in zip(self._arms, self._outcomes, strict=True)]
        self.chart = ChartTables(
            timeout=_indices([chart.timeouts.get(state, 0) for state in states]),
            timeout_trigger=self.triggers.get(TIMEOUT, NOTHING),
            sees_trigger=self.triggers.get(SEES_POST, NOTHING),
            abandons_trigger=self.triggers.get(ABANDONS, NOTHING),
            rule_start=_starts(rules),
            rule_program=_ints(conditions),
            rule_trigger=_ints([self.triggers.get(rule.trigger, NOTHING) for rule in all_rules]),
            claim_program=NOTHING if claim_program is None else claim_program,
            cell=cell,
            arm_start=_starts(self._arms),
            arm_program=_indices([program for arms in self._arms for program in arms]),
            outcome_start=_starts(self._outcomes),
            outcome=_ints([outcome for outcomes in self._outcomes for outcome in outcomes]),
            open=np.array([*map(min, self._outcomes), NOTHING], np.int32)[cell],
            fixed=np.array([*fixed_outcomes, NOTHING], np.int32)[cell],
            composes=np.array([state.resembled is COMPOSING for state in states], np.uint8),
            engages=_ints([ACTION_INDICES.get(state.resembled) for state in states]),
            action_program=_ints(action_programs if engages else []),
            releases_post=np.array([state.resembled in STATES_WITHOUT_POST for state in states], np.uint8),
            idle=IDLE.code,
        )
        self.programs: Programs = self._compiler.programs()
        self.option_sets: OptionSets = tuple(self._sets)
        self.options = _options(self.option_sets, chart.triggers)
        self.is_complete = UNDECIDED not in self.chart.outcome

    def _adapt_rule(self, rule: TriggerRule) -> TriggerRule | None:
        """Return a rule for the walk; None for `IGNORES` if agents stop at all posts, or if only Python can decide."""
        condition = self.claim_condition
        if rule.trigger != IGNORES or condition is False:
            return rule
        return replace(rule, when=IS_BELOW & ~condition) if isinstance(condition, Expression) else None

    def _condition(self, rule: TriggerRule) -> int:
        """Return the program of a rule's condition, or `NOTHING`."""
        program = NOTHING if rule.when is None else self._compiler.add(rule.when)
        if program is None:
            raise ValueError(f"{rule.trigger} in {rule.state.value}: kernels cannot read all fields of {rule.when}")
        return program

    def open_options(self, trigger: str, state: AgentState) -> tuple[AgentState, ...]:
        """Return the options if a trigger can leave a choice open in a state, else nothing."""
        code = int(self.chart.open[self.triggers[trigger], state.code])
        return self.option_sets[FIRST_SET - code] if code <= FIRST_SET else ()

    def note_values(self, has_value: UInt8) -> None:
        """Note the guards that returned a value in a walk."""
        for program in [program for program in self._guards if has_value[program]]:
            cell, transition = self._guards.pop(program)
            cell.mark_tried([transition])

    def _add(self, cell: Cell) -> None:
        """Add a cell. If a guard has no program, or there are too many guards, its outcome is undecided."""
        programs = [self._compiler.add(guard) if isinstance(guard, Expression) else None for _, _, guard in cell.guards]
        ids = [program for program in programs if program is not None]
        if len(ids) < len(programs) or len(programs) > _MAX_GUARDS:
            self._arms.append([])
            self._outcomes.append([UNDECIDED])
            return
        weights = [weight for weight, _, _ in cell.guards]
        keys = [sum(w for i, w in enumerate(weights) if bits >> i & 1) for bits in range(2 ** len(weights))]
        self._arms.append(ids)
        self._guards.update((program, (cell, t)) for program, (_, t, _) in zip(ids, cell.guards, strict=True))
        self._outcomes.append([self._code(cell.outcomes[key]) for key in keys])

    def _code(self, outcome: Outcome) -> int:
        if outcome is None:
            return NOTHING
        if isinstance(outcome, Transition):
            return UNDECIDED if outcome.action is not None or outcome.target is None else outcome.target.code
        return UNDECIDED if self._has_actions else FIRST_SET - self._sets.setdefault(outcome, len(self._sets))


def _no_glance_reason(chart: Statechart, condition: ClaimCondition) -> str:
    """Return why agents cannot glance. A glance replaces `sees_post` and `ignores` of the default chart."""
    for trigger, state, target in ((SEES_POST, SCROLLING, EVALUATING), (IGNORES, EVALUATING, SCROLLING)):
        cell = chart.cells.get(trigger, {}).get(state)
        plain = [t for t in cell.candidates if t.guard is None and t.action is None] if cell else []
        if cell is None or [t.target for t in plain] != [target] or len(cell.candidates) > 1:
            return f"{state.value} --{trigger}--> is not as in the default chart"
    if more := [state.value for state in chart.cells[SEES_POST] if state is not SCROLLING]:
        return f"{SEES_POST} also leaves {more[0]}"
    if condition is True or condition is None:
        reason = "decides may claim any post"
        return reason if condition else "only an evaluation agent by agent can tell which posts decides claims"
    fields = condition.fields & VOLATILE if isinstance(condition, Expression) else ()
    if fields or "/" in str(condition):
        return f"a guard of decides {f'reads {min(fields)}' if fields else 'divides'}"
    return ""


def _declared_fields(attributes: Attributes) -> dict[str, Field]:
    """Return the declared fields; their registers come last."""
    return {
        name: Field(i, tuple(text for text in values.names if isinstance(text, str)), is_int32=bool(values.names))
        for i, (name, values) in enumerate(attributes.fields.items(), start=len(REGISTERS))
    }


def _options(sets: OptionSets, triggers: Sequence[str]) -> Options:
    all_options = [option for options in sets for option in options]
    rows = [[option.resembled for option in options] for options in sets]
    actions = [ACTION_INDICES.get(s, COMPOSES if s is COMPOSING else PASSIVE) for row in rows for s in row]
    unlisted = [[1.0 - (i in map(ACTION_INDICES.get, row)) for i in range(len(ACTIONS))] for row in rows]
    return Options(
        start=_starts(sets),
        target=_indices([option.code for option in all_options]),
        action=_ints(actions),
        unlisted=np.array(unlisted, np.float64).reshape(len(sets), len(ACTIONS)),
        trigger=np.array([digest64(trigger) for trigger in triggers], np.uint64),
    )


def _ints(values: list[int | None] | list[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array([NOTHING if value is None else value for value in values], np.int32)


def _indices(values: Sequence[int]) -> UInt32:
    """Return numbers as uint32, so that kernels need no check for negative indices."""
    return np.array(values, np.uint32)


def _starts(groups: Sequence[Sequence[object]]) -> UInt32:
    return np.cumsum([0, *map(len, groups)]).astype(np.uint32)


type Columns = tuple[Int32, ...]


class WalkEvents(NamedTuple):
    """The events of one part of a walk, as columns (see `WalkOutput`)."""

    stopped: Int32
    impressions: Columns
    engagements: Columns
    moves: Columns
    given_up: Columns


class WalkBuffers:
    """Memory for the events of one part of the agents in a round.

    Attributes:
        out: The arrays that kernels write.
    """

    def __init__(self, ticks: int, n_states: int, n_sets: int, programs: Programs) -> None:
        self.out = WalkOutput(
            size=aligned_zeros(5, np.int64),
            counts=aligned_zeros((ticks, n_states), np.int64),
            answered=aligned_zeros(n_sets, np.int64),
            stopped=np.empty((4, 0), np.int32),
            impressions=np.empty((3, 0), np.int32),
            engagements=np.empty((4, 0), np.int32),
            moves=np.empty((5, 0), np.int32),
            given_up=np.empty((5, 0), np.int32),
            has_value=aligned_zeros(len(programs.reads_post), np.uint8),
            registers=aligned_zeros(programs.registers.shape, np.float64),
        )
        self.out.registers[:] = programs.registers

    def begin_walk(self) -> None:
        """Reset the counts of a walk."""
        self.out.size[STOPPED] = 0
        self._start_sizes = self.out.size.copy()
        for counts in (self.out.counts, self.out.answered, self.out.has_value):
            counts[:] = 0

    def make_room(self, *n_new: int) -> None:
        """Make room for more stopped agents, impressions, engagements, moves and give-ups."""
        for name, n_used, n in zip(_EVENT_KINDS, self.out.size.tolist(), n_new, strict=True):
            columns: Int32 = getattr(self.out, name)
            if n_used + n > columns.shape[1]:
                n_larger = max(n_used + n, 2 * columns.shape[1])
                larger: Any = mapped_zeros(len(columns) * n_larger, np.int32).reshape(-1, n_larger)
                larger[:, :n_used] = columns[:, :n_used]
                self.out = self.out._replace(**{name: larger})

    def events(self) -> WalkEvents:
        """Return the events since the walk began, as views of this memory."""
        parts = zip(_EVENT_KINDS, self._start_sizes.tolist(), self.out.size.tolist(), strict=True)
        stopped, *others = (getattr(self.out, name)[:, first:last] for name, first, last in parts)
        return WalkEvents(stopped, *map(tuple, others))


_MIN_FREED: Final = 1 << 19
"""Number of agents from which the memory of events is released between rounds; new memory makes a walk slower."""

_EVENT_KINDS: Final = WalkEvents._fields
"""Kinds of events, in the order of `WalkOutput.size`."""


class WalkBufferPool:
    """The buffers of a platform, one for each part of its agents.

    Attributes:
        previews: A preview of each visible post.
        preview_key: Their round, the id of the first post, and the number of all posts.
    """

    def __init__(self) -> None:
        self.previews, self.preview_key = np.empty(0, PREVIEW), (-1, 0, 0)
        self._buffers: list[tuple[Programs, list[WalkBuffers]]] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)()

    def end_round(self, n_agents: int) -> None:
        """Forget all events."""
        for _, parts in self._buffers:
            for buffers in parts:
                buffers.out.size[:] = 0
                if n_agents >= _MIN_FREED:
                    for name in _EVENT_KINDS:
                        release_memory(getattr(buffers.out, name))

    def take(self, parts: int, ticks: int, n_states: int, n_sets: int, programs: Programs) -> list[WalkBuffers]:
        """Return buffers for a number of parts, ready for a walk."""
        made = next((made for used_programs, made in self._buffers if used_programs is programs), None)
        if made is None:
            self._buffers.append((programs, made := []))
        while len(made) < parts:
            made.append(WalkBuffers(ticks, n_states, n_sets, programs))
        for buffers in made[:parts]:
            buffers.begin_walk()
        return made[:parts]
