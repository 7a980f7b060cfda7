"""A process that is forked from one that has imported already is as one that has not, but for what it has imported."""

import os
import signal
import subprocess
import sys
import time

import pytest
from forked import FORKS, PYTHON

LOOKS_AROUND = """
import gc, json, os, signal, sys, threading
found = [sys.argv, sys.path, sys.flags, dict(os.environ), os.getcwd()]
found += [str(signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
found += [sys.stdin.read(), sys.stdout.encoding, sys.stdout.line_buffering, sorted(os.listdir("/proc/self/fd"))[:3]]
found += [gc.isenabled(), gc.get_threshold(), threading.active_count(), len(os.listdir("/proc/self/task")), __name__]
print(json.dumps(found, default=str))
print("to stderr", file=sys.stderr)
sys.exit(3)
"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not FORKS, reason="processes are forked on Linux only")]


@pytest.mark.parametrize("how", ["-c", "-m", "script"])
def test_it_finds_what_a_new_one_finds_and_ends_as_that_does(how, tmp_path):
    (tmp_path / "looks.py").write_text(LOOKS_AROUND)
    words = {"-c": ["-c", LOOKS_AROUND], "-m": ["-m", "looks"], "script": [str(tmp_path / "looks.py")]}[how]
    new, forked = (
        subprocess.run(
            [*python, *words, "a", "b c"],
            input="said",
            cwd=tmp_path,
            env=os.environ | {"OF_A_TEST": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        for python in ([sys.executable], PYTHON)
    )
    assert (forked.returncode, forked.stderr, forked.stdout) == (3, "to stderr\n", new.stdout)
    assert new.returncode == 3


def test_it_has_imported_already_in_the_environment_of_the_session():
    code = "import sys; print('numba' in sys.modules)"
    assert subprocess.check_output([*PYTHON, "-c", code], text=True) == "True\n"
    own = os.environ | {"NUMBA_CACHE_DIR": "elsewhere"}
    done = subprocess.run([*PYTHON, "-c", code], env=own, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("NUMBA_CACHE_DIR is not what it was when the session began: ")


WAITING = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it(number):
    with subprocess.Popen([*PYTHON, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        child = int(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(30) == -number
    until = time.monotonic() + 30
    while os.path.exists(f"/proc/{child}") and time.monotonic() < until:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{child}")
