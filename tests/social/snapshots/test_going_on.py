"""A model that takes over from a snapshot cannot be told from one that was never stopped."""

import pytest
from continued import as_bytes, tell_apart, from_bytes, going_on, leaves, unlike
from lively_worlds import LIVELY
from minds import Mind, asked, busy, whim
from worlds import ran, small

from prism_mesa import F, SocialModel, Statechart, Transition
from prism_mesa.errors import DataError
from prism_mesa.social.behavior import social_chart


def default(**params):
    from worlds import Memory

    return SocialModel(agents_n=60, recorder=Memory(), **params)


WORLDS = {
    "default": default,
    "plain": small,
    "lively": lambda: small(**LIVELY),
    "by Mesa": lambda: small(scheduler="mesa"),
    "no history": lambda: small(statechart_max_history_depth=0),
    "templates": lambda: small(**LIVELY, content="template"),
    "x_algo": lambda: default(feed_mode="x_algo", posts_seeded_count=3),
    "random": lambda: default(feed_mode="random", agents_activity=0.9, ticks_per_round=5),
    "a share is recorded": lambda: small(**LIVELY, records_transitions=0.3, records_impressions=0.5),
}


@pytest.mark.parametrize("world", WORLDS)
def test_a_model_that_was_stopped_goes_on_as_if_it_had_not_been(world):
    whole, other = going_on(WORLDS[world])
    assert whole.totals["posts"] > 0
    assert tell_apart(whole, other) == []
