"""Feeds of a user's own: expressions and functions that score candidates."""

import numpy as np
import pytest
from worlds import ran, small

from prism_mesa.analysis.explain.feed import explain_feed
from prism_mesa.errors import ConfigError
from prism_mesa.runs.config import make_config
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round import feeds as feed
from prism_mesa.social.round.columns import CandidateColumns
from prism_mesa.statechart import F

WORLD = {"agents.n": 80, "rounds": 6, "network.mean_degree": 10, "agents.activity": 0.8, "agents.post_rate": 0.6}
LEANING = {"leaning": {"of": "agent", "range": [-1, 1]}, "true": {"of": "post", "values": [True, False]}}

newest = F.post.post_id * 1.0
near = F.post.relevance + F.post.likes / (1 + F.post.impressions) - 0.01 * F.post.age
outside = (F.post.in_network == False) * 10 + F.post.author_leaning * F.agent.leaning + F.post.true  # noqa: E712
fresh_replies = (F.post.kind == "reply") * 100 - F.post.age
hopeless = 1 / F.post.likes
unknown = F.post.relevence * 2


def also_newest(columns):
    return columns["post.post_id"]


def also_near(columns):
    likes = columns["post.likes"] / (1 + columns["post.impressions"])
    return columns["post.relevance"] + likes - 0.01 * columns["post.age"]


def also_outside(columns):
    together = columns["post.author_leaning"] * columns["agent.leaning"]
    return (~columns["post.in_network"]) * 10 + together + columns["post.true"]


ASKED = iter(range(1000))


def also_fresh_replies(columns):
    return (columns["post.kind"] == "reply") * 100 - columns["post.age"]


def another_each_time(columns):
    return columns["post.likes"] * 0.0 + next(ASKED)


def by_the_mean(columns):
    return columns["post.post_id"] - columns["post.post_id"].mean()


def by_the_best(columns):
    return columns["post.relevance"] / columns["post.relevance"].max()


def above_the_worst(columns):
    """A score that nobody can take of no candidates."""
    return columns["post.relevance"] * 1.0 if columns["post.relevance"].min() >= 0 else columns["post.age"] * 0.0


def only_relevant(columns):
    return np.where(columns["post.relevance"] > 0.6, columns["post.relevance"], -np.inf)


def too_large(columns):
    return columns["post.relevance"] * 1e300


def too_few(columns):
    return columns["post.likes"][1:]


def nan(columns):
    return columns["post.likes"] * np.nan


def changes(columns):
    columns["post.likes"][:] = 0
    return columns["post.likes"]


def reads_no_attribute(columns):
    return columns["agent.zeal"] * 1.0


def reads_nothing(columns):
    return columns["post.lieks"]


def texts(columns):
    return columns["post.kind"]


def own(name):
    return f"{__name__}:{name}"


def world(mode, **more):
    more = {key.replace("__", "."): value for key, value in more.items()}
    return make_config({**WORLD, "attributes": LEANING, "feed.mode": mode, **more})


def feeds_of(config):
    """Return all feeds of all rounds."""
    model, found = SocialModel(config), []
    for _ in range(config.rounds):
        model.step()
        people = model.population
        found.append([people.feed[i, : people.n_feed[i]].tolist() for i in range(len(people))])
    return found


CANDIDATES = {"feed__candidates__two_hops": 5, "feed__candidates__trending": 3, "feed__candidates__out_of_network": 5}


@pytest.mark.parametrize("more", [{}, CANDIDATES])
@pytest.mark.parametrize("mode", ["newest", "also_newest"])
def test_what_scores_by_age_alone_is_the_chronological_feed(mode, more):
    assert feeds_of(world(own(mode), **more)) == feeds_of(world("chronological", **more))


@pytest.mark.parametrize("more", [{}, CANDIDATES])
@pytest.mark.parametrize("mode", ["near", "outside", "fresh_replies"])
def test_a_function_and_an_expression_that_say_the_same_give_the_same_feeds(mode, more):
    by_expression = feeds_of(world(own(mode), **more))
    assert by_expression == feeds_of(world(own(f"also_{mode}"), **more))
    assert by_expression == feeds_of(world(own(mode), threads=3, **more))
    assert by_expression != feeds_of(world("chronological", **more))


def test_the_expected_utility_lacks_the_mood_and_nothing_else():
    model = SocialModel(world("chronological"))
    model.run_for(3)
    readers, posts = np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40)
    columns = CandidateColumns(model.platform, readers, posts, np.ones(len(posts), np.bool_))
    moods = [model.platform.log_odds(*pair)["its mood"] for pair in zip(readers.tolist(), posts.tolist(), strict=True)]
    expected = columns.column("utility") - model.params.utility.sensitivity * np.array(moods)
    np.testing.assert_allclose(columns.column("expected_utility"), expected, atol=1e-12)
    assert np.std(moods) > 1


