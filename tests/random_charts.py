"""Random charts: guards, expressions, actions and transitions, each state of which can be reached."""

import operator

from hypothesis import strategies as st

from prism_mesa.domain import ACTIONS as ACTION_NAMES
from prism_mesa.domain import POST_KINDS
from prism_mesa.social.behavior import FEED_READY, FIRED_TRIGGERS, ROUND_ENDS, TRIGGER_RULES, build_chart, viral_chart
from prism_mesa.social.fields import REGISTERS
from prism_mesa.statechart import NEEDS_ORACLE, TIMEOUT, AgentState, F, Statechart, Transition

CATEGORIES = {
    "agent.state": tuple(state.value for state in AgentState),
    "agent.pending_action": ACTION_NAMES,
    "post.kind": POST_KINDS,
}

# expressions


def field(name):
    root, _, own = name.partition(".")
    return getattr(getattr(F, root), own)


_OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_OPERATORS |= {"==": operator.eq, "!=": operator.ne}
_OPERATORS |= {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def _combined(symbol, left, right):
    return _OPERATORS[symbol](left, right)


fields = st.sampled_from([name for name in REGISTERS if name not in CATEGORIES]).map(field)
constants = st.sampled_from([0, 1, 2, 3, 0.5, 0.52, 0.1, -1, True, 1e300, 2**40, 2**53 - 1])
categories = st.sampled_from(sorted(CATEGORIES)).flatmap(
    lambda name: st.builds(
        _combined,
        st.sampled_from(["==", "!="]),
        st.just(field(name)),
        st.sampled_from([*CATEGORIES[name], "something else"]),
    )
)
_comparisons = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])


def _grown(inner):
    """Return expressions with one more operator; what is on the left is never a constant."""
    other = inner | constants
    return (
        st.builds(_combined, _comparisons, inner, other)
        | st.builds(_combined, st.sampled_from("+-*/"), inner, other)
        | st.builds(lambda divisor: 1 / divisor, inner)
        | st.builds(lambda left, right: left & right, inner, other)
        | st.builds(lambda left, right: left | right, inner, other)
        | st.builds(lambda operand: ~operand, inner)
    )


expressions = st.recursive(
    fields | categories | st.builds(_combined, _comparisons, fields, constants), _grown, max_leaves=6
)
"""Expressions over all fields that a walk can read, with all operators; dividing by 0 happens."""


# guards in Python, and expressions that a walk cannot read


def fails(agent, post):
    raise KeyError("nothing to see")


def fails_without_a_post(agent, post):
    return post.likes >= 0


def unsure(agent, post):
    return NEEDS_ORACLE if agent.ticks_in_state % 2 else agent.n_unread > 3


def long_history(agent, post):
    return len(agent.state_history) % 3 == 1


def asks_for_the_time(agent, post):
    return (agent.model.tick + agent.model.round + agent.now.minute) % 3 > 0


PLAIN = (
    F.post.has_media == 1,
    F.agent.name < "K",
    F.agent.no_such_field > 1,
    F.agent.state < "m",
    1 / (F.post.likes - F.post.likes) > 1,
    lambda agent, post: agent.should_engage(post),
    lambda agent, post: agent.engagement_threshold > 0.5 or agent.n_unread / agent.ticks_in_state > 2,
    fails,
    fails_without_a_post,
    unsure,
    long_history,
    asks_for_the_time,
)
TAME = st.none() | expressions
WILD = TAME | st.sampled_from(PLAIN)
"""Guards that a walk can read, and any."""


def changes_its_mind(agent, post):
    agent.engagement_threshold = 0.5 if post is None else min(1.0, post.relevance)


def forgets_its_plan(agent, post):
    agent.pending_action = "reshare"


def likes_unasked(agent, post):
    if post is not None:
        agent.like(post)


def skips_one(agent, post):
    agent.read()


def loses_patience(agent, post):
    agent.timeout_threshold = 2


def says_so(agent, post):
    agent.write(f"agent {agent.row} in tick {agent.model.tick}")


def leaves(agent, post):
    if agent.row not in agent.model.leaving:
        agent.remove()


ACTIONS = (changes_its_mind, forgets_its_plan, likes_unasked, skips_one, loses_patience, says_so, leaves)


# charts


sights = st.builds(
    _combined,
    _comparisons,
    st.just(F.post.relevance) | st.sampled_from([name for name in REGISTERS if name.startswith("post.")]).map(field),
    st.sampled_from([0.45, 0.5, 0.52, 0.55, 0, 1, 2, F.agent.engagement_threshold, F.agent.high_threshold]),
).filter(lambda guard: guard.fields & CATEGORIES.keys() == set()) | categories.filter(
    lambda guard: "post.kind" in guard.fields
)
"""Guards on what a post is like that an agent has not read yet."""

