"""Snapshots that are damaged, or somebody's work: one clear line, and no index that leads outside."""

import random
import re

import numpy as np
import pytest
from continued import as_bytes, from_bytes, leaves
from lively_worlds import LIVELY
from minds import Mind, asked, busy
from random_worlds import LIVE
from worlds import ran, small

from prism_mesa.errors import BadInputError, DataError, NotRestorableError
from prism_mesa.reasoner import RuleReasoner
from prism_mesa.social.behavior import build_chart, viral_chart


def world(**params):
    return small(**LIVELY, **params)


@pytest.fixture(scope="module")
def kept():
    """Return the bytes of a snapshot after three rounds, in which who the agents are has changed."""
    model = ran(world(), 3)
    model.population.traits[0, 0] = 2.0
    model.population.interests[0, 0] += 1
    model.population.activity[0] = 0.5
    model.population.timeout_threshold[0] += 1
    return as_bytes(model.snapshot())


def changed(kept, way, change):
    """Return a snapshot of which one thing was changed; of an array in its place."""
    snapshot = from_bytes(kept)
    *above, last = way.strip().split("/")  # a key of `DAMAGED` more than once has blanks
    part = snapshot
    for name in above:
        part = part[name]
    if isinstance(part[last], np.ndarray):
        part[last] = part[last].copy()
    given = change(part[last])
    part[last] = part[last] if given is None else given
    return snapshot


def put(place, value):
    """Return what puts a value into an array."""

    def change(array):
        array[place] = value

    return change


def entry(place, name, value):
    return lambda ring: put(place, value)(ring[name])


def new(value):
    return lambda _: value


