"""What agents do in a round, where columns are filled for some of them only, or hold what was before."""

import numpy as np
import pytest
from worlds import ran, small

from prism_mesa.domain import TRAIT_MEANS
from prism_mesa.reasoner import RuleParams, RuleReasoner
from prism_mesa.reasoner.rule import BIAS
from prism_mesa.social.behavior import build_chart, social_chart
from prism_mesa.statechart import AgentState, F, Statechart, Transition

IDLE, SCROLLING, RESTING = AgentState.IDLE, AgentState.SCROLLING, AgentState.RESTING
EVALUATING, COMPOSING = AgentState.EVALUATING, AgentState.COMPOSING
ALL_ONLINE = {"agents_activity": 1.0, "agents_activity_sigma": 0.0}
LIVELY = {"agents_post_rate": 0.6, "agents_like": 0.4, "agents_reply": 0.3}


def reading_if(guard):
    """Return the default chart, but that a post is read only if a guard holds."""
    transitions = [
        Transition(t.trigger, t.source, t.target, guard if t.trigger == "sees_post" else t.guard)
        for t in build_chart().transitions
    ]
    return Statechart(AgentState, transitions, IDLE, timeouts={RESTING: 2})


POST_GUARDS = {
    "relevance": (F.post.relevance > 0.5, lambda post, agent: post.relevance > 0.5),
    "relevance and a threshold": (
        F.post.relevance > F.agent.engagement_threshold,
        lambda post, agent: post.relevance > agent.engagement_threshold,
    ),
    "author": (F.post.author < 15, lambda post, agent: post.author < 15),
    "round": (F.post.round == 0, lambda post, agent: post.round == 0),
    "id": (F.post.post_id < 20, lambda post, agent: post.post_id < 20),
    "root": (F.post.root < 20, lambda post, agent: post.root < 20),
    "kind": (F.post.kind == "post", lambda post, agent: post.kind == "post"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", POST_GUARDS)
def test_whether_a_post_is_read_depends_on_that_post_and_not_on_the_one_before(name):
    guard, holds = POST_GUARDS[name]
    model = small(chart=reading_if(guard), network_mean_degree=12, agents_threshold_mean=0.4, **ALL_ONLINE | LIVELY)
    passed_over = 0
    for _ in range(4):
        model.step()
        for row in range(30):
            [first, *_] = [*model.agent(row).feed, None]
            passed_over += first is not None and not holds(first, model.agent(row))
    read = [(row["post"], row["agent"]) for row in model.recorder.tables["impressions"]]
    assert all(holds(model.post(post, agent), model.agent(agent)) for post, agent in read)
    assert passed_over > 5
    per_round = {(row["round"], row["agent"]) for row in model.recorder.tables["impressions"]}
    assert len(read) > 1.2 * len(per_round)  # many read a second one, after the first


COUNTERS = {"likes": 2, "replies": 1, "reshares": 1, "impressions": 9, "velocity": 3}


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTERS)
def test_counters_that_a_guard_reads_are_those_of_the_root_when_the_round_opened(name):
    """Nobody posts after two rounds: then only copies are left to read, of roots whose counter has come far enough."""
    least = COUNTERS[name]
    chart = reading_if((getattr(F.post, name) >= least) | (F.post.round < 2))
    usual = {"agents_n": 100, "network_mean_degree": 12, "agents_threshold_mean": 0.3, "feed_mode": "random"}
    model = small(chart=chart, **usual | ALL_ONLINE | LIVELY)
    read, passed_over = 0, 0
    for round_ in range(6):
        before = {i: int(getattr(model.posts, name)[i]) for i in range(len(model.posts))}
        if round_ == 2:
            model.population.post_rate[:] = 0.0
        model.step()
        now = [row["post"] for row in model.recorder.tables.get("impressions", []) if row["round"] == round_]
        late = [post for post in now if model.posts.round[post] >= 2]
        assert all(before[int(model.posts.root[post])] >= least for post in late)
        read += len(late)
        firsts = [post for row in range(100) for post in model.agent(row).feed[:1]]
        passed_over += sum(post.round >= 2 and before[post.root] < least for post in firsts)
    assert read > 10
    assert passed_over > 5


def choosing(trigger, source, *targets):
    """Return the default chart with an open choice at one place."""
    kept = [t for t in social_chart.transitions if (t.trigger, t.source) != (trigger, source)]
    more = [Transition(trigger, source, target) for target in targets]
    return Statechart(AgentState, [*kept, *more], IDLE, timeouts={RESTING: 2})


@pytest.mark.slow
@pytest.mark.parametrize("band", [0.1, 0.6])
@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_without_a_post_at_hand_the_rule_goes_by_character_alone(band, scheduler):
    model = small(
        chart=choosing("feed_ready", IDLE, COMPOSING, SCROLLING),
        agents_n=600,
        agents_band=band,
        reasoner_rule_slope=20.0,
        reasoner_rule_velocity=20.0,
        scheduler=scheduler,
        records_transitions=1.0,
        **ALL_ONLINE,
    )
    model.population.traits[:] = TRAIT_MEANS
    model.step()
    opened = [row["to_state"] for row in model.recorder.tables["transitions"] if row["tick"] == 0]
    assert len(opened) == 600
    assert opened.count("composing") / 600 == pytest.approx(1 / (1 + np.exp(-BIAS)), abs=0.06)


def test_with_a_post_at_hand_it_goes_by_the_post_whoever_else_has_none():
    """Two choices between the same options: about a post far above the band, and without a post."""
    asks = {("decides", EVALUATING), ("timeout", RESTING)}
    kept = [t for t in social_chart.transitions if (t.trigger, t.source) not in asks]
    own = [Transition(*place, target) for place in sorted(asks) for target in (COMPOSING, SCROLLING)]
    chart = Statechart(AgentState, [*kept, *own], IDLE, timeouts={SCROLLING: 2, RESTING: 1})
    reasoner = RuleReasoner(RuleParams(slope=20.0, velocity=20.0))
    usual = {"agents_n": 300, "agents_band": 0.02, "network_mean_degree": 2, "records_transitions": 1.0}
    model = small(chart=chart, reasoner=reasoner, **usual | ALL_ONLINE)
    model.population.engagement_threshold[:] = 0.01
    model.population.traits[:] = TRAIT_MEANS
    ran(model, 3)
    moves = [row for row in model.recorder.tables["transitions"] if row["open"]]
    went = {state: [row for row in moves if row["from_state"] == state] for state in ("evaluating", "resting")}
    composed = {state: [row["to_state"] == "composing" for row in rows] for state, rows in went.items()}
    assert sum(composed["evaluating"]) / len(composed["evaluating"]) > 0.95
    assert sum(composed["resting"]) / len(composed["resting"]) == pytest.approx(1 / (1 + np.exp(-BIAS)), abs=0.06)
    assert {row["tick"] for row in went["evaluating"]} & {row["tick"] for row in went["resting"]}


def test_an_agent_that_has_read_its_feed_leaves():
    model = ran(small(**ALL_ONLINE | LIVELY, feed_glances=3), 4)
    moves = model.recorder.tables["transitions"]
    leaves = [move for move in moves if move["trigger"] == "feed_done"]
    assert {(move["from_state"], move["to_state"]) for move in leaves} == {("scrolling", "idle")}
    last_read = {}
    for row in model.recorder.tables["impressions"]:
        last_read[row["round"], row["agent"]] = row["tick"]
    assert len(leaves) > 50
    for move in leaves:  # later than it read its last post, and it reads nothing more in that round
        assert move["tick"] > last_read.get((move["round"], move["agent"]), 0)
    assert (model.population.n_read == model.population.n_feed).mean() > 0.5
