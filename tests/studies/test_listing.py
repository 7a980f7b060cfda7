"""What lies in a folder of results, and how each stands; whatever stands in it."""

import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from prism_mesa.api.runs import list_runs
from prism_mesa.errors import DataError
from prism_mesa.runs.process.lock import LOCK, lock_run
from prism_mesa.studies.folder import WHOLE, Shard, StudyFolder
from prism_mesa.studies.listing import list_folders

MANIFEST = {"system": "social", "status": "done", "seed": 7, "config": {"name": "mine", "rounds": 9}}


def made(folder, started="2026-03-01T12:00:00+00:00", **values):
    """Make what a run leaves, with a manifest of these values."""
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(MANIFEST | {"started": started} | values))
    return folder


def died(folder, round_):
    holder = {"pid": 1, "host": "h", "since": "s", "round": round_, "locks": True}
    (made(folder, status="running") / LOCK).write_text(json.dumps(holder))


def study(folder, endings, planned=4, kind="study", **files):
    """Make what a study leaves of which runs came to these ends."""
    folder.mkdir(parents=True)
    values = {"kind": "study", "name": folder.name, "runs": planned, "made": {"started": "2026-02-01T12:00:00+00:00"}}
    (folder / f"{'calibration' if kind == 'calibration' else 'study'}.json").write_text(json.dumps(values))
    with closing(sqlite3.connect(folder / "journal.sqlite")) as db, db:
        db.execute("create table runs (run text primary key, ending text not null)")
        db.executemany("insert into runs values (?, ?)", enumerate(endings))
    return folder


def only(out):
    [found] = list_folders(out)
    return found


@pytest.mark.parametrize(
    ("system", "kind"),
    [("social", "platform"), ("economy", "nations"), ("survey", "survey"), ("interview", "interview"), ([], "unknown")],
)
def test_a_run_is_listed_as_what_it_is(system, kind, tmp_path):
    found = only(made(tmp_path / "run", system=system).parent)
    assert (found.kind, found.config, found.seed, found.status, found.state) == (kind, "mine", 7, "done", "done")
    assert (found.run_dir, found.rounds, found.round) == (str(tmp_path / "run"), 9, None)


def test_newest_come_first_and_what_is_none_is_left_out(tmp_path):
    for name, started in (("a", "2026-03-01T12:00:00+00:00"), ("b", "2026-03-01T14:00:00+02:00"), ("c", "2026-03-02")):
        made(tmp_path / name, started)
    made(tmp_path / "d", "2025-12-31T23:59:59+00:00")
    (tmp_path / "empty").mkdir()
    (tmp_path / "chart.png").touch()
    assert [Path(one.run_dir).name for one in list_folders(tmp_path)] == ["c", "b", "a", "d"]


@pytest.mark.parametrize("status", ["done", "failed", "interrupted"])
def test_runs_that_have_ended_say_how(status, tmp_path):
    run = made(tmp_path / "run", status=status, error="round 3: x")
    item = only(run.parent)
    assert (item.status, item.state, item.error) == (status, status, "round 3: x")
    assert only(run).run_dir == item.run_dir  # a run itself is listed alone


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, "\udcff", '{"status": ["done"]}'])
def test_a_damaged_manifest_is_one_line(text, tmp_path):
    made(tmp_path / "good")
    made(tmp_path / "run", "2027-01-01").joinpath("manifest.json").write_bytes(text.encode(errors="surrogateescape"))
    bad = next(item for item in list_folders(tmp_path) if item.run_dir.endswith("run"))
    assert (bad.status, bad.state, len(list_folders(tmp_path))) == ("damaged", "damaged", 2)
    assert bad.error.startswith("manifest.json: ")
    assert bad.error.isprintable()


@pytest.mark.parametrize(
    "odd",
    [None, {}, True, 10**30, "x" * 10_000, "\x1b[31m", {"name": ["x"]}, "9999-99-99"],
    ids=lambda value: repr(value)[:20],
)
def test_whatever_a_manifest_holds_a_line_can_be_made_of_it(odd, tmp_path):
    for key in ("system", "seed", "config", "started", "error", "status"):
        made(tmp_path / key, **{"started": "2026-01-01", key: odd})
    assert len(list_runs(tmp_path)) == 6
    for item in list_folders(tmp_path):
        assert f"{item.config}{item.error}".isprintable()
        assert len(item.config + item.error) <= 400
        assert item.age_s >= 0


def test_a_run_that_is_running_is_told_from_one_that_died(tmp_path):
    made(tmp_path / "a" / "run", status="running")
    with lock_run(tmp_path / "a" / "run") as lock:
        lock.note_round(4)
        now = only(tmp_path / "a")
    died(tmp_path / "b" / "run", 6)
    assert (now.status, now.state, now.round) == ("running", "running, round 4 of 9", 4)
    found = only(tmp_path / "b")
    assert (found.status, found.state, found.round, found.rounds) == ("died", "died in round 6 of 9", 6, 9)


