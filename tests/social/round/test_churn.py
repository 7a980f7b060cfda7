"""Agents who come and go are those of `plain_churn` on random worlds, and who is not there does nothing."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_churn import PlainChurn
from random_worlds import Echo, Gossip, Moderator, Recruiter, happenings, populations
from worlds import ran, small

from prism_mesa.errors import AgentError
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import social_chart
from prism_mesa.social.state.population import NO_ACTION
from prism_mesa.social.state.posts import POST
from prism_mesa.statechart import Statechart

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*posts below an agent:prism_mesa.errors.NotedWarning"),
    pytest.mark.filterwarnings("ignore:.*nobody has close ties:prism_mesa.errors.NotedWarning"),
    pytest.mark.filterwarnings("ignore:.*agents.churn.* no effect:prism_mesa.errors.NotedWarning"),
]
ROUNDS = 4
CHURN = {f"agents_churn_{name}": chance for name, chance in (("waiting", 0.5), ("join", 0.3), ("leave", 0.2))}
BUSY = {"agents_activity": 1.0, "agents_activity_sigma": 0.0, "agents_post_rate": 0.8}
_chance = st.sampled_from([0.0, 0.2, 1.0, 0.5])
churning = st.fixed_dictionaries({f"agents_churn_{name}": _chance for name in ("waiting", "join", "leave", "back")})
changes = st.sampled_from([(), ({"at": 2, "until": 3, "set": {"agents.churn.leave": 0.9, "agents.churn.back": 0.9}},)])


@pytest.mark.parametrize(
    ("churn", "has_churn"), [({}, False), ({"agents_churn_waiting": 0.1}, True), ({"agents_churn_leave": 0.1}, True)]
)
def test_a_platform_has_churn_only_if_agents_wait_or_leave(churn, has_churn):
    assert small(**churn).params.has_churn == has_churn


def edges(network):
    followed, follower = (column.tolist() for column in network.edges())
    return set(zip(follower, followed, strict=True))


def assert_network(model, plain):
    """Check that of the drawn follows there are those between agents who have joined, and of the close ties too."""
    drawn, n = model.drawn_network, model.drawn_network.n_agents
    assert all((row[1:] > row[:-1]).all() for row in map(model.network.followees, range(n)))
    joined = plain.joined
    expected = {pair for pair in edges(drawn) if set(pair) <= joined}
    assert {pair for pair in edges(model.network) if max(pair) < n} == expected
    close, ties = (np.diff(one.close_indptr[: n + 1]) for one in (model.network, drawn))
    of = np.split(drawn.close_indices, np.cumsum(ties)[:-1])
    assert close.tolist() == [sum(b in joined for b in of[a].tolist()) * (a in joined) for a in range(n)]


def assert_nothing_done(model, there, before, done):
    """Check that in the round that is over nobody did or was shown anything who was not there, but for `before` it."""
    tables, now = model.recorder.tables, model.round
    for table in ("impressions", "engagements", "transitions", "follows"):
        rows = tables.get(table, [])[done[table] :]
        assert {row["agent"] for row in rows} <= (there | before if table == "engagements" else there), table
        done[table] += len(rows)
    assert set(model.posts.author[model.posts.written == now].tolist()) <= there | before
    people = model.population
    absent = [row for row in range(len(people)) if row not in there]
    assert not people.n_feed[absent].any()
    assert not people.present[absent].any()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(populations, churning, changes, happenings(scripts=(Echo, Gossip, Moderator, Recruiter)))
def test_who_comes_and_goes_is_as_the_plain_rules_say_and_who_is_not_there_does_nothing(
    params, churn, changes, happens
):
    model = small(**params | churn | {"interventions": changes, "rounds": ROUNDS})
    plain, expected, done, n_decided = PlainChurn(model), [], Counter(), 0
    for round_ in range(ROUNDS):
        assert {row for row in range(len(model.population)) if model.population.present[row]} >= plain.there
        before = set()
        for happening in (one for one in happens if one.round == round_):
            before |= {happening.row % len(model.population)} if happening.what == "engages" else set()
            happening.to(model)
        removed, n = set(model.leaving), len(model.population)
        expected += plain.open(round_, n, removed)
        model.step()
        there = plain.there
        assert there == set(np.flatnonzero(model.population.present[:n]).tolist())
        assert_nothing_done(model, there | set(range(n, len(model.population))), before, done)
        n_decided += len(model.recorder.tables.get("follows", ()))
        if not n_decided:
            assert_network(model, plain)
    rows = [tuple(row.values()) for row in model.recorder.tables.get("churn", [])]
    assert rows == expected
    counts = Counter(row[2] for row in rows)
    assert {event: model.totals[event] for event in counts} == counts


class Marcher(SocialAgent):
    """Keeps the rounds in which its step was called."""

    def step(self):
        super().step()
        self.steps = [*getattr(self, "steps", ()), self.model.round]


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_scripts_of_agents_are_called_in_the_rounds_in_which_they_are_there(scheduler):
    model = small(scheduler=scheduler, rounds=6, agents_n=12, **BUSY, **CHURN, agents_churn_back=0.5)
    agents = [Marcher(model, row) for row in range(12)]
    there = []
    for round_ in range(6):
        model.step()
        there += [(round_, row) for row in np.flatnonzero(model.population.present).tolist()]
        on = [agent for agent in agents if not agent.has_left]
        assert list(model.agents) == on
        assert sum(model.state_counts().values()) == len(on) == model.round_row["present"]
    assert sorted({(round_, agent.row) for agent in agents for round_ in getattr(agent, "steps", ())}) == there
    assert 20 < len(there) < 62


def test_an_agent_that_waits_or_has_left_can_do_nothing_and_says_so():
    model = small(**BUSY, agents_churn_waiting=0.5)
    waits = int(np.flatnonzero(~model.population.present)[0])
    there = int(np.flatnonzero(model.population.present)[0])
    agent, other = model.agent(waits), model.agent(there)
    assert repr(agent).endswith("has not joined yet>")
    assert agent.has_left
    assert agent not in model.agents
    for act in (lambda: agent.write("Hello"), lambda: agent.fire("sees_post"), lambda: agent.follow(there)):
        with pytest.raises(AgentError, match=f"agent {waits} has not joined yet$"):
            act()
    with pytest.raises(AgentError, match=f"agent {waits} has not joined yet$"):
        other.follow(waits)
    with pytest.raises(AgentError, match="holds no agent"):
        SocialAgent(model, follows=[waits])
    agent.remove()
    ran(model, 1)
    assert model.population.membership[waits] == 3
    with pytest.raises(AgentError, match="holds no agent"):
        SocialAgent(model, waits)


def test_posts_of_one_who_left_stay_and_it_goes_on_from_its_follows_when_it_comes_back():
    model = small(rounds=4, **BUSY, feed_size=200, agents_churn_leave=1.0, agents_churn_back=1.0)
    before = edges(model.network)
    ran(model, 1)
    n = len(model.posts)
    ran(model, 1)
    assert not model.population.present.any()
    assert model.round_row["present"] == model.round_row["online"] == 0
    ran(model, 1)
    assert model.population.present.all()
    assert edges(model.network) == before
    read = {row["post"] for row in model.recorder.tables["impressions"] if row["round"] == 2}
    assert min(read) < n


def test_one_who_leaves_in_the_middle_of_something_lets_go_of_it_and_comes_back_idle():
    transitions = [one for one in social_chart.transitions if one.trigger != "round_ends"]
    staying = Statechart(social_chart.states, transitions, social_chart.initial, timeouts=social_chart.timeouts)
    model = ran(small(**BUSY, chart=staying, ticks_per_round=7, agents_churn_leave=1.0), 1)
    people = model.population
    assert (people.state > 0).sum() > 10
    ran(model, 1)
    held = (people.state, people.ticks_in_state, people.current_post + 1, people.n_feed)
    assert not any(column.any() for column in held)
    assert (people.pending_action == NO_ACTION).all()


def test_an_absent_author_of_scheduled_posts_writes_none_and_a_present_one_writes_all():
    leaving = {"agents_churn_leave": 0.3, "agents_churn_back": 0.3, "agents_post_rate": 0.0}
    model, expected, scheduled = small(**leaving, posts_seeded_count=20, rounds=20), [], 0
    for round_ in range(20):
        model.step()
        authors, _ = model.schedule.posts_in_round(round_)
        scheduled += len(authors)
        expected += [(round_, author) for author in authors.tolist() if model.population.present[author]]
    assert 5 < len(expected) < scheduled - 5
    roots = np.flatnonzero(model.posts.kind == POST)
    assert list(zip(model.posts.round[roots].tolist(), model.posts.author[roots].tolist(), strict=True)) == expected
    assert model.totals["unwritten"] == scheduled - len(expected)
