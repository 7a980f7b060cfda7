"""A platform whose measures are formulas of two parameters, so that a calibration of it takes no time."""

import pytest

from prism_mesa.streams import Streams
from prism_mesa.studies import driver
from prism_mesa.studies.calibration.calibrate import Budget, calibrate
from prism_mesa.studies.calibration.plan import calibration_params, open_calibration_folder, plan_calibration
from prism_mesa.studies.driver import Engine
from prism_mesa.studies.engines.job import Outcome

VALUES = {
    "base": {"agents.n": 20, "rounds": 2, "network.mean_degree": 5, "utility.sensitivity": 0},
    "parameters": {"agents.activity": [0.1, 0.9], "agents.threshold_mean": [0.2, 0.8]},
    "fit": {
        "impressions": {"target": 400, "tolerance": 40, "data": "one"},
        "likes": {"target": 120, "tolerance": 12, "data": "one"},
    },
    "holdout": {"reshares": {"target": 28, "tolerance": 5, "data": "other"}},
    "report_seeds": 3,
}
"""Met at activity 0.4 and threshold 0.7."""


def measures_of(activity, threshold, seed):
    """Return what a run measures."""
    luck = float(Streams(seed).normal("luck", [0])[0])
    impressions = 1000 * activity + 4 * luck
    return {
        "impressions": impressions,
        "likes": impressions * (1 - threshold) + luck,
        "reshares": 100 * activity * threshold,
    }


@pytest.fixture
def ran(jobs, monkeypatch):
    """Return the runs that were made; each is a formula."""

    def run(job):
        jobs.append(job)
        agents = job.config["agents"]
        found = measures_of(agents["activity"], agents["threshold_mean"], job.config["seed"])
        return Outcome(job.run, "done", measures={name: found[name] for name in job.measures})

    monkeypatch.setattr(driver, "run_supervised", run)
    return jobs


@pytest.fixture
def planned():
    """Return what makes a calibration from its values."""

    def make(**values):
        return plan_calibration(calibration_params({**VALUES, **values}, "mine.yaml"), "mine", "mine.yaml")

    return make


@pytest.fixture
def fitted(planned, tmp_path):
    """Return what runs a calibration."""

    def fit(runs=32, out=tmp_path, minutes=None, **values):
        plan = planned(**values)
        folder = open_calibration_folder(plan, out)
        return calibrate(plan, folder, Engine(workers=1), Budget(runs, minutes))

    return fit
