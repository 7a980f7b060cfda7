"""How agents behave: the default chart, and the triggers that a round fires in each state.

`social.round.effects` carries out the transitions.
"""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final

from prism_mesa.domain import ACTIONS, STATES, ActionName, AgentState, make_state
from prism_mesa.errors import ChartError, ConfigError
from prism_mesa.social.user_objects import load_object
from prism_mesa.statechart import ANY, TIMEOUT, Expression, F, Statechart, Transition
from prism_mesa.statechart.definition import StatechartParams
from prism_mesa.statechart.guards import field_name
from prism_mesa.statechart.transitions import Guard

IDLE, SCROLLING, RESTING = AgentState.IDLE, AgentState.SCROLLING, AgentState.RESTING
EVALUATING, COMPOSING = AgentState.EVALUATING, AgentState.COMPOSING
ENGAGING: Final = {
    "like": AgentState.ENGAGING_LIKE,
    "reply": AgentState.ENGAGING_REPLY,
    "reshare": AgentState.ENGAGING_RESHARE,
}

ACTION_INDICES: Final = {state: ACTIONS.index(action) for action, state in ENGAGING.items()}
"""The index in `domain.ACTIONS` of each engagement state."""
STATES_WITHOUT_POST: Final = frozenset({IDLE, SCROLLING, RESTING})
"""States in which an agent has no current post and no pending action."""
MAX_MORE_STATES: Final = 8
MAX_TRIGGERS: Final = 256

FEED_READY: Final = "feed_ready"
SEES_POST: Final = "sees_post"
FEED_DONE: Final = "feed_done"
IGNORES: Final = "ignores"
ABANDONS: Final = "abandons"
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
"""A condition that is true for every agent's band; checks of charts assume it."""

_THRESHOLDS: Final = frozenset({"agent.low_threshold", "agent.engagement_threshold", "agent.high_threshold"})
_VALUE_BELOW: Final[dict[type[ast.cmpop], bool]] = {ast.Lt: True, ast.LtE: True, ast.Gt: False, ast.GtE: False}
"""Value of each comparison of utility with a threshold for a post below the band; above the band it is reversed."""

type ClaimCondition = Expression | bool | None
"""The result of `claim_condition`."""


@dataclass(frozen=True)
class TriggerRule:
    """Fires `trigger` in `state` if the condition `when` is true (None: always); the first rule that applies counts.

    A condition on the post is false without a current post.
    """

    state: AgentState
    trigger: str
    when: Expression | None = None

    def applies(self, agent: object, post: object) -> bool:
        """Return whether the condition is true for an agent and its current post (None without one)."""
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
"""The rules by state; `IGNORES` does not fire for a post that the chart claims (`claims_post`)."""

FIRED_TRIGGERS: Final = frozenset([FEED_READY, ROUND_ENDS, TIMEOUT, ABANDONS, *(r.trigger for r in TRIGGER_RULES)])
"""All triggers that a round fires."""


def build_chart(
    *,
    asks_action: bool = False,
    engages: Guard = IS_INTERESTED,
    name: str = "social",
    transitions: Sequence[Transition] = (),
    timeouts: Mapping[AgentState, int] | None = None,
    nested: Mapping[str, Iterable[AgentState | str]] | None = None,
    more_states: Mapping[str, AgentState | str] | None = None,
) -> Statechart:
    """Return the chart of the default behaviour (`docs/pictures/social-chart.png`).

    Args:
        asks_action: At `compose_done`, ask the oracle for the kind of engagement instead of drawing it.
        engages: The guard of engaging without asking. If it is false, an agent ignores a post outside its band, and
            asks the oracle about a post inside it.
        name: The chart's name in messages.
        transitions: Transitions of your own, after those of the default behaviour.
        timeouts: Ticks until agents time out, by state; the default is 2 for RESTING.
        nested: Names of parents with their states (see `Statechart`).
        more_states: Names of further states, each with the state that it resembles: a round fires the same triggers in
            it, it keeps or releases the post alike, and `round_ends` leaves it. Its other transitions are those that
            you give.

    Raises:
        ChartError: If a further state has the name of a state, or resembles IDLE or no state.
    """
    default = [
        Transition(FEED_READY, IDLE, SCROLLING),
        Transition(SEES_POST, SCROLLING, EVALUATING),
        Transition(FEED_DONE, SCROLLING, IDLE),
        Transition(IGNORES, EVALUATING, SCROLLING),
        Transition(DECIDES, EVALUATING, COMPOSING, guard=engages),
        *(Transition(DECIDES, EVALUATING, SCROLLING, guard=guard) for guard in _make_passing_guards(engages)),
        Transition(DECIDES, EVALUATING, None),
    ]
    for action, state in ENGAGING.items():
        action_guard = None if asks_action else F.agent.pending_action == action
        default.append(Transition("compose_done", COMPOSING, state, guard=action_guard))
    for state in ENGAGING.values():
        default += [Transition("action_done", state, RESTING), Transition(TIMEOUT, state, RESTING)]
    default += [
        Transition(TIMEOUT, SCROLLING, RESTING),
        Transition(TIMEOUT, (EVALUATING, COMPOSING, RESTING), SCROLLING),
        Transition(ROUND_ENDS, ANY, IDLE),
        Transition(ABANDONS, COMPOSING, SCROLLING),
    ]
    all_timeouts = {RESTING: 2, **(timeouts or {})}
    parts, states = [*default, *transitions], [*STATES, *_more_states(more_states or {}, name)]
    return Statechart(states, parts, IDLE, timeouts=all_timeouts, nested=nested, invariant=_BAND, name=name)


