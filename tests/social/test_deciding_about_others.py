"""What agents decide about others in scripts: follows, mutes, blocks and reports, also where the network is fixed."""

import numpy as np
import pytest
from lively_worlds import LIVELY
from worlds import ran, small

from prism_mesa.errors import AgentError
from prism_mesa.social.agent import SocialAgent

MODES = ("random", "chronological", "preference", "x_algo")


def world(**params):
    return small(**LIVELY, **params)


def followees(model, row):
    return set(model.network.followees(row).tolist())


def stranger_of(model, row=0):
    """Return an agent whom another one does not follow, and who does not follow it."""
    free = set(range(len(model.population))) - {row} - followees(model, row)
    return min(other for other in free if row not in followees(model, other))


def rows_of(model):
    return [tuple(row.values()) for row in model.recorder.tables.get("follows", [])]


def shown_by(model, row, others, since):
    """Return the posts that an agent read from a round on by some others, or that go back to them."""
    posts = model.posts
    read = [r for r in model.recorder.tables["impressions"] if r["agent"] == row and r["round"] >= since]
    return [r["post"] for r in read if {int(posts.author[r["post"]]), int(posts.author[r["root"]])} & set(others)]


def test_what_is_decided_between_two_rounds_holds_from_the_next_one_on():
    model = ran(world(), 1)
    other, followee = stranger_of(model), min(followees(model, 0))
    assert model.agent(0).follow(other)
    assert model.agent(0).unfollow(model.agent(followee))
    assert other not in followees(model, 0)
    model.step()
    assert other in followees(model, 0)
    assert followee not in followees(model, 0)
    assert sorted(rows_of(model)) == sorted(
        [(0, 0, other, "follow", -1, "script"), (0, 0, followee, "unfollow", -1, "script")]
    )
    assert shown_by(model, 0, [other], 1)
    assert model.network.n_edges == model.first_network.n_edges


class Fickle(SocialAgent):
    """Follows somebody in round 0, and changes its mind twice in round 1."""

    def step(self):
        if self.model.tick == 1 and self.model.round == 0:
            self.said = [self.follow(self.model.wanted), self.follow(self.model.wanted)]
        if self.model.tick == 1 and self.model.round == 1:
            self.said += [self.unfollow(self.model.wanted), self.follow(self.model.wanted)]


def test_what_is_decided_in_a_round_holds_from_the_next_one_on_and_the_last_word_counts():
    model = world()
    model.wanted = stranger_of(model)
    agent = Fickle(model, 0)
    model.step()
    assert model.wanted in followees(model, 0)
    assert shown_by(model, 0, [model.wanted], 0) == []
    model.step()
    assert agent.said == [True, False, True, True]
    assert rows_of(model) == [(0, 0, model.wanted, "follow", -1, "script")]


@pytest.mark.parametrize("mode", MODES)
def test_mutes_and_blocks_bind_every_feed_with_reshares_and_posts_from_outside(mode):
    model = ran(world(feed_mode=mode, agents_reshare=0.6, agents_threshold_mean=0.4), 3)
    muted, blocked = list(range(1, 9)), [9, 10, 11]
    hidden = {0: [*muted, *blocked], 9: [0], 10: [0], 11: [0]}
    assert all(shown_by(model, row, others, 0) for row, others in hidden.items() if row == 0)
    for other in muted:
        assert model.agent(0).mute(other)
    for other in blocked:
        assert model.agent(0).block(other)
    kept = followees(model, 0)
    ran(model, 4)
    for row, others in hidden.items():
        assert shown_by(model, row, others, 3) == [], row
        assert shown_by(model, row, set(range(12, 30)), 3)
    assert followees(model, 0) == kept - set(blocked)  # who is muted is followed all the same
    assert model.network.n_edges < model.first_network.n_edges


