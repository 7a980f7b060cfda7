"""Processes of tests that have imported already: each is forked from one that has, and otherwise is as any other.

Most of what such a process takes is importing Mesa, Numba, pandas, Matplotlib and IPython. `PYTHON` is a command that
stands where `sys.executable` would: `[*PYTHON, "-m", "prism_mesa.cli", "run"]`, a script, or `-c` and code. It asks
`forking.py`, one process for all of a session (the conftest starts it; it imports when it is first asked), to fork a
child with its arguments, folder, environment and standard streams. It passes signals on to the child and ends as the
child ends; if it is killed, the child is killed a moment later.

What modules read when they are imported is the session's, and a child that would read something else is refused. What
starting, importing and caching do can only be tested with `sys.executable`, and so can what is there after a kill.
"""

import json
import os
import signal
import socket
import sys

FORKS = sys.platform == "linux"  # elsewhere libraries of the system do not bear it
PYTHON = [sys.executable, "-I", "-S", os.path.abspath(__file__)] if FORKS else [sys.executable]
_SOCKET = "PRISM_TESTS_FORKED"


def start_forking(folder):
    """Start the process that children are forked from, with its socket in a folder; it ends with this process."""
    import atexit
    import subprocess

    os.environ[_SOCKET] = f"{folder}/forked"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.environ[_SOCKET])
        listener.listen(64)
        command = [sys.executable, f"{os.path.dirname(__file__)}/forking.py", str(listener.fileno())]
        # a fork has only one of its parent's threads; a kernel of IPython need not look whether its parent is there
        single = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false", "JPY_PARENT_PID": "1"}
        pipes = {"stdin": subprocess.PIPE, "pass_fds": [listener.fileno()]}
        forking = subprocess.Popen(command, env=os.environ | single, start_new_session=True, **pipes)
    atexit.register(forking.communicate)


def _ask(arguments):
    """Have a child forked, and end as it ends."""
    asked = json.dumps({"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}).encode()
    with socket.socket(socket.AF_UNIX) as forking:
        forking.connect(os.environ[_SOCKET])
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: forking.send(bytes([number])))
        socket.send_fds(forking, [len(asked).to_bytes(4)], [0, 1, 2])
        forking.sendall(asked)
        code = int.from_bytes(exactly(forking, 4), signed=True)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def exactly(connection, n):
    """Receive as many bytes."""
    said = b""
    while len(said) < n:
        if not (part := connection.recv(n - len(said))):
            raise EOFError("whoever was there is gone")
        said += part
    return said


if __name__ == "__main__":
    _ask(sys.argv[1:])
