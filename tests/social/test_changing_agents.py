"""Agents that come and go between rounds and during them."""

import pytest
from echo_agents import IDLE, Echo
from worlds import differing, ran, small

from prism_mesa.errors import AgentError
from prism_mesa.social.agent import SocialAgent
from prism_mesa.statechart import (
    agents_in_state,
    state_distribution,
)

# agents that come and go


def test_a_new_agent_follows_and_is_followed_from_the_next_round_on():
    model = ran(small(agents_activity=1.0, agents_activity_sigma=0.0, feed_size=50, agents_post_rate=0.9), 1)
    loud = SocialAgent(model, follows=[3, 4], followers=[5], post_rate=1.0, engagement_threshold=0.25, name="Newcomer")
    assert (loud.row, loud.unique_id, loud.name, loud.engagement_threshold) == (30, 31, "Newcomer", 0.25)
    assert model.network.followees(30).tolist() == [3, 4]
    assert 30 in model.network.followees(5)
    first = len(model.posts)
    ran(model, 1)
    written = [i for i in range(first, len(model.posts)) if model.posts.author[i] == 30 and model.posts.kind[i] == 0]
    assert len(written) == 1
    row = model.population
    assert written[0] in row.feed[5, : row.n_feed[5]]
    assert {int(model.posts.author[i]) for i in row.feed[30, : row.n_feed[30]]} <= {3, 4}
    assert row.n_feed[30] > 0


def test_a_new_agent_shifts_nobody_elses_draws():
    with_newcomer, without = small(), small()
    newcomer = SocialAgent(with_newcomer)
    newcomer.post_rate = 0.0  # alone: follows nobody, followed by nobody
    ran(with_newcomer), ran(without)
    a, b = with_newcomer.population, without.population
    for name in ("names", "state", "engagement_threshold", "activity", "ticks_in_state"):
        assert list(getattr(a, name)[:30]) == list(getattr(b, name)), name
    assert with_newcomer.posts.author.tolist() == without.posts.author.tolist()
    assert with_newcomer.totals["likes"] == without.totals["likes"]
    assert [with_newcomer.history.entries(i) for i in range(30)] == [without.history.entries(i) for i in range(30)]


@pytest.mark.parametrize("fields", [{"mood": 1}, {"n_unread": 3}, {"scripted": True}, {"step": None}])
def test_a_field_that_is_unknown_or_cannot_be_set_is_named_and_no_agent_is_made(fields):
    model = small()
    with pytest.raises(AgentError, match=f"SocialAgent has no settable field '{next(iter(fields))}'"):
        SocialAgent(model, **fields)
    assert len(model.population) == len(model.agents) == 30


def test_an_agent_taken_over_keeps_its_row_and_the_ordinary_one_is_replaced():
    model = small()
    before = model.agent(6)
    after = SocialAgent(model, 6, name="Six")
    assert model.agent(6) is after
    assert before not in model.agents
    assert len(model.agents) == 30
    assert len({agent.unique_id for agent in model.agents}) == 30


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_a_removed_agent_is_gone_from_the_next_round_on_and_its_posts_stay(scheduler):
    model = ran(small(scheduler=scheduler, agents_post_rate=1.0, agents_activity_sigma=0.0), 1)
    posts = model.posts.author.tolist().count(8)
    model.agent(8).remove()
    assert len(model.agents) == 29
    first = len(model.posts)
    ran(model, 2)
    assert len(model.agents) == 29
    assert sum(model.state_counts().values()) == 29
    assert model.posts.author[:first].tolist().count(8) == posts
    assert 8 not in model.posts.author[first:].tolist()
    ticks = model.datacollector.get_table_dataframe("ticks")
    assert ticks.drop(columns=["round", "tick"]).sum(axis=1).tolist() == [30] * 10 + [29] * 20


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_all_counts_of_states_say_the_same_after_an_agent_was_removed(scheduler):
    model = ran(small(scheduler=scheduler, agents_activity=0.7), 1)
    agents = list(model.agents)

    def all_count(left):
        for counted in (model, model.agents, agents, list(model.agents)):
            assert sum(state_distribution(counted).values()) == left
            assert state_distribution(counted) == state_distribution(model)
            assert agents_in_state(IDLE, counted) == agents_in_state(IDLE, model)
        assert sum(agent.has_left for agent in agents) == 30 - left

    all_count(30)
    for gone, row in enumerate((8, 3, 20), 1):
        model.agent(row).remove()
        all_count(30 - gone)
        model.step()
        all_count(30 - gone)


def test_agents_come_in_the_order_of_rows_whatever_was_asked_for_before():
    model = small()
    model.agent(17)
    Echo(model, 25)
    model.agent(3)
    assert [agent.row for agent in model.agents] == list(range(30))
    Echo(model, 4)
    SocialAgent(model)
    model.agent(11).remove()
    rows = [*range(11), *range(12, 31)]
    assert [agent.row for agent in model.agents] == rows
    assert [agent.row for agent in model.agents_by_type[SocialAgent]] == [row for row in rows if row not in (4, 25)]
    assert [agent.row for agent in model.agents_by_type[Echo]] == [4, 25]
    model.step()
    assert [agent.row for agent in model.agents] == rows


class Moderator(SocialAgent):
    """Throws another agent out in the middle of round 1."""

    def step(self):
        if (self.model.round, self.model.tick) == (1, 3):
            for row in (2, 9, 15):
                self.model.agent(row).remove()


class Recruiter(SocialAgent):
    """Brings in an agent in the middle of round 0, and looks around."""

    def step(self):
        if (self.model.round, self.model.tick) == (0, 2):
            SocialAgent(self.model, follows=[self.row], activity=1.0)
        assert len(self.model.agents) >= 30


@pytest.mark.parametrize("kind", [Moderator, Recruiter])
def test_agents_that_go_or_come_during_a_round_do_so_alike_for_rows_and_columns(kind):
    def model(scheduler):
        world = small(scheduler=scheduler, agents_activity=0.9, agents_band=0.4)
        kind(world, 9)
        return ran(world, 3)

    rows, columns = model("mesa"), model("columns")
    assert differing(rows, columns) == []
    assert sum(columns.state_counts().values()) == (27 if kind is Moderator else 31)