def test_a_run_that_has_no_manifest_yet_is_listed_while_and_if_it_died(tmp_path):
    (tmp_path / "run").mkdir()
    with lock_run(tmp_path / "run") as lock:
        lock.has_ended = False
        assert only(tmp_path).state == "running, before its first round"
    assert only(tmp_path).state == "died, before its first round"


def test_age_is_never_below_nothing_and_size_is_that_of_all_files(tmp_path):
    made(tmp_path / "a" / "run", "2999-01-01T00:00:00+00:00")
    assert only(tmp_path / "a").age_s == 0
    run = made(tmp_path / "b" / "run", datetime.now(UTC).isoformat())
    (run / "rounds.parquet").mkdir()
    (run / "rounds.parquet" / "part-00000.parquet").write_bytes(b"x" * 1000)
    (run / "out").symlink_to(tmp_path / "a")
    link = (run / "out").lstat().st_size
    found = only(tmp_path / "b")
    assert found.size_bytes == 1000 + (run / "manifest.json").stat().st_size + link
    assert 0 <= found.age_s < 600


# -- many runs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endings", "status", "state"),
    [
        (["done"] * 4, "done", "done"),
        (["done", "done"], "incomplete", "incomplete, 2 of 4 runs done"),
        (["done", "raised", "killed"], "incomplete", "incomplete, 1 of 4 runs done, 2 failed"),
        (["done", "done", "raised", "done"], "failed", "failed, 3 of 4 runs done, 1 failed"),
    ],
)
def test_a_study_is_one_line_with_its_own_state(endings, status, state, tmp_path):
    folder = study(tmp_path / "cascades", endings)
    made(folder / "runs" / "r1")
    found = only(tmp_path)
    assert (found.kind, found.config, found.status, found.state) == ("study", "cascades", status, state)
    assert found.started == "2026-02-01T12:00:00+00:00"
    assert only(folder).run_dir == str(folder / "runs" / "r1")


@pytest.mark.parametrize("shard", [WHOLE, Shard(2, 3)])
def test_a_study_is_running_while_somebody_runs_it(shard, tmp_path):
    folder = study(tmp_path / "cascades", ["done"])
    with StudyFolder(folder).locked(shard):
        assert only(tmp_path).state == "running, 1 of 4 runs done"
        for other in (WHOLE, shard):
            with pytest.raises(DataError, match="another process is running this study"):
                StudyFolder(folder).locked(other).__enter__()
    assert only(tmp_path).state == "incomplete, 1 of 4 runs done"


def test_calibrations_and_validations_are_named_as_such(tmp_path):
    study(tmp_path / "c", ["done"] * 9, kind="calibration", planned=None)
    validation = study(tmp_path / "v", ["done"] * 4)
    (validation / "validation.json").write_text("[]")
    told = {one.kind: one.state for one in list_folders(tmp_path)}
    assert told == {"validation": "done", "calibration": "incomplete, 9 runs done"}
    (tmp_path / "c" / "fitted.yaml").touch()
    assert {one.kind: one.state for one in list_folders(tmp_path)}["calibration"] == "done"


def test_a_damaged_study_is_one_line(tmp_path):
    (study(tmp_path / "a", []) / "journal.sqlite").write_text("dear diary" * 100)
    (study(tmp_path / "b", []) / "study.json").write_text("{")
    found = {one.config or one.error: one.status for one in list_folders(tmp_path)}
    assert set(found.values()) == {"damaged"}
    assert any(told.startswith("journal.sqlite: cannot be read: ") for told in found)


def test_a_journal_that_is_a_link_is_not_read(tmp_path):
    elsewhere = study(tmp_path / "elsewhere" / "x", ["done"] * 4) / "journal.sqlite"
    mine = study(tmp_path / "out" / "y", []) / "journal.sqlite"
    mine.unlink()
    mine.symlink_to(elsewhere)
    assert only(tmp_path / "out").state == "incomplete, 0 of 4 runs done"


# -- what is given -----------------------------------------------------------------------------------


def test_a_folder_that_is_none_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    for name, why in (("none", "No such file or directory"), ("file", "Not a directory")):
        with pytest.raises(DataError, match=rf"^{re.escape(str(tmp_path / name))}: cannot be listed: {why}$"):
            list_folders(tmp_path / name)


def test_the_table_has_a_row_for_each_and_the_same_columns_if_there_is_none(tmp_path):
    empty = list_runs(tmp_path)
    died(tmp_path / "run", 6)
    table = list_runs(tmp_path)
    assert empty.empty
    assert list(empty.columns) == list(table.columns)
    pd.testing.assert_series_equal(empty.dtypes[["seed", "age_s"]], table.dtypes[["seed", "age_s"]])
    [row] = table.to_dict("records")
    assert (row["status"], row["round"], row["seed"], row["kind"]) == ("died", 6, 7, "platform")
