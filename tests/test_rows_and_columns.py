"""One row equals all rows: `SocialAgent.step()` over all agents does what the columns do."""

from hashlib import blake2b

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import differing, named, ran, small

from prism_mesa.reasoner import Reasoner
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import FIRED, social_chart
from prism_mesa.social.model import SocialModel
from prism_mesa.statechart import NEEDS_ORACLE, AgentState, F, Statechart, Transition


def fails(agent, post):
    raise KeyError("nothing to see")


def fails_without_a_post(agent, post):
    return post.likes >= 0


def unsure(agent, post):
    return NEEDS_ORACLE if agent.ticks_in_state % 2 else agent.n_unread > 3


def long_history(agent, post):
    return len(agent.state_history) % 3 == 1


GUARDS = (
    None,
    None,
    F.post.relevance > 0.52,
    F.post.relevance >= F.agent.low_threshold,
    (F.post.velocity > 0) | (F.post.likes > 0),
    F.post.kind == "reshare",
    F.post.has_media == 1,
    F.post.round * 2 < 3,
    F.agent.n_unread > 2,
    F.agent.pending_action == "like",
    F.agent.pending_action != "reply",
    F.agent.state == "resting",
    F.agent.extraversion / F.agent.neuroticism > 1.2,
    F.agent.ticks_in_state > 1,
    F.agent.timeout_threshold < 4,
    F.agent.name < "K",
    F.agent.no_such_field > 1,
    1 / (F.post.likes - F.post.likes) > 1,
    lambda agent, post: agent.should_engage(post),
    lambda agent, post: agent.is_interested(post),
    fails,
    fails_without_a_post,
    unsure,
    long_history,
)


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


ACTIONS = (None, None, None, changes_its_mind, forgets_its_plan, likes_unasked, skips_one, loses_patience)

STATES = st.sampled_from(list(AgentState))
arrows = st.builds(
    Transition,
    st.sampled_from(sorted(FIRED)),
    STATES,
    st.none() | STATES,
    st.sampled_from(GUARDS),
    st.sampled_from(ACTIONS),
)


@st.composite
def charts(draw):
    """Charts that the check lets pass: part of the default one, and anything else in any order."""
    kept = [t for t in social_chart.transitions if draw(st.integers(0, 9))]
    transitions = draw(st.permutations(kept + draw(st.lists(arrows, max_size=12))))
    concrete = {(t.trigger, t.source) for t in transitions if t.target is not None}
    transitions = [t for t in transitions if (t.trigger, t.source) in concrete]
    initial = draw(st.sampled_from([AgentState.IDLE] * 3 + [AgentState.EVALUATING, AgentState.RESTING]))
    reached, before = {initial}, set()
    while reached != before:
        before = set(reached)
        reached |= {t.target for t in transitions if t.source in reached and t.target is not None}
    timeouts = draw(st.dictionaries(st.sampled_from(sorted(reached)), st.integers(1, 4), max_size=3))
    transitions = [t for t in transitions if t.source in reached]
    return Statechart(
        reached, transitions, initial, timeouts=timeouts, oracle_enabled=draw(st.integers(0, 4)) > 0, name="random"
    )


populations = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**63 - 1),
        "agents_n": st.integers(7, 40),
        "agents_band": st.sampled_from([0.0, 0.1, 0.4, 1.0]),
        "agents_activity": st.sampled_from([0.3, 1.0]),
        "agents_post_rate": st.sampled_from([0.2, 0.6]),
        "agents_propensity_sigma": st.sampled_from([0.0, 2.0]),
        "agents_threshold_mean": st.sampled_from([0.0, 0.5, 0.6]),
        "statechart_default_timeout_ticks": st.integers(1, 6),
        "statechart_max_history_depth": st.sampled_from([0, 1, 3, 50]),
        "statechart_oracle_enabled": st.booleans(),
        "reasoner_asks_action": st.booleans(),
        "ticks_per_round": st.integers(1, 12),
        "feed_mode": st.sampled_from(["random", "chronological", "preference", "x_algo"]),
        "feed_size": st.integers(1, 6),
        "feed_window": st.integers(1, 3),
    }
)


