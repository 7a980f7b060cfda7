"""`prism resume`, as a user types it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_lines import small
from forked import PYTHON
from worlds import plain

from prism_mesa import open_run, run
from prism_mesa.api.runs import resume
from prism_mesa.runs.checkpoints.file import last_round
from prism_mesa.runs.run_files import read_manifest, read_table

QUIET = {"pictures": False}
CONFIG = plain({"agents.n": 20, "network.mean_degree": 4, "ticks_per_round": 5, "rounds": 4})


def tables(folder):
    return {file.name: file.read_bytes() for file in Path(folder).glob("*.parquet")}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A whole run, and one that was killed after a checkpoint."""
    out = tmp_path_factory.mktemp("results")

    def look(done):
        if done == 3:
            shutil.copytree(next(out.glob("run-*")), out / "killed")

    return run(CONFIG | {"checkpoint_every": 1}, out=out, on_round=look, **QUIET).run_dir, out / "killed"


@pytest.fixture
def killed(results, tmp_path):
    return Path(shutil.copytree(results[1], tmp_path / "killed"))


def test_resume_prints_what_run_prints(results, killed, prism):
    code, out, err = prism("resume", killed, "--json")
    told = json.loads(out)
    assert (code, told["status"], told["run_dir"], told["rounds"]) == (0, "done", str(killed), 4)
    assert "Traceback" not in err
    assert tables(killed) == tables(results[0])
    assert len(told["pictures"]) == 3
    code, out, err = prism("resume", killed, "--json")
    assert (code, err) == (
        0,
        f"{killed} has already ended (status done), so nothing is computed. Its summary:\n",
    )
    assert json.loads(out)["rounds"] == 4


def test_what_a_run_that_died_can_do_is_told_by_all_that_read_it(killed, prism):
    advice = f"'prism resume {killed}' continues it from round 2"
    assert prism("why", killed, "3", "1")[2].splitlines()[-1] == f"prism: {killed}: died in round 2 of 4; {advice}"
    assert prism("replay", killed)[2].splitlines()[-1].endswith(f"; {advice}")
    assert prism("interview", killed, "3", "--ask", "Why?")[2].splitlines()[-1].endswith(advice)


def test_a_run_of_another_version_says_how_to_start_it_again(killed, prism, monkeypatch):
    from prism_mesa.runs import restoring

    monkeypatch.setattr(restoring, "code_version", lambda: "another")
    code, out, err = prism("resume", killed)
    assert (code, out) == (2, "")
    assert re.search(r"^prism: .*/round-000000002\.npz: another version of PRISM wrote it, .*--from-start", err, re.M)
    code, out, err = prism("resume", killed, "--from-start", "--json")
    assert (code, json.loads(out)["rounds"]) == (0, 4)


WITH_TIME_TO_STOP_IT = """
import time

from prism_mesa.cli.app import main
from prism_mesa.social.model import SocialModel

step = SocialModel.step


def slow(model):
    time.sleep(0.5 if model.round > 106 else 0)
    step(model)


SocialModel.step = slow
main()
"""
"""`prism`, whose rounds take half a second each from the hundred and seventh on."""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_prism_run_that_is_ended_by_a_signal_keeps_what_was_written_and_goes_on(number, tmp_path):
    of_no_llm = [key for key in small("rounds=110", "checkpoint_every=53") if key != "reasoner.backoff_s=0"]
    keys = [*of_no_llm, "--json", "--out", str(tmp_path)]
    python = PYTHON if number == signal.SIGINT else [sys.executable]
    command = [*python, "-c", WITH_TIME_TO_STOP_IT, "run", *keys]
    with subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until = time.monotonic() + 60
        while not list(tmp_path.glob("*/checkpoints/round-*106.npz")) and time.monotonic() < until:
            time.sleep(0.01)
        [folder] = tmp_path.iterdir()
        assert open_run(folder).status == "running"
        os.kill(process.pid, number)
        _, err = process.communicate(timeout=60)
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
        assert not os.path.exists(f"/proc/{process.pid}")
        assert re.fullmatch(r"died in round \d+ of 110", open_run(folder).state)
        rounds = read_table(folder, "rounds")["round"].tolist()
        assert rounds == list(range(len(rounds)))
        assert len(rounds) >= 100
        assert read_manifest(folder)["status"] == "running"
    else:
        assert process.returncode == 130
        assert re.search(r"'prism resume .*' continues it from round \d+\)$", err.splitlines()[-1])
        assert re.search(r"^prism: the run is stopped after this round, and can go on later", err, re.M)
    before = last_round(folder)
    assert before >= 106
    shown = []
    resume(folder, on_round=shown.append, **QUIET)
    assert (shown[0], shown[-1]) == (before + 1, 110)
    config = read_manifest(folder)["config"]
    whole = run(config | {"checkpoint_every": 0}, out=tmp_path / "whole", **QUIET).run_dir
    names = sorted(str(file.relative_to(whole)) for file in whole.rglob("*.parquet") if file.is_file())
    assert [(whole / name).read_bytes() == (folder / name).read_bytes() for name in names] == [True] * len(names)
