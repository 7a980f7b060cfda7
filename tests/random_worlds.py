"""Random populations, who decides, and happenings, for tests that hold two ways of running a world equal."""

import json
import re
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from prism_mesa.domain import ACTIONS as ACTION_NAMES
from prism_mesa.domain import FOLLOW_EVENTS
from prism_mesa.reasoner import DistilledReasoner, Reasoner
from prism_mesa.reasoner.distilled import DistilledModel, LinearScore, OptionModel
from prism_mesa.reasoner.features import DECLARATION, LINEAR_NAMES, NAMES
from prism_mesa.social.agent import SocialAgent
from prism_mesa.statechart import AgentState

# populations


shares = st.sampled_from([None, 0.0, 0.5, 1.0])
_utilities = st.fixed_dictionaries(
    {
        "utility_weight": st.sampled_from([1.0, 0.5]),
        "utility_sensitivity": st.sampled_from([0.05, 0.01]),
        "utility_appeal_sigma": st.sampled_from([3.0, 1.0]),
        "utility_gamma": st.sampled_from([0.3, 0.0, 1.0]),
        "utility_reshared": st.sampled_from([0.0, -1.0]),
        "utility_theta": st.sampled_from([0.2, 0.0]),
        "utility_mood": st.sampled_from([1.0, 0.0]),
        "utility_per_source": st.sampled_from([0.0, 2.0]),
        "utility_closeness": st.sampled_from([3.0, 0.0, -2.0]),
        "network_close_ties": st.just(3),
        "network_mutual": st.sampled_from([0.8, 0.0]),
    }
)
_people = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**63 - 1),
        "agents_n": st.integers(10, 60),
        "agents_band": st.sampled_from([0.1, 0.4, 0.0, 1.0]),
        "agents_activity": st.sampled_from([1.0, 0.3]),
        "agents_post_rate": st.sampled_from([0.6, 0.2]),
        "agents_popularity": st.sampled_from([0.0, 0.6]),
        "agents_posting": st.sampled_from(["always", "online"]),
        "agents_persistence": st.sampled_from([0.0, 0.5]),
        "agents_session": st.sampled_from([None, 3.0, 20.0]),
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
        "feed_repeats": st.booleans(),
        "agents_rhythm": st.sampled_from([0.0, 0.0, 1.0]),
        "feed_glances": st.sampled_from([1, 3, 10]),
        "records_transitions": shares,
        "records_impressions": shares,
        "records_engagements": shares,
        "records_views": st.sampled_from([0.0, 0.5, 1.0]),
    }
)
LIVE = {"network_dynamics": "live"} | {
    f"network_rates_{name}": rate
    for name, rate in {
        "follow": 0.2,
        "follow_back": 0.4,
        "triad": 0.3,
        "unfollow": 0.2,
        "mute": 0.03,
        "block": 0.03,
        "report": 0.05,
    }.items()
}
"""A network in which much moves."""
_ATTRIBUTES = {
    "leaning": {"of": "agent", "range": [-1, 1]},
    "party": {"of": "agent", "values": ["left", "right", "none"]},
}
_POST_ATTRIBUTES = {
    "slant": {"of": "post", "range": [-1, 1]},
    "veracity": {"of": "post", "values": [True, False]},
}
_EFFECTS = st.sampled_from([("slant", 2.0), ("veracity", {"false": 3.0}), ("veracity", {"true": -1.0, "false": 1.0})])
_reactions = st.builds(
    lambda counts, appeal, returns: (
        {"utility_counts": counts, "attributes": _POST_ATTRIBUTES}
        | {"utility_appeal_by_attribute": appeal[0], "utility_appeal_by_effect": appeal[1]}
        | {f"agents_returns_{key}": value for key, value in returns.items()}
    ),
    st.sampled_from([1.0, -0.5]),
    _EFFECTS,
    st.fixed_dictionaries({"online": st.sampled_from([60.0, -200.0]), "first": st.just(1)}),
)
"""Agents that mind likes and what a post is, and remember what their sessions were worth."""
_homophily = st.fixed_dictionaries(
    {
        "attributes": st.just(_ATTRIBUTES),
        "agents_homophily_by": st.sampled_from(["leaning", "party"]),
        "agents_homophily_engaging": st.sampled_from([3.0, -2.0]),
        "agents_homophily_following": st.sampled_from([0.5, 5.0]),
    }
)


_POSTS = st.sampled_from(["post.likes > 0", "post.kind != 'post'", "post.age_hours > 0", "post.author_followers > 6"])
_SHOWN = _POSTS | st.sampled_from(["post.relevance > 0.6", "post.in_network", "agent.activity > 0.5"])
_SOME = st.sampled_from([{}, {"share": 0.5}, {"agents": "agent.activity > 0.3"}])
_COVERED = st.sampled_from([{}, {"coverage": 0.5, "delay": 3}, {"delay": {"median": 2, "sigma": 1}}])


def _act(kind, **params):
    return st.fixed_dictionaries(params).map(lambda act: {kind: act})


_acts_for_agents = st.builds(
    lambda act, agents: act | agents,
    st.one_of(
        _act("remove", posts=_POSTS),
        _act("label", posts=_POSTS, effect=st.sampled_from([{"like": -0.7}, {"reply": -2, "reshare": -0.1}])),
        _act("friction", on=st.sampled_from(ACTION_NAMES), abandon=st.sampled_from([0.4, 1.0])),
        _act("filter", posts=_SHOWN),
        _act("downrank", posts=_SHOWN, score=st.sampled_from([-2, 0.5])),
        _act("cap", reshares=st.sampled_from([1, 3])),
        st.just({"hide": ["likes"]}),
    ),
    _SOME,
)
_acts_for_all = st.one_of(
    _act("suspend", accounts=st.just("agent.activity > 0.8"), posts=st.sampled_from(["keep", "remove"])),
    _act("like", posts=_POSTS, n=st.integers(1, 5)),
    _act("post", by=st.just("agent.activity > 0.9"), text=st.just("Vote."), every=st.sampled_from([None, 2])),
)


