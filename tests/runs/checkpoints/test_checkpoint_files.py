"""The file of a checkpoint: what goes in comes out; what is damaged, or somebody else's, is one line."""

import os
import re
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from prism_mesa.errors import DataError, NotRestorableError
from prism_mesa.runs.checkpoints.file import (
    DamagedError,
    RefusedError,
    checkpoint_name,
    read_checkpoint,
    write_checkpoint,
)
from prism_mesa.runs.checkpoints.keeping import remove_checkpoints
from prism_mesa.runs.trust import sign

DATA = {
    "a": np.arange(5),
    "rows": np.zeros(3, [("move", "<u2"), ("clock", "<i4")]),
    "nested": [{"x": np.ones((2, 3), order="F"), "y": None}, [True, 1.5, "\ud800 half a pair"], np.array(["a", "bc"])],
    "nothing": {"array": [], "of": np.zeros((0, 4), np.int8)},
}


def same(one, other):
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or one != one


@pytest.fixture(scope="module", autouse=True)
def key():
    """Make a key to sign with, as a run does that writes its manifest before its checkpoints."""
    sign({})


@pytest.fixture
def file(tmp_path):
    return tmp_path / "round-000000007.npz"


def test_what_goes_in_comes_out(file):
    write_checkpoint(file, DATA)
    assert same(read_checkpoint(file), DATA)
    assert os.listdir(file.parent) == [file.name]


TEXTS = st.text(max_size=5).filter(lambda text: text != "array")
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
NUMBERS = arrays.arrays(st.sampled_from(["i1", "i4", "u8", "f4", "f8", "?"]), arrays.array_shapes(min_side=0))
NESTED = st.recursive(
    LEAVES | NUMBERS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)


@pytest.mark.slow
@given(st.dictionaries(TEXTS, NESTED, max_size=3))
def test_all_nested_plain_data_comes_out_as_it_went_in(tmp_path_factory, data):
    file = tmp_path_factory.mktemp("any") / "x.npz"
    write_checkpoint(file, data)
    assert same(read_checkpoint(file), data)


@pytest.mark.parametrize("thing", [{"x": np.array([object()])}, {"x": {1: 2}}, {"x": {1, 2}}, {"x": {"array": 1}}])
def test_what_is_no_plain_data_is_refused_and_nothing_is_left(thing, file):
    with pytest.raises(NotRestorableError, match=r"^a checkpoint cannot hold this value: "):
        write_checkpoint(file, thing)
    assert os.listdir(file.parent) == []


def test_one_that_cannot_be_written_leaves_the_one_before_and_no_part(file, monkeypatch):
    write_checkpoint(file, {"x": 1})

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_checkpoint(file, {"x": 2})
    assert os.listdir(file.parent) == [file.name]
    assert read_checkpoint(file) == {"x": 1}


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_any_byte_that_is_changed_and_any_cut_is_noticed_or_means_nothing(tmp_path_factory, data):
    file = tmp_path_factory.mktemp("damaged") / "x.npz"
    write_checkpoint(file, DATA)
    raw = bytearray(file.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        raw[at] ^= data.draw(st.integers(1, 255))
    else:
        del raw[at:]
    file.write_bytes(raw)
    found = None
    with suppress(DamagedError, RefusedError):  # refused: the name of an array was changed
        found = read_checkpoint(file)
    if found is not None:
        assert same(found, DATA)  # it was a date, or room between
    else:
        with pytest.raises(DataError, match=rf"^{re.escape(str(file))}:? .") as error:
            read_checkpoint(file)
        assert "\n" not in str(error.value)


def test_one_that_another_key_signed_or_none_is_used_only_with_trust(file, tmp_path, monkeypatch):
    write_checkpoint(file, DATA)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "other"))
    for make_key in (lambda: None, lambda: sign({})):
        make_key()
        with pytest.raises(RefusedError, match=r"was not written here, or was changed: .*--trust"):
            read_checkpoint(file)
        assert same(read_checkpoint(file, trust=True), DATA)


def test_one_array_in_the_place_of_another_is_noticed(file):
    write_checkpoint(file, {"x": np.arange(3), "y": np.arange(3, 6)})
    raw = file.read_bytes()
    file.write_bytes(raw.replace(b"0.npy", b"2.npy").replace(b"1.npy", b"0.npy").replace(b"2.npy", b"1.npy"))
    with pytest.raises(RefusedError, match="was changed"):
        read_checkpoint(file)


def test_a_run_that_goes_on_forgets_the_checkpoints_of_later_rounds_and_no_other(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for done in (2, 4, 6):
        (folder / checkpoint_name(done)).touch()
    (folder / ".round-000000005.npz").touch()
    remove_checkpoints(tmp_path, after=4)
    kept = [f"round-{done:09d}.npz" for done in (2, 4)]
    assert sorted(file.name for file in folder.iterdir()) == kept
    remove_checkpoints(tmp_path)
    assert not folder.exists()
