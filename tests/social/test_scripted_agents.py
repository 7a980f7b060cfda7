"""Agents with a script of their own."""

from echo_agents import Echo
from worlds import ran, small

from prism_mesa.social.agent import SocialAgent

# agents with a script of their own


def test_a_bot_that_reshares_everything_shows_in_the_tables():
    model = small(agents_activity=0.0, agents_post_rate=0.5, agents_activity_sigma=0.0, feed_size=100)
    Echo(model, 11)
    ran(model, 2)
    reads = model.recorder.tables["engagements"]
    assert {row["agent"] for row in reads} == {11}
    assert {row["action"] for row in reads} == {"reshare"}
    followed = set(model.network.followees(11).tolist())
    shown = [i for i in range(len(model.posts)) if model.posts.kind[i] == 0 and model.posts.author[i] in followed]
    assert sorted(row["post"] for row in reads) == shown
    rounds = model.datacollector.get_model_vars_dataframe()
    assert rounds["reshares"].sum() == rounds["impressions"].sum() == len(shown) > 3
    passed_on = [i for i in range(len(model.posts)) if model.posts.kind[i] == 2]
    assert sorted(model.posts.parent[passed_on].tolist()) == shown
    assert {int(a) for a in model.posts.author[passed_on]} == {11}
    assert all(model.posts.reshares[i] == 1 for i in shown)


def test_a_bot_likes_replies_and_writes_and_it_appears_in_the_next_round():
    class Chatty(SocialAgent):
        def step(self):
            if self.model.tick == 1 and (post := self.read()) is not None:
                self.like(post)
                self.like(post)  # once is enough
                self.reply(post)
                self.write("Hear, hear")

    model = small(agents_activity=0.0, agents_post_rate=0.9, agents_activity_sigma=0.0)
    Chatty(model, 0, post_rate=0.0)
    ran(model, 1)
    posts = model.posts
    assert (model.totals["likes"], model.totals["replies"], model.totals["posts"]) == (1, 1, (posts.round == 0).sum())
    mine = [i for i in range(len(posts)) if posts.author[i] == 0]
    assert [posts.round[i] for i in mine] == [1, 1]
    reply, own = mine
    assert (posts.kind[reply], posts.root[reply], posts.kind[own], posts.parent[own]) == (1, reply, 0, -1)
    assert posts.likes[posts.parent[reply]] == posts.replies[posts.parent[reply]] == 1
    assert model.post(own, 0).text == "Hear, hear"


def test_what_a_script_reads_is_an_impression_and_is_not_shown_again():
    class Reader(SocialAgent):
        def step(self):
            while (post := self.read()) is not None:
                read.append(post.post_id)

    read = []
    model = small(agents_activity=0.0, agents_post_rate=0.4, agents_activity_sigma=0.0)
    Reader(model, 0)
    ran(model, 4)
    assert len(read) == len(set(read)) == model.totals["impressions"]
    assert len(read) > 3
