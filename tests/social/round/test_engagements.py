"""What an agent engages with twice counts once, by chart or by script."""

import asyncio

import pytest
from engagement_charts import ALL_ONLINE, EVALUATING, LIKING, SCROLLING, always, assert_counts_agree, engagements
from worlds import differing, ran, small

from prism_mesa.reasoner import Reasoner
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.state.posts import RESHARE
from prism_mesa.statechart import AgentState, Transition

RESHARING = AgentState.ENGAGING_RESHARE


# -- chart and script


class LikesAfterwards(SocialAgent):
    """Does what the chart says, and then likes all that it has read by hand, in every round."""

    def step(self):
        super().step()
        if self.current_post is not None and self.current_post.post_id not in [post.post_id for post in read[self.row]]:
            read[self.row].append(self.current_post)
        told.extend((post.root, self.like(post)) for post in read[self.row])


class LikesBefore(SocialAgent):
    """Likes its whole feed by hand, and then does what the chart says."""

    def step(self):
        told.extend((post.root, self.like(post)) for post in self.feed)
        super().step()


read, told = {}, []


@pytest.mark.parametrize("kind", [LikesAfterwards, LikesBefore])
def test_a_like_by_script_and_one_by_the_chart_are_one(kind):
    told.clear()
    read.clear()
    read[3] = []
    model = small(chart=always(LIKING), **ALL_ONLINE)
    kind(model, 3)
    ran(model, 4)
    roots = [root for *_, root, _ in engagements(model, 3)]
    assert len(roots) == len(set(roots)) > 3
    assert len({round_ for round_, *_ in engagements(model, 3)}) > 1
    assert_counts_agree(model)
    news = [root for root, is_new in told if is_new]
    assert len(news) == len(set(news))
    assert len(told) > len(news)
    assert {root for root, _ in told} == set(roots)


def test_what_the_chart_liked_in_an_earlier_round_a_script_cannot_like_again():
    model = ran(small(chart=always(LIKING), **ALL_ONLINE), 2)
    (round_, _, agent, root, _), *_ = engagements(model)
    liked = model.posts.likes[root]
    for _ in range(6):
        assert not model.agent(agent).like(model.post(root, agent))
        model.step()
    assert [found[0] for found in engagements(model, agent) if found[3] == root] == [round_]
    assert model.posts.likes[root] >= liked
    assert_counts_agree(model)


@pytest.mark.parametrize("again", ["like", "reshare"])
def test_a_copy_of_a_root_is_the_root(again):
    model = ran(small(chart=always(RESHARING), **ALL_ONLINE), 3)
    copy = next(i for i in range(len(model.posts)) if model.posts.kind[i] == RESHARE and model.posts.round[i] < 3)
    root = int(model.posts.root[copy])
    outsider = next(
        row for row in range(30) if row not in [found[2] for found in engagements(model) if found[3] == root]
    )
    engage = getattr(model.agent(outsider), again)
    assert [engage(model.post(post, outsider)) for post in (root, copy, root)] == [True, False, False]
    model.step()
    assert not engage(model.post(copy, outsider))
    assert [found[4] for found in engagements(model, outsider) if found[3] == root].count(again) == 1


def test_a_like_a_reply_and_a_reshare_are_three_and_a_reply_is_new_in_each_round():
    model = ran(small(agents_activity=0.0, agents_post_rate=1.0), 1)
    agent, post = model.agent(5), model.post(0, 5)

    def does():
        return [agent.like(post), agent.reply(post), agent.reply(post, "Once more"), agent.reshare(post)]

    assert does() == [True, True, False, True]
    model.step()
    assert does() == [False, True, False, False]
    model.step()
    assert sorted((r, action) for r, *_, action in engagements(model, 5)) == [
        (1, "like"),
        (1, "reply"),
        (1, "reshare"),
        (2, "reply"),
    ]
    assert_counts_agree(model)


def test_a_post_that_comes_back_after_it_was_forgotten_is_not_liked_again():
    """Feeds forget who read what nobody can be shown any more; a script passes on such a post."""

    class Archivist(SocialAgent):
        def step(self):
            if (self.model.round, self.model.tick) == (4, 1):
                for post in old:
                    self.reshare(self.model.post(post, self.row))

    model = small(chart=always(LIKING), feed_window=1, **ALL_ONLINE | {"agents_post_rate": 0.2, "feed_size": 60})
    Archivist(model, follows=[], followers=range(30), activity=0.0, post_rate=0.0)
    ran(model, 4)
    old = sorted({root for round_, *_, root, _ in engagements(model) if round_ == 0})
    ran(model, 2)
    shown = [row["root"] for row in model.recorder.tables["impressions"] if row["round"] == 5]
    assert set(old) & set(shown)
    assert {round_ for round_, *_, root, action in engagements(model) if root in old and action == "like"} <= {0, 5}
    assert_counts_agree(model)


def test_what_is_done_between_rounds_comes_before_what_the_chart_does_in_the_next():
    model = ran(small(chart=always(RESHARING), feed_mode="random", **ALL_ONLINE | {"feed_size": 60}), 1)
    model.population.activity[:] = 0.0
    model.step()
    done = [
        (row, i)
        for row in range(30)
        for i in range(len(model.posts))
        if model.posts.author[i] in model.network.followees(row)
        and model.posts.round[i] <= 1
        and model.agent(row).reshare(model.post(i, row), f"By hand, agent {row}")
    ]
    model.population.activity[:] = 1.0
    model.step()
    own = [i for i in range(len(model.posts)) if model.posts.words[i] >= 0]
    assert sorted((int(model.posts.author[i]), int(model.posts.parent[i])) for i in own) == sorted(done)
    read = {(row["agent"], row["post"]) for row in model.recorder.tables["impressions"] if row["round"] == 2}
    assert read & set(done)
    assert_counts_agree(model)


class Patron(SocialAgent):
    """Reshares in the names of others what these can read, in the middle of a round, and notes whether that was new."""

    def step(self):
        if self.model.tick == 5:
            for row in range(1, 20):
                agent = self.model.agent(row)
                feed = self.model.population.feed[row, : self.model.population.n_feed[row]].tolist()
                told.extend(agent.reshare(self.model.post(post, row)) for post in feed)


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [0.0, 0.02])
def test_the_first_tick_counts_whoever_waits_for_an_answer_meanwhile(delay_s):
    """A chart that has its answer late engages late, but at its tick: before what a script did in the meantime."""

    async def llm(prompt):
        await asyncio.sleep(delay_s)
        return '{"next_state": "engaging_reshare"}'

    def lived(**way):
        asks = [Transition("decides", EVALUATING, SCROLLING), Transition("ignores", EVALUATING, SCROLLING)]
        with Reasoner(llm, attempts=1, max_concurrency=64) as reasoner:
            model = small(chart=always(RESHARING, *asks), reasoner=reasoner, feed_mode="random", **way | ALL_ONLINE)
            Patron(model, 0)
            return ran(model, 3)

    told.clear()
    columns, rows = lived(), lived(scheduler="mesa")
    assert differing(columns, rows) == []
    assert_counts_agree(columns)
    ticks = {tick for _, tick, *_ in engagements(columns, *range(1, 20))}
    assert min(ticks) < 5 in ticks
    assert {True, False} == set(told)
