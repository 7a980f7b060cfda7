"""What is done for a job: run, kept or not, measured, collected, and why not."""

import json
import shutil
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from engine_jobs import SMALL, good_job, job_that
from stand_in import StandIn

from prism_mesa.llm import Ledger
from prism_mesa.params import nest_keys
from prism_mesa.runs.process.lock import lock_run
from prism_mesa.runs.run_files import LEDGER, MANIFEST, read_manifest, read_table
from prism_mesa.runs.social import run
from prism_mesa.social.model import SocialModel
from prism_mesa.studies.engines.job import Job
from prism_mesa.studies.engines.worker import carry_out

TABLES = ("rounds", "ticks", "transitions", "impressions", "posts", "engagements", "cascades", "agents")


@pytest.fixture(autouse=True)
def _own_path(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)


def files_below(folder):
    return sorted(str(file.relative_to(folder)) for file in Path(folder).rglob("*"))


def test_a_kept_run_has_the_tables_of_prism_run_byte_by_byte_in_a_folder_of_its_own_name(tmp_path):
    outcome = carry_out(good_job(5, tmp_path / "runs", keep="tables"))
    usual = run(SMALL | {"seed": 5}, out=tmp_path / "usual")
    own = tmp_path / "runs" / "good-5"
    assert (outcome.run, outcome.ending, outcome.reason) == ("good-5", "done", "")
    assert outcome.measures == {"reshares": usual.summary["engagement"]["reshares"]}
    assert {f.name: f.read_bytes() for f in own.glob("*.parquet")} == {
        f.name: f.read_bytes() for f in usual.run_dir.glob("*.parquet")
    }
    assert sorted(f.name for f in own.iterdir()) == sorted(f.name for f in usual.run_dir.iterdir())
    assert read_manifest(own)["config"] == read_manifest(usual.run_dir)["config"]
    assert read_manifest(own)["made_in_python"] == [False, False, False]


def test_a_run_of_which_measures_are_kept_says_the_same_and_leaves_nothing(tmp_path):
    kept = carry_out(good_job(5, tmp_path / "runs", keep="tables"))
    (tmp_path / "empty").mkdir()
    left = carry_out(good_job(5, tmp_path / "empty"))
    assert files_below(tmp_path / "empty") == []
    assert files_below(tmp_path) == ["empty", "runs", *(f"runs/{name}" for name in files_below(tmp_path / "runs"))]
    assert left.measures == kept.measures
    same = ("decided_by", "open", "by_source", "fallback", "calls", "tokens", "notes", "signal")
    assert {name: left.facts[name] for name in same} == {name: kept.facts[name] for name in same}
    assert left.facts["open"] == sum(left.facts["by_source"].values()) > 0
    assert 0 < left.facts["model_cpu_s"] <= left.facts["cpu_s"]


@pytest.mark.parametrize("keep", ["tables", "measures"])
def test_tables_that_are_collected_are_those_of_the_run(tmp_path, keep):
    outcome = carry_out(good_job(5, tmp_path / "runs", keep=keep, collect=TABLES))
    usual = run(SMALL | {"seed": 5}, out=tmp_path / "usual")
    assert tuple(outcome.tables) == TABLES
    for name in TABLES:
        rows = pa.ipc.open_stream(outcome.tables[name]).read_pandas()
        pd.testing.assert_frame_equal(rows, read_table(usual.run_dir, name))


def test_only_tables_to_be_collected_come_back_and_one_that_a_run_does_not_have_is_noted(tmp_path):
    outcome = carry_out(good_job(5, tmp_path, collect=("rounds", "thoughts")))
    assert (outcome.ending, list(outcome.tables)) == ("done", ["rounds"])
    assert outcome.facts["notes"] == ["collect: no table 'thoughts' was recorded."]


def test_an_attempt_that_was_broken_off_is_moved_aside_and_noted(tmp_path):
    for attempt in (1, 2):
        (tmp_path / "good-5").mkdir()
        (tmp_path / "good-5" / "remains").write_text(f"{attempt}")
        outcome = carry_out(good_job(5, tmp_path, keep="tables"))
        assert (tmp_path / f"good-5.broken-{attempt}" / "remains").read_text() == f"{attempt}"
        assert outcome.facts["notes"] == [f"an earlier attempt at this run is in good-5.broken-{attempt}"]
        assert read_manifest(tmp_path / "good-5")["status"] == "done"
        (tmp_path / "good-5").rename(tmp_path / f"done-{attempt}")


