"""Plain data: what snapshots are made of."""

import json
from collections import Counter, deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.errors import DataError, NotRestorableError
from prism_mesa.snapshot import Restorable, bring_back, plain, restored, state_of


def deques(inner):
    return st.builds(lambda held, more: deque(held, len(held) + more), st.lists(inner, max_size=4), st.integers(0, 3))


keys = st.text(max_size=5) | st.integers() | st.tuples(st.integers(), st.integers())
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | deques(inner)
    ),
    max_leaves=20,
)
columns = st.lists(st.integers(-(2**63), 2**63), min_size=17, max_size=20) | st.sets(st.integers(), min_size=17)


def as_json(value):
    """Return plain data after a way through JSON; arrays are left as they are."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, dict):
        return {key: as_json(held) for key, held in value.items()}
    return [as_json(held) for held in value] if isinstance(value, list) else json.loads(json.dumps(value))


@given(values | columns | columns.map(lambda held: tuple(map(float, held))))
def test_a_value_comes_back_as_it_was(value):
    again = restored(as_json(plain(value)))
    assert (again, type(again)) == (value, type(value))
    assert isinstance(value, set) or repr(again) == repr(value)  # 1 is not 1.0, a dict has its order


def test_long_lists_of_numbers_are_arrays():
    assert plain([1] * 17)["of"].dtype == np.int64
    assert plain(deque([0.5] * 17, 20))["of"]["of"].dtype == np.float64
    assert plain([1] * 16 + [True]) == [1] * 16 + [True]


def test_what_is_restored_has_arrays_of_its_own():
    array = np.arange(6).reshape(2, 3).T
    again = restored(array)
    again[0, 0] = 7
    assert array[0, 0] == 0
    assert again.flags.c_contiguous


@pytest.mark.parametrize("value", [print, object(), 1j, b"bytes", np.array([print]), {1: [len]}])
def test_what_is_no_plain_data_is_refused(value):
    with pytest.raises(NotRestorableError, match="is held by no snapshot"):
        plain(value)


@pytest.mark.parametrize(
    "value",
    [
        {"is": "function", "of": []},
        {"is": ["list"], "of": []},
        {"is": "dict", "of": [1]},
        {"is": "dict", "of": [[[], 1]]},
        {"is": "set", "of": [[]]},
        {"is": "deque", "of": [1], "most": -1},
        {"is": "deque", "of": [1], "most": 10**30},
        {"is": "ints", "of": np.zeros(3)},
        {"of": []},
        {},
    ],
)
def test_what_no_snapshot_holds_is_refused(value):
    with pytest.raises(DataError, match="a snapshot holds"):
        restored(value)


class Tally(Restorable):
    changes = ("counts", "column", "share", "done")

    def __init__(self):
        self.counts = Counter(a=1)
        self.column = np.zeros((2, 3), np.int32)
        self.share = 0.5
        self.done = False


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("counts", [1], "Tally.counts: is no Counter, but a list"),
        ("counts", plain(Counter(a="x")), "Tally.counts: is no Counter"),
        ("counts", plain(Counter({1: 1})), "Tally.counts: is no Counter"),
        ("column", np.zeros((2, 3)), "Tally.column: is no int32 array .*, but a float64 array"),
        ("column", np.zeros((2, 4), np.int32), "Tally.column: is no int32 array"),
        ("column", np.zeros(2, np.int32), "Tally.column: is no int32 array"),
        ("column", None, "Tally.column: is no int32 array .*, but a NoneType"),
        ("share", True, "Tally.share: is no float, but a bool"),
        ("done", 1, "Tally.done: is no bool, but a int"),
    ],
)
def test_an_attribute_of_another_type_is_refused(name, value, told):
    with pytest.raises(DataError, match=told):
        Tally().restore(Tally().snapshot() | {name: value})


def test_an_attribute_that_is_missing_is_named():
    snapshot = Tally().snapshot()
    del snapshot["share"]
    with pytest.raises(DataError, match=r"Tally\.share: is missing"):
        Tally().restore(snapshot)


def test_a_column_may_have_another_length():
    tally = Tally()
    tally.restore(tally.snapshot() | {"column": np.ones((5, 3), np.int32), "share": 1})
    assert (tally.column.shape, tally.share) == ((5, 3), 1)


class Coin:
    """Somebody else's object, which says its state itself."""

    def __init__(self):
        self.falls = [True]

    def snapshot(self):
        return {"falls": tuple(self.falls)}

    def restore(self, kept):
        self.falls = list(kept["falls"])


def test_an_object_says_its_own_state_and_takes_it_back():
    coin, other = Coin(), Coin()
    coin.falls.append(False)
    bring_back(other, as_json(state_of(coin)))
    assert other.falls == [True, False]
    assert state_of(None) is None
    with pytest.raises(NotRestorableError, match="int: its state is not known: give it snapshot"):
        state_of(7)
    with pytest.raises(DataError, match="NoneType: is not what the run was given"):
        bring_back(None, state_of(coin))
