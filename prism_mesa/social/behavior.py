"""How agents behave: the default chart, and the triggers that a round fires in each state.

`social.round.effects` carries out the transitions.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final

from prism_mesa.domain import ACTIONS
from prism_mesa.errors import ChartError, ConfigError
from prism_mesa.social.user_objects import load_object
from prism_mesa.statechart import ANY, TIMEOUT, AgentState, Expression, F, Statechart, Transition
from prism_mesa.statechart.definition import StatechartParams
from prism_mesa.statechart.transitions import Guard

IDLE, SCROLLING, RESTING = AgentState.IDLE, AgentState.SCROLLING, AgentState.RESTING
EVALUATING, COMPOSING = AgentState.EVALUATING, AgentState.COMPOSING
ENGAGING: Final = {
    "like": AgentState.ENGAGING_LIKE,
    "reply": AgentState.ENGAGING_REPLY,
    "reshare": AgentState.ENGAGING_RESHARE,
}

ENGAGES_BY: Final = {state: ACTIONS.index(action) for action, state in ENGAGING.items()}
"""The index in `domain.ACTIONS` of each state that is an engagement."""
RELEASES_POST: Final = frozenset({IDLE, SCROLLING, RESTING})
"""States that drop the current post and the pending action when they are entered."""

FEED_READY: Final = "feed_ready"
SEES_POST: Final = "sees_post"
FEED_DONE: Final = "feed_done"
IGNORES: Final = "ignores"
DECIDES: Final = "decides"
ROUND_ENDS: Final = "round_ends"

IS_BELOW: Final = F.post.utility < F.agent.low_threshold
"""The post lies below the agent's band."""
IS_INTERESTED: Final = F.post.utility > F.agent.high_threshold
"""The post lies above the band: the default chart goes to COMPOSING."""

IS_VIRAL: Final = F.post.velocity > 100
"""The velocity guard of the contract: more than 100 engagements in the last rounds."""

SHOULD_ENGAGE: Final = IS_INTERESTED | (IS_VIRAL & (F.post.utility >= F.agent.low_threshold))
"""Interest, or a viral post inside the band: `viral_chart` engages without the oracle."""
_BAND: Final = (F.agent.low_threshold <= F.agent.engagement_threshold) & (
    F.agent.engagement_threshold <= F.agent.high_threshold
)
"""A condition that holds for every agent's band, for the checks."""

_THRESHOLDS: Final = frozenset({"agent.low_threshold", "agent.engagement_threshold", "agent.high_threshold"})
_VALUE_BELOW: Final[dict[type[ast.cmpop], bool]] = {ast.Lt: True, ast.LtE: True, ast.Gt: False, ast.GtE: False}
"""The value of comparing utility with a threshold below the band; above it, the reverse."""

type Claimed = Expression | bool | None
"""The result of `claims_below`."""


@dataclass(frozen=True)
class TriggerRule:
    """Fires `trigger` in `state` when the condition holds (None: always); the first such rule counts.

    A condition on the post does not hold without a current post.
    """

    state: AgentState
    trigger: str
    when: Expression | None = None

    def holds(self, agent: object, post: object) -> bool:
        """Return whether the condition holds for an agent and its current post, or None."""
        if self.when is None:
            return True
        return not (post is None and self.when.reads_post) and bool(self.when(agent, post))


TRIGGER_RULES: Final = (
    TriggerRule(SCROLLING, SEES_POST, F.agent.n_unread > 0),
    TriggerRule(SCROLLING, FEED_DONE),
    TriggerRule(EVALUATING, IGNORES, IS_BELOW),
    TriggerRule(EVALUATING, DECIDES),
    TriggerRule(COMPOSING, "compose_done"),
    *(TriggerRule(state, "action_done") for state in ENGAGING.values()),
)
"""`IGNORES` does not fire where a chart `claims` the post."""

FIRED: Final = frozenset({FEED_READY, ROUND_ENDS, TIMEOUT} | {rule.trigger for rule in TRIGGER_RULES})
"""All triggers that a round fires."""