@pytest.mark.parametrize("keep", ["tables", "measures"])
def test_a_run_that_raises_says_what_when_and_where(tmp_path, keep):
    outcome = carry_out(job_that("raises", tmp_path, keep=keep))
    assert (outcome.ending, outcome.measures) == ("raised", {})
    assert outcome.reason.startswith("round 0: ValueError: no such luck (agent 0 in round 0, tick 2, ")
    assert outcome.reason.endswith("chart_that_raises.py:6 in engages)")
    left = carry_out(job_that("leaves", tmp_path, keep=keep))
    assert left.ending == "raised"
    assert "SystemExit: enough (chart_that_leaves.py" in left.reason


def test_what_a_run_warns_of_is_noted_once(tmp_path, capsys):
    outcome = carry_out(job_that("warns", tmp_path))
    assert outcome.ending == "done"
    assert outcome.facts["notes"].count("take care") == 1
    assert all("Python callable" in note for note in outcome.facts["notes"] if note != "take care")


@pytest.mark.slow
def test_answers_of_an_llm_reach_the_shared_ledger_of_runs_that_leave_nothing(tmp_path):
    with StandIn(slots=8) as server:
        asking = {"kind": "ollama", "host": server.url, "ledger": "cache", "ledger_path": "shared.sqlite"}
        config = SMALL | {"rounds": 2, "reasoner": asking}
        first = carry_out(Job("first", config, ("reshares",), keep="measures"))
        again = carry_out(Job("again", config, ("reshares",), keep="measures"))
    assert (first.ending, again.ending) == ("done", "done")
    assert first.facts["by_source"]["llm"] == first.facts["calls"] > 0
    assert again.facts["by_source"] == {"cache": again.facts["open"]}
    assert (again.facts["calls"], again.measures) == (0, first.measures)
    with Ledger("shared.sqlite", read_only=True) as ledger:
        assert len(ledger.answers()) == first.facts["by_source"]["llm"]
        assert {run.partition("/")[2].rpartition("-")[0] for run in ledger.runs()} == {"first", "again"}
    assert {file.name.partition("-")[0] for file in tmp_path.iterdir()} == {"shared.sqlite"}


def test_calls_that_an_attempt_has_told_are_not_told_again_by_the_one_that_goes_on(tmp_path, monkeypatch):
    step, steps = SocialModel.step, []

    def breaks(model):
        step(model)
        steps.append(model)
        if len(steps) == 2:
            raise RuntimeError("no more")

    with StandIn(slots=8) as server:
        config = SMALL | {"rounds": 3, "checkpoint_every": 1, "reasoner": {"kind": "ollama", "host": server.url}}
        whole = carry_out(Job("whole", config, (), folder=str(tmp_path)))
        for spent_is_known in (True, False):
            job = Job(f"one-{spent_is_known}", config, (), folder=str(tmp_path))
            steps.clear()
            with monkeypatch.context() as patch:
                patch.setattr(SocialModel, "step", breaks)
                first = carry_out(job)
            told = {name: first.facts[name] for name in ("calls", "tokens")}
            again = carry_out(replace(job, spent=told if spent_is_known else {}))
            assert (first.ending, again.ending, len(steps)) == ("raised", "done", 2)
            for name, n in told.items():
                assert 0 < n < whole.facts[name]
                assert again.facts[name] + (n if spent_is_known else 0) == whole.facts[name]


OWN = """
def raises(run): raise ValueError("no such luck")
def nothing(run): return float("nan")
def reads(run): return len(run.table("transitions")) + len(run.follows())
"""