def test_the_cut_of_readers_into_parts_with_few_candidates_changes_no_feed(monkeypatch):
    whole = feeds_of(world(own("near"), **CANDIDATES))
    asked = []
    count = feed.RankInputs.count
    monkeypatch.setattr(feed.RankInputs, "count", lambda offer, rows: asked.append(len(rows)) or count(offer, rows))
    monkeypatch.setattr(feed, "_MAX_PAIRS", 50)
    assert feeds_of(world(own("near"), **CANDIDATES)) == whole
    assert min(asked) < 5


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("another_each_time", "returned other scores for the same rows in a second call"),
        ("by_the_mean", "returned other scores for the same rows beside other rows"),
        ("by_the_best", "returned other scores for the same rows beside other rows"),
        ("too_large", r"returned .*e\+\d+: scores must be"),
        ("too_few", r"returned [\d,]+ scores for [\d,]+ candidates"),
        ("nan", "returned nan: scores must be"),
        ("changes", "raised ValueError: assignment destination is read-only"),
        ("reads_nothing", r"post.lieks cannot be read \(test_own_feeds.py:\d+ in reads_nothing\)"),
        ("reads_no_attribute", r"agent.zeal cannot be read \(test_own_feeds.py:\d+ in reads_no_attribute\)"),
        ("texts", r"returned array.*, not numbers"),
        ("hopeless", "raised ZeroDivisionError"),
    ],
)
def test_what_cannot_rank_ends_the_run_with_one_line(mode, said):
    model = SocialModel(world(own(mode)))
    with pytest.raises(ConfigError, match=f"^feed.mode: .*:{mode}: {said}") as error:
        model.run_model()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (own("unknown"), "post.relevence"),
        (own("WORLD"), "feed.mode: .*WORLD"),
        (own("hopeles"), "hopeles"),
        ("no_such_module:score", "no_such_module"),
        ("cronological", "feed.mode"),
    ],
)
def test_what_is_no_feed_is_refused_before_the_first_round(mode, said):
    with pytest.raises(ConfigError, match=said):
        SocialModel(world(mode))


@pytest.mark.parametrize("more", [{}, CANDIDATES])
def test_whom_an_agent_has_muted_no_feed_of_ones_own_shows(more):
    model = SocialModel(world(own("near"), **more))
    plain = SocialModel(world(own("also_near"), **more))
    for one in (model, plain):
        for row in range(0, 80, 2):
            for other in range(1, 80, 3):
                assert other == row or one.agent(row).mute(other)
    for _ in range(5):
        model.step()
        plain.step()
    people, author = model.population, model.posts.author
    feeds = [people.feed[row, : people.n_feed[row]] for row in range(80)]
    assert all(not (author[feeds[row]] % 3 == 1).any() for row in range(0, 80, 2))
    assert any((author[feeds[row]] % 3 == 1).any() for row in range(1, 80, 2))
    assert [feed.tolist() for feed in feeds] == [
        plain.population.feed[row, : plain.population.n_feed[row]].tolist() for row in range(80)
    ]


def test_a_feed_of_ones_own_can_begin_in_the_middle_of_a_run():
    change = [{"at": 3, "set": {"feed.mode": own("newest")}}, {"at": 5, "set": {"feed.mode": "chronological"}}]
    assert feeds_of(world("chronological", interventions=change)) == feeds_of(world("chronological"))
    reversed_ = [{"at": 3, "set": {"feed.mode": own("fresh_replies")}}]
    found = feeds_of(world("chronological", interventions=reversed_))
    assert found[:3] == feeds_of(world("chronological"))[:3]
    assert found[3:] != feeds_of(world("chronological"))[3:]


@pytest.mark.parametrize("mode", ["also_near", "near", "above_the_worst", "also_outside"])
def test_a_feed_of_ones_own_is_not_asked_while_there_is_nothing_to_rank(mode):
    model = SocialModel(world(own(mode), agents__n=3, network__mean_degree=2, agents__post_rate=0.02))
    while not len(model.platform.posts):
        model.step()
    assert model.platform.round > 1


def test_a_score_of_minus_infinity_takes_a_post_out():
    model = ran(small(feed_mode=f"{__name__}:only_relevant"), 3)
    shown = [(row, post) for row in range(30) for post in model.population.feed[row, : model.population.n_feed[row]]]
    readers, posts = np.array(shown).T
    assert (model.platform.similarities(readers, posts) / 127**2).min() > 0.19
    reasons = [explain_feed(model, row, int(post)).traced_text for row in range(30) for post in set(posts.tolist())]
    assert any("-inf" in text for text in reasons)
