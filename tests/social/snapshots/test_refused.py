"""Snapshots that a model does not take back: of another world, with another chart or reasoner."""

import pytest
from continued import as_bytes, from_bytes
from lively_worlds import LIVELY
from minds import Mind, asked
from worlds import ran, small

from prism_mesa.errors import DataError
from prism_mesa.social.behavior import build_chart, viral_chart


def world(**params):
    return small(**LIVELY, **params)


@pytest.fixture(scope="module")
def kept():
    """Return the bytes of a snapshot after three rounds."""
    return as_bytes(ran(world(), 3).snapshot())


@pytest.mark.parametrize("way", ["clock", "platform/round", "platform/posts/columns/key", "platform/population/feed"])
def test_a_part_that_is_missing_is_said_in_one_line(way, kept):
    snapshot = from_bytes(kept)
    *above, last = way.split("/")
    part = snapshot
    for name in above:
        part = part[name]
    del part[last]
    with pytest.raises(DataError, match=f"KeyError: '{last}'"):
        world().restore(snapshot)


def test_what_nobody_is_asked_for_is_of_no_account(kept):
    model = world()
    model.restore(from_bytes(kept) | {"more": "?"})
    assert model.round == 2


def test_a_model_of_another_kind_refuses_it(kept):
    for other, told in (
        (world(agents_n=29), "the network differs from the run's"),
        (world(seed=1), "the network differs from the run's"),
        (small(**LIVELY | {"agents_activity": 0.9}), "the agents differ from the run's"),
        (world(chart=viral_chart), "viral: differs from the chart of the run"),
        (world(chart=build_chart(asks_action=True)), "social: differs from the chart of the run"),
        (world(reasoner=asked(Mind(), max_fallback_share=1)), "Reasoner: does not match the object in the snapshot"),
        (world(ticks_per_round=3), "ticks_per_round .* differs from the run's"),
        (world(statechart_max_history_depth=3), "max_history_depth differs from the run's"),
    ):
        with pytest.raises(DataError, match=told):
            other.restore(from_bytes(kept))
