"""Commands whose output is closed, or is a pipe that nobody reads any more."""

import os
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
@pytest.mark.parametrize("numbers", [(1,), (2,), (0, 1, 2)], ids=["stdout", "stderr", "all"])
@pytest.mark.parametrize(("command", "code"), [(RUN, 0), (("runs", "."), 0), (("--help",), 0), (("why", "x", "3"), 2)])
def test_closed_output_changes_no_exit_code_and_gives_no_traceback(command, code, numbers, tmp_path):
    done = subprocess.run(
        [*PRISM, *command], cwd=tmp_path, capture_output=True, preexec_fn=partial(closing, *numbers), check=False
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (code, False)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "code"), [(RUN, 0), (("--help",), 0), (("why", "x", "3"), 2)])
def test_a_pipe_that_nobody_reads_changes_no_exit_code(command, code, tmp_path):
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run([*PRISM, *command], cwd=tmp_path, stdout=writes, stderr=writes, check=False)
    os.close(writes)
    assert done.returncode == code