FAR = 2**31 - 1
DAMAGED = {
    "platform/population/state": (put(3, 8), "an agent's state is 8, and none of 0 .. 7"),
    "platform/population/pending_action": (put(3, 3), "an agent's pending action is 3, and none of 0 .. 2"),
    "platform/population/membership": (put(3, 4), "what an agent is to the platform is 4, and none of 0 .. 3"),
    "platform/population/current_post": (put(3, FAR), "an agent's current post is 2,147,483,647, and none of -1 .."),
    "platform/population/n_read": (put(3, 60_000), "an agent has read more posts than its feed has"),
    "platform/population/n_feed": (put(3, 60_000), "feeds have not the posts that they should"),
    "platform/population/feed": (put(0, -5), "a post of a feed is -5"),
    "platform/population/feed ": (put(-1, FAR), "a post of a feed is 2,147,483,647"),
    "platform/population/traits": (put((0, 0), np.nan), "an agent's traits is no number"),
    "platform/population/timeout_threshold": (put(0, 0), "an agent's limit of ticks is 0"),
    "platform/population/activity": (lambda column: column[:-1], "columns of 30 agents differ in length"),
    "platform/population/names/_codes": (put(0, 60_000), "an agent's name is 60,000"),
    "platform/population/interests": (
        lambda column: column[:, :3],
        "Population.interests: is no int8 array of shape (30, 8), but a int8 array of shape (30, 3)",
    ),
    "platform/posts/columns/author": (put(0, 30), "an author of a post is 30, and none of 0 .. 29"),
    "platform/posts/columns/root": (put(0, 1), "a post's root is another one"),
    "platform/posts/columns/parent": (put(0, 0), "a post has a parent"),
    "platform/posts/columns/text_id": (put(0, FAR), "a post's text is 2,147,483,647"),
    "platform/posts/columns/words": (put(0, -2), "a post's words is -2"),
    "platform/posts/columns/wording": (put(0, -1), "a post's wording is -1"),
    "platform/posts/columns/kind": (put(0, 3), "a post's kind is 3"),
    "platform/posts/columns/round": (put(0, 2), "posts do not stand in the order of their rounds"),
    "platform/posts/columns/likes": (lambda column: column[:-1], "Posts.likes: is no column of"),
    "platform/posts/recent/of": (lambda parts: [*parts] * 99, "velocity counts more rounds than its window"),
    "platform/posts/texts/corpus": (new(1), "has posts.file, or the embedder, changed since?"),
    "platform/first_network": (new(1), "the network is not that of the run: has network.edges changed since?"),
    "platform/exposure/start": (put(3, FAR), "what agents have read: a row ends before it begins"),
    "platform/exposure/roots": (put(3, -1), "what agents have read is -1"),
    "platform/exposure/roots ": (lambda roots: roots[::-1].copy(), "what agents have read stands in no order"),
    "platform/outcomes/_known": (put(0, FAR), "more impressions were counted than there are"),
    "platform/outcomes/attention": (put(0, -1), "what an agent has of attention is -1"),
    "platform/history/count": (put(0, -1), "a history's length is -1"),
    "platform/history/ring": (entry(3, "move", 2**16 - 1), "a trigger of a history is 1,023, and none of 0 .."),
    "platform/history/ring ": (entry(3, "move", 9), "a history has a transition from a state to itself"),
    "platform/history/ring  ": (entry(3, "post", FAR), "a post of a history is 2,147,483,647, and none of -1 .."),
    "platform/history/ring   ": (entry(3, "post", -2), "a post of a history is -2, and none of -1 .."),
    "platform/history/ring    ": (lambda ring: ring["move"], "histories have not the entries that they should"),
    "platform/round": (new(2**40), "round 1,099,511,627,776 is none that can be"),
    "platform/tick": (new(-1), "round 2 has no tick -1"),
    "platform/pending/by_row/of": (new([[3, {"is": "tuple", "of": [1, 2, 3]}]]), "agents wait for answers"),
    "platform/tick_counts": (lambda counts: counts[:-1], "the ticks of the round are not counted"),
    "platform/engagements/lengths": (put(0, -1), "a number of engagements is -1"),
    "platform/engagements/beside": (new({"is": "set", "of": [30]}), "who has engaged: is no agent"),
    "platform/events/written": (new([{"is": "tuple", "of": [30, "Hi"]}]), "an event is none that can be"),
    "platform/opinions/first": (lambda first: first[:2], "what opinions were is not three numbers"),
    "platform/relations/muted": (new(np.array([5, 3])), "what is muted does not ascend"),
    "platform/relations/blocked": (new(np.array([30 << 32])), "who has blocked is 30, and none of 0 .. 29"),
    "platform/relations/reported": (new(np.array([FAR])), "what is reported is 2,147,483,647, and none of 0 .."),
    "platform/relations/new_follows": (new(np.array([30])), "what is new_follows is 30, and none of 0 .. 29"),
    "platform/relations/counts": (
        new({"is": "Counter", "of": [["poke", 1]]}),
        "something is counted that agents cannot decide",
    ),
    "platform/events/decided": (
        new({"is": "dict", "of": [[{"is": "tuple", "of": [0, 30, 0]}, {"is": "tuple", "of": [-1, 5]}]]}),
        "an event is none that can be",
    ),
    "platform/chart/transitions": (new([]), "is not the chart of the run"),
    "platform/notes": (new({"is": "tuple", "of": [7]}), "a note is no text"),
    "platform/asked": (new([None]), "the snapshot is damaged (ValueError:"),
    "clock/next": (new(0.0), "the model's clock: its next step lies before its time"),
    "clock/steps": (new("3"), "the model's steps: is no int, but a str"),
    "draws/words": (lambda words: words[1:], "the model's random: is damaged"),
    "collected/model_vars": (new({"is": "dict", "of": []}), "its model_reporters are not those of the run"),
    "platform": (new(7), "the snapshot is damaged (TypeError:"),
    "agents/agents": (new([[99, "x", {}, None]]), "an agent's row: 99 is none of 0 .. 29"),
}


@pytest.mark.parametrize("way", DAMAGED)
def test_what_is_damaged_is_said_in_one_line(kept, way):
    change, told = DAMAGED[way]
    with pytest.raises(DataError, match=re.escape(told)) as error:
        world().restore(changed(kept, way, change))
    assert "\n" not in str(error.value)