def test_a_block_ends_follows_both_ways_and_none_begins():
    model = ran(world(), 1)
    other = stranger_of(model)
    model.agent(0).follow(other)
    model.agent(other).follow(0)
    model.step()
    assert model.agent(0).block(other)
    assert not model.agent(0).block(other)
    assert model.agent(other).unfollow(0)  # which it would have done, but is ended by the block
    model.step()
    since = [row for row in rows_of(model) if row[3] in ("unfollow", "block")]
    assert since == [
        (1, 0, other, "unfollow", -1, "block"),
        (1, 0, other, "block", -1, "script"),
        (1, other, 0, "unfollow", -1, "block"),
    ]
    for one, two in ((0, other), (other, 0)):
        with pytest.raises(AgentError, match=f"^agent {one} cannot follow agent {two}: one of the two has blocked the"):
            model.agent(one).follow(two)
        assert not model.agent(one).unfollow(two)


@pytest.mark.parametrize("what", ["mute", "block"])
def test_who_takes_it_back_sees_what_is_written_from_then_on_but_follows_are_not_restored(what):
    model = ran(world(feed_mode="x_algo", agents_reshare=0.4), 2)
    others = list(range(1, 12))
    kept = followees(model, 0)
    assert all(getattr(model.agent(0), what)(other) for other in others)
    ran(model, 3)
    assert shown_by(model, 0, others, 2) == []
    assert all(getattr(model.agent(0), f"un{what}")(other) for other in others)
    assert not any(getattr(model.agent(0), f"un{what}")(other) for other in others)
    ran(model, 4)
    roots = model.posts.root[shown_by(model, 0, others, 2)]
    theirs = roots[np.isin(model.posts.author[roots], others)]
    assert len(theirs)
    assert model.posts.round[theirs].min() >= 5  # the round that opened next
    assert followees(model, 0) == (kept if what == "mute" else kept - set(others))
    ran(model, 1)
    assert {row[3] for row in rows_of(model)} == {what, f"un{what}"} | ({"unfollow"} if what == "block" else set())


def test_a_post_is_reported_once_with_all_its_copies():
    model = ran(world(), 2)
    agent = next(model.agent(row) for row in range(30) if model.agent(row).feed)
    post = agent.feed[0]
    assert (agent.report(post), agent.report(post)) == (True, False)
    model.step()
    assert not agent.report(post)
    assert rows_of(model) == [(1, agent.row, post.author, "report", post.post_id, "script")]
    assert model.relations.counts == {"report": 1}
    assert model.network is model.first_network


WRONG = {
    "itself": (lambda m: m.agent(0).follow(0), r"SocialAgent\.follow: agent 0 cannot do that to itself"),
    "a row that is not there": (
        lambda m: m.agent(0).mute(30),
        r"SocialAgent\.mute: 30 is no agent \(rows: 0 \.\. 29\)",
    ),
    "who has left": (lambda m: m.agent(0).unfollow(5), r"SocialAgent\.unfollow: agent 5 has left"),
    "oneself having left": (lambda m: m.gone.follow(1), r"SocialAgent\.follow: agent 6 has left"),
    "a number": (lambda m: m.agent(0).block(1.0), r"SocialAgent\.block: 1\.0 is not an agent"),
    "another world's": (
        lambda m: m.agent(0).follow(world().agent(1)),
        r"follow: <SocialAgent 1 .*> is an agent of another",
    ),
    "no post": (lambda m: m.agent(0).report(3), r"SocialAgent\.report: 3 is not a post of this platform"),
    "an own post": (
        lambda m: m.agent(int(m.posts.author[0])).report(m.post(0, 0)),
        r"SocialAgent\.report: agent \d+ cannot do that to itself",
    ),
}


@pytest.fixture(scope="module")
def with_departed():
    model = world()
    model.agent(5).remove()
    ran(model, 1)
    model.gone = model.agent(6)
    model.gone.remove()
    return model


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_is_said_in_one_line_and_nothing_is_noted(what, with_departed):
    do, told = WRONG[what]
    with pytest.raises(AgentError, match=told) as error:
        do(with_departed)
    assert "\n" not in str(error.value)
    assert with_departed.events.decided == {}
