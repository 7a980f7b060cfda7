"""One process writes to a run's folder, and one that is gone holds nothing."""

import errno
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_runs import small, table_bytes

from prism_mesa.errors import DataError
from prism_mesa.runs.process import lock as locks
from prism_mesa.runs.process.lock import LOCK, is_locked, last_holder, lock_run, require_free, try_lock
from prism_mesa.runs.social import run

fcntl = pytest.importorskip("fcntl")
HERE = platform.node()
GONE = 2**22 + 1
"""No process has this number: it is above the most that Linux gives."""

HOLDING = """
import os, sys, time
from pathlib import Path
from prism_mesa.runs.process.lock import lock_run

with lock_run(Path(sys.argv[1])) as lock:
    lock.note_round(7)
    child = os.fork() if sys.argv[2] == "forks" else 0
    if not child:
        print(os.getpid(), flush=True)
    time.sleep(60)
"""


def holding(folder, how="alone"):
    """Start a process that holds a folder; returns it when it does, and its child."""
    command = [sys.executable, "-c", HOLDING, str(folder), how]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def written(folder, **changed):
    """Leave what a run leaves that died, with some of it changed."""
    values = {"pid": GONE, "host": HERE, "since": "2026-01-01T00:00:00+00:00", "round": 7, "locks": True}
    (folder / LOCK).write_text(json.dumps(values | changed))


@pytest.fixture
def without_locks(monkeypatch):
    """A file system that has no locks."""

    def refused(number, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)


# -- two of them -------------------------------------------------------------------------------------


def test_the_second_gets_one_line_with_who_writes_and_since_when(tmp_path):
    who = rf"process {os.getpid()} on {HERE} since \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"
    said = rf"^{tmp_path}: {who} writes to this run now: wait until it has ended, or end it$"
    with lock_run(tmp_path):
        assert is_locked(tmp_path)
        with pytest.raises(DataError, match=said), lock_run(tmp_path):
            raise AssertionError("two hold it")
        with pytest.raises(DataError, match=said):
            require_free(tmp_path)
    assert not is_locked(tmp_path)
    require_free(tmp_path)
    with lock_run(tmp_path):
        assert is_locked(tmp_path)


def test_a_lock_under_which_nothing_was_written_leaves_nothing(tmp_path):
    with lock_run(tmp_path):
        assert [file.name for file in tmp_path.iterdir()] == [LOCK]
    assert list(tmp_path.iterdir()) == []
    written(tmp_path)
    with lock_run(tmp_path):
        pass
    assert last_holder(tmp_path).round == 7


# -- processes that die ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_process_that_was_killed_holds_nothing_and_the_round_is_known(tmp_path):
    process, _ = holding(tmp_path)
    try:
        assert is_locked(tmp_path)
        with pytest.raises(DataError, match=rf"process {process.pid} on"), lock_run(tmp_path):
            raise AssertionError("two hold it")
    finally:
        process.kill()
        process.communicate()
    assert not is_locked(tmp_path)
    died = last_holder(tmp_path)
    assert (died.pid, died.host, died.round) == (process.pid, HERE, 7)
    with lock_run(tmp_path):
        now = last_holder(tmp_path)
    assert (now.pid, now.round) == (os.getpid(), 7)


@pytest.mark.slow
def test_a_child_of_a_process_that_was_killed_holds_nothing_for_it(tmp_path):
    process, child = holding(tmp_path, "forks")
    try:
        assert is_locked(tmp_path)
        process.kill()
        process.wait()
        os.kill(child, 0)
        assert not is_locked(tmp_path)
    finally:
        os.kill(child, 9)
        process.stdout.close()


# -- what stands in the file -------------------------------------------------------------------------


