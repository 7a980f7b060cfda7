"""Plain data: what snapshots are made of."""

import json
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.errors import DataError, NotRestorableError
from prism_mesa.snapshot import from_plain, restore_object, take_snapshot, to_plain


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
columns = st.lists(st.integers(-(2**63), 2**63), min_size=256, max_size=258) | st.sets(st.integers(), min_size=3)


def as_json(value):
    """Return plain data after a way through JSON; arrays are left as they are."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, dict):
        return {key: as_json(held) for key, held in value.items()}
    return [as_json(held) for held in value] if isinstance(value, list) else json.loads(json.dumps(value))


@settings(max_examples=40)
@given(values | columns | columns.map(lambda held: tuple(map(float, held))))
def test_a_value_comes_back_as_it_was(value):
    again = from_plain(as_json(to_plain(value)))
    assert (again, type(again)) == (value, type(value))
    assert isinstance(value, set) or repr(again) == repr(value)  # 1 is not 1.0, a dict has its order


def test_long_lists_of_numbers_are_arrays():
    assert to_plain([1] * 256)["of"].dtype == np.int64
    assert to_plain(deque([0.5] * 256, 300))["of"]["of"].dtype == np.float64
    assert to_plain([1] * 255 + [True]) == [1] * 255 + [True]


def test_what_is_restored_has_arrays_of_its_own():
    array = np.arange(6).reshape(2, 3).T
    again = from_plain(array)
    again[0, 0] = 7
    assert array[0, 0] == 0
    assert again.flags.c_contiguous


@pytest.mark.parametrize("value", [print, object(), 1j, b"bytes", np.array([print]), {1: [len]}])
def test_what_is_no_plain_data_is_refused(value):
    with pytest.raises(NotRestorableError, match="cannot be saved in a snapshot"):
        to_plain(value)


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
    restore_object(other, as_json(take_snapshot(coin)))
    assert other.falls == [True, False]
    assert take_snapshot(None) is None
    with pytest.raises(NotRestorableError, match="int: its state is unknown: add snapshot"):
        take_snapshot(7)
    with pytest.raises(DataError, match="NoneType: does not match the object in the snapshot"):
        restore_object(None, take_snapshot(coin))