def _more_states(more_states: Mapping[str, AgentState | str], name: str) -> list[AgentState]:
    for added, resembled in more_states.items():
        if resembled not in STATES or resembled == IDLE or added in STATES or not re.fullmatch(r"[a-z]\w*", added):
            advice = 'give a new lowercase name and a state other than idle, such as {"doomscrolling": "scrolling"}'
            raise ChartError(f"{name}: more_states: {added!r}: {resembled!r}; {advice}")
    if len(more_states) > MAX_MORE_STATES:
        raise ChartError(f"{name}: more_states: {len(more_states)} states; give at most {MAX_MORE_STATES}")
    return [make_state(added, len(STATES) + i, AgentState(like)) for i, (added, like) in enumerate(more_states.items())]


def make_account_chart(engages: Mapping[ActionName, Expression], name: str) -> Statechart:
    """Return a chart of accounts that engage with a post if an expression of `engages` is true, else pass by."""
    kept = [t for t in social_chart.transitions if t.trigger != DECIDES]
    deciding = [Transition(DECIDES, EVALUATING, COMPOSING, guard=guard) for guard in engages.values()]
    transitions = [*kept, *deciding, Transition(DECIDES, EVALUATING, SCROLLING)]
    timeouts = social_chart.timeouts
    return Statechart(
        AgentState, transitions, IDLE, oracle_enabled=False, timeouts=timeouts, invariant=_BAND, name=name
    )


def _make_passing_guards(engages: Guard) -> list[Guard]:
    """Return a guard for passing by: outside the band, where `engages` is false; none if `engages` is true there."""
    if not isinstance(engages, Expression):

        def passes_by(agent: Any, post: Any) -> bool:
            try:
                is_engaging = engages(agent, post)
            except Exception:  # the engaging guard reports the error
                is_engaging = False
            return not is_engaging and bool((IS_BELOW | IS_INTERESTED)(agent, post))

        return [passes_by]
    values = [(side, constant_value(engages, below=side is IS_BELOW)) for side in (IS_BELOW, IS_INTERESTED)]
    guards = [side if value is False else side & ~engages for side, value in values if value is not True]
    return [reduce(or_, guards)] if guards else []


