"""What can go wrong with a run that goes on: one line says what, and nothing is lost."""

import os
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest
from killed_runs import all_bytes, images
from small_runs import small
from worlds import plain

from prism_mesa import Reasoner
from prism_mesa.api.runs import resume, run
from prism_mesa.errors import DataError, PrismWarning, RunError
from prism_mesa.params import nest_keys
from prism_mesa.runs.checkpoints import file as checkpoint_module
from prism_mesa.runs.checkpoints.file import checkpoint_files, last_round, read_checkpoint, write_checkpoint
from prism_mesa.runs.records import folder as folders
from prism_mesa.runs.run_files import LEDGER

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no device that is always full")
QUIET = {"pictures": False}
CONFIG = small(rounds=8, checkpoint_every=2, ticks_per_round=4, **{"agents.n": 15, "agents.band": 0.3})


def llm(prompt):
    return "composing" if sum(prompt.encode()) % 2 else "scrolling"


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A whole run, and the folder of one that was killed as seven rounds were done, of which three are a part."""
    out, to = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("to")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "PART_ROUNDS", 3)
        whole = run(CONFIG, out=out, reasoner=Reasoner(llm), on_round=images(out, to, [7]), **QUIET)
        yield all_bytes(whole), to / "killed-7"


@pytest.fixture
def folder(killed, tmp_path):
    """A copy of the folder of the run that was killed."""
    return Path(shutil.copytree(killed[1], tmp_path / "copy"))


def go_on(folder, **more):
    """Return the rounds that a run went through when it went on, and its tables."""
    shown = []
    result = resume(folder, reasoner=Reasoner(llm), on_round=shown.append, **QUIET, **more)
    return shown, all_bytes(result)


def contents(folder):
    """Return all that is in a folder, but for what only says that somebody looks."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in found if path.name not in (".lock", f"{LEDGER}-shm")}


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file):
    raw = bytearray(file.read_bytes())
    raw[raw.index(b'"rounds"')] ^= 0xFF
    file.write_bytes(raw)


# -- damaged checkpoints -----------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [cut, flip, lambda file: file.write_bytes(b""), lambda file: file.write_text("oh")])
def test_of_a_damaged_checkpoint_the_one_before_is_taken_and_it_is_said(damage, folder, killed):
    damage(checkpoint_files(folder)[0])
    said = rf"^{folder}/checkpoints/round-000000006\.npz is damaged: .*: it continues from round 4, and no question is"
    with pytest.warns(PrismWarning, match=said):
        shown, tables = go_on(folder)
    assert shown == [5, 6, 7, 8]
    assert tables == killed[0]


def test_one_that_was_being_written_is_none(folder, killed):
    (folder / "checkpoints" / ".round-000000008.npz").write_bytes(b"PK")
    shown, tables = go_on(folder)
    assert shown == [7, 8]
    assert tables == killed[0]
    assert not (folder / "checkpoints").exists()


def changed(file, **values):
    write_checkpoint(file, read_checkpoint(file) | values)


def test_one_of_another_version_of_the_code_is_refused_with_both_ways_on(folder, killed):
    changed(checkpoint_files(folder)[0], code="0123456789abcdef")
    before = contents(folder)
    said = r"round-000000006\.npz: another version of PRISM wrote it, .*: go on with that version, or .* --from-start"
    with pytest.raises(DataError, match=said):
        go_on(folder)
    assert contents(folder) == before
    shown, tables = go_on(folder, from_start=True)
    assert (shown, tables) == (list(range(1, 9)), killed[0])


def test_other_versions_of_packages_are_said(folder, killed):
    packages = read_checkpoint(checkpoint_files(folder)[0])["packages"] | {"pyarrow": "1.0"}
    changed(checkpoint_files(folder)[0], packages=packages)
    with pytest.warns(PrismWarning, match=r"is resumed with pyarrow \d.* instead of 1\.0: its tables may differ"):
        assert go_on(folder)[1] == killed[0]


# -- damaged tables, manifest and ledger -------------------------------------------------------------


@pytest.mark.parametrize("damage", [cut, Path.unlink, lambda file: file.write_text("dear diary")])
def test_of_a_damaged_part_the_checkpoint_before_it_is_taken_and_it_is_said(damage, folder, killed):
    damage(folder / "transitions.parquet" / "part-00001.parquet")  # rounds 3 to 5
    said = r"transitions\.parquet/part-00001\.parquet is damaged: .*: it continues from round 4, and no question is"
    with pytest.warns(PrismWarning, match=said):
        shown, tables = go_on(folder)
    assert shown == [5, 6, 7, 8]
    assert tables == killed[0]


