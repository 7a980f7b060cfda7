"""Posts about texts of the corpus that comes with PRISM: no two say the same, and all else stays as it is."""

from collections import Counter

import numpy as np
import pytest
from minds import Mind, asked
from worlds import differing, ran, small
from writing_worlds import NO_CHOICE

from prism_mesa.social.content.activity import recent_activities
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.posts import POST, REPLY, RESHARE
from prism_mesa.social.state.texts import load_wordings, reword

LIVELY = {"agents_activity": 1.0, "agents_band": 0.3, "agents_threshold_mean": 0.5, "agents_post_rate": 0.7}


@pytest.fixture(scope="module")
def model():
    """The default world, in fewer rounds with more posts each, of which two are scheduled."""
    world = SocialModel(agents_n=400, agents_post_rate=0.7, posts_seeded_count=2, rounds=25, reasoner_kind="rule")
    return ran(world, 25)


def test_no_two_posts_say_the_same_and_no_agent_passes_the_same_text_on_twice(model):
    posts = model.posts
    texts = posts.visible_texts(np.flatnonzero(posts.kind == POST))
    assert len(texts) > 900
    assert len(set(texts)) == len(texts)
    of_posts = np.flatnonzero((posts.kind == RESHARE) & (posts.kind[posts.root] == POST))
    passed_on = Counter(zip(posts.author[of_posts].tolist(), posts.visible_texts(of_posts), strict=True))
    assert len(passed_on) > 100
    assert max(passed_on.values()) == 1


def test_numbers_give_different_words_until_all_are_used_and_then_the_same_again():
    openings, remarks = load_wordings()
    assert all(opening.count("{}") == 1 for opening in openings)
    for topic, of_topic in remarks.items():
        n = len(openings) * len(of_topic)
        words = [reword("the garden", topic, number) for number in range(1, n + 1)]
        assert len(set(words)) == n
        assert reword("the garden", topic, n + 1) == words[0]


def test_readers_see_the_same_words_in_posts_reshares_quotes_and_memories():
    model = ran(small(**LIVELY, content="template", reasoner_kind="rule"), 6)
    posts, n_quotes = model.posts, 0
    for post in np.flatnonzero((posts.kind != POST) & (posts.kind[posts.root] == POST)).tolist():
        [text], [root] = posts.visible_texts([post]), posts.visible_texts([posts.root[post]])
        assert text in (root, f"{posts.texts[posts.words[post]]} (resharing: {root})")
        assert model.post(post, 0).text == text
    for post in np.flatnonzero((posts.kind == REPLY) & (posts.kind[posts.parent] == POST)).tolist():
        [above] = posts.visible_texts([posts.parent[post]])
        assert posts.visible_texts([post])[0].endswith(f"(in reply to: {above})")
        n_quotes += above not in posts.corpus.texts
    assert n_quotes > 10
    told = [a for row in range(30) for a in recent_activities(model.platform, row, 40) if a.action == "post"]
    assert {(a.post, a.text) for a in told} == {(a.post, posts.visible_texts([a.post])[0]) for a in told}


def test_texts_of_your_file_and_words_of_an_llm_stay_as_they_are(tmp_path):
    (tmp_path / "posts.csv").write_text("text\nOne.\nTwo.\n")
    own = ran(small(**LIVELY, posts_file=str(tmp_path / "posts.csv"), reasoner_kind="rule"), 3)
    assert set(own.posts.visible_texts(np.arange(len(own.posts)))) == {"One.", "Two."}
    written = ran(small(**LIVELY | NO_CHOICE, content="llm", reasoner=asked(Mind())), 2)
    written.close()
    assert not written.posts.wording.any()


def test_a_model_that_is_brought_back_goes_on_in_the_same_words():
    world = {**LIVELY, "content": "template", "reasoner_kind": "rule"}
    model, other = ran(small(**world), 3), small(**world)
    other.restore(model.snapshot())
    assert differing(ran(model, 3), ran(other, 3)) == ["records"]  # those of the first rounds
    everything = np.arange(len(model.posts))
    assert model.posts.visible_texts(everything) == other.posts.visible_texts(everything)
