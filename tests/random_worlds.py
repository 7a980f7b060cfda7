"""Random charts, guards, populations and happenings, for tests that hold two ways of running a world equal."""

import json
import re
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations

from hypothesis import strategies as st

from prism_mesa.domain import ACTIONS as ACTION_NAMES
from prism_mesa.domain import POST_KINDS
from prism_mesa.kernels.fields import FIELD_NAMES
from prism_mesa.reasoner import DistilledReasoner, Reasoner
from prism_mesa.reasoner.distilled import DistilledModel, Linear, OptionModel
from prism_mesa.reasoner.features import DECLARATION, LINEAR_NAMES, NAMES
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import FEED_READY, FIRED, ROUND_ENDS, TRIGGER_RULES, build_chart, viral_chart
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


def _compared(operator, left, right):
    return {
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
        "==": lambda: left == right,
        "!=": lambda: left != right,
    }[operator]()


def _worked_out(operator, left, right):
    return {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left / right,
    }[operator]()


fields = st.sampled_from([name for name in FIELD_NAMES if name not in CATEGORIES]).map(field)
constants = st.sampled_from([0, 1, 2, 3, 0.5, 0.52, 0.1, -1, True, 1e300, 2**40, 2**53 - 1])
categories = st.sampled_from(sorted(CATEGORIES)).flatmap(
    lambda name: st.builds(
        _compared,
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
        st.builds(_compared, _comparisons, inner, other)
        | st.builds(_worked_out, st.sampled_from("+-*/"), inner, other)
        | st.builds(lambda divisor: 1 / divisor, inner)
        | st.builds(lambda left, right: left & right, inner, other)
        | st.builds(lambda left, right: left | right, inner, other)
        | st.builds(lambda operand: ~operand, inner)
    )


expressions = st.recursive(
    fields | categories | st.builds(_compared, _comparisons, fields, constants), _grown, max_leaves=6
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
    _compared,
    _comparisons,
    st.just(F.post.relevance) | st.sampled_from([name for name in FIELD_NAMES if name.startswith("post.")]).map(field),
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
places = st.sampled_from(_MET) | st.tuples(st.sampled_from(sorted(FIRED)), states)


@st.composite
def _arrows(draw, guards, actions):
    trigger, source = draw(places)
    return Transition(trigger, source, draw(st.none() | states), draw(guards), draw(actions))


@st.composite
def _changed(draw, arrow, guards, actions):
    """An arrow of the default chart, often with another guard, or an action."""
    guard = draw(guards) if draw(_seldom) else arrow.guard
    return Transition(arrow.trigger, arrow.source, arrow.target, guard, draw(actions))


@st.composite
def _crowds(draw, guards, sizes):
    """Many arrows with guards at one place; or two without, which is an open choice."""
    trigger, source = draw(places)
    n = draw(st.sampled_from(sizes))
    own = st.none() if n == 2 else guards.filter(lambda guard: guard is not None)
    return [Transition(trigger, source, draw(states), draw(own)) for _ in range(n)]


@st.composite
def _looked_at(draw, arrows, targets):
    """Return arrows of which that to reading depends on the post, and perhaps another one beside it."""
    guard = draw(sights)
    guards = {"sees_post": guard if draw(st.booleans()) else guard & (F.agent.n_unread > draw(st.integers(0, 2)))}
    changed = [Transition(a.trigger, a.source, a.target, guards.get(a.trigger, a.guard), a.action) for a in arrows]
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
    dropped = draw(st.sampled_from([None] * 40 + sorted(FIRED - {FEED_READY})))
    kept = [
        draw(_changed(arrow, guards, actions))
        for arrow in base.transitions
        if arrow.trigger != dropped and not draw(_hardly)
    ]
    more = draw(st.lists(_arrows(guards, actions), max_size=6))
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


# populations


shares = st.sampled_from([None, 0.0, 0.5, 1.0])
populations = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**63 - 1),
        "agents_n": st.integers(10, 60),
        "agents_band": st.sampled_from([0.1, 0.4, 0.0, 1.0]),
        "agents_activity": st.sampled_from([1.0, 0.3]),
        "agents_post_rate": st.sampled_from([0.6, 0.2]),
        "agents_propensity_sigma": st.sampled_from([0.0, 2.0]),
        "agents_threshold_mean": st.sampled_from([0.5, 0.6, 0.0]),
        "network_mean_degree": st.sampled_from([6, 9, 2]),
        "statechart_default_timeout_ticks": st.integers(1, 6),
        "statechart_max_history_depth": st.sampled_from([0, 1, 3, 50]),
        "statechart_oracle_enabled": st.sampled_from([True, True, False]),
        "reasoner_asks_action": st.booleans(),
        "ticks_per_round": st.sampled_from([7, 12, 10, 5, 3, 2, 1]),
        "feed_mode": st.sampled_from(["random", "chronological", "preference", "x_algo"]),
        "feed_size": st.sampled_from([6, 60, 3, 2, 1]),
        "feed_window": st.integers(1, 3),
        "records_transitions": shares,
        "records_impressions": shares,
        "records_engagements": shares,
    }
)


# who decides what is left open


def _weighs(prompt):
    """Play an LLM that gives each of the options it is shown a weight, or sometimes fails."""
    shown = re.findall(r"^[A-H]\. (\w+):", prompt, re.MULTILINE)
    whims = blake2b(prompt.encode(), digest_size=len(shown) + 1).digest()
    if whims[-1] % 9 == 0:
        raise TimeoutError("no answer")
    return json.dumps({option: 1 + whim % 4 for option, whim in zip(shown, whims, strict=False)})