def test_a_network_with_a_follow_twice_is_refused():
    made = {**LIVELY, **LIVE}
    snapshot = ran(small(**made), 2).snapshot()
    network = snapshot["platform"]["network"]
    row = int(np.flatnonzero(np.diff(network["indptr"]) > 1)[0])
    network["indices"] = network["indices"].copy()
    network["indices"][network["indptr"][row] + 1] = network["indices"][network["indptr"][row]]
    with pytest.raises(DataError, match="the network: a row does not ascend"):
        small(**made).restore(snapshot)


def test_a_part_that_is_missing_is_said_in_one_line(kept):
    for way in ("clock", "platform/round", "platform/posts/columns/key", "platform/population/feed"):
        snapshot = from_bytes(kept)
        *above, last = way.strip().split("/")  # a key of `DAMAGED` more than once has blanks
        part = snapshot
        for name in above:
            part = part[name]
        del part[last]
        with pytest.raises(DataError, match=f"is missing|KeyError: '{last}'"):
            world().restore(snapshot)


def test_a_round_beyond_all_dates_is_refused(kept):
    with pytest.raises(DataError, match="OverflowError: date value out of range"):
        world().restore(changed(kept, "platform/round", new(10**8)))


def test_what_nobody_is_asked_for_is_of_no_account(kept):
    model = world()
    model.restore(from_bytes(kept) | {"more": "?"})
    assert model.round == 2


def test_a_model_of_another_kind_refuses_it(kept):
    for other, told in (
        (world(agents_n=29), "the network is not that of the run"),
        (world(seed=1), "the network is not that of the run"),
        (small(**LIVELY | {"agents_activity": 0.9}), "the agents are not those of the run"),
        (world(chart=viral_chart), "viral: is not the chart of the run"),
        (world(chart=build_chart(asks_action=True)), "social: is not the chart of the run"),
        (world(reasoner=asked(Mind(), max_fallback_share=1)), "Reasoner: is not what the run was given"),
        (world(ticks_per_round=3), "round 2 has no tick 11"),
    ):
        with pytest.raises(DataError, match=told):
            other.restore(from_bytes(kept))


class Whimsical(RuleReasoner):
    """Somebody's own reasoner, of whose state nobody knows."""


def test_a_reasoner_whose_state_nobody_knows_is_named():
    with pytest.raises(NotRestorableError, match="Whimsical: its state is not known: give it snapshot"):
        world(reasoner=Whimsical()).snapshot()


def spoilt(value, draws):
    """Return something else in the place of a value of a snapshot."""
    if not isinstance(value, np.ndarray) or not value.size or draws.random() < 0.1:
        return draws.choice([None, True, -1, 2**31, 10**30, float("nan"), "", "x", [], {}, [1], np.arange(3)])
    array = value.copy()
    if array.dtype.names or draws.random() < 0.3:
        return draws.choice([array[:-1], array[::-1], array[None], array.reshape(-1)[:0], np.append(array, array[-1:])])
    kind = array.dtype.kind
    ends = [np.iinfo(array.dtype).min, np.iinfo(array.dtype).max] if kind in "iu" else [0, 1]
    flat = array.reshape(-1)
    flat[[draws.randrange(array.size) for _ in range(draws.choice([1, 3]))]] = draws.choice(
        [*ends, 0, 1, 2, 29, 30] if kind != "f" else [np.nan, np.inf, -1e30]
    )
    return array


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_spoilt_snapshot_is_refused_or_goes_on(seed):
    draws = random.Random(seed)
    talks = {"content": "llm", "agents_band": 0.3} if seed % 2 else {}

    def make():
        return world(**talks, **({"reasoner": asked(Mind(thinks=busy), max_fallback_share=1.0)} if talks else {}))

    data, told = as_bytes(ran(make(), 2).snapshot()), []
    ways = [way for way, _ in leaves(from_bytes(data))]
    for _ in range(12):
        snapshot, model = from_bytes(data), make()
        way = draws.choice(ways)
        part = snapshot
        *above, last = [int(name) if name.isdecimal() else name for name in way.split("/")[1:]]
        for name in above:
            part = part[name]
        part[last] = spoilt(part[last], draws)
        try:
            model.restore(snapshot)
            ran(model, 1)
        except BadInputError as error:
            told.append(str(error))
        model.close()
    assert told
    assert not any("\n" in line for line in told)
