"""A run that died says so, and everything that reads it says what can be done."""

import json
import re
import shutil
from pathlib import Path

import pytest
from small_runs import small

from prism_mesa import Interview, open_run, replay, run_economy, survey, why
from prism_mesa.errors import DataError
from prism_mesa.runs.process import state
from prism_mesa.runs.process.lock import LOCK
from prism_mesa.runs.process.state import RunState, read_state
from prism_mesa.runs.run_files import MANIFEST, read_manifest
from prism_mesa.runs.social import run
from prism_mesa.studies.measures.finished import finished_run

QUESTIONS = {"questions": [{"id": "q", "ask": "How are you?", "options": ["well", "ill"]}]}

AGAIN = "starts it again, and asks nothing twice"


def image(taken_in, to):
    """Copy the one run in a folder as it is now: what is there if its process is killed at this moment."""
    [folder] = taken_in.iterdir()
    return Path(shutil.copytree(folder, to))


@pytest.fixture(scope="module")
def died(tmp_path_factory):
    """A run of which the process is gone in its third round."""
    out = tmp_path_factory.mktemp("runs")
    found = []

    def at(done):
        if done == 2:
            (lock,) = out.glob(f"running/*/{LOCK}")
            values = json.loads(lock.read_text())
            lock.write_text(json.dumps(values | {"round": 2}))  # which is written once a second
            found.append(image(out / "running", out / "died"))

    run(small(), out=out / "running", on_round=at)
    return found[0]


def test_a_run_whose_process_is_gone_died_in_its_round(died):
    opened = open_run(died)
    assert (opened.status, opened.state, opened.summary) == ("died", "died in round 2 of 3", {})
    assert repr(opened) == f"<RunResult died in round 2 of 3: {died}>"
    assert read_manifest(died)["status"] == "running"


def test_what_cannot_be_had_of_a_run_that_died_is_said_with_what_can_be_done(died):
    advice = rf"'prism resume {re.escape(str(died))}' starts it again, and asks nothing twice$"
    told = rf"^{re.escape(str(died))}: .*\(status died in round 2 of 3\).*; {advice}"
    asks = (
        lambda: replay(died),
        lambda: Interview(died, 3, llm=lambda prompt: "x"),
        lambda: survey(died, QUESTIONS, llm=lambda prompt: "A"),
        lambda: finished_run(died),
    )
    for ask in asks:
        with pytest.raises(DataError, match=told):
            ask()


def test_a_run_that_is_running_is_to_be_waited_for(tmp_path):
    said = []

    def ask(done):
        [folder] = tmp_path.iterdir()
        with pytest.raises(DataError) as error:
            replay(folder)
        said.append(str(error.value))

    run(small(rounds=1), out=tmp_path, on_round=ask)
    [folder] = tmp_path.iterdir()
    told = "has not come to its end (status running, round 1 of 1): there is nothing to compare"
    assert said == [f"{folder}: {told}; wait until it has ended"]


def test_an_interrupted_run_can_go_on_and_says_so(tmp_path):
    def impatient(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(small(), out=tmp_path, on_round=impatient)
    [folder] = tmp_path.iterdir()
    assert open_run(folder).status == "interrupted"
    told = rf"\(status interrupted, 1 of 3 rounds\): there is nothing to compare; 'prism resume .*' {AGAIN}$"
    with pytest.raises(DataError, match=told):
        replay(folder)


def test_nations_that_died_say_so_as_well(tmp_path):
    config = {"rounds": 2, "economy": {"nations": ["Sweden"], "policy": "taylor"}}
    once = []

    def look(done):
        if done == 1:
            once.append(image(tmp_path / "a", tmp_path / "died"))

    run_economy(config, out=tmp_path / "a", on_round=look, pictures=False)
    assert open_run(once[0]).state == "died in round 1 of 2"
    for ask in (lambda: replay(once[0]), lambda: why(once[0], "Sweden")):
        with pytest.raises(
            DataError,
            match=rf"\(status died in round 1 of 2\).*; 'prism resume .*' {AGAIN}$",
        ):
            ask()


def test_a_run_that_ends_while_somebody_looks_did_not_die(tmp_path, monkeypatch):
    (tmp_path / MANIFEST).write_text(json.dumps({"status": "running"}))

    def ends(folder):
        (folder / MANIFEST).write_text(json.dumps({"status": "done"}))
        return False

    monkeypatch.setattr(state, "is_locked", ends)
    assert read_state(tmp_path, "running", 3) == RunState("done", None, 3)
