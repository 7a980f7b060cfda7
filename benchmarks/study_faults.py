"""Studies whose runs raise, hang and are killed, and whose driver is killed: what is left of them, and what it takes.

uv run --extra dask python benchmarks/study_faults.py [--kills N]
"""

import argparse
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

import pandas as pd
import yaml
from measuring import machine, say
from worlds import PLAIN

from prism_mesa import Study

RAISES, HANGS, DIES = 7, 23, 41
MODULE = """
import os, signal, time
from pathlib import Path

def likes(run):
    seed = run.config.seed
    if seed == {raises}:
        raise ZeroDivisionError("no likes at all")
    if seed == {hangs}:
        time.sleep(3600)
    if seed == {dies} and not Path({marker!r}).exists():
        Path({marker!r}).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return run.summary["engagement"]["likes"]
"""


def faulty_study(out: Path, engine: str) -> Study:
    """Return a study of 60 runs, of which one raises, one hangs, and one is killed the first time."""
    name = f"faulty_{engine}"
    text = MODULE.format(raises=RAISES, hangs=HANGS, dies=DIES, marker=str(out / f"{name}.died"))
    (out / f"{name}.py").write_text(text)
    sys.path.append(str(out))
    return Study(
        question="What is left?",
        name=name,
        base=PLAIN | {"agents.n": 100, "rounds": 5},
        seeds=60,
        measures=["reshares", f"{name}:likes"],
        limits={"seconds": 5},
        keep="measures",
        out=out,
    )


def faults(out: Path, engine: str) -> None:
    """Run the study twice, and say what became of it."""
    for call in ("first", "second"):
        at = time.perf_counter()
        result = faulty_study(out, engine).run(workers=2, engine=engine, report=call == "second")
        took = time.perf_counter() - at
        failed = result.runs[result.runs["status"] == "failed"].set_index("seed")["reason"]
        done = int((result.runs["status"] == "done").sum())
        print(f"{engine}, {call} call: {done} done, {len(failed)} failed, {took:.1f} s")
        for seed, reason in failed.items():
            print(f"    seed {seed}: {reason}")
        assert sorted(failed.index) == ([RAISES, HANGS, DIES] if call == "first" else [RAISES, HANGS])
        assert done == (57 if call == "first" else 58)


def kills(out: Path, n: int) -> None:
    """Kill the driver of a study of 100 runs again and again; its tables are to equal those of one left alone."""
    values = {
        "question": "Does it go on?",
        "base": {"agents": {"n": 200}, "rounds": 20},
        "arms": {"chronological": {"feed.mode": "chronological"}, "ranked": {"feed.mode": "x_algo"}},
        "seeds": 50,
        "measures": ["reshares", "gini_impressions"],
        "collect": ["rounds"],
    }
    file = out / "killed.yaml"
    file.write_text(yaml.safe_dump(values))
    command = [sys.executable, "-m", "prism_mesa.cli", "study", "run", str(file), "--no-report", "--workers", "2"]
    draws, at, killed = random.Random(1), time.perf_counter(), 0
    journal = out / "disturbed" / "killed" / "journal.sqlite"
    while killed < n:
        before = rows_of(journal)
        driver = subprocess.Popen([*command, "--out", str(out / "disturbed")], stderr=subprocess.DEVNULL)
        while rows_of(journal) == before and driver.poll() is None:
            time.sleep(0.05)
        try:
            driver.wait(draws.uniform(0, 1.2))
            say("done before the last kill")
            break
        except subprocess.TimeoutExpired:
            driver.send_signal(signal.SIGKILL)
            driver.wait()
            killed += 1
            say(f"kill {killed}: {rows_of(journal)} of 100 runs done")
    for place in ("disturbed", "alone"):
        subprocess.run([*command, "--out", str(out / place)], check=True, stdout=subprocess.DEVNULL)
    for table in ("runs", "rounds"):
        one, other = (out / place / "killed" / f"{table}.parquet" for place in ("disturbed", "alone"))
        assert one.read_bytes() == other.read_bytes(), table
        say(f"{table}: {len(pd.read_parquet(one)):,} rows")
    broken = len(list((out / "disturbed" / "killed" / "runs").glob("*.broken-*")))
    took = time.perf_counter() - at
    print(f"driver killed {killed} times: tables equal, byte for byte; {broken} runs begun again; {took:.0f} s")


def rows_of(journal: Path) -> int:
    """Return how many runs a journal has."""
    if not journal.is_file():
        return 0
    with closing(sqlite3.connect(journal, timeout=60)) as db, suppress(sqlite3.OperationalError):
        return int(db.execute("select count(*) from runs").fetchone()[0])
    return 0


def main() -> None:
    """Run all, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10, help="how often the driver is killed")
    given = parser.parse_args()
    print(machine("mesa", "numpy", "distributed"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        kills(out, given.kills)
        for engine in ("local", "dask"):
            faults(out, engine)


if __name__ == "__main__":
    main()