def test_the_round_is_written_at_most_once_a_second_and_last_of_all(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    seen = []
    with lock_run(tmp_path) as lock:
        lock.has_ended = False
        seen.append(last_holder(tmp_path).round)
        for round_ in range(1, 9):
            lock.note_round(round_)
            seen.append(last_holder(tmp_path).round)
            now += 0.4
    assert seen == [None, 1, 1, 1, 4, 4, 4, 7, 7]
    assert last_holder(tmp_path).round == 8


NUMBERS = b'{"pid": %s, "host": "h", "since": "s", "round": 1, "locks": true}'
TEXTS = [b"", b"\xff\xfe", b"[]", b"{}", b"[" * 9999, b"9" * 9999, b'{"pid": 1, "host": 2}', NUMBERS % b"-1"]


@pytest.mark.parametrize("text", [*TEXTS, NUMBERS % b"true", NUMBERS % b"1e400"])
def test_what_no_run_wrote_into_the_file_says_nothing_and_keeps_nobody_out(text, tmp_path):
    (tmp_path / LOCK).write_bytes(text)
    assert (is_locked(tmp_path), last_holder(tmp_path)) == (False, None)
    with lock_run(tmp_path):
        assert last_holder(tmp_path).pid == os.getpid()


def test_no_link_is_followed_and_nobody_waits_at_a_pipe(tmp_path):
    for name in ("link", "pipe", "folder"):
        (tmp_path / name).mkdir()
    (tmp_path / "link" / LOCK).symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe" / LOCK)
    (tmp_path / "folder" / LOCK).mkdir()
    for name in ("link", "pipe", "folder"):
        assert (is_locked(tmp_path / name), last_holder(tmp_path / name)) == (False, None)
        said = rf"^{tmp_path / name / LOCK} cannot be opened to be written: "
        with pytest.raises(DataError, match=said), lock_run(tmp_path / name):
            raise AssertionError("held")
    assert not (tmp_path / "elsewhere").exists()


# -- where there are no locks ------------------------------------------------------------------------


@pytest.mark.usefixtures("without_locks")
def test_without_locks_the_process_that_the_file_names_keeps_others_out(tmp_path):
    with lock_run(tmp_path):
        assert is_locked(tmp_path)
        said = (
            rf"writes to this run now: .*; if it is gone, remove {tmp_path / LOCK} \(this file system has no locks\)$"
        )
        with pytest.raises(DataError, match=said):
            require_free(tmp_path)
    assert not is_locked(tmp_path)
    written(tmp_path, pid=os.getppid(), locks=False)
    assert is_locked(tmp_path)
    with pytest.raises(DataError, match=f"process {os.getppid()} on "), lock_run(tmp_path):
        raise AssertionError("two hold it")


@pytest.mark.usefixtures("without_locks")
def test_without_locks_a_process_that_is_gone_holds_nothing_and_of_other_machines_nobody_knows(tmp_path):
    for pid in (GONE, os.getpid()):  # the second: a container gives each first process the same number
        written(tmp_path, pid=pid, locks=False)
        assert not is_locked(tmp_path)
    written(tmp_path, host="another", locks=False)
    assert is_locked(tmp_path)
    (tmp_path / LOCK).unlink()
    with lock_run(tmp_path):
        assert is_locked(tmp_path)


# -- runs --------------------------------------------------------------------------------------------


def test_a_run_holds_its_folder_and_leaves_the_same_tables_and_no_lock(tmp_path):
    seen = []

    def look(done):
        [folder] = (tmp_path / "seen").iterdir()
        seen.append((is_locked(folder), last_holder(folder).pid))

    looked_at = run(small(), out=tmp_path / "seen", on_round=look).run_dir
    alone = run(small(), out=tmp_path / "alone").run_dir
    assert seen == [(True, os.getpid())] * 3
    assert not is_locked(looked_at)
    assert not (looked_at / LOCK).exists()
    assert table_bytes(looked_at) == table_bytes(alone)


def test_a_lock_that_is_taken_away_meanwhile_is_taken_anew(tmp_path, monkeypatch):
    written(tmp_path)
    taken = []

    def slowly(number, *, shared=False):
        if not taken:
            Path(tmp_path / LOCK).unlink()  # whoever held it has ended just now
        taken.append(number)
        return try_lock(number, shared=shared)

    monkeypatch.setattr(locks, "try_lock", slowly)
    with lock_run(tmp_path):
        assert is_locked(tmp_path)
    assert len(taken) == 3