@pytest.mark.parametrize("keep", ["tables", "measures"])
def test_measures_of_ones_own_are_found_in_the_folders_of_the_job_and_may_read_any_table(tmp_path, keep):
    (tmp_path / "own_measures.py").write_text(OWN)
    own, usual = ("own_measures:reads", "own_measures:nothing"), run(SMALL | {"seed": 5}, out=tmp_path / "usual")
    outcome = carry_out(Job("good", SMALL | {"seed": 5}, own, keep=keep, folder=str(tmp_path), path=(str(tmp_path),)))
    assert (outcome.ending, outcome.reason, tuple(outcome.measures)) == ("done", "", own)
    assert outcome.measures[own[0]] == len(usual.table("transitions")) + usual.summary["follows"]
    assert outcome.measures[own[1]] != outcome.measures[own[1]]  # not a number


def test_a_measure_that_raises_is_named_and_the_run_is_kept(tmp_path):
    (tmp_path / "own_measures.py").write_text(OWN)
    own = ("reshares", "own_measures:raises")
    outcome = carry_out(Job("good", SMALL, own, folder=str(tmp_path), path=(str(tmp_path),)))
    assert (outcome.ending, outcome.measures) == ("raised", {})
    assert outcome.reason.startswith("measures: own_measures:raises: raised ValueError: no such luck")
    assert read_manifest(tmp_path / "good")["status"] == "done"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A job, the folder of it whole, and a copy of that as it was when it was killed after two checkpoints."""
    out, config = tmp_path_factory.mktemp("runs"), SMALL | {"rounds": 4, "checkpoint_every": 1, "agents.band": 0.3}
    job = Job("one", nest_keys(config), ("reshares",), folder=str(out / "whole"))
    step = SocialModel.step

    def look(model):
        if model.round == 2:
            shutil.copytree(out / "whole" / "one", out / "killed")
        step(model)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SocialModel, "step", look)
        whole = carry_out(job)
    assert whole.ending == "done"
    return job, whole, out / "killed"


@pytest.fixture
def again(stopped, tmp_path, monkeypatch):
    """The folder of the run that was killed, and what carries it out once more: its outcome, and the rounds run."""
    folder = Path(shutil.copytree(stopped[2], tmp_path / "runs" / "one"))
    rounds, step = [], SocialModel.step

    def look(model):
        rounds.append(model.round + 1)
        step(model)

    def carried_out():
        rounds.clear()
        with monkeypatch.context() as patch:
            patch.setattr(SocialModel, "step", look)
            outcome = carry_out(replace(stopped[0], folder=str(folder.parent)))
        assert (outcome.ending, outcome.measures) == ("done", stopped[1].measures)
        whole = Path(stopped[0].folder) / "one"
        assert {f.name: f.read_bytes() for f in folder.glob("*.parquet")} == {
            f.name: f.read_bytes() for f in whole.glob("*.parquet")
        }
        return outcome, list(rounds)

    return folder, carried_out


def test_a_run_that_was_killed_after_a_checkpoint_goes_on_in_its_folder(stopped, again):
    folder, carried_out = again
    outcome, rounds = carried_out()
    assert rounds == [3]
    assert files_below(folder.parent) == files_below(Path(stopped[0].folder))
    assert outcome.facts["notes"] == stopped[1].facts["notes"]


def test_a_run_whose_ledger_cannot_be_read_starts_again_beside_it_and_says_so(again):
    folder, carried_out = again
    for file in folder.glob(f"{LEDGER}*"):
        file.unlink()
    (folder / LEDGER).write_text("dear diary " * 500)
    outcome, rounds = carried_out()
    assert rounds == [0, 1, 2, 3]
    assert [note for note in outcome.facts["notes"] if "starts again" in note]
    assert sorted(path.name for path in folder.parent.iterdir()) == ["one", "one.broken-1"]


def test_a_run_that_another_process_has_brought_to_its_end_meanwhile_is_not_gone_on_with(again, monkeypatch):
    folder, carried_out = again

    @contextmanager
    def waited_for(path):
        manifest = read_manifest(path) | {"status": "done"}
        (path / MANIFEST).write_text(json.dumps(manifest))
        with lock_run(path) as lock:
            yield lock

    monkeypatch.setattr("prism_mesa.runs.resume.lock_run", waited_for)
    assert carried_out()[1] == [0, 1, 2, 3]
    assert read_manifest(folder.parent / "one.broken-1")["status"] == "done"
