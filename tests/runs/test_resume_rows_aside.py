"""Rows that wait in files beside the checkpoints: what goes on counts on them, and notices whatever is done to them."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from killed_runs import all_bytes, images
from small_runs import small

from prism_mesa.api.runs import resume, run
from prism_mesa.errors import PrismWarning
from prism_mesa.runs.checkpoints.file import FOLDER, files, read_checkpoint
from prism_mesa.runs.records import folder as folders

QUIET = {"pictures": False}
CONFIG = small(rounds=9, checkpoint_every=2)


@pytest.fixture(scope="module", autouse=True)
def all_aside():
    """Put all rows aside, few as they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "FEW", 0)
        yield


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The tables of a whole run, and the folder of the same as it was killed after seven rounds."""
    out, to = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("to")
    whole = run(CONFIG, out=out, on_round=images(out, to, [7]), **QUIET)
    assert not (whole.run_dir / FOLDER).exists()
    return all_bytes(whole), to / "killed-7"


@pytest.fixture
def folder(killed, tmp_path):
    return Path(shutil.copytree(killed[1], tmp_path / "copy"))


def aside(folder, table="*", done=None):
    """Return the files that rows of a table lie in."""
    return sorted((folder / FOLDER).glob(f"rows-{table}-{'*' if done is None else f'{done:09d}'}.arrow"))


def counted(folder):
    """Return the names of the files that its checkpoints count on."""
    kept = [read_checkpoint(file)["records"]["tables"] for file in files(folder)]
    return {
        f"rows-{table}-{one[0]:09d}.arrow" for tables in kept for table, of in tables.items() for one in of["aside"]
    }


def cut(file):
    file.write_bytes(file.read_bytes()[:-9])


def flip(file):
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    file.write_bytes(raw)


def test_each_checkpoint_adds_its_own_rows_and_a_run_goes_on_from_all_of_them(folder, killed):
    assert [file.name[-10:] for file in aside(folder, "ticks")] == ["0002.arrow", "0004.arrow", "0006.arrow"]
    assert read_checkpoint(files(folder)[0])["records"]["tables"]["ticks"]["waiting"] is None
    shown = []
    result = resume(folder, on_round=shown.append, **QUIET)
    assert (shown, all_bytes(result)) == ([7, 8, 9], killed[0])
    assert not (folder / FOLDER).exists()


@pytest.mark.parametrize("damage", [cut, flip, Path.unlink, lambda file: file.write_bytes(b"")])
def test_of_damaged_rows_that_only_the_newest_counts_on_the_checkpoint_before_is_taken(damage, folder, killed):
    damage(aside(folder, "transitions", 6)[0])
    said = r"checkpoints/rows-transitions-000000006\.arrow: is damaged: .*: it goes on from round 4, and nothing is"
    shown = []
    with pytest.warns(PrismWarning, match=said) as told:
        result = resume(folder, on_round=shown.append, **QUIET)
    assert (shown[0], all_bytes(result), len(told)) == (5, killed[0], 1)


def test_what_was_written_later_or_by_half_is_removed_before_the_run_goes_on(folder, killed):
    later = [folder / FOLDER / name for name in ("rows-ticks-000000008.arrow", ".rows-ticks-000000010.arrow")]
    for file in later:
        file.write_bytes(b"half")
    left = []
    result = resume(folder, on_round=lambda done: left.append([file.exists() for file in later]), **QUIET)
    assert (left[0], all_bytes(result)) == ([False, False], killed[0])


@pytest.mark.parametrize("resumed", [False, True])
def test_files_are_kept_as_long_as_a_checkpoint_counts_on_them(resumed, folder, killed, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "PART_ROUNDS", 5)
    seen, where = [], folder if resumed else tmp_path / "out"

    def look(done):
        [at] = [folder] if resumed else where.iterdir()
        seen.append((done, {file.name for file in aside(at)}, counted(at)))

    resume(folder, on_round=look, **QUIET) if resumed else run(CONFIG, out=where, on_round=look, **QUIET)
    assert all(there == wanted for _, there, wanted in seen)
    assert {done: len(there) > 0 for done, there, _ in seen}[9]


def test_a_checkpoint_of_few_rows_holds_them_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "FEW", 10**9)
    run(CONFIG, out=tmp_path / "out", on_round=images(tmp_path / "out", tmp_path, [3]), **QUIET)
    assert aside(tmp_path / "killed-3") == []
    waiting = read_checkpoint(files(tmp_path / "killed-3")[0])["records"]["tables"]["ticks"]["waiting"]
    assert isinstance(waiting, np.ndarray)
