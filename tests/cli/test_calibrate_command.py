"""`prism calibrate`, as a user types it; runs are made in the process of the test."""

import json
import sys

import pytest
import yaml

from prism_mesa import Calibration
from prism_mesa.errors import ConfigError
from prism_mesa.runs.config import load_config

VALUES = {
    "base": {"agents": {"n": 40}, "rounds": 3, "network": {"mean_degree": 5}},
    "parameters": {"agents.activity": [0.1, 0.9]},
    "fit": {"impressions": {"target": 400, "tolerance": 40, "data": "one"}},
    "holdout": {"likes": {"target": 30, "tolerance": 10, "data": "other"}},
    "seeds": 1,
    "report_seeds": 2,
    "first": 4,
    "runs": 8,
}


@pytest.fixture
def written(tmp_path):
    def write(**values):
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**VALUES, **values}))

    return write


@pytest.mark.usefixtures("coarse_pictures")
def test_a_calibration_leaves_a_world_that_can_be_run_and_a_report(prism, jobs, written, tmp_path):
    written()
    code, out, err = prism("calibrate", "mine.yaml", "--out", "made", "--workers", "1", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["calibration_dir"] == "made/mine"
    assert (told["trials"], told["runs"]) == ({"done": 8, "failed": 0}, 8)
    assert [job.config["seed"] for job in jobs[-2:]] == [2, 3]
    assert {job.config["seed"] for job in jobs[:-2]} == {1}
    assert [row["set"] for row in told["measures"]] == ["fit", "holdout"]
    assert told["parameters"][0]["parameter"] == "agents.activity"
    assert load_config(told["config"]).agents.activity == told["fitted"]["agents.activity"]
    assert told["report"] == ["made/mine/report.html", "made/mine/report.md"]
    text = (tmp_path / "made/mine/report.md").read_text()
    assert "| `impressions` | one | 400 | 40 |" in text
    assert "Held out: the fit did not use these data" in text
    assert "| `agents.activity` |" in text
    assert sorted(file.name for file in (tmp_path / "made/mine/figures").iterdir()) == [
        "01-profiles.png",
        "02-distances.png",
        "03-trials.png",
    ]


def test_the_same_command_with_more_runs_goes_on_and_says_what_it_came_to(prism, jobs, written):
    written()
    assert prism("calibrate", "mine.yaml", "--runs", "4", "--no-report", "--workers", "1")[0] == 0
    code, out, err = prism("calibrate", "mine.yaml", "--no-report", "--workers", "1")
    assert code == 0, err
    assert len({job.run for job in jobs}) == len(jobs)
    lines = [line.split(maxsplit=1) for line in out.splitlines()]
    assert ["calibration", "mine: 8 trials, 0 failed; 8 runs"] in lines
    assert [line[0] for line in lines if line[0] in ("fitted", "target", "held")] == ["fitted", "target", "held"]
    assert not any(line[0] == "report" for line in lines)


def test_ctrl_c_says_that_the_same_command_continues(prism, jobs, written, monkeypatch):
    from prism_mesa.studies import driver

    def interrupted(job):
        raise KeyboardInterrupt

    monkeypatch.setattr(driver, "run_supervised", interrupted)
    written()
    code, _, err = prism("calibrate", "mine.yaml")
    assert code == 130
    assert err.endswith("results/mine: interrupted: finished runs are kept; the same command continues\n")


def test_without_optuna_an_error_says_how_to_get_it_before_anything_is_made(prism, written, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "optuna", None)
    written()
    code, _, err = prism("calibrate", "mine.yaml")
    assert code == 2
    assert (
        "prism calibrate needs optuna: uv sync --inexact --extra calibrate in a clone of PRISM, else pip install" in err
    )
    assert not (tmp_path / "results").exists()


def test_in_python_a_calibration_is_made_from_values_and_says_what_it_is(jobs, tmp_path):
    asked = Calibration(VALUES, out=tmp_path, name="small")
    assert repr(asked) == f"<Calibration small: 1 parameter, 1 target, 1 held out, {tmp_path / 'small'}>"
    result = asked.run(workers=1, runs=4, report=False)
    assert repr(result).startswith("<CalibrationResult agents.activity=0.")
    assert result.trials["status"].tolist() == ["done"] * 4
    with pytest.raises(ConfigError, match="Calibration: give a calibration file, or its values, not 3"):
        Calibration(3)
