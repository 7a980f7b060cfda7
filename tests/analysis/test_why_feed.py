"""Why a post was in a feed: what is told of scores orders feeds as the kernel does, and its parts make the scores."""

from pathlib import Path

import pytest
from worlds import small

from prism_mesa.analysis.explain.feed import RankedFeed, explain_feed
from prism_mesa.api.runs import run, why
from prism_mesa.errors import BadInputError, DataError
from prism_mesa.runs.config import make_config
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.round.follow_rules import MUTE, SCRIPT
from prism_mesa.social.round.follows import note_decision
from prism_mesa.social.state.posts import RESHARE, to_relevance
from prism_mesa.statechart import F

fresh = F.post.likes + 0.2 * F.post.in_network - 0.1 * F.post.age


LIVELY = {"agents_n": 60, "agents_activity": 1.0, "agents_post_rate": 0.5, "network_mean_degree": 5, "feed_size": 20}
MANY = {"out_of_network": 3, "two_hops": 4, "trending": 2, "search": 3, "followed": 4}
OUTSIDE = {f"feed_candidates_{name}": n for name, n in MANY.items()}
GROUPS = {"feed_attribute": "leaning", "attributes": {"leaning": {"of": "agent", "range": [-1, 1]}}}
MODES = ["chronological", "random", "preference", "bridging", "diverse", "x_2023", "x_2026_08", "test_why_feed:fresh"]


class Watching(SocialAgent):
    """Looks, in the first tick of a round, at everybody's feed."""

    def step(self):
        if self.model.tick == 1:
            self.model.looked_at += [watched(self.model, row) for row in range(0, 60, 4)]
        super().step()


def watched(model, row):
    ranked = RankedFeed(model, row)
    shown = model.population.feed[row, : model.population.n_feed[row]].tolist()
    assert shown == ranked.posts[: len(shown)]
    if shown and len(shown) < model.params.feed.size and model.params.agents.session is None:
        assert shown == ranked.posts
    for place, one in enumerate(ranked.order.tolist()):
        assert_parts(ranked, one, ranked.repeat_factors[place], model.posts)
    return row, shown, ranked, explain_feed(model, row)


