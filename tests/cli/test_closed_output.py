"""Commands whose output is closed, or is a pipe that nobody reads any more."""

import os
import socket
import subprocess
import sys
from functools import partial

import pytest
from command_lines import SMALL

PRISM = (sys.executable, "-m", "prism_mesa.cli")
RUN = ("run", *map(str, SMALL))


def closing(*numbers):
    for number in numbers:
        os.close(number)


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [(1,), (0, 1, 2)], ids=["stdout", "all"])
@pytest.mark.parametrize(("command", "code"), [(RUN, 0), (("why", "x", "3"), 2)])
def test_closed_output_changes_no_exit_code_and_gives_no_traceback(command, code, numbers, tmp_path):
    done = subprocess.run(
        [*PRISM, *command], cwd=tmp_path, capture_output=True, preexec_fn=partial(closing, *numbers), check=False
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (code, False)


@pytest.mark.slow
@pytest.mark.parametrize("open_two", [os.pipe, lambda: [end.detach() for end in socket.socketpair()]])
@pytest.mark.parametrize(("command", "code"), [(RUN, 0), (("why", "x", "3"), 2)])
def test_a_pipe_that_nobody_reads_changes_no_exit_code(command, code, open_two, tmp_path):
    reads, writes = open_two()
    os.close(reads)
    done = subprocess.run([*PRISM, *command], cwd=tmp_path, stdout=writes, stderr=writes, check=False)
    os.close(writes)
    assert done.returncode == code


@pytest.mark.slow
def test_a_full_disk_ends_a_command_for_its_results_and_not_for_its_progress(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "wb") as full:
        [progress, results] = (
            subprocess.run([*PRISM, *RUN], cwd=tmp_path, **{"stdout": -1, "stderr": -1, stream: full}, check=False)
            for stream in ("stderr", "stdout")
        )
    assert (progress.returncode, results.returncode) == (0, 1)
    assert b"No space left" in results.stderr
