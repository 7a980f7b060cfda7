"""Records of a run that leaves nothing on disk: the same tables, only those that are wanted."""

import numpy as np
import pandas as pd
import pytest
from small_runs import TABLES, small

from prism_mesa.errors import DataError
from prism_mesa.runs.records.in_memory import RowsInMemory
from prism_mesa.runs.social import run, start_run
from prism_mesa.social.tables import SOCIAL_TABLES


def test_a_run_that_leaves_nothing_has_the_tables_and_the_summary_of_one_that_is_kept(tmp_path, monkeypatch):
    kept = run(small(), out=tmp_path / "kept")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    records = RowsInMemory(SOCIAL_TABLES)
    summary = start_run(small()).run_in_memory(records, "name")
    for table in TABLES:
        pd.testing.assert_frame_equal(records.table(table), kept.table(table))
        pd.testing.assert_frame_equal(records.table(table), kept.table(table))  # also when it is asked again
    took = {"cpu_s", "wall_s", "round_cpu_s", "records_cpu_s", "peak_memory_mb", "run_dir"}
    assert summary["run_dir"] is None
    assert {k: v for k, v in summary.items() if k not in took} == {
        k: v for k, v in kept.summary.items() if k not in took
    }
    assert list((tmp_path / "empty").iterdir()) == []


def test_rows_of_tables_that_nobody_wants_are_not_kept():
    records = RowsInMemory(SOCIAL_TABLES, ["rounds"])
    start_run(small()).run_in_memory(records, "name")
    assert records.table("rounds")["round"].tolist() == [0, 1, 2]
    assert len(records.table("agents")) == 40  # is made when it is asked for
    for table in ("ticks", "transitions", "impressions", "engagements"):
        with pytest.raises(DataError, match=f"no table '{table}' was recorded"):
            records.table(table)
    with pytest.raises(DataError, match=r"no table 'cascade' was recorded\. Did you mean 'cascades'\?"):
        records.table("cascade")


def test_a_table_comes_back_row_after_row_and_is_checked():
    records = RowsInMemory(SOCIAL_TABLES)
    for round_ in range(3):
        records.write("notes", notes(round_))
    records.round_done()
    assert records.table("notes")["round"].tolist() == [0, 0, 1, 1, 2, 2]
    with pytest.raises(TypeError, match="table 'notes': column 'text' is int32, not text"):
        records.write("notes", notes(0) | {"text": np.array([1, 2])})
    records.replace_table("notes", [notes(7), notes(8)])
    assert records.table("notes")["round"].tolist() == [7, 7, 8, 8]


def notes(round_):
    numbers = {name: np.zeros(2, np.int32) for name in ("tick", "agent")}
    text = {"text": np.array(["a", "b"], object), "importance": np.array([1, 2])}
    return {"round": np.full(2, round_)} | numbers | text