def assert_parts(ranked, one, further, posts):
    """Hold the parts of a score against the score, and that against the kernel's formula, by hand."""
    made, mode, post = ranked.scored, ranked.params.mode, int(ranked.candidates.post[one])
    if mode == "chronological":
        assert made.inputs["age"][one] == ranked.model.round - posts.round[post]
    elif mode == "preference":
        assert to_relevance(made.score[one]) == made.inputs["relevance"][one]
    elif mode == "bridging":
        counts, root = ranked.model.platform.group_counts, posts.root[[post]]
        engaged, seen = counts.root_counts(root)
        told = [made.inputs[f"engaged in group {group}"][one] for group in (1, 2)]
        assert told == [f"{a} of {b}" for a, b in zip(engaged[0], seen[0], strict=True)]
    elif mode == "diverse":
        assert made.score[one] == made.terms["relevance"][1][one]
    elif mode == "random":
        assert 0 <= made.score[one] == made.inputs["draw"][one] < 1
    elif ":" in mode:
        read = {name: column[one] for name, column in made.inputs.items()}
        assert set(read) == {"post.likes", "post.in_network", "post.age"}
        assert made.score[one] == read["post.likes"] + 0.2 * read["post.in_network"] - 0.1 * read["post.age"]
    else:
        total = sum(weight * column[one] for weight, column in made.terms.values())
        for column in made.factors.values():
            total = total / column[one] if total < 0 else total * column[one]
        assert total == pytest.approx(made.score[one], rel=1e-12, abs=1e-15)
    if not mode.startswith("x_") and mode != "diverse":
        assert [factor for factor, _ in further] == [1.0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("more", [{}, OUTSIDE], ids=["followed", "outside"])
def test_what_is_told_orders_every_feed_as_the_kernel_does_and_its_parts_make_the_score(mode, more):
    model = small(feed_mode=mode, **LIVELY | more | (GROUPS if mode in ("bridging", "diverse") else {}))
    model.looked_at = []
    Watching(model, 0)
    note_decision(model.platform, 1, 2, MUTE, SCRIPT)
    model.run_for(3)
    feeds = [shown for _, shown, *_ in model.looked_at]
    assert sum(map(len, feeds)) > 100
    assert max(map(len, feeds)) > 5
    ways = " ".join(text for *_, told in model.looked_at for text in told.texts.values())
    assert "whom it follows" in ways
    assert ("drawn from the whole platform" in ways) == (bool(more) or mode.startswith("x_"))
    assert all(((word in ways) == bool(more)) for word in ("whom its followee", "trending, velocity", "its search for"))
    assert ("better posts of its author" in in_full(model)) == (mode.startswith("x_") or mode == "diverse")
    assert ("better posts of its group" in in_full(model)) == (mode == "diverse")
    assert ("(from outside of its network)" in in_full(model)) == mode.startswith("x_")
    assert ("(a reply)" in in_full(model)) == (mode == "x_2023")


@pytest.mark.parametrize("mode", MODES[:3])
def test_where_roots_are_shown_again_feeds_are_told_as_the_kernel_ranks_them(mode):
    more = {"feed_repeats": True, "agents_reshare": 0.9, "agents_threshold_mean": 0.3, "agents_post_rate": 0.1}
    model = small(feed_mode=mode, **LIVELY | OUTSIDE | more)
    model.looked_at = []
    Watching(model, 0)
    model.run_for(6)
    assert "(source 2 of it), whom it follows" in in_full(model)


def in_full(model):
    return " ".join(text for *_, told in model.looked_at for text in told.detailed_texts.values())


def test_ways_are_those_by_which_posts_came():
    model = small(feed_mode="random", **LIVELY | OUTSIDE)
    model.looked_at = []
    Watching(model, 0)
    network, posts = model.network, model.posts
    model.run_for(3)
    n_between = 0
    for row, shown, ranked, told in model.looked_at:
        for post in shown:
            author, text = int(posts.author[post]), told.texts[post]
            follows = author in network.followees(row)
            assert text.endswith(f": draw = {ranked.scored.score[ranked.order[ranked.posts.index(post)]]:.4g}")
            assert (", whom it follows:" in text) == follows
            assert (" reshared by " in text) == (posts.kind[post] == RESHARE)
            assert f"(agent {author})" in text
            if "whom its followee" in text:
                between = int(text.split("(agent ")[2].split(")")[0])
                assert between in network.followees(row)
                assert author in network.followees(between)
                n_between += 1
    assert n_between > 5


class Told(SocialAgent):
    """Notes, in the first tick of a round, what is told of some feeds."""

    def step(self):
        if self.model.tick == 1:
            self.model.told += [explain_feed(self.model, row) for row in range(0, 60, 4)]
        super().step()


def test_of_what_stands_in_a_slot_it_is_told_why():
    more = {"agents_reshare": 0.9, "network_mean_degree": 25, "feed_size": 60}
    model = small(**LIVELY | more | {"feed_slots_trending": 5, "feed_slots_search": 2, "feed_slots_every": 2})
    model.told = []
    Told(model, 0)
    model.run_for(6)
    texts = [text for told in model.told for text in told.texts.values()]
    assert sum("because it is trending" in text for text in texts) > 5
    assert sum("because a search found it" in text for text in texts) > 5
    assert any("slot" not in text for text in texts)
    assert all("slot" in text or "age = " in text for text in texts)


REASONS = (
    *("it was older", "the agent wrote", "the agent sees no posts", "no followee", "the agent had read"),
    *("it was ranked at place", "in its feed, place"),
)


class Asking(SocialAgent):
    """Asks, as round 3 begins, of every post why it is in the feed of agent 0, or is not."""

    def step(self):
        if self.model.tick == 1 and self.model.round == 3:
            self.model.shown_to_0 = int(self.model.population.n_feed[0])
            self.model.told = [explain_feed(self.model, 0, post).traced_text for post in range(len(self.model.posts))]


def test_why_a_post_was_not_shown():
    model = small(
        feed_mode="preference",
        **LIVELY | {"feed_size": 2, "feed_window": 2, "agents_reshare": 0.5, "feed_candidates_out_of_network": 6},
    )
    muted = int(model.network.followees(0)[0])
    note_decision(model.platform, 0, muted, MUTE, SCRIPT)
    Asking(model, 5)
    model.run_for(4)
    posts, found = model.posts, []
    for post, about in enumerate(model.told):
        found += [reason for reason in REASONS if about.startswith(reason)] or [about]
        if about.startswith("the agent sees nothing"):
            assert muted in (posts.author[post], posts.author[posts.root[post]])
        if about.startswith("it was ranked at place"):
            assert "but the feed had 2 posts; " in about or "but the feed had 1 posts; " in about
            assert int(about.split("place ")[1].split(" ")[0]) > 1
    assert set(REASONS) <= set(found)
    assert found.count("in its feed, place") == model.shown_to_0


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    keys = {"agents.n": 40, "agents.activity": 1.0, "agents.post_rate": 0.5, "network.mean_degree": 6, "rounds": 4}
    keys |= {"agents.hours": None}
    config = make_config({**keys, "feed.mode": "x_2023", "ticks_per_round": 12})
    return Path(run(config, out=tmp_path_factory.mktemp("out"), pictures=False).run_dir)


def test_a_report_tells_of_each_post_that_was_read_why_it_was_there(finished):
    text = str(why(finished, 3, 2))
    assert "  Its feed is x_2023: by predicted engagement" in text
    read = [line for line in text.splitlines() if line.startswith("      post ") or "In its feed: place" in line]
    said = [int(line.split("place ")[1].split(" ")[0]) for line in read]
    assert said == list(range(1, len(said) + 1))  # as it was read, from the first place on
    assert said


def test_a_report_about_a_post_tells_of_all_rounds_and_of_no_post_that_is_not_there(finished):
    table = why(finished, 3).explanation.agent.rounds[1].reasons.detailed_texts
    post = next(iter(table))
    text = str(why(finished, 3, post=post))
    assert f"  round 1: in its feed, {table[post]}" in text
    assert "Round " not in text
    assert all(f"  round {round_}: " in text for round_ in (1, 2, 3))
    with pytest.raises(DataError, match=r"has no post 100000 by round 3 \(posts: 0 \.\. \d+\)"):
        why(finished, 3, post=100_000)
    assert issubclass(DataError, BadInputError)