def whim(prompt):
    """Answer by what the question says: sometimes well, sometimes with nothing to be understood."""
    whim = blake2b(prompt.encode(), digest_size=1).digest()[0]
    if whim % 5 == 0:
        raise TimeoutError("no answer")
    options = [state.value for state in AgentState if f"{state.value}" in prompt.lower()]
    return f'{{"next_state": "{options[whim % len(options)]}"}}'


def by_rows_and_by_columns(rounds=3, reasoner=None, **params):
    def model(scheduler):
        asked = {} if reasoner is None else {"reasoner": reasoner()}
        return ran(small(scheduler=scheduler, **asked, **params), rounds)

    return model("mesa"), model("columns")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(populations, charts())
def test_all_agents_stepping_one_by_one_equal_the_columns_whatever_the_chart(params, chart):
    rows, columns = by_rows_and_by_columns(statechart_chart=named(chart), **params)
    assert differing(rows, columns) == []


@settings(max_examples=10, deadline=None)
@given(populations)
def test_with_the_default_chart_they_are_equal_too(params):
    rows, columns = by_rows_and_by_columns(rounds=4, **params)
    assert differing(rows, columns) == []


@pytest.mark.parametrize("fallback", ["first", "rule", "stay"])
def test_they_are_equal_when_an_llm_is_asked_and_sometimes_fails(fallback, caplog):
    rows, columns = by_rows_and_by_columns(
        agents_n=20,
        agents_band=0.5,
        agents_activity=1.0,
        reasoner_asks_action=True,
        reasoner=lambda: Reasoner(whim, fallback=fallback, backoff_s=0),
    )
    assert columns.totals["fallback"] > 0
    assert columns.totals["open"] > columns.totals["fallback"]
    assert differing(rows, columns) == []
    for model in (rows, columns):
        model.reasoner.close()


class Shuffled(SocialModel):
    """Calls its agents in another order each time."""

    @property
    def agents(self):
        return super().agents.shuffle(inplace=False)


def test_the_order_in_which_agents_step_does_not_matter():
    chart = Statechart(
        AgentState,
        [*social_chart.transitions, Transition("decides", "evaluating", "resting", fails, likes_unasked)],
        AgentState.IDLE,
        timeouts={AgentState.RESTING: 2},
    )
    params = {"agents_band": 0.4, "agents_activity": 0.9, "statechart_chart": named(chart, "shuffled")}
    shuffled = ran(small(Shuffled, scheduler="mesa", **params), 4)
    in_order, columns = by_rows_and_by_columns(4, **params)
    assert differing(shuffled, in_order) == differing(shuffled, columns) == []


class Diarist(SocialAgent):
    """Does what every agent does, and writes a line about it now and then."""

    def step(self):
        super().step()
        if self.model.tick % 4 == 1:
            self.write(f"Agent {self.row}, round {self.model.round}: {self.state.value}")


def test_nor_does_the_order_in_which_scripted_agents_step():
    def with_diarists(kind, order):
        model = small(kind)
        for row in order:
            Diarist(model, row)
        return ran(model, 3)

    forwards = with_diarists(SocialModel, [2, 5, 9])
    backwards = with_diarists(SocialModel, [9, 2, 5])
    assert differing(forwards, backwards) == []
    assert sum(text.startswith("Agent 5") for text in forwards.posts.texts) == 9


def test_a_script_that_only_calls_the_inherited_step_changes_nothing():
    class Inheriting(SocialAgent):
        def step(self):
            super().step()

    everyone_online = {"agents_activity": 1.0, "agents_activity_sigma": 0.0}
    scripted, plain = small(**everyone_online), small(**everyone_online)
    for row in range(0, 30, 3):
        Inheriting(scripted, row)
    ran(scripted), ran(plain)
    assert differing(scripted, plain) == ["scripted"]
