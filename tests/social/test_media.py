"""Media: what posts show beside their words, and what agents make of it."""

import csv
from itertools import pairwise

import pytest
from worlds import differing, ran, small

from prism_mesa.reasoner import Reasoner

LIVELY = {"agents_n": 120, "agents_band": 0.3, "agents_activity": 0.8}


@pytest.fixture
def arm(tmp_path):
    """Return a model of posts that all have media of a type, or none."""

    def made(media_type, **params):
        file = tmp_path / f"{media_type or 'words'}.csv"
        with file.open("w", encoding="utf-8", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(["text", "topic", "media_type"])
            rows.writerows(
                [f"{word} number {i}", word, media_type] for i in range(5) for word in ("tea", "jazz", "rain")
            )
        return ran(small(posts_file=str(file), **LIVELY, **params), 5)

    return made


def engaged(model):
    return sum(model.totals[name] for name in ("likes", "replies", "reshares"))


def test_a_study_with_media_as_a_factor_has_two_different_arms(arm):
    words, images = arm(""), arm("image")
    assert words.totals["open"] > 50
    assert engaged(images) > engaged(words)


def test_the_type_of_media_does_not_matter_and_without_the_weight_nothing_of_it_does(arm):
    assert engaged(arm("image")) == engaged(arm("video"))
    words = arm("", reasoner_rule_media=0)
    assert differing(words, arm("image", reasoner_rule_media=0)) == []


def test_the_fallback_of_an_llm_weighs_media_too(arm):
    def silent(prompt):
        raise TimeoutError

    def decided(media_type):
        asked = Reasoner(silent, fallback="rule", attempts=1, max_fallback_share=1)
        model = arm(media_type, reasoner=asked)
        model.close()
        return engaged(model)

    assert decided("image") > decided("")


# -- posts.media_share ------------------------------------------------------------------------------------


def with_media(share, seed=1, **params):
    """Return which texts have media, and their types and descriptions."""
    corpus = small(posts_media_share=share, seed=seed, **params).posts.corpus
    return {i for i, type_ in enumerate(corpus.media_types) if type_}, corpus


def test_as_many_texts_have_media_as_asked_for_and_a_larger_share_adds_to_a_smaller():
    shares = (0, 0.1, 0.5, 0.9, 1)
    found = [with_media(share)[0] for share in shares]
    texts = len(small().posts.corpus.texts)
    assert [len(chosen) for chosen in found] == [round(share * texts) for share in shares]
    assert all(fewer < more for fewer, more in pairwise(found))
    assert with_media(0.5, seed=2)[0] != found[2]


def test_a_text_keeps_its_own_media_and_others_show_an_image():
    own = small().posts.corpus
    chosen, corpus = with_media(0.5)
    assert {"image", "video", "link"} <= set(own.media_types)
    for i in range(len(own.texts)):
        kept = (own.media_types[i] or "image", own.media_descriptions[i]) if i in chosen else ("", "")
        assert (corpus.media_types[i], corpus.media_descriptions[i]) == kept