_seldom = st.integers(0, 9).map(lambda number: number == 5)
_hardly = st.integers(0, 49).map(lambda number: number == 25)
_MET = [(rule.trigger, rule.state) for rule in TRIGGER_RULES] * 3
_MET += [(trigger, state) for trigger in (TIMEOUT, ROUND_ENDS) for state in AgentState]
_MET += [(FEED_READY, AgentState.IDLE)] * 3
states = st.sampled_from(list(AgentState))
places = st.sampled_from(_MET) | st.tuples(st.sampled_from(sorted(FIRED_TRIGGERS)), states)


@st.composite
def _transitions(draw, guards, actions):
    trigger, source = draw(places)
    return Transition(trigger, source, draw(st.none() | states), draw(guards), draw(actions))


@st.composite
def _changed(draw, transition, guards, actions):
    """A transition of the default chart, often with another guard, or an action."""
    guard = draw(guards) if draw(_seldom) else transition.guard
    return Transition(transition.trigger, transition.source, transition.target, guard, draw(actions))


@st.composite
def _crowds(draw, guards, sizes):
    """Many transitions with guards at one place; or two without, which is an open choice."""
    trigger, source = draw(places)
    n = draw(st.sampled_from(sizes))
    own = st.none() if n == 2 else guards.filter(lambda guard: guard is not None)
    return [Transition(trigger, source, draw(states), draw(own)) for _ in range(n)]


@st.composite
def _looked_at(draw, transitions, targets):
    """Return transitions of which that to reading depends on the post, and perhaps another one beside it."""
    guard = draw(sights)
    guards = {"sees_post": guard if draw(st.booleans()) else guard & (F.agent.n_unread > draw(st.integers(0, 2)))}
    changed = [Transition(a.trigger, a.source, a.target, guards.get(a.trigger, a.guard), a.action) for a in transitions]
    more = Transition("sees_post", AgentState.SCROLLING, draw(targets), draw(st.none() | sights))
    return [*changed, more] if draw(st.booleans()) else changed


@st.composite
def _open_without_a_post(draw):
    """Open choices between doing something and nothing, where an agent mostly has no post at hand."""
    trigger, source = draw(
        st.sampled_from(
            [
                (FEED_READY, AgentState.IDLE),
                (TIMEOUT, AgentState.RESTING),
                (TIMEOUT, AgentState.SCROLLING),
                (ROUND_ENDS, AgentState.RESTING),
                (ROUND_ENDS, AgentState.SCROLLING),
            ]
        )
    )
    active = draw(st.sampled_from([AgentState.COMPOSING, AgentState.ENGAGING_LIKE, AgentState.ENGAGING_REPLY]))
    passive = draw(st.sampled_from([AgentState.SCROLLING, AgentState.RESTING, AgentState.EVALUATING]))
    return [Transition(trigger, source, target) for target in draw(st.permutations([active, passive]))]


@st.composite
def charts(draw):
    """Charts in which every state can be reached: most of the default one, and anything else in any order.

    Every other one is tame: a walk knows all of it.
    """
    base = draw(st.sampled_from([build_chart(), build_chart(asks_action=True), viral_chart]))
    is_wild = draw(st.booleans())
    guards = WILD if is_wild else TAME
    actions = st.sampled_from([None] * 20 + list(ACTIONS)) if is_wild else st.none()
    dropped = draw(st.sampled_from([None] * 40 + sorted(FIRED_TRIGGERS - {FEED_READY})))
    kept = [
        draw(_changed(transition, guards, actions))
        for transition in base.transitions
        if transition.trigger != dropped and not draw(_hardly)
    ]
    more = draw(st.lists(_transitions(guards, actions), max_size=6))
    if draw(st.booleans()):
        more += draw(_crowds(guards, [2, 2, 10, 11, 13] if is_wild else [2, 2, 10]))
    if draw(st.booleans()):
        kept = draw(_looked_at(kept, states))
    if draw(st.booleans()):
        more += draw(_open_without_a_post())
    transitions = draw(st.permutations(kept + more))
    concrete = {(t.trigger, t.source) for t in transitions if t.target is not None}
    transitions = [t for t in transitions if (t.trigger, t.source) in concrete]
    initial = draw(st.sampled_from([AgentState.IDLE] * 8 + [AgentState.EVALUATING, AgentState.RESTING]))
    reached, before = {initial}, set()
    while reached != before:
        before = set(reached)
        reached |= {t.target for t in transitions if t.source in reached and t.target is not None}
    timeouts = draw(st.dictionaries(st.sampled_from(sorted(reached)), st.integers(1, 4), max_size=8))
    transitions = [t for t in transitions if t.source in reached]
    asks = draw(st.integers(0, 4)) > 0
    return Statechart(reached, transitions, initial, timeouts=timeouts, oracle_enabled=asks, name="random")
