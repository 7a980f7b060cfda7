"""Notes of agents: which are kept, and which come to mind."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.deliberation.memory import Note, Notebook, direction_of
from prism_mesa.errors import AgentError, ConfigError

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


def test_after_a_week_a_note_counts_less_than_half():
    assert Notebook().score(Note("a", 0, 10, (1.0,)), (1.0,), 168) == pytest.approx(0.4308, abs=1e-4)


@given(notes, vectors, st.floats(0, 1e6))
def test_a_score_lies_between_0_and_1(note, about, hour):
    assert 0 <= Notebook().score(note, about, hour) <= 1


def test_vectors_of_two_embeddings_do_not_compare():
    with pytest.raises(AgentError, match=r"^note: vector: has 2 numbers, but 3 are asked about; use one embedding$"):
        Notebook().score(Note("a", 0, 1, (1.0, 0.0)), (1.0, 0.0, 0.0), 0)


@given(st.lists(numbers, min_size=1, max_size=5))
def test_a_direction_has_length_1(vector):
    direction = direction_of(vector)
    assert direction is None if not any(vector) else np.linalg.norm(direction) == pytest.approx(1)


# what is kept


def test_notes_are_kept_oldest_first_whatever_the_order_they_came_in():
    notebook = filled(Note("b", 2, 5), Note("a", 1, 5), Note("c", 2, 5), Note("d", 3, 5))
    assert texts(notebook.of(0)) == ["a", "b", "c", "d"]
    assert notebook.of(1) == ()


def test_beyond_the_cap_the_note_with_the_least_recency_times_importance_goes():
    # at hour 2 with half an hour's worth gone each hour: a 8/4, b 3/2, c 2/1
    notebook = filled(Note("a", 0, 8), Note("b", 1, 3), Note("c", 2, 2), most=2, decay=0.5)
    assert texts(notebook.of(0)) == ["a", "c"]


def test_of_equal_ones_the_oldest_goes():
    notebook = filled(Note("a", 0, 4), Note("b", 1, 2), Note("c", 2, 1), most=2, decay=0.5)
    assert texts(notebook.of(0)) == ["b", "c"]


def test_a_note_of_no_weight_does_not_push_out_others():
    notebook = filled(Note("a", 0, 9), Note("b", 0, 9), Note("c", 0, 1), most=2)
    assert texts(notebook.of(0)) == ["a", "b"]


def test_an_equal_text_renews_the_note():
    notebook = filled(Note("a", 1, 7, (1.0, 0.0)), Note("b", 2, 5), Note("a", 3, 2))
    assert notebook.of(0) == (Note("b", 2, 5), Note("a", 3, 7))
    assert notebook.of(0)[1].vector == (1.0, 0.0)
    notebook.add(0, Note("a", 0, 9, (0.0, 1.0)))
    assert notebook.of(0) == (Note("b", 2, 5), Note("a", 3, 9))
    assert notebook.of(0)[1].vector == (0.0, 1.0)


def test_agents_do_not_share_notes():
    notebook = filled(Note("a", 1, 7), agent=3)
    notebook.add(1, Note("a", 2, 2))
    assert (notebook.of(3), notebook.of(1), len(notebook)) == ((Note("a", 1, 7),), (Note("a", 2, 2),), 2)


@given(st.lists(st.tuples(st.integers(0, 2), notes), max_size=40), st.integers(1, 4))
def test_no_agent_keeps_more_than_the_cap_and_no_text_twice(added, most):
    notebook = Notebook(most=most)
    for agent, note in added:
        notebook.add(agent, note)
    for agent in range(3):
        kept = notebook.of(agent)
        assert len(kept) == len(set(texts(kept))) <= most
        assert [note.hour for note in kept] == sorted(note.hour for note in kept)
        assert len(kept) >= min(most, len({note.text for who, note in added if who == agent}))


@given(st.lists(notes, max_size=20), st.lists(notes, max_size=20), st.integers(1, 4))
def test_the_order_of_agents_does_not_matter(of_one, of_other, most):
    one, other = Notebook(most=most), Notebook(most=most)
    for agent, added in ((0, of_one), (1, of_other)):
        for note in added:
            one.add(agent, note)
    for agent, added in ((1, of_other), (0, of_one)):
        for note in added:
            other.add(agent, note)
    assert one.rows() == other.rows()


# what comes to mind


def test_what_is_recalled_comes_best_first():
    chess, rain, late = Note("chess", 0, 5, (1.0, 0.0)), Note("rain", 0, 9, (0.0, 1.0)), Note("late", 24, 2)
    notebook = filled(chess, rain, late)
    # at hour 24 recency is 0.887 for the first two: 0.443, 0.399, and 0.1 for the third
    assert texts(notebook.recalled(0, (1.0, 0.0), 24)) == ["chess", "rain", "late"]
    # 0.222, 0.798, 0.1
    assert texts(notebook.recalled(0, (0.0, 1.0), 24, most=1)) == ["rain"]
    assert notebook.recalled(0, None, 24, most=0) == notebook.recalled(5, None, 24) == []


def test_of_equal_notes_the_newer_comes_first():
    notebook = filled(Note("a", 0, 5), Note("b", 1, 5), Note("c", 1, 5), decay=1)
    assert texts(notebook.recalled(0, None, 9)) == ["c", "b", "a"]


@given(st.lists(notes, max_size=20), vectors, st.floats(0, 1e6), st.integers(0, 10))
def test_recalled_notes_are_sorted_by_score_and_recalling_changes_nothing(added, about, hour, most):
    notebook = filled(*added)
    before = notebook.rows()
    found = notebook.recalled(0, about, hour, most)
    scores = [notebook.score(note, about, hour) for note in found]
    left = [notebook.score(note, about, hour) for note in notebook.of(0) if note not in found]
    assert scores == sorted(scores, reverse=True)
    assert len(found) == min(most, len(notebook.of(0)))
    assert all(score <= min(scores, default=1) for score in left)
    assert notebook.rows() == before
    assert notebook.recalled(0, about, hour, most) == found


# tables and limits


def test_rows_are_columns_of_a_table_by_agent():
    notebook = filled(Note("b", 2, 5), Note("a", 1, np.int64(7)), agent=4)
    notebook.add(2, Note("c", 3.5, 1))
    assert notebook.rows() == {
        "agent": [2, 4, 4],
        "hour": [3.5, 1.0, 2.0],
        "importance": [1, 7, 5],
        "text": ["c", "a", "b"],
    }
    assert pd.DataFrame(notebook.rows()).shape == (3, 4)
    assert Notebook().rows() == {"agent": [], "hour": [], "importance": [], "text": []}


@pytest.mark.parametrize("importance", [0, 11, 2.5, "5"])
def test_importance_is_a_whole_number_from_1_to_10(importance):
    with pytest.raises(AgentError, match=f"importance: must be a whole number from 1 to 10, not {importance!r}$"):
        Note("a", 0, importance)


@pytest.mark.parametrize("hour", [math.nan, math.inf])
def test_an_hour_is_finite(hour):
    with pytest.raises(AgentError, match=r"^note: hour: must be a finite number, not "):
        Note("a", hour, 1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"most": 0}, "^notebook: most: must be at least 1, not 0$"),
        ({"decay": 0}, "^notebook: decay: must be above 0 and at most 1, not 0$"),
        ({"decay": 1.1}, "^notebook: decay: must be above 0 and at most 1, not 1.1$"),
        ({"decay": math.nan}, "^notebook: decay: must be above 0 and at most 1, not nan$"),
    ],
)
def test_a_notebook_refuses_numbers_that_make_no_sense(options, told):
    with pytest.raises(ConfigError, match=told):
        Notebook(**options)
