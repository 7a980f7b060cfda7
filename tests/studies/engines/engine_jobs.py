"""Jobs whose charts misbehave in many ways, and what tells of processes. It holds no test."""

import os
import time
from pathlib import Path

from worlds import plain

from prism_mesa.studies.engines.job import Job

SMALL = plain({"agents": {"n": 40, "activity": 0.8}, "network": {"mean_degree": 6}, "rounds": 3, "ticks_per_round": 8})

_CHART = """
import os, signal, subprocess, sys, time, warnings
from prism_mesa.social.behavior import build_chart

def engages(agent, post):
    {does}

chart = build_chart(engages=engages)
"""
BREAKS = {
    "raises": "raise ValueError('no such luck')",
    "hangs": "subprocess.Popen(['sleep', '600']); note_pids(); time.sleep(600)",
    "is_killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "exits": "print('bye now', flush=True); os._exit(7)",
    "leaves": "sys.exit('enough')",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "eats": "held.append(bytearray(50_000_000))",
    "warns": "warnings.warn('take care'); print('heard?'); return True",
    "looks_around": "raise ValueError(' '.join((os.environ['OMP_NUM_THREADS'], os.environ['OF_A_TEST'], os.getcwd())))",
}
_MORE = """
held = []

def note_pids():
    children = open(f"/proc/self/task/{os.getpid()}/children").read()
    with open(f"part-{os.getpid()}", "w") as file:
        file.write(f"{os.getpid()} {children}")
    os.rename(f"part-{os.getpid()}", f"pids-{os.getpid()}")
"""


def chart_that(does, folder):
    """Write a chart whose guard does something, and return what names it."""
    (Path(folder) / f"chart_that_{does}.py").write_text(_CHART.format(does=BREAKS[does]) + _MORE)
    return f"chart_that_{does}:chart"


def job_that(does, folder, *, keep="measures", run="", **more):
    """Return a job whose chart does something."""
    own = {"statechart": {"chart": chart_that(does, folder), "strict": True}}
    return Job(run or does, SMALL | own, ("reshares",), keep=keep, folder=str(folder), path=(str(folder),), **more)


def good_job(seed, folder, *, keep="measures", **more):
    """Return a job that comes to its end."""
    return Job(f"good-{seed}", SMALL | {"seed": seed}, ("reshares",), keep=keep, folder=str(folder), **more)


def pids_in(folder, runs=1, within_s=120):
    """Return the processes of runs that hang, each before its child, when so many do."""
    end = time.monotonic() + within_s
    while len(files := list(Path(folder).glob("pids-*"))) < runs:
        assert time.monotonic() < end, "they do not hang"
        time.sleep(0.02)
    return [int(pid) for file in files for pid in file.read_text().split()]


def are_gone(pids, within_s=5):
    """Return whether processes end in time."""
    end = time.monotonic() + within_s
    while left := [pid for pid in pids if is_there(pid)]:
        if time.monotonic() > end:
            for pid in left:
                os.kill(pid, 9)
            return False
        time.sleep(0.02)
    return True


def is_there(pid):
    """Return whether a process is there, and is not a dead one whose parent has not looked."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