def _distilled(chart):
    """Return a model that has an opinion about all that a chart can leave open, and minds what the post is like."""
    declared = [cell.declared for by_state in chart.cells.values() for cell in by_state.values()]
    sets = {(AgentState.COMPOSING, AgentState.SCROLLING)}
    sets |= {some for own in declared for n in range(2, len(own) + 1) for some in combinations(own, n)}
    weights = [((i * 7) % 5 - 2) / 2 for i in range(len(LINEAR_NAMES))]
    choices = [
        OptionModel(options=list(some), scores=[Linear(intercept=0.2, weights=weights)] * (len(some) - 1), rows=1)
        for some in sorted(sets)
    ]
    facts = {"features": list(NAMES), "declaration": DECLARATION, "persona": "individual", "archetypes": 1}
    facts |= {"choices": choices, "provenance": {}, "report": {}}
    return DistilledReasoner(DistilledModel(format=1, kind="logistic", **facts))


def decider(chart, share, fallback="rule"):
    """Return who decides what a chart leaves open: a distilled model, but an LLM for a share of it."""
    if share == 0:
        return _distilled(chart)
    own = {} if share == 1 else {"distilled": _distilled(chart), "llm_share": share}
    return Reasoner(_weighs, answer="probabilities", fallback=fallback, backoff_s=0, max_fallback_share=1, **own)


# what happens to agents between and during rounds


class Inheriting(SocialAgent):
    """Has a script that does what every agent does."""

    def step(self):
        super().step()


class Diarist(SocialAgent):
    """Does what every agent does, and writes a line about it now and then."""

    def step(self):
        super().step()
        if self.model.tick % 4 == 1:
            self.write(f"Agent {self.row}, round {self.model.round}: {self.state.value}")


class Echo(SocialAgent):
    """Reads two posts in each tick, and reshares what it read before."""

    def step(self):
        for post in (self.read(), self.read()):
            if post is not None and self.model.round:
                self.reshare(post)


class Fan(SocialAgent):
    """Does what every agent does, and before or after it engages with posts of its feed, or of any age."""

    def step(self):
        seed = (self.row * 31 + self.model.round * 7 + self.model.tick * 3) % 11
        if seed < 4:
            engage_somehow(self, seed)
        super().step()
        if seed > 6:
            engage_somehow(self, seed)


def engage_somehow(agent, seed):
    """Let an agent engage with a post of its feed, the one at hand or any that has appeared; return what, if it did."""
    model = agent.model
    there = model.posts.n_there(max(model.round, 0))
    older = [model.post(seed * 37 % there, agent.row)] if there else []
    known = [post for post in (agent.current_post, *agent.feed[:1], *older) if post is not None]
    if not known:
        return None
    post, action = known[seed % len(known)], ACTION_NAMES[seed % 5 % 3]
    return post, action, getattr(agent, action)(post)


class Moderator(SocialAgent):
    """Throws its neighbours out in the middle of each round."""

    def step(self):
        super().step()
        others = [(self.row + step) % len(self.model.population) for step in (1, 2)]
        for row in others if self.model.tick == 2 else ():
            if self.model.population.present[row] and row not in self.model.leaving:
                self.model.agent(row).remove()


class Recruiter(SocialAgent):
    """Brings in an agent in the middle of each round."""

    def step(self):
        super().step()
        if self.model.tick == 2 and self.row not in self.model.leaving:  # an action may have removed it just now
            SocialAgent(self.model, follows=[self.row], followers=[self.row], activity=1.0, post_rate=0.5)


SCRIPTS = (Inheriting, Diarist, Echo, Fan, Moderator, Recruiter)


@dataclass(frozen=True)
class Happening:
    """Something that is done to an agent before a round."""

    round: int
    row: int
    what: object
    value: object = None

    def to(self, model):
        """Do it, if the agent is still there."""
        row = self.row % len(model.population)
        if not model.population.present[row] or row in model.leaving:
            return
        if self.what == "goes":
            model.agent(row).remove()
        elif self.what == "comes":
            SocialAgent(model, follows=[row], followers=[row], **self.value)
        elif self.what == "engages":
            engage_somehow(model.agent(row), self.value)
        elif isinstance(self.what, type):
            self.what(model, row)
        else:
            setattr(model.agent(row), self.what, self.value)


_VALUES = {
    "engagement_threshold": st.sampled_from([0.0, 0.45, 1.0]),
    "timeout_threshold": st.integers(1, 9),
    "activity": st.sampled_from([0.0, 1.0]),
    "post_rate": st.sampled_from([0.0, 1.0]),
    "ticks_in_state": st.integers(0, 3),
    "pending_action": st.sampled_from([None, *ACTION_NAMES]),
    "openness": st.sampled_from([1.0, 5.0]),
    "name": st.just("Alma"),
    "state": st.sampled_from([AgentState.SCROLLING, AgentState.RESTING, AgentState.IDLE]),
    "engages": st.integers(0, 99),
    "goes": st.none(),
    "comes": st.sampled_from([{}, {"activity": 1.0, "post_rate": 1.0}]),
}


@st.composite
def _happening(draw, scripts):
    what = draw(st.sampled_from([*_VALUES, *scripts]))
    value = draw(_VALUES[what]) if what in _VALUES else None
    return Happening(draw(st.integers(0, 2)), draw(st.integers(0, 99)), what, value)


def happenings(scripts=SCRIPTS):
    """Lists of what happens to agents, with or without scripts of their own."""
    return st.lists(_happening(scripts), max_size=6)


def with_chart(params, chart):
    """Return parameters with a chart of one's own, without what changes the default one."""
    return {key: value for key, value in params.items() if key != "reasoner_asks_action"} | {"chart": chart}
