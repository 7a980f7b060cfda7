"""Rows that wait to be written: few or many at a time, the same table, and each checked when it comes in."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from prism_mesa.runs.records.arrow_rows import WaitingRows, arrow_table
from prism_mesa.tables import Column, TableSchema

SCHEMA = TableSchema("ticks", "a tick", tuple(Column(name, "int", "what it says") for name in ("round", "idle")))


def columns(first, n, largest=5):
    return {"round": np.arange(first, first + n), "idle": np.full(n, largest)}


def test_rows_that_come_few_at_a_time_are_those_that_come_at_once():
    waiting, made, first = WaitingRows(SCHEMA), [], 0
    for n in (1, 3, 0, 150, 2, 2, 1):
        waiting.add(columns(first, n))
        made.append(arrow_table(columns(first, n), SCHEMA))
        assert len(waiting) == sum(map(len, made))
        first += n
    assert waiting.table().equals(pa.concat_tables(made, promote_options="permissive"))
    waiting.add(columns(first, 1))
    assert waiting.table()["round"].to_pylist() == list(range(first + 1))


def test_codes_mean_the_texts_of_their_own_column_though_another_had_the_same_in_another_order():
    for names in (["ignores", "decides"], ["decides", "ignores"]):
        cells = pd.Categorical.from_codes([0, 1, 1], dtype=pd.CategoricalDtype(names))
        assert arrow_table({"trigger": cells}, None)["trigger"].to_pylist() == [names[0], names[1], names[1]]


def test_whole_numbers_are_wide_only_if_one_has_to_be():
    narrow, wide = WaitingRows(SCHEMA), WaitingRows(SCHEMA)
    for largest in (5, 6, 7):
        narrow.add(columns(0, 1, largest))
        wide.add(columns(0, 1, 2**40 if largest == 7 else largest))
    assert narrow.table().schema.types == [pa.int32(), pa.int32()]
    assert wide.table().schema.types == [pa.int32(), pa.int64()]
    assert wide.table()["idle"].to_pylist() == [5, 6, 2**40]


def test_what_is_changed_after_it_came_in_is_as_it_was():
    waiting, counts = WaitingRows(SCHEMA), np.zeros((1, 2), np.int64)
    for round_ in range(4):
        counts[:] = round_
        waiting.add({"round": counts[:, 0], "idle": counts[:, 1]})
    counts[:] = 99
    assert waiting.table().to_pydict() == {"round": [0, 1, 2, 3], "idle": [0, 1, 2, 3]}


@pytest.mark.parametrize(
    ("later", "error"),
    [
        ({"idle": np.array([1]), "round": np.array([1])}, "has the columns idle, round, not round, idle"),
        ({"round": np.array([1])}, "has the columns round, not round, idle"),
        ({"round": np.array([1]), "idle": np.array([0.5])}, "column 'idle' is double, not int"),
        ({"round": np.array([1, 2]), "idle": np.array([1])}, "expected length"),
    ],
)
def test_rows_that_are_not_as_those_before_are_refused_and_leave_what_there_is(later, error):
    waiting = WaitingRows(SCHEMA)
    for round_ in range(2):
        waiting.add(columns(round_, 1))
    with pytest.raises((TypeError, pa.ArrowInvalid), match=error):
        waiting.add(later)
    waiting.add(columns(2, 1))
    assert waiting.table().to_pydict() == {"round": [0, 1, 2], "idle": [5, 5, 5]}


def test_rows_that_wait_come_back_from_their_bytes_and_go_on_waiting():
    rows, never_stopped = WaitingRows(SCHEMA), WaitingRows(SCHEMA)
    for one in (rows, never_stopped):
        one.add(columns(0, 3))
        one.add(columns(0, 3))
    again = WaitingRows.from_snapshot(SCHEMA, rows.snapshot())
    for one in (again, never_stopped):
        one.add(columns(0, 3))
    assert again.table().equals(never_stopped.table())
    assert len(again) == len(never_stopped) == 9


def test_rows_of_which_none_came_in_stay_so_and_columns_without_rows_too():
    rows = WaitingRows(SCHEMA)
    assert rows.snapshot() is None
    assert WaitingRows.from_snapshot(SCHEMA, None).is_new
    rows.add(columns(0, 0))
    again = WaitingRows.from_snapshot(SCHEMA, rows.snapshot())
    assert (again.is_new, len(again)) == (False, 0)
