"""Posts about texts of the corpus that comes with PRISM: no two say the same, and all else stays as it is."""

from collections import Counter

import numpy as np
import pytest
from minds import Mind, asked
from worlds import ran, small

from prism_mesa.social.content.wording import wordings
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.posts import POST, RESHARE


@pytest.fixture(scope="module")
def model():
    """The default world, in fewer rounds with more posts each, of which two are scheduled."""
    world = SocialModel(agents_n=400, agents_post_rate=0.7, posts_seeded_count=2, rounds=25, reasoner_kind="rule")
    return ran(world, 25)


def test_no_two_posts_say_the_same_and_no_agent_passes_the_same_text_on_twice(model):
    posts = model.posts
    own = np.flatnonzero(posts.kind == POST)
    texts = [posts.texts[i] for i in posts.text_id[own]]
    assert len(texts) > 1000
    assert len(set(texts)) == len(texts)
    of_posts = np.flatnonzero((posts.kind == RESHARE) & (posts.kind[posts.root] == POST))
    passed_on = Counter((int(posts.author[i]), posts.texts[posts.text_id[i]]) for i in of_posts)
    assert len(passed_on) > 100
    assert max(passed_on.values()) == 1


def test_posts_of_a_round_begin_differently_and_are_whole_sentences(model):
    posts, (openings, _) = model.posts, wordings()
    heads = [head for opening in openings if (head := opening.partition("{}")[0])]
    for round_ in range(model.params.rounds):
        own = np.flatnonzero((posts.kind == POST) & (posts.round == round_))
        worded = [posts.texts[i] for i in posts.text_id[own] if i >= len(posts.corpus.texts)]
        assert all(text[0] == text[0].upper() and text[-1] in ".!?" and "{" not in text for text in worded)
        begun = Counter(head for text in worded for head in heads if text.startswith(head))
        assert max(begun.values(), default=0) <= len(worded) // 24 + 2


def test_other_words_have_the_topics_and_media_of_what_they_are_about(model):
    posts, n = model.posts, len(model.posts.corpus.texts)
    worded = [i for i in posts.text_id[posts.kind == POST].tolist() if i >= n]
    rows = [posts.all_texts.plainly(i) for i in worded]
    assert max(rows) < n
    assert posts.text_vectors[worded].tolist() == posts.text_vectors[rows].tolist()
    assert [posts.media(i) for i in worded] == [posts.media(row) for row in rows]
    assert all(corpus_subject.lower() in posts.texts[i].lower() for i, corpus_subject in subjects(posts, worded, rows))


def subjects(posts, worded, rows):
    return [(i, posts.corpus.subjects[row]) for i, row in zip(worded, rows, strict=True)]


def test_remarks_are_as_many_for_each_topic_and_openings_leave_a_place_for_the_subject():
    openings, remarks = wordings()
    assert all(opening.count("{}") == 1 for opening in openings)
    assert {len(set(of_topic)) for of_topic in remarks.values()} == {len(next(iter(remarks.values())))}


def test_archetypes_are_asked_about_a_text_once_in_whatever_words_it_is_posted():
    mind = Mind()
    lively = {"agents_activity": 1.0, "agents_band": 0.3, "agents_threshold_mean": 0.5, "agents_post_rate": 0.5}
    model = ran(small(**lively, posts_circulating=4, reasoner=asked(mind, persona="archetype")), 3)
    model.close()
    posts = model.posts
    assert len({posts.texts[i] for i in posts.text_id[posts.kind == POST]}) > 20
    said = {text for text in posts.corpus.texts for prompt in mind.prompts if text in prompt}
    assert 0 < len(said) <= 6
    assert len(mind.prompts) <= 4 * len(said)