def constant_value(guard: Expression, *, below: bool) -> bool | None:
    """Return a guard's value for all posts below (or above) the band; None if it also depends on other fields.

    >>> popular = IS_INTERESTED & (F.post.likes > 3)
    >>> constant_value(popular, below=True), constant_value(popular, below=False)
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
            lies_below, sides = _VALUE_BELOW[type(operator)] == below, (field_name(left), field_name(right))
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


def configure_chart(params: StatechartParams, *, asks_action: bool, chart: Statechart | None = None) -> Statechart:
    """Return a copy of `chart`, by default of the configured chart, with the configured settings."""
    if chart is not None and not isinstance(chart, Statechart):
        raise ChartError(f"chart: {chart!r} is not a Statechart (statechart.chart=module:object names one in a module)")
    if chart is None:
        chart = load_chart(params.chart) if params.chart else _DEFAULT_CHARTS[asks_action]
    _require_platform_chart(chart)
    oracle_enabled = chart.oracle_enabled and params.oracle_enabled
    chart_copy = chart.with_settings(oracle_enabled=oracle_enabled, strict=params.strict)
    chart_copy.invariant = _BAND if chart_copy.invariant is None else chart_copy.invariant
    return chart_copy


def _require_platform_chart(chart: Statechart) -> None:
    foreign = [state for state in chart.ordered_states if not isinstance(state, AgentState)]
    if foreign:
        raise ChartError(f"{chart.name}: {foreign[0].value!r} is not a state of the platform; write AgentState(...)")
    if len(chart.triggers) > MAX_TRIGGERS:
        raise ChartError(f"{chart.name}: {len(chart.triggers)} triggers; the platform has at most {MAX_TRIGGERS}")
    for name in ("history", "on_enter", "on_exit"):
        if getattr(chart.hierarchy, name):
            raise ChartError(f"{chart.name}: {name} has no meaning on the platform; use actions of transitions")
    for transition in chart.transitions:
        fields = transition.guard.fields if isinstance(transition.guard, Expression) else ()
        if any(name.startswith("model.") for name in fields):
            raise ChartError(f"{chart.name}: {transition}: F.model cannot be read on the platform; use an attribute")
        if transition.timing is not None:
            advice = "use an event, or timeouts={state: ticks}"
            raise ChartError(f"{chart.name}: {transition}: {transition.trigger} cannot fire on the platform; {advice}")


def with_abandoning(chart: Statechart) -> Statechart:
    """Return a chart in which agents can give up each action: `abandons` leads to SCROLLING if the chart lacks it."""
    sources = dict.fromkeys(t.source for t in chart.transitions if t.target and t.target.resembled in ACTION_INDICES)
    more = [Transition(ABANDONS, s, SCROLLING) for s in sources if s not in chart.cells.get(ABANDONS, {})]
    return chart.with_settings(more=more) if more else chart


def load_chart(object_name: str, key: str = "statechart.chart") -> Statechart:
    """Return the chart that ``module:object`` names, as the value of `key`.

    Raises:
        ConfigError: If there is no such module or object, or it is not a Statechart.
    """
    chart, module = load_object(key, object_name, "prism_mesa.social.behavior:viral_chart")
    if not isinstance(chart, Statechart):
        charts = ", ".join(sorted(k for k, v in module.items() if isinstance(v, Statechart))) or "none"
        module_name, _, name = object_name.partition(":")
        raise ConfigError(f"{key}: {object_name}: {name!r} is not a Statechart (charts in {module_name}: {charts})")
    return chart


def next_trigger(
    chart: Statechart, claim: ClaimCondition, state: AgentState, agent: object, post: object
) -> str | None:
    """Return the trigger for an agent that has not timed out, or None; `claim` is its chart's `claim_condition`."""
    for rule in TRIGGER_RULES:
        may_claim = rule.trigger == IGNORES and claim is not False
        applies = rule.state is state.resembled and rule.applies(agent, post)
        if applies and not (may_claim and claims_post(chart, agent, post)):
            return rule.trigger
    return None


def claims_post(chart: Statechart, agent: object, post: object) -> bool:
    """Return whether a chart claims a post below the agent's band, so that `decides` fires instead of `ignores`.

    A chart claims a post if a true guard leads to a state other than SCROLLING. If no guard is true, the chart claims
    the post if *else* leads to such a state without asking.
    """
    if EVALUATING not in chart.cells.get(IGNORES, {}):
        return True
    enabled = chart.enabled(agent, DECIDES, post)
    guarded = [t for t in enabled if _is_guarded(t)]
    return any(t.target is not SCROLLING for t in guarded) if guarded else _leaves_scrolling(enabled)


def follows_band(chart: Statechart) -> bool:
    """Return whether a chart engages above the band, ignores below it, and asks inside it, as the default does."""
    evaluating, default = ([str(t) for t in c.transitions if t.source is EVALUATING] for c in (chart, social_chart))
    return evaluating == default


def claim_condition(chart: Statechart) -> ClaimCondition:
    """Return which posts below the band a chart claims: an expression or a constant; None if callables decide."""
    cell = chart.cells.get(DECIDES, {}).get(EVALUATING)
    if cell is None or EVALUATING not in chart.cells.get(IGNORES, {}):
        return cell is not None
    leaving_guards: list[Any] = [t.guard for t in cell.candidates if _is_guarded(t) and t.target is not SCROLLING]
    returning_guards: list[Any] = [t.guard for t in cell.candidates if _is_guarded(t) and t.target is SCROLLING]
    is_else_claiming = _leaves_scrolling([t for t in cell.candidates if t.guard is None])
    deciding_guards = [t.guard for t in cell.candidates if t.guard is not None] if is_else_claiming else leaving_guards
    if not all(isinstance(guard, Expression) for guard in deciding_guards):
        return None
    if is_else_claiming and not returning_guards:
        return True
    if is_else_claiming:
        leaving_guards.append(~reduce(or_, returning_guards))
    condition: Expression | bool = reduce(or_, leaving_guards) if leaving_guards else False
    constant = constant_value(condition, below=True) if isinstance(condition, Expression) else condition
    return condition if constant is None else constant


def _is_guarded(transition: Transition) -> bool:
    """Return whether a transition does not mean *else*: it has a guard, and is not a marker."""
    return isinstance(transition.guard, Expression) or None not in (transition.guard, transition.target)


def _leaves_scrolling(transitions: Sequence[Transition]) -> bool:
    """Return whether *else* leads to states other than SCROLLING without asking."""
    return bool(transitions) and not {None, SCROLLING} & {t.target for t in transitions}
