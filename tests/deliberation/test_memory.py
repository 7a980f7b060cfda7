"""Notes of agents: which are kept, and which come to mind."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.deliberation.memory import Note, Notebook
from prism_mesa.errors import PrismError

numbers = st.floats(-1e9, 1e9)
vectors = st.none() | st.tuples(numbers, numbers, numbers)
notes = st.builds(
    Note,
    text=st.sampled_from("abcdefgh"),
    hour=st.integers(0, 1000).map(float) | st.floats(0, 1e6),
    importance=st.integers(1, 10),
    vector=vectors,
)


def texts(found):
    return [note.text for note in found]


def filled(*added, agent=0, **options):
    notebook = Notebook(**options)
    for note in added:
        notebook.add(agent, note)
    return notebook


# what a note counts


@pytest.mark.parametrize(
    ("note", "about", "hour", "expected"),
    [
        (Note("a", 0, 10), None, 0, 0.5),
        (Note("a", 0, 5), None, 2, 0.25 * 0.5 * 0.5),
        (Note("a", 1, 10, (1.0, 0.0)), (5.0, 0.0), 2, 0.5),
        (Note("a", 0, 10, (1.0, 0.0)), (0.0, 2.0), 0, 0.5),
        (Note("a", 0, 10, (1.0, 0.0)), (-2.0, 0.0), 0, 0.0),
        (Note("a", 0, 10, (3.0, 4.0)), np.array([4.0, 3.0]), 0, (1 + 24 / 25) / 2),
        (Note("a", 0, 10, np.array([1, 0], np.float32)), (1.0, 0.0), 0, 1.0),
        (Note("a", 0, 10, (0.0, 0.0)), (1.0, 0.0), 0, 0.5),
        (Note("a", 0, 10, (1.0, 0.0)), (0.0, 0.0), 0, 0.5),
        (Note("a", 0, 10, (math.nan, 0.0)), (1.0, 0.0), 0, 0.5),
        (Note("a", 0, 10, ()), (1.0, 0.0), 0, 0.5),
        (Note("a", 0, 10, (1e200, 0.0)), (1e-200, 0.0), 0, 1.0),
        (Note("a", 5, 10), None, 0, 0.5),
        (Note("a", 0, 10), None, 1e9, 0.0),
    ],
)
def test_a_note_counts_recency_times_relevance_times_importance(note, about, hour, expected):
    assert Notebook(decay=0.5).score(note, about, hour) == pytest.approx(expected, abs=1e-15)


# what is kept


def test_beyond_the_cap_the_note_with_the_least_recency_times_importance_goes():
    # at hour 2 with half an hour's worth gone each hour: a 8/4, b 3/2, c 2/1
    notebook = filled(Note("a", 0, 8), Note("b", 1, 3), Note("c", 2, 2), max_notes=2, decay=0.5)
    assert texts(notebook.agent_notes(0)) == ["a", "c"]


def test_an_equal_text_renews_the_note():
    notebook = filled(Note("a", 1, 7, (1.0, 0.0)), Note("b", 2, 5), Note("a", 3, 2))
    assert notebook.agent_notes(0) == (Note("b", 2, 5), Note("a", 3, 7))
    assert notebook.agent_notes(0)[1].vector == (1.0, 0.0)
    notebook.add(0, Note("a", 0, 9, (0.0, 1.0)))
    assert notebook.agent_notes(0) == (Note("b", 2, 5), Note("a", 3, 9))
    assert notebook.agent_notes(0)[1].vector == (0.0, 1.0)


@given(st.lists(st.tuples(st.integers(0, 2), notes), max_size=40), st.integers(1, 4))
def test_no_agent_keeps_more_than_the_cap_and_no_text_twice(added, max_notes):
    notebook = Notebook(max_notes=max_notes)
    for agent, note in added:
        notebook.add(agent, note)
    for agent in range(3):
        kept = notebook.agent_notes(agent)
        assert len(kept) == len(set(texts(kept))) <= max_notes
        assert [note.hour for note in kept] == sorted(note.hour for note in kept)
        assert len(kept) >= min(max_notes, len({note.text for who, note in added if who == agent}))


# what comes to mind


def test_what_is_recalled_comes_best_first():
    chess, rain, late = Note("chess", 0, 5, (1.0, 0.0)), Note("rain", 0, 9, (0.0, 1.0)), Note("late", 24, 2)
    notebook = filled(chess, rain, late)
    # at hour 24 recency is 0.887 for the first two: 0.443, 0.399, and 0.1 for the third
    assert texts(notebook.recall(0, (1.0, 0.0), 24)) == ["chess", "rain", "late"]
    # 0.222, 0.798, 0.1
    assert texts(notebook.recall(0, (0.0, 1.0), 24, max_notes=1)) == ["rain"]
    assert notebook.recall(0, None, 24, max_notes=0) == notebook.recall(5, None, 24) == []


@given(st.lists(notes, max_size=20), vectors, st.floats(0, 1e6), st.integers(0, 10))
def test_recalled_notes_are_sorted_by_score_and_recalling_changes_nothing(added, about, hour, max_notes):
    notebook = filled(*added)
    before = notebook.as_columns()
    found = notebook.recall(0, about, hour, max_notes)
    scores = [notebook.score(note, about, hour) for note in found]
    left = [notebook.score(note, about, hour) for note in notebook.agent_notes(0) if note not in found]
    assert scores == sorted(scores, reverse=True)
    assert len(found) == min(max_notes, len(notebook.agent_notes(0)))
    assert all(score <= min(scores, default=1) for score in left)
    assert notebook.as_columns() == before
    assert notebook.recall(0, about, hour, max_notes) == found


# tables and limits


def test_rows_are_columns_of_a_table_by_agent():
    notebook = filled(Note("b", 2, 5), Note("a", 1, np.int64(7)), agent=4)
    notebook.add(2, Note("c", 3.5, 1))
    assert notebook.as_columns() == {
        "agent": [2, 4, 4],
        "hour": [3.5, 1.0, 2.0],
        "importance": [1, 7, 5],
        "text": ["c", "a", "b"],
    }
    assert pd.DataFrame(notebook.as_columns()).shape == (3, 4)
    assert Notebook().as_columns() == {"agent": [], "hour": [], "importance": [], "text": []}


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: Note("a", 0, 11), "importance"),
        (lambda: Note("a", 0, 2.5), "importance"),
        (lambda: Note("a", math.nan, 1), "hour"),
        (lambda: Notebook(max_notes=0), "max_notes"),
        (lambda: Notebook(decay=0), "decay"),
        (lambda: Notebook(decay=math.nan), "decay"),
        (lambda: Notebook().score(Note("a", 0, 1, (1.0, 0.0)), (1.0, 0.0, 0.0), 0), "vector"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(make, key):
    with pytest.raises(PrismError, match=f"{key}: "):
        make()