def _with_rounds(acts, rounds, covered):
    """Return interventions with names and rounds; acts on posts may cover some of the posts, later."""
    interventions = []
    for i, (act, (at, until), cover) in enumerate(zip(acts, rounds, covered, strict=True)):
        act = {key: value | cover if key in ("remove", "label", "like") else value for key, value in act.items()}
        interventions.append({"name": f"act_{i}", "at": at, "until": until, **act})
    return {"interventions": interventions}


_interventions = st.builds(
    _with_rounds,
    st.lists(_acts_for_agents | _acts_for_all, min_size=3, max_size=3),
    st.lists(st.sampled_from([(0, None), (1, 2), (1, None), (0, 2)]), min_size=3, max_size=3),
    st.lists(_COVERED, min_size=3, max_size=3),
)


_engages = st.fixed_dictionaries(
    {},
    optional={
        "like": st.sampled_from(["post.likes > 0", "post.utility > 0.4"]),
        "reply": st.sampled_from(
            ["post.kind == 'post'", "post.author_account == 'pages'", "post.likes > 2 * post.replies"]
        ),
        "reshare": st.sampled_from(["post.author_account != 'bots'", "agent.openness > 3", "post.impressions > 4"]),
    },
)
_accounts = st.builds(
    lambda engages, n, rate: [
        {"name": "bots", "n": n, "activity": 1.0, "follows": 6, "engages": engages},
        {"name": "pages", "n": 2, "post_rate": rate, "followers": 5, "follows": 0},
    ],
    _engages,
    st.integers(1, 5),
    st.sampled_from([0.5, 1.0]),
)


def _together(people, utility, reactions, network, alike, acts, accounts):
    """Return all of a world, without homophily where nothing goes by it."""
    counts = {"engaging": utility, "following": network}
    idle = {f"agents_homophily_{name}" for name, where in counts.items() if not where}
    kept = {key: value for key, value in alike.items() if key not in idle} if utility or network else {}
    if not people["feed_repeats"]:
        utility = {key: value for key, value in utility.items() if key != "utility_per_source"}
    reactions = reactions if utility else {}
    if reactions and people["agents_session"] is not None:
        reactions |= {"agents_returns_session": 30.0}
    if acts and not reactions:  # nobody minds hidden likes
        acts = {"interventions": [act for act in acts["interventions"] if "hide" not in act]}
    attributes = kept.get("attributes", {}) | reactions.get("attributes", {})
    kinds = {"accounts": accounts} if accounts else {}
    attributes = {"attributes": attributes} if attributes else {}
    return people | utility | network | kept | acts | reactions | kinds | attributes


populations = st.builds(
    _together,
    _people,
    st.just({}) | _utilities,
    st.just({}) | _reactions,
    st.just({}) | st.just(LIVE),
    st.just({}) | _homophily,
    st.just({}) | _interventions,
    st.just([]) | _accounts,
)
"""Parameters of worlds: half with utility that is more than relevance, half with a live network, half with acts, half
with accounts of two kinds."""


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
    declared = [cell.targets for by_state in chart.cells.values() for cell in by_state.values()]
    sets = {(AgentState.COMPOSING, AgentState.SCROLLING)}
    sets |= {some for own in declared for n in range(2, len(own) + 1) for some in combinations(own, n)}
    weights = [((i * 7) % 5 - 2) / 2 for i in range(len(LINEAR_NAMES))]
    choices = [
        OptionModel(options=list(some), scores=[LinearScore(intercept=0.2, weights=weights)] * (len(some) - 1), rows=1)
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
    there = model.posts.n_visible(max(model.round, 0))
    older = [model.post(seed * 37 % there, agent.row)] if there else []
    known = [post for post in (agent.current_post, *agent.feed[:1], *older) if post is not None]
    if not known:
        return None
    post, action = known[seed % len(known)], ACTION_NAMES[seed % 5 % 3]
    return post, action, getattr(agent, action)(post)


class Gossip(SocialAgent):
    """Does what every agent does, and now and then changes its mind about another one."""

    def step(self):
        super().step()
        seed = (self.row * 13 + self.model.round * 5 + self.model.tick * 7) % 17
        if seed < 6:
            decide_somehow(self, seed)


def decide_somehow(agent, seed):
    """Let an agent follow, unfollow, mute, block or report another one, if it can; return whether that is new."""
    model, n = agent.model, len(agent.model.population)
    other, name = (agent.row + 1 + seed * 7 % (n - 1)) % n, ("follow", "unfollow", "mute", "block", "report")[seed % 5]
    about = agent.feed[0] if name == "report" and agent.feed else other
    gone = [row for row in (agent.row, getattr(about, "author", about)) if model.agent(row).has_left]
    apart = name == "follow" and model.relations.are_blocked(np.array([agent.row]), np.array([other]))[0]
    blocks = (agent.row, other, FOLLOW_EVENTS.index("block")) in model.events.decided
    if gone or apart or (blocks and name == "follow") or (about is other and name == "report"):
        return None
    return getattr(agent, name)(about)


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


SCRIPTS = (Inheriting, Diarist, Echo, Fan, Gossip, Moderator, Recruiter)


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
        elif self.what == "decides":
            decide_somehow(model.agent(row), self.value)
        elif isinstance(self.what, type):
            self.what(model, row)
        elif self.what != "state" or self.value in model.agent(row).chart.states:  # a drawn chart may lack the state
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
    "decides": st.integers(0, 99),
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