def build_chart(*, asks_action: bool = False, engages: Guard = IS_INTERESTED, name: str = "social") -> Statechart:
    """Return the chart of the default behaviour (`docs/pictures/social-chart.png`).

    Args:
        asks_action: Ask the oracle at `compose_done` for the kind of engagement instead of drawing it.
        engages: The guard that is true if an agent engages without asking. It ignores other posts outside its band, and
            asks the oracle about other posts inside it.
        name: The chart's name in messages.
    """
    transitions = [
        Transition(FEED_READY, IDLE, SCROLLING),
        Transition(SEES_POST, SCROLLING, EVALUATING),
        Transition(FEED_DONE, SCROLLING, IDLE),
        Transition(IGNORES, EVALUATING, SCROLLING),
        Transition(DECIDES, EVALUATING, COMPOSING, guard=engages),
        *(Transition(DECIDES, EVALUATING, SCROLLING, guard=guard) for guard in _passing_by(engages)),
        Transition(DECIDES, EVALUATING, None),
    ]
    for action, state in ENGAGING.items():
        drawn = None if asks_action else F.agent.pending_action == action
        transitions.append(Transition("compose_done", COMPOSING, state, guard=drawn))
    for state in ENGAGING.values():
        transitions += [Transition("action_done", state, RESTING), Transition(TIMEOUT, state, RESTING)]
    transitions += [
        Transition(TIMEOUT, SCROLLING, RESTING),
        Transition(TIMEOUT, (EVALUATING, COMPOSING, RESTING), SCROLLING),
        Transition(ROUND_ENDS, ANY, IDLE),
    ]
    return Statechart(AgentState, transitions, IDLE, timeouts={RESTING: 2}, invariant=_BAND, name=name)


def _passing_by(engages: Guard) -> list[Guard]:
    """Return the guard that is true outside the band where `engages` is false; no guard if it is always true there."""
    if not isinstance(engages, Expression):

        def passes_by(agent: Any, post: Any) -> bool:
            try:
                is_engaging = engages(agent, post)
            except Exception:  # the engaging guard reports the error
                is_engaging = False
            return not is_engaging and bool((IS_BELOW | IS_INTERESTED)(agent, post))

        return [passes_by]
    certain = [(side, is_certain(engages, below=side is IS_BELOW)) for side in (IS_BELOW, IS_INTERESTED)]
    outside = [side if value is False else side & ~engages for side, value in certain if value is not True]
    return [reduce(or_, outside)] if outside else []


def is_certain(guard: Expression, *, below: bool) -> bool | None:
    """Return a guard's value for all posts below (or above) the band; None if utility alone does not settle it.

    >>> popular = IS_INTERESTED & (F.post.likes > 3)
    >>> is_certain(popular, below=True), is_certain(popular, below=False)
    (False, None)
    """
    return _value(guard.tree, below)


def _value(node: ast.expr, below: bool) -> bool | None:
    match node:
        case ast.BoolOp(op=operator, values=values):
            decisive, parts = isinstance(operator, ast.Or), [_value(value, below) for value in values]
            return decisive if decisive in parts else None if None in parts else not decisive
        case ast.UnaryOp(operand=operand):  # the only one is `not`
            value = _value(operand, below)
            return None if value is None else not value
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _VALUE_BELOW:
            lies_below, sides = _VALUE_BELOW[type(operator)] == below, (ast.unparse(left), ast.unparse(right))
            if sides[0] == "post.utility" and sides[1] in _THRESHOLDS:
                return lies_below
            if sides[1] == "post.utility" and sides[0] in _THRESHOLDS:
                return not lies_below
    return None


social_chart: Final = build_chart()
"""The default chart."""

_DEFAULT_CHARTS: Final = {False: social_chart, True: build_chart(asks_action=True)}
viral_chart: Final = build_chart(engages=SHOULD_ENGAGE, name="viral")
"""Like the default, but agents engage with a viral post inside the band without asking (`statechart.chart`)."""


