"""The process that processes of tests are forked from (see `forked.py`), and what a child does first."""

import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress

from forked import exactly

_READ_ON_IMPORT = ("HOME", "MPL", "NUMBA_", "OMP_", "PYTHON", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
"""How names in the environment begin that a new process would read while it imports."""


def _import_all():
    import gc

    gc.disable()

    import prism_mesa.cli.app
    from prism_mesa.view import plots

    for module in (prism_mesa, plots):  # what they name is imported when it is first used
        for name in module.__all__:
            getattr(module, name)
    config = {"agents": {"n": 40}, "network": {"mean_degree": 4}, "threads": 1, "reasoner": {"kind": "rule"}}
    model = prism_mesa.SocialModel(config)
    model.step()  # loads compiled kernels; in one thread, or a fork after it would hang
    plots.states_figure(model).savefig(os.devnull, format="png")
    gc.collect()
    gc.freeze()  # what is here stays, in memory that all share
    gc.enable()


def _serve(listener):
    """Fork a child for each who asks, and return in it what was asked and its streams; end with the session."""
    session, children = os.dup(0), {}
    ended, ends = os.pipe()
    os.set_blocking(ends, False)
    select.select([listener, session], [], [])
    _import_all()
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ends)
    while session not in (ready := select.select([session, listener, ended, *children], [], [])[0]):
        if ended in ready:
            os.read(ended, 4096)
            _tell_who_ended(children)
        for connection in children.keys() & set(ready):
            _pass_on(connection, children[connection])
        if listener in ready:
            connection = listener.accept()[0]
            with suppress(EOFError):
                said, streams, _, _ = socket.recv_fds(connection, 4, 3)
                asked = exactly(connection, int.from_bytes(said))
                if (child := os.fork()) == 0:
                    for own in (listener, connection, *children):
                        own.close()
                    for own in (session, ended, ends):
                        os.close(own)
                    return json.loads(asked), streams
                children[connection] = child
                for stream in streams:
                    os.close(stream)
    for child in children.values():
        os.kill(child, signal.SIGKILL)
    os._exit(0)


def _pass_on(connection, child):
    """Send a child the signals that came for it; where nothing comes any more, whoever asked for it was killed."""
    said = b""
    with suppress(ConnectionError):
        said = connection.recv(64)
    for number in said or [signal.SIGKILL]:
        os.kill(child, number)


def _tell_who_ended(children):
    for connection, child in list(children.items()):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            with connection, suppress(OSError):  # nobody may be there any more
                connection.send(os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))
            del children[connection]


# -- a child -----------------------------------------------------------------------------------------


def _become_new(asked, streams):
    """Give this process what a new one has for itself."""
    import numpy as np

    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    own = asked["environment"]
    for name in sorted(own.keys() | os.environ.keys()):
        if name.startswith(_READ_ON_IMPORT) and own.get(name) != os.environ.get(name):
            sys.exit(f"{name} is not what it was when the session began: start a new process, with sys.executable")
    os.environ.clear()
    os.environ.update(own)
    os.chdir(asked["folder"])
    np.random.seed()


def _become_kernel():
    """Let Matplotlib and pandas have what they find when they are imported in a kernel of IPython."""
    import matplotlib
    import pandas as pd

    matplotlib.rcParams["backend"] = os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    pd.set_option("display.max_columns", 20)


def _carry_out(arguments):
    """Do what `python ARGUMENTS` does."""
    import runpy
    from types import ModuleType

    first, *rest = arguments
    if arguments[:2] == ["-m", "ipykernel_launcher"]:
        _become_kernel()
    if first == "-m":
        sys.argv, sys.path[0] = rest, os.getcwd()
        sys.modules.pop(rest[0], None)
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        sys.argv, sys.path[0] = arguments, os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    asked, streams = _serve(socket.socket(fileno=int(sys.argv[1])))
    _become_new(asked, streams)
    _carry_out(asked["arguments"])
