import json
from itertools import count
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml

from prism_mesa.errors import ConfigError, DataError, RunError
from prism_mesa.runs.config import load_config
from prism_mesa.studies import driver
from prism_mesa.studies.calibration import calibrate
from prism_mesa.studies.calibration.calibrate import resolve_budget
from prism_mesa.studies.calibration.plan import open_calibration_folder
from prism_mesa.studies.engines.job import Outcome

TARGET = {"target": 120, "tolerance": 12, "data": "one"}


@pytest.fixture(scope="module")
def kept():
    return {}


@pytest.fixture
def whole(kept, fitted, ran, tmp_path_factory):
    """Return a calibration of 32 runs that nothing disturbed; it is made once, and only read."""
    if not kept:
        kept["whole"] = fitted(out=tmp_path_factory.mktemp("whole"))
        ran.clear()
    return kept["whole"]


def failing(monkeypatch, fails):
    """Have runs fail of which `fails` is true."""
    usual = driver.run_supervised

    def run(job):
        found = usual(job)
        return Outcome(job.run, "killed", "by a signal") if fails(job) else found

    monkeypatch.setattr(driver, "run_supervised", run)


def test_trials_share_their_seeds_and_the_fitted_world_can_be_run_and_is_measured_with_others(fitted, ran):
    result = fitted(runs=8)
    trials, report = ran[:8], ran[8:]
    assert {job.config["seed"] for job in trials} == {1, 2}
    assert [job.config["seed"] for job in report] == [3, 4, 5]
    assert {job.measures for job in trials} == {("impressions", "likes")}
    assert {job.measures for job in report} == {("impressions", "likes", "reshares")}
    config = load_config(result.config_file)
    assert config == result.config
    assert config.agents.activity == result.fitted["agents.activity"]
    assert yaml.safe_load(result.config_file.read_text())["feed"]["mode"] == "chronological"


@pytest.mark.slow
def test_what_is_broken_off_tries_the_same_as_if_it_had_not_been(fitted, whole, ran, monkeypatch, tmp_path):
    usual, after = driver.run_supervised, 18

    def interrupted(job):
        if len(ran) == after:
            raise KeyboardInterrupt
        return usual(job)

    monkeypatch.setattr(driver, "run_supervised", interrupted)
    monkeypatch.setattr(driver, "_MIN_QUEUED", 0)
    with pytest.raises(KeyboardInterrupt):
        fitted(out=tmp_path / "two")
    monkeypatch.setattr(driver, "run_supervised", usual)
    assert len(ran) == after
    result = fitted(out=tmp_path / "two")
    assert len(ran) == len({job.run for job in ran}) == 35
    for file in ("trials.json", "trials.parquet", "fitted.parquet", "profiles.parquet", "fitted.yaml"):
        assert (result.calibration_dir / file).read_bytes() == (whole.calibration_dir / file).read_bytes()


@pytest.mark.slow
def test_a_larger_budget_goes_on_where_a_smaller_one_ended_within_a_batch(fitted, whole, ran, tmp_path):
    for runs in (10, 22, 32):
        grown = fitted(runs=runs, out=tmp_path / "grown")
    pd.testing.assert_frame_equal(whole.trials, grown.trials)


@pytest.mark.slow
def test_runs_that_end_in_another_order_change_nothing(fitted, whole, ran, monkeypatch, tmp_path):
    def backwards(design, folder, engine, **how):
        return driver.run_missing(design, folder, engine, runs=reversed(list(design.runs())), **how)

    monkeypatch.setattr(calibrate, "run_missing", backwards)
    other = fitted(out=tmp_path / "other")
    pd.testing.assert_frame_equal(whole.trials, other.trials)


def test_a_trial_fails_with_one_of_its_runs_and_the_others_go_on(fitted, ran, monkeypatch):
    failing(monkeypatch, lambda job: job.config["agents"]["activity"] > 0.7 and job.config["seed"] == 2)
    result = fitted()
    failed = result.trials[result.trials["status"] == "failed"]
    assert 0 < len(failed) < 12
    assert (failed["agents.activity"] > 0.7).all()
    assert set(failed["reason"]) == {"seed 2: killed: by a signal"}
    assert failed["objective"].isna().all()
    assert f"trial {failed['trial'].iloc[0]}: seed 2" in result.notes[-1]
    assert result.fitted["agents.activity"] == pytest.approx(0.4, abs=0.03)
    n = len(ran)
    fitted()
    assert len(ran) == n


def test_a_calibration_of_which_every_trial_fails_says_why(fitted, ran, monkeypatch):
    failing(monkeypatch, lambda job: True)
    with pytest.raises(RunError, match=r"all 4 trials failed.* seed 1: killed: by a signal"):
        fitted(runs=8)


