"""The feeds of configs/studies/six_feeds.py do what they say."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

READERS = 20_000


@pytest.fixture
def six_feeds(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "configs" / "studies")
    yield import_module("six_feeds")
    del sys.modules["six_feeds"]


def candidates(reshares, **more):
    """Return columns of as many candidates as there are reshares, before each of many readers."""
    n = len(reshares)
    own = {
        "agent.row": np.repeat(np.arange(READERS), n),
        "post.post_id": np.tile(np.arange(n) + 70, READERS),
        "post.reshares": np.tile(reshares, READERS),
        "post.round": np.full(READERS * n, 4),
        "post.age": np.tile([1, 2, 1, 2][:n], READERS),
        "post.in_network": np.zeros(READERS * n, np.bool_),
        "agent.leaning": np.full(READERS * n, -1.0),
    }
    return own | {name: np.tile(values, READERS) for name, values in more.items()}


def first(scores, n):
    """Return how often each of n candidates comes first."""
    return np.bincount(scores.reshape(READERS, n).argmax(axis=1), minlength=n) / READERS


def test_posts_are_drawn_in_proportion_to_their_weights(six_feeds):
    columns = candidates([0, 1, 4], **{"post.slant": [-1.0, -1.0, 1.0]})
    weights = {"base": [1, 2, 5], "downplayed": [1, 1 / 2, 1 / 5], "other_side": np.log([4, 4, 6]) * [1, 2, 5]}
    for name, own in weights.items():
        scores = getattr(six_feeds, name)(columns)
        assert first(scores, 3) == pytest.approx(np.array(own) / np.sum(own), abs=0.015)
        assert (scores < 0).all()


def test_another_round_is_another_draw_and_the_same_one_the_same(six_feeds):
    columns = candidates([3, 3])
    later = six_feeds.base(columns | {"post.age": columns["post.age"] + 1})
    assert np.array_equal(six_feeds.base(columns), six_feeds.base(columns))
    assert abs(np.corrcoef(six_feeds.base(columns), later)[0, 1]) < 0.02


def test_posts_of_followed_agents_come_first_and_the_newest_of_them(six_feeds):
    inside = {"post.in_network": [True, True, False, False], "post.tone": [0.1, 0.9, 0.2, 0.7]}
    columns = candidates([9, 0, 9, 0], **inside)
    orders = {"newest": [0, 1, 2, 3], "constructive": [0, 1, 3, 2]}
    for name, order in orders.items():
        assert (-getattr(six_feeds, name)(columns)[:4]).argsort(kind="stable").tolist() == order


def test_nine_of_a_hundred_have_no_party_and_stand_in_the_middle(six_feeds):
    columns = {"leaning": np.linspace(-1, 1, 10_001)}
    party, extremity = six_feeds.party(columns), six_feeds.extremity(columns)
    assert (party == "none").mean() == pytest.approx(0.09, abs=0.001)
    assert (party == "left").mean() == pytest.approx(0.455, abs=0.001)
    assert extremity[party == "none"].max() < extremity[party != "none"].min()
