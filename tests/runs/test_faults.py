"""A disk that is full, a folder that is only to be read, a clock that jumps, a damaged file: one line, nothing lost."""

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from forked import PYTHON
from small_runs import TABLES, small, table_bytes

from prism_mesa import Ledger, open_run, replay, why
from prism_mesa.errors import DataError, RunError
from prism_mesa.runs.process.lock import LOCK
from prism_mesa.runs.records import folder as folders
from prism_mesa.runs.run_files import MANIFEST, read_manifest, read_table
from prism_mesa.runs.social import run, start_run

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no device that is always full")


def only(folder):
    [found] = folder.iterdir()
    return found


# -- writing -----------------------------------------------------------------------------------------


def disk_full_at(file, out):
    """Have a disk be full after two rounds, for one file of the run."""

    def on_round(done):
        if done == 2:
            (only(out) / file).symlink_to(FULL)

    return on_round


@needs_full
def test_a_disk_that_is_full_for_rows_ends_the_run_and_what_can_be_written_is(tmp_path):
    out, whole = tmp_path / "full", run(small(), out=tmp_path / "whole").run_dir
    with pytest.raises(RunError, match=r"round 2: OSError: .*No space left on device \(what was") as stop:
        run(small(), out=out, on_round=disk_full_at(".ticks.parquet", out))
    folder = only(out)
    assert stop.value.result.status == read_manifest(folder)["status"] == "failed"
    assert "No space left on device" in read_manifest(folder)["error"]
    assert table_bytes(folder) == table_bytes(whole)  # there was room again
    assert not (folder / LOCK).exists()


@needs_full
def test_a_disk_that_is_full_for_the_manifest_too_leaves_a_run_that_died(tmp_path):
    out = tmp_path / "full"
    said = r"round 2: OSError: .*No space left on device; its manifest could not be written \(.*; its last tables could"
    with pytest.raises(RunError, match=said) as stop:
        run(small(), out=out, on_round=disk_full_at(f".{MANIFEST}", out))
    assert stop.value.result is None
    opened = open_run(only(out))
    assert (opened.status, opened.state) == ("died", "died in round 3 of 3")
    assert {file.stem for file in only(out).glob("*.parquet")} == set(TABLES)
    assert len(opened.table("rounds")) == 3


@contextmanager
def nobody():
    """Be a user who may not write everywhere, as root may; yields a folder that anybody may read, none of hers."""
    folder = Path(tempfile.mkdtemp(prefix="prism-read-only-"))
    folder.chmod(0o555)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if was_root:
            os.seteuid(0)
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_folder_that_is_only_to_be_read_is_one_line():
    works = [start_run(small()) for _ in range(2)]  # made before: she may not be allowed to read what is installed
    with nobody() as folder:
        for work, out, what in (
            (works[0], folder, "cannot make a folder there"),
            (works[1], folder / "new", "cannot make that folder"),
        ):
            with pytest.raises(DataError, match=rf"^--out: {re.escape(str(out))}: {what}: Permission denied$"):
                work.run_in_folder(out, "run")
        assert list(folder.iterdir()) == []


# -- clocks ------------------------------------------------------------------------------------------


def test_a_clock_that_jumps_back_overwrites_no_run(tmp_path, monkeypatch):
    first = run(small(rounds=1), out=tmp_path).run_dir
    before = table_bytes(first)
    then = datetime.strptime(first.name, "run-%Y%m%d-%H%M%S").replace(tzinfo=UTC)

    class Clock:
        """It has gone back to when the first run began."""

        @staticmethod
        def now(zone):
            return then

    monkeypatch.setattr(folders, "datetime", Clock)
    second = run(small(rounds=2), out=tmp_path).run_dir
    assert second.name == f"{first.name}-1"
    then -= timedelta(days=400)
    assert run(small(rounds=1), out=tmp_path).run_dir.name < first.name
    assert table_bytes(first) == before
    assert len(read_table(second, "rounds")) == 2


# -- damaged files -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A run of which each round is a part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "PART_ROUNDS", 1)
        return run(small(), out=tmp_path_factory.mktemp("parts")).run_dir


@pytest.fixture
def copy(parts, tmp_path):
    return Path(shutil.copytree(parts, tmp_path / "copy"))


def cut(file, most):
    file.write_bytes(file.read_bytes()[:most])


def flipped(file, at):
    raw = bytearray(file.read_bytes())
    raw[at] ^= 0xFF
    file.write_bytes(raw)


@pytest.mark.parametrize(
    ("damage", "why_not"),
    [
        (lambda file: cut(file, 300), ""),
        (lambda file: cut(file, 0), ""),
        (lambda file: flipped(file, 8), ""),
        (lambda file: file.write_text("dear diary"), "Parquet"),
    ],
)
def test_a_damaged_part_of_a_table_is_named_and_all_else_can_be_read(damage, why_not, copy, parts):
    part = copy / "rounds.parquet" / "part-00001.parquet"
    damage(part)
    opened = open_run(copy)
    assert opened.status == "done"
    said = rf"^{re.escape(str(part))} cannot be read: (?=\S).*{why_not}"
    for ask in (lambda: opened.table("rounds"), lambda: replay(copy)):
        with pytest.raises(DataError, match=said) as error:
            ask()
        assert "\n" not in str(error.value)
    assert str(why(copy, 3, 1)) == str(why(parts, 3, 1))  # which repeats the run
    assert opened.table("ticks").equals(open_run(parts).table("ticks"))


FILLING = """
import resource, sys
sys.path[:0] = sys.argv[2:]
from foreign_runs import WORLD
from prism_mesa import Reasoner, run

def full(done):
    if done == 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))  # no file may grow beyond

asked = Reasoner(lambda prompt: "composing")
run({**WORLD, "rounds": 5}, out=sys.argv[1], reasoner=asked, on_round=full, pictures=False)
"""


@pytest.mark.slow
def test_a_disk_that_is_full_for_the_ledger_keeps_the_answers_that_were_paid_for(tmp_path):
    here = Path(__file__).parent
    command = [*PYTHON, "-c", FILLING, str(tmp_path), str(here), str(here.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    folder = only(tmp_path)
    said = f"{folder}: round 2: ledger {folder}/decisions.sqlite cannot be written (disk I/O error) (what was recorded"
    assert said in done.stderr.splitlines()[-1]
    with Ledger(folder / "decisions.sqlite", read_only=True) as ledger:
        assert {row.round for row in ledger.asked()} >= {0, 1}
        assert {row.key for row in ledger.asked() if row.round < 2} <= {row.key for row in ledger.answers()}
    assert open_run(folder).status == "failed"
    assert len(read_table(folder, "rounds")) == 2