def test_a_measure_that_is_not_defined_counts_as_far_off(fitted, ran, monkeypatch):
    usual = driver.run_supervised

    def undefined(job):
        found = usual(job)
        if job.config["agents"]["activity"] < 0.35:
            found.measures["likes"] = float("nan")
        return found

    monkeypatch.setattr(driver, "run_supervised", undefined)
    result = fitted()
    lost = result.trials[result.trials["likes"].isna()]
    assert (lost["objective"] >= 100).all()
    assert len(lost) > 0
    assert any(note.startswith("likes: undefined") for note in result.notes)
    assert result.fitted["agents.threshold_mean"] == pytest.approx(0.7, abs=0.05)


@pytest.mark.slow
def test_other_targets_judge_the_same_runs_anew(fitted, ran):
    fitted(runs=24)
    n = len(ran)
    lower = {"impressions": {"target": 200, "tolerance": 40, "data": "one"}, "likes": TARGET}
    result = fitted(runs=24, fit=lower)
    assert {job.config["seed"] for job in ran[n:]} <= {3, 4, 5}
    assert result.fitted["agents.activity"] < 0.35


def test_other_parameters_seeds_or_base_need_another_folder(fitted, ran, planned, tmp_path):
    fitted(runs=8)
    for values, what in (
        ({"parameters": {"agents.activity": [0.1, 0.8]}}, "parameters, first"),
        ({"seeds": 3}, "seeds"),
        ({"base": {"agents.n": 21}}, "base"),
    ):
        with pytest.raises(DataError, match=rf"is the folder of another calibration \(different: {what}\)"):
            open_calibration_folder(planned(**values), tmp_path)


def test_a_folder_of_something_else_is_left_alone_and_trials_that_are_none_are_said(fitted, ran, planned, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(DataError, match="is not the folder of a calibration"):
        open_calibration_folder(planned(), tmp_path)
    (tmp_path / "mine" / "thesis.txt").unlink()
    fitted(runs=8)
    file = tmp_path / "mine" / "trials.json"
    for text in ('{"trials": 3}', json.dumps({"trials": [{"how": "spread", "values": {"agents.n": 3}}]})):
        file.write_text(text)
        with pytest.raises(DataError, match="is damaged, or belongs to another calibration"):
            fitted(runs=8)
    file.write_text("[")
    with pytest.raises(DataError, match="cannot be read"):
        fitted(runs=8)


@pytest.mark.slow
def test_minutes_end_a_calibration_between_batches_and_the_next_call_goes_on(fitted, ran, monkeypatch):
    seconds = count()
    clock = SimpleNamespace(monotonic=lambda: next(seconds))  # a second passes whenever it is looked at
    monkeypatch.setattr(calibrate, "time", clock)
    first = fitted(runs=None, minutes=1e-9)
    second = fitted(runs=None, minutes=1e-9)
    assert (len(first.trials), len(second.trials)) == (4, 4)
    third = fitted(runs=None, minutes=0.06)
    assert len(third.trials) == 12


def test_what_is_said_in_the_call_counts_before_what_the_file_says(planned):
    plan = planned(runs=60, minutes=5)
    assert resolve_budget(plan, None, None).runs == 60
    assert (resolve_budget(plan, 20, None).runs, resolve_budget(plan, 20, None).minutes) == (20, None)
    assert resolve_budget(planned(), None, None).runs == 200
    with pytest.raises(ConfigError, match="runs: give at least 4"):
        resolve_budget(plan, 3, None)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"parameters": {"agents.activty": [0, 1]}}, "parameters: agents.activty: .*Did you mean 'agents.activity'"),
        ({"parameters": {"agents.activity": [0, 2]}}, "parameters: agents.activity: .*not 2"),
        ({"parameters": {"feed.mode": [0, 1]}}, "parameters: feed.mode: "),
        ({"parameters": {"feed.size": [1.5, 9]}}, "parameters: feed.size: "),
        ({"fit": {"lkes": TARGET}}, "fit: lkes: .*Did you mean 'likes'"),
        ({"holdout": {"lkes": {**TARGET, "data": "x"}}}, "holdout: lkes: "),
        ({"base": "nowhere.yaml"}, "base: .*nowhere.yaml"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_runs(planned, values, fault):
    with pytest.raises(ConfigError, match=f"mine.yaml: {fault}"):
        planned(**values)


def test_limits_of_the_design_are_noted(planned):
    plan = planned(fit={"likes": TARGET}, holdout=None)
    assert [note.partition(" ")[0] for note in plan.notes] == ["1", "no"]
    idle = planned(parameters={"agents.activity": [0.1, 0.9], "utility.theta": [0.1, 1]})
    assert any("utility.theta: no effect" in note for note in idle.notes)
