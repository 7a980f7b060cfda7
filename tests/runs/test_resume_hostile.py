"""What goes on from a folder that somebody has changed, or while somebody else brings the run to its end."""

import json
import os
import shutil
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from killed_runs import all_bytes, images
from small_runs import small

from prism_mesa.api.runs import resume, run
from prism_mesa.errors import DataError, PrismWarning
from prism_mesa.runs.checkpoints.file import read_checkpoint, write_checkpoint
from prism_mesa.runs.checkpoints.names import FOLDER, files, name_of
from prism_mesa.runs.process.lock import lock_run
from prism_mesa.runs.run_files import LEDGER, MANIFEST

QUIET = {"pictures": False}


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The tables of a whole run, and the folder of the same as it was killed after five rounds."""
    out, to = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("to")
    whole = run(small(rounds=6, checkpoint_every=2), out=out, on_round=images(out, to, (5,)), **QUIET)
    return all_bytes(whole), to / "killed-5"


@pytest.fixture
def folder(killed, tmp_path):
    return Path(shutil.copytree(killed[1], tmp_path / "copy"))


@pytest.mark.parametrize(
    ("group", "key", "value"),
    [
        ("records", "rounds", None),
        ("records", "rounds", "five"),
        ("records", "cpu_s", None),
        ("records", "notes", 5),
        (None, "model", None),
    ],
)
def test_a_checkpoint_that_does_not_say_what_each_says_is_passed_over(group, key, value, killed, folder):
    newest = files(folder)[0]
    data = read_checkpoint(newest)
    of = data if group is None else data[group]
    del of[key]
    of |= {} if value is None else {key: value}
    write_checkpoint(newest, data)
    with pytest.warns(PrismWarning, match=r"is damaged: .*: it goes on from round 2"):
        assert all_bytes(resume(folder, **QUIET)) == killed[0]


@pytest.mark.parametrize("resumed", [5, "x", None])
def test_a_manifest_whose_list_of_resumptions_is_none_does_no_harm(resumed, killed, folder):
    manifest = json.loads((folder / MANIFEST).read_text()) | {"resumed": resumed}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    result = resume(folder, **QUIET)
    assert all_bytes(result) == killed[0]
    assert [one["round"] for one in result.manifest["resumed"]] == [4]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_nobody_waits_at_a_pipe_that_is_called_a_checkpoint(killed, folder):
    os.mkfifo(folder / FOLDER / name_of(5))
    assert [file.name for file in files(folder)] == [name_of(4), name_of(2)]
    assert all_bytes(resume(folder, **QUIET)) == killed[0]


def test_a_ledger_that_does_something_when_it_is_written_is_none(folder):
    with closing(sqlite3.connect(folder / LEDGER)) as db:
        db.execute("CREATE TRIGGER answers AFTER INSERT ON asked BEGIN DELETE FROM answers; END")
    with pytest.raises(DataError, match="it holds a trigger"):
        resume(folder, **QUIET)
    assert [file.name for file in files(folder)] == [name_of(4), name_of(2)]


def test_a_run_that_another_process_ended_while_the_lock_was_waited_for_is_left_as_it_is(killed, folder, monkeypatch):
    @contextmanager
    def waited_for(path):
        with monkeypatch.context() as patch:
            patch.setattr("prism_mesa.runs.resume.lock_run", lock_run)
            resume(path, **QUIET)
        with lock_run(path) as lock:
            yield lock

    monkeypatch.setattr("prism_mesa.runs.resume.lock_run", waited_for)
    shown = []
    result = resume(folder, on_round=shown.append, **QUIET)
    assert (shown, result.status, len(result.manifest["resumed"])) == ([], "done", 1)
    assert all_bytes(result) == killed[0]
