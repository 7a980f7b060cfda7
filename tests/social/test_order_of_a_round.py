"""What happens when in a round, what is visible when, and timeouts."""

from collections import Counter

import numpy as np
import pytest
from lively_worlds import EVALUATING, IDLE, LIVELY, RESTING, SCROLLING, moves, rounds_of
from worlds import named, ran, small, staying

from prism_mesa.social.behavior import social_chart
from prism_mesa.social.model import SocialModel
from prism_mesa.statechart import AgentState, Statechart, Transition

# the order of a round


def test_everybody_is_idle_between_rounds_but_not_when_the_round_is_collected():
    class Watching(SocialModel):
        def __init__(self, **params):
            super().__init__(**params)
            self.datacollector.model_reporters["active"] = lambda m: 30 - m.state_counts()[IDLE]

    model = small(Watching, chart=staying(), **LIVELY)
    model.datacollector.model_vars["active"] = []
    ran(model)
    assert model.state_counts()[IDLE] == 30
    assert rounds_of(model)["active"].tolist() == [30, 30, 30]


def test_a_round_goes_from_feed_ready_at_tick_0_to_round_ends_after_the_last_tick():
    model = ran(small(ticks_per_round=6, **LIVELY), 2)
    ticks = {}
    for row in moves(model):
        ticks.setdefault(row["trigger"], set()).add(row["tick"])
    assert ticks.pop("feed_ready") == {0}
    assert ticks.pop("round_ends") == {7}
    assert set().union(*ticks.values()) <= set(range(1, 7))
    assert Counter(row["trigger"] for row in moves(model, round=0))["feed_ready"] == 30


def test_each_move_leaves_the_state_that_the_one_before_entered():
    model = ran(small(agents_band=0.4))
    at = dict.fromkeys(range(30), "idle")
    declared = {(str(t.trigger), t.source.value, t.target.value) for t in social_chart.transitions if t.target}
    for row in moves(model):
        assert row["from_state"] == at[row["agent"]]
        assert (row["trigger"], row["from_state"], row["to_state"]) in declared
        at[row["agent"]] = row["to_state"]
    assert set(at.values()) == {"idle"}


def test_who_comes_online_is_who_gets_feed_ready_and_the_others_stay_idle():
    model = ran(small(agents_activity=0.4))
    opened = Counter(row["round"] for row in moves(model, trigger="feed_ready"))
    assert [opened[k] for k in range(3)] == rounds_of(model)["online"].tolist()
    for k in range(3):
        there = {row["agent"] for row in moves(model, round=k, trigger="feed_ready")}
        assert {row["agent"] for row in moves(model, round=k)} == there
    assert 0 < sum(opened.values()) < 90


def test_a_decision_follows_the_band():
    model = ran(small(agents_band=0.2, **LIVELY))
    agents = {agent.row: agent for agent in model.agents}
    seen = Counter()
    for row in moves(model, from_state="evaluating"):
        agent = agents[row["agent"]]
        relevance = model.post(row["post"], row["agent"]).relevance
        if row["trigger"] == "ignores":
            seen["ignored"] += 1
            assert relevance < agent.low_threshold
        elif row["trigger"] == "decides":
            seen["asked" if row["open"] else "settled"] += 1
            assert row["open"] == (agent.low_threshold <= relevance <= agent.high_threshold)
            assert row["open"] or row["to_state"] == "composing"
    assert min(seen["ignored"], seen["asked"], seen["settled"]) > 5
    assert seen["asked"] == model.totals["open"]


def test_composing_becomes_the_action_that_was_drawn_from_the_propensities():
    only_likes = ran(small(agents_reply=0.0, agents_reshare=0.0, **LIVELY))
    assert only_likes.totals["likes"] > 0
    assert (only_likes.totals["replies"], only_likes.totals["reshares"]) == (0, 0)
    mixed = ran(small(agents_n=200, agents_threshold_mean=0.4, agents_like=0.5, agents_reply=0.25, **LIVELY), 4)
    actions = Counter(row["action"] for row in mixed.recorder.tables["engagements"])
    total = sum(actions.values())
    assert total > 500
    assert actions["like"] / total == pytest.approx(0.5, abs=0.06)


# what is visible when


def test_a_reshare_is_seen_from_the_next_round_on_and_never_earlier():
    model = small(agents_threshold_mean=0.3, agents_like=0.0, agents_reply=0.0, agents_reshare=1.0, feed_size=40)
    seen = 0
    for _ in range(4):
        model.step()
        p, posts = model.population, model.posts
        shown = np.concatenate([p.feed[i, : p.n_feed[i]] for i in range(len(p))])
        assert (posts.round[shown] <= model.round).all()
        new = np.flatnonzero((posts.kind == 2) & (posts.round == model.round + 1))
        assert len(new) == model.round_row["reshares"] > 0
        assert not np.isin(new, shown).any()
        seen += int((posts.kind[shown] == 2).sum())
    assert seen > 0


def test_counters_are_those_of_the_opening_of_the_round_for_everybody_in_it():
    read = []

    def notes_what_it_reads(agent, post):
        read.append((agent.model.round, post.root, post.likes + post.replies + post.reshares, post.velocity))

    transitions = [t for t in social_chart.transitions if t.trigger != "sees_post"]
    sees = Transition("sees_post", SCROLLING, EVALUATING, action=notes_what_it_reads)
    chart = Statechart(AgentState, [*transitions, sees], IDLE, timeouts={RESTING: 2})
    ran(small(statechart_chart=named(chart, "reading"), agents_threshold_mean=0.3, **LIVELY), 4)
    told = {}
    for round_, root, engaged, velocity in read:
        told.setdefault((round_, root), set()).add((engaged, velocity))
    assert all(len(values) == 1 for values in told.values())
    assert {next(iter(v))[0] for (round_, _), v in told.items() if round_ == 0} == {0}
    assert max(next(iter(v))[0] for v in told.values()) > 0


# timeouts


def test_an_agent_times_out_after_its_own_ticks_and_rests_for_two():
    calm = {"agents_post_rate": 0.0, "agents_activity": 1.0, "agents_activity_sigma": 0.0}
    model = small(chart=staying(), ticks_per_round=12, **calm)
    model.agent(0).timeout_threshold = 3
    ran(model, 1)
    told = [(row["tick"], row["to_state"]) for row in moves(model, agent=0)]
    assert told == [
        (0, "scrolling"),
        (3, "resting"),
        (5, "scrolling"),
        (8, "resting"),
        (10, "scrolling"),
        (13, "idle"),
    ]
    others = [(row["tick"], row["to_state"]) for row in moves(model, agent=1)]
    assert others == [(0, "scrolling"), (5, "resting"), (7, "scrolling"), (12, "resting"), (13, "idle")]