def no_wal(folder):
    """Bring all rows of a ledger into its one file, and return that."""
    with sqlite3.connect(folder / LEDGER) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return folder / LEDGER


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda file: file.write_text("dear diary" * 400), "is not a SQLite file"),
        (lambda file: cut(file), "is damaged"),
        (Path.unlink, "no such file"),
    ],
)
def test_a_damaged_ledger_is_named_and_nothing_is_changed(damage, said, folder):
    damage(no_wal(folder))
    before = contents(folder)
    with pytest.raises(DataError, match=rf"^ledger {folder}/decisions\.sqlite:? {said}") as error:
        go_on(folder)
    assert "\n" not in str(error.value)
    assert contents(folder) == before


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM asked WHERE round = 3",
        "INSERT INTO asked SELECT * FROM asked WHERE round = 3",
        "UPDATE asked SET round = 99 WHERE round = 3",
        "UPDATE asked SET run = 'another' WHERE round = 3",
    ],
)
def test_a_ledger_whose_questions_under_a_checkpoint_have_changed_is_refused(change, folder, killed):
    with sqlite3.connect(folder / LEDGER) as db:
        db.execute(change)
    db.close()
    said = r"decisions\.sqlite has changed since the run: it has .* of .* answers and .* of .* questions; restore the"
    with pytest.raises(DataError, match=said):
        go_on(folder)
    assert go_on(folder, from_start=True)[1] == killed[0]


# -- writing -----------------------------------------------------------------------------------------


def only(folder):
    [found] = folder.iterdir()
    return found


@needs_full
def test_a_disk_that_is_full_for_a_checkpoint_does_not_end_the_run_and_it_is_said(killed, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "PART_ROUNDS", 3)

    def on_round(done):
        if done == 4:
            (only(tmp_path) / "checkpoints" / ".round-000000004.npz").symlink_to(FULL)
        if done == 5:
            assert last_round(only(tmp_path)) == 2
            assert not os.path.lexists(only(tmp_path) / "checkpoints" / ".round-000000004.npz")

    said = r"^the checkpoint of round 4 could not be written: No space left on device; the checkpoint of round 2 stays$"
    with pytest.warns(PrismWarning, match=said):
        result = run(CONFIG, out=tmp_path, reasoner=Reasoner(llm), on_round=on_round, **QUIET)
    assert result.status == "done"
    assert any("No space left" in note for note in result.summary["notes"])
    assert all_bytes(result) == killed[0]


@needs_full
def test_a_run_that_a_full_disk_ended_goes_on_when_there_is_room(killed, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "PART_ROUNDS", 3)

    def on_round(done):
        if done == 5:
            (only(tmp_path) / "ticks.parquet" / ".part-00001.parquet").symlink_to(FULL)

    with pytest.raises(
        RunError, match=r"No space left on device \(what was .*; resume\(\.\.\.\) in Python, .* round 4\)"
    ):
        run(CONFIG, out=tmp_path, reasoner=Reasoner(llm), on_round=on_round, **QUIET)
    (only(tmp_path) / "ticks.parquet" / ".part-00001.parquet").unlink(missing_ok=True)
    shown, tables = go_on(only(tmp_path))
    assert (shown, tables) == ([5, 6, 7, 8], killed[0])


# -- signals and clocks ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_checkpoint_is_written_leaves_a_whole_one(number, killed, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "PART_ROUNDS", 3)
    before = [signal.signal(signal.SIGINT, signal.default_int_handler), signal.signal(signal.SIGTERM, signal.SIG_DFL)]
    sync, sent = checkpoint_module.os.fsync, []

    def interrupted(file):
        if not sent and (only(tmp_path) / "checkpoints" / ".round-000000004.npz").exists():
            sent.append(os.kill(os.getpid(), number))
        sync(file)

    monkeypatch.setattr(checkpoint_module.os, "fsync", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt, match=r"round 3: interrupted.*continues it from round 4\)$"):
            run(CONFIG, out=tmp_path, reasoner=Reasoner(llm), **QUIET)
    finally:
        for each, does in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(each, does)
    assert [file.name for file in checkpoint_files(only(tmp_path))] == ["round-000000004.npz", "round-000000002.npz"]
    assert go_on(only(tmp_path)) == ([5, 6, 7, 8], killed[0])


# -- what it reads -----------------------------------------------------------------------------------


def test_an_input_file_that_was_changed_is_refused(tmp_path):
    file, out = tmp_path / "edges.csv", tmp_path / "out"
    pairs = [(a, (a + step) % 40) for a in range(40) for step in (1, 2, 5)]
    file.write_text("src,dst\n" + "\n".join(f"{a},{b}" for a, b in pairs))
    values = {"network.edges": str(file), "rounds": 4, "checkpoint_every": 1, "ticks_per_round": 8}
    run(nest_keys(plain(values)), out=out, on_round=images(out, tmp_path, [3]), **QUIET)
    file.write_text("src,dst\n" + "\n".join(f"{a},{b}" for a, b in pairs[1:]))
    with pytest.raises(DataError, match=r"/killed-3: network\.edges has changed: restore it, or start a new run$"):
        resume(tmp_path / "killed-3")


def test_a_run_that_failed_at_its_end_is_left_as_it_is_unless_it_is_to_start_again(tmp_path):
    config = small(rounds=3, **{"agents.band": 0.3})
    well = []

    def moody(prompt):
        return "composing" if well or sum(prompt.encode()) % 4 else "no idea"

    first = run(config, out=tmp_path, reasoner=Reasoner(moody, attempts=1), **QUIET)
    assert (first.status, resume(first).status) == ("failed", "failed")
    shown = []
    well.append(True)
    again = resume(first, reasoner=Reasoner(moody, attempts=1), from_start=True, on_round=shown.append, **QUIET)
    assert (again.status, shown) == ("done", [1, 2, 3])
