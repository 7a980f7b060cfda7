"""The file of a checkpoint: what goes in comes out, and what is damaged or hostile is one line."""

import io
import json
import os
import re
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from prism_mesa.errors import NotRestorableError
from prism_mesa.runs.checkpoints.file import DamagedError, read_checkpoint, write_checkpoint
from prism_mesa.runs.checkpoints.keeping import forget
from prism_mesa.runs.checkpoints.names import name_of

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


@pytest.fixture
def file(tmp_path):
    return tmp_path / "round-000000007.npz"


def test_what_goes_in_comes_out(file):
    size = write_checkpoint(file, DATA)
    assert file.stat().st_size == size
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
    with pytest.raises(NotRestorableError, match=r"^a checkpoint holds no such thing: "):
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
    with suppress(DamagedError):
        found = read_checkpoint(file)
    if found is not None:
        assert same(found, DATA)  # it was a date, or room between
    else:
        with pytest.raises(DamagedError, match=rf"^{re.escape(str(file))}: is damaged: .") as error:
            read_checkpoint(file)
        assert "\n" not in str(error.value)


def zipped(file, how=zipfile.ZIP_STORED, **members):
    with zipfile.ZipFile(file, "w", how) as made:
        for name, raw in members.items():
            made.writestr(f"{name}.npy", raw)


def npy(array, **header):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    raw = stream.getvalue()
    for old, new in header.items():
        raw = raw.replace(old.encode(), new.encode())
    return raw


def as_json(value):
    return npy(np.frombuffer(json.dumps(value).encode(), np.uint8))


def huge():
    """An array that declares eight terabytes."""
    return npy(np.zeros(3)).replace(b"(3,), }          ", b"(999999999999,), }")


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({}, "it has no array 'json'"),
        ({"json": as_json([1])}, "it holds no keys and values"),
        ({"json": as_json({"x": {"array": 5}})}, "it has no array '5'"),
        ({"json": npy(np.frombuffer(b"{", np.uint8))}, "Expecting"),
        ({"json": as_json({}), "0": huge()}, "declares"),
        ({"json": as_json({}), "0": npy(np.array([{}], object))}, "declares"),
        ({"json": as_json({}), "0": b"dear diary"}, "magic string"),
        ({"json": as_json({}), "0": npy(np.zeros(3)) + b"more"}, "declares 24 bytes of float64, and has 28"),
        ({"json": npy(np.frombuffer(b"[" * 100_000, np.uint8))}, "recursion"),
    ],
)
def test_what_somebody_else_made_is_one_line_and_takes_no_memory(members, said, file):
    zipped(file, **members)
    with pytest.raises(DamagedError, match=rf"is damaged: .*{said}"):
        read_checkpoint(file)


def test_an_array_that_is_to_be_handed_over_twice_is_none(file):
    zipped(file, json=as_json({"x": {"array": 0}, "y": {"array": 0}}), **{"0": npy(np.zeros(3))})
    with pytest.raises(DamagedError, match=r"is damaged: it has no array '0'$"):
        read_checkpoint(file)


def test_arrays_that_lie_in_the_same_bytes_take_no_memory(file):
    zipped(file, json=as_json({}), **{str(i): npy(np.zeros(3 if i else 9999)) for i in range(9)})
    raw = bytearray(file.read_bytes())
    at = first = raw.index(b"PK\1\2", raw.index(b"PK\1\2") + 1)
    while (at := raw.find(b"PK\1\2", at + 1)) > 0:  # the others point to the large one
        raw[at + 16 : at + 28], raw[at + 42 : at + 46] = raw[first + 16 : first + 28], raw[first + 42 : first + 46]
    file.write_bytes(raw)
    with pytest.raises(DamagedError, match=r"is damaged: its arrays are larger than it is$"):
        read_checkpoint(file)


def test_a_bomb_is_not_unpacked(file):
    zipped(file, zipfile.ZIP_DEFLATED, json=as_json({"x": "a" * 10**6}))
    with pytest.raises(DamagedError, match=r"is damaged: an array in it is compressed$"):
        read_checkpoint(file)


def test_one_that_is_not_there_or_is_a_folder_is_damaged(tmp_path):
    (tmp_path / "folder.npz").mkdir()
    for name in ("none.npz", "folder.npz"):
        with pytest.raises(DamagedError, match=rf"^{Path(tmp_path, name)}: is damaged: (No such file|Is a dir)"):
            read_checkpoint(tmp_path / name)


def test_a_run_that_goes_on_forgets_the_checkpoints_of_later_rounds_and_no_other(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for done in (2, 4, 6):
        (folder / name_of(done)).touch()
        (folder / f"rows-posts-{done:09d}.arrow").touch()
    (folder / ".round-000000005.npz").touch()
    forget(tmp_path, after=4)
    kept = [
        f"{stem}-{done:09d}.{suffix}" for stem, suffix in (("round", "npz"), ("rows-posts", "arrow")) for done in (2, 4)
    ]
    assert sorted(file.name for file in folder.iterdir()) == kept
    forget(tmp_path)
    assert not folder.exists()
