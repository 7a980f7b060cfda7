"""Ids and names: they read as lists of texts, whatever they are kept as."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.social.state.ids import Ids, Names

POOL = ("Ada Abe", "Bo Chen", "Cy Diaz")


def ids_of(kind):
    return {
        "rows": (Ids(range(3)), ["0", "1", "2"]),
        "numbers": (Ids(np.array([-5, 7, 1234567890123456789])), ["-5", "7", "1234567890123456789"]),
        "texts": (Ids(["ann", "007", ""]), ["ann", "007", ""]),
        "arrow": (Ids(pa.array(["ann", "bo", "cy"])), ["ann", "bo", "cy"]),
    }[kind]


@pytest.fixture(params=["rows", "numbers", "texts", "arrow"])
def ids(request):
    return ids_of(request.param)


def test_ids_read_as_a_list_of_texts(ids):
    labels, texts = ids
    assert labels == texts
    assert texts == labels
    assert labels != texts[:2]
    assert labels != [*texts[:2], "other"]
    assert (len(labels), list(labels), labels[:2], labels[-1]) == (3, texts, texts[:2], texts[-1])
    assert labels.to_arrow().to_pylist() == labels.to_numpy().tolist() == pd.Series(labels).tolist() == texts
    with pytest.raises(IndexError):
        labels[3]


def test_ids_know_their_rows(ids):
    labels, texts = ids
    assert [labels.index(text) for text in texts] == [0, 1, 2]
    assert all(text in labels for text in texts)
    assert "nobody" not in labels
    assert 0 not in labels
    assert labels.rows_of([texts[2], "nobody", texts[0], texts[2]]).tolist() == [2, -1, 0, 2]
    assert labels.rows_of([]).tolist() == []
    with pytest.raises(ValueError, match="'nobody' is not an id"):
        labels.index("nobody")


def test_ids_grow(ids):
    labels, texts = ids
    labels.extend(Ids(["new 3"]))
    labels.extend(["x"])
    assert labels == [*texts, "new 3", "x"]
    assert (labels[3], labels.index("x"), "new 3" in labels) == ("new 3", 4, True)


@pytest.mark.parametrize("text", ["03", "+3", " 3", "3.0", "٣", "-0", "²", "5"])
def test_only_the_digits_of_a_row_are_its_id(text):
    assert text not in Ids(range(5))
    assert Ids(range(5)).rows_of([text]).tolist() == [-1]


def test_names_are_taken_from_the_pool_unless_they_are_given():
    names = Names(np.array([2, 0, 1], np.uint16), POOL)
    assert names == ["Cy Diaz", "Ada Abe", "Bo Chen"]
    names[1] = "Zoe"
    names[-1] = ""
    assert list(names) == ["Cy Diaz", "Zoe", ""]
    assert [names[i] for i in range(3)] == list(names)
    names[:2] = ["one", "two"]
    assert pd.Series(names).tolist() == ["one", "two", ""]
    assert names.index("two") == 1
    with pytest.raises(ValueError, match="shorter"):
        names[:] = ["one"]


@given(
    st.lists(st.integers(0, 2), max_size=6),
    st.lists(st.integers(0, 2), max_size=6),
    st.dictionaries(st.integers(0, 5), st.text()),
)
def test_names_grow_with_what_was_given(first, second, given_names):
    one, other = (Names(np.array(codes, np.uint16), POOL) for codes in (first, second))
    texts = [POOL[code] for code in second]
    for row, name in given_names.items():
        if row < len(second):
            other[row] = texts[row] = name
    one.extend(other)
    assert list(one) == [POOL[code] for code in first] + texts