def chosen_chart(params: StatechartParams, *, asks_action: bool, chart: Statechart | None = None) -> Statechart:
    """Return a copy of `chart`, or else of the configured one, with the configured settings."""
    if chart is not None and not isinstance(chart, Statechart):
        raise ChartError(f"chart: {chart!r} is not a Statechart (statechart.chart=module:object names one in a module)")
    if chart is None:
        chart = load_chart(params.chart) if params.chart else _DEFAULT_CHARTS[asks_action]
    copied = chart.replaced(oracle_enabled=chart.oracle_enabled and params.oracle_enabled, strict=params.strict)
    copied.invariant = _BAND if copied.invariant is None else copied.invariant
    return copied


def load_chart(where: str) -> Statechart:
    """Return the chart that ``module:object`` names.

    Raises:
        ConfigError: If there is no such module or object, or it is not a Statechart.
    """
    key = "statechart.chart"
    chart, module = load_object(key, where, "prism_mesa.social.behavior:viral_chart")
    if not isinstance(chart, Statechart):
        charts = ", ".join(sorted(k for k, v in module.items() if isinstance(v, Statechart))) or "none"
        module_name, _, name = where.partition(":")
        raise ConfigError(f"{key}: {where}: {name!r} is not a Statechart (charts in {module_name}: {charts})")
    return chart


def next_trigger(chart: Statechart, claimed: Claimed, state: AgentState, agent: object, post: object) -> str | None:
    """Return the trigger for an agent that has not timed out, or None; `claimed` comes from `claims_below`."""
    for rule in TRIGGER_RULES:
        is_for_decides = rule.trigger == IGNORES and claimed is not False
        if rule.state is state and rule.holds(agent, post) and not (is_for_decides and claims(chart, agent, post)):
            return rule.trigger
    return None


def claims(chart: Statechart, agent: object, post: object) -> bool:
    """Return whether `decides` rather than `ignores` fires for a post below the agent's band.

    It does if a true guard leads to a state other than SCROLLING. A choice that only *else* leaves open claims no post.
    """
    if EVALUATING not in chart.cells.get(IGNORES, {}):
        return True
    enabled = chart.enabled(agent, DECIDES, post)
    guarded = [t for t in enabled if _settles(t)]
    return any(t.target is not SCROLLING for t in guarded) if guarded else _leads_away(enabled)


def goes_by_band(chart: Statechart) -> bool:
    """Return whether a chart engages above the band, ignores below it, and asks inside it, as the default does."""
    evaluating, default = ([str(t) for t in c.transitions if t.source is EVALUATING] for c in (chart, social_chart))
    return evaluating == default


def claims_below(chart: Statechart) -> Claimed:
    """Return `claims` for posts below the band, as an expression or a constant; None if it depends on callables."""
    cell = chart.cells.get(DECIDES, {}).get(EVALUATING)
    if cell is None or EVALUATING not in chart.cells.get(IGNORES, {}):
        return cell is not None
    leaving: list[Any] = [t.guard for t in cell.candidates if _settles(t) and t.target is not SCROLLING]
    returning: list[Any] = [t.guard for t in cell.candidates if _settles(t) and t.target is SCROLLING]
    else_claims = _leads_away([t for t in cell.candidates if t.guard is None])
    relevant = [t.guard for t in cell.candidates if t.guard is not None] if else_claims else leaving
    if not all(isinstance(guard, Expression) for guard in relevant):
        return None
    if else_claims and not returning:
        return True
    if else_claims:
        leaving.append(~reduce(or_, returning))
    condition: Expression | bool = reduce(or_, leaving) if leaving else False
    constant = is_certain(condition, below=True) if isinstance(condition, Expression) else condition
    return condition if constant is None else constant


def _settles(transition: Transition) -> bool:
    """Return whether a transition has a guard and is not a marker, so that it does not mean *else*."""
    return isinstance(transition.guard, Expression) or None not in (transition.guard, transition.target)


def _leads_away(transitions: Sequence[Transition]) -> bool:
    """Return whether *else* leads to a state other than SCROLLING without asking."""
    return bool(transitions) and not {None, SCROLLING} & {t.target for t in transitions}
