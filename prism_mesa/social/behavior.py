"""How agents behave: the default chart, and which trigger meets an agent in which state. Both are data.

`social.round.effects` carries out what the chart decides.
"""

from dataclasses import dataclass
from typing import Final

from prism_mesa.domain import ACTIONS
from prism_mesa.errors import ChartError, ConfigError
from prism_mesa.social.own.objects import load_object
from prism_mesa.statechart import (
    ANY,
    TIMEOUT,
    AgentState,
    Expression,
    F,
    Statechart,
    Transition,
)
from prism_mesa.statechart.params import StatechartParams

IDLE, SCROLLING, EVALUATING, COMPOSING = (
    AgentState.IDLE,
    AgentState.SCROLLING,
    AgentState.EVALUATING,
    AgentState.COMPOSING,
)
RESTING: Final = AgentState.RESTING
ENGAGING: Final = {
    "like": AgentState.ENGAGING_LIKE,
    "reply": AgentState.ENGAGING_REPLY,
    "reshare": AgentState.ENGAGING_RESHARE,
}

ENGAGES_BY: Final = {state: ACTIONS.index(action) for action, state in ENGAGING.items()}
"""States that are an engagement when they are entered -> its place in `domain.ACTIONS`."""
RELEASES_POST: Final = frozenset({IDLE, AgentState.SCROLLING, RESTING})
"""States that let go of the post at hand, and of the pending action, when they are entered."""

FEED_READY: Final = "feed_ready"
SEES_POST: Final = "sees_post"
IGNORES: Final = "ignores"
ROUND_ENDS: Final = "round_ends"

IS_INTERESTED: Final = F.post.utility > F.agent.high_threshold
"""The post lies above the agent's band: what takes it to COMPOSING in the default chart."""

IS_VIRAL: Final = F.post.velocity > 100
"""The velocity guard of the contract: more than 100 engagements in the last rounds."""

SHOULD_ENGAGE: Final = IS_INTERESTED | (IS_VIRAL & (F.post.utility >= F.agent.low_threshold))
"""Interest, or a viral post inside the band: what `viral_chart` settles without the oracle."""


_BAND: Final = (F.agent.low_threshold <= F.agent.engagement_threshold) & (
    F.agent.engagement_threshold <= F.agent.high_threshold
)
"""What holds of every agent's band, for the checks."""


@dataclass(frozen=True)
class TriggerRule:
    """In `state`, `trigger` is fired when the condition holds (None: always); the first such rule counts.

    A condition on the post does not hold where no post is at hand.
    """

    state: AgentState
    trigger: str
    when: Expression | None = None

    def holds(self, agent: object, post: object) -> bool:
        """Return whether the condition holds for one agent and the post at hand, or None."""
        if self.when is None:
            return True
        return not (post is None and self.when.reads_post) and bool(self.when(agent, post))


TRIGGER_RULES: Final = (
    TriggerRule(SCROLLING, SEES_POST, F.agent.n_unread > 0),
    TriggerRule(EVALUATING, IGNORES, F.post.utility < F.agent.low_threshold),
    TriggerRule(EVALUATING, "decides"),
    TriggerRule(COMPOSING, "compose_done"),
    *(TriggerRule(state, "action_done") for state in ENGAGING.values()),
)

FIRED: Final = frozenset({FEED_READY, ROUND_ENDS, TIMEOUT} | {rule.trigger for rule in TRIGGER_RULES})
"""All triggers that a round fires."""


def build_chart(*, asks_action: bool = False, engages: Expression = IS_INTERESTED, name: str = "social") -> Statechart:
    """Return the chart of the default behaviour (`docs/pictures/social-chart.png`).

    Args:
        asks_action: Ask the oracle at `compose_done` for the kind of engagement, instead of drawing it.
        engages: When an agent engages without asking; inside the band, else, the oracle is asked.
        name: What messages call the chart.
    """
    transitions = [
        Transition(FEED_READY, IDLE, SCROLLING),
        Transition(SEES_POST, SCROLLING, EVALUATING),
        Transition(IGNORES, EVALUATING, SCROLLING),
        Transition("decides", EVALUATING, COMPOSING, guard=engages),
        Transition("decides", EVALUATING, SCROLLING, guard=F.post.utility < F.agent.low_threshold),
        Transition("decides", EVALUATING, None),
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
    return Statechart(
        AgentState,
        transitions,
        IDLE,
        timeouts={RESTING: 2},
        invariant=_BAND,
        name=name,
    )


social_chart: Final = build_chart()
"""The default chart."""

_CHARTS: Final = {False: social_chart, True: build_chart(asks_action=True)}
viral_chart: Final = build_chart(engages=SHOULD_ENGAGE, name="viral")
"""As the default, but a viral post inside the band is engaged with unasked (`statechart.chart`)."""


def chosen_chart(params: StatechartParams, *, asks_action: bool, chart: Statechart | None = None) -> Statechart:
    """Return `chart`, or that of the configuration, with its settings and a count of guard errors of its own."""
    if chart is not None and not isinstance(chart, Statechart):
        raise ChartError(f"chart: {chart!r} is no Statechart (statechart.chart=module:object names one in a module)")
    if chart is None:
        chart = load_chart(params.chart) if params.chart else _CHARTS[asks_action]
    own = chart.replaced(oracle_enabled=chart.oracle_enabled and params.oracle_enabled, strict=params.strict)
    own.invariant = _BAND if own.invariant is None else own.invariant
    return own


def load_chart(where: str) -> Statechart:
    """Return the chart that ``module:object`` names.

    Raises:
        ConfigError: If there is no such module or object, or it is no Statechart.
    """
    key = "statechart.chart"
    chart, module = load_object(key, where, "prism_mesa.social.behavior:viral_chart")
    if not isinstance(chart, Statechart):
        found = sorted(k for k, v in module.items() if isinstance(v, Statechart))
        module_name, _, name = where.partition(":")
        told = f"charts in {module_name}: {', '.join(found) or 'none'}"
        raise ConfigError(f"{key}: {where}: {name!r} is no Statechart ({told})")
    return chart


def next_trigger(state: AgentState, agent: object, post: object) -> str | None:
    """Return the trigger that meets one agent that has not timed out, or None."""
    for rule in TRIGGER_RULES:
        if rule.state is state and rule.holds(agent, post):
            return rule.trigger
    return None
