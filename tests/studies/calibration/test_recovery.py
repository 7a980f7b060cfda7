"""Known parameters are found again from data that PRISM itself has simulated."""

from pathlib import Path

import numpy as np
import pytest

from prism_mesa.params import merge_values, nest_keys
from prism_mesa.runs.config import make_config
from prism_mesa.runs.yaml_text import read_yaml
from prism_mesa.studies.calibration.calibrate import Budget, calibrate
from prism_mesa.studies.calibration.plan import calibration_params, open_calibration_folder, plan_calibration
from prism_mesa.studies.driver import Engine
from prism_mesa.studies.engines.job import Job
from prism_mesa.studies.engines.worker import carry_out

PLAIN = Path(__file__).parents[3] / "configs" / "plain.yaml"
WORLD = {
    "agents.n": 300,
    "rounds": 8,
    "network.mean_degree": 10,
    "reasoner.kind": "rule",
    "agents.activity_sigma": 0.5,
    "network.follower_sigma": 0.5,
    "records.transitions": 0.0,
    "records.impressions": 0,
}
TRUE = {"agents.activity": 0.35, "agents.threshold_mean": 0.6}
MEASURES = ("impressions", "likes", "reshares", "share_evaluating")


def simulated(seeds):
    """Return the mean of each measure of the true world over some seeds, and its deviation between them."""
    rows = []
    for seed in seeds:
        values = merge_values(read_yaml(PLAIN), nest_keys({**WORLD, **TRUE, "seed": seed}))
        config = make_config(values).model_dump(mode="json")
        rows.append(carry_out(Job(f"true-{seed}", config, MEASURES, keep="measures")).measures)
    return {name: (np.mean([row[name] for row in rows]), np.std([row[name] for row in rows])) for name in MEASURES}


@pytest.mark.slow
def test_known_parameters_are_recovered_within_their_intervals_from_simulated_data(jobs, tmp_path):
    data = simulated(range(101, 109))
    targets = {
        name: {"target": float(mean), "tolerance": float(sd), "data": "simulated"} for name, (mean, sd) in data.items()
    }
    held_out = targets.pop("share_evaluating")
    values = {
        "base": str(PLAIN),
        "set": WORLD,
        "parameters": {"agents.activity": [0.1, 0.9], "agents.threshold_mean": [0.45, 0.75]},
        "fit": targets,
        "holdout": {
            "share_evaluating": held_out | {"tolerance": 2 * held_out["tolerance"], "data": "simulated too"},
        },
        "first": 10,
    }
    plan = plan_calibration(calibration_params(values, "known.yaml"), "known", "known.yaml")
    known = len(jobs)
    result = calibrate(plan, open_calibration_folder(plan, tmp_path), Engine(workers=1), Budget(44))
    found = result.profiles.intervals.set_index("parameter")
    for key, true in TRUE.items():
        assert found.loc[key, "low"] <= true <= found.loc[key, "high"]
        assert found.loc[key, "verdict"] == "identified"
    assert result.fitted["agents.activity"] == pytest.approx(TRUE["agents.activity"], abs=0.05)
    assert result.fitted["agents.threshold_mean"] == pytest.approx(TRUE["agents.threshold_mean"], abs=0.02)
    assert result.measures.set_index("set").loc["holdout", "inside"]
    assert (result.measures["distance"].abs() < 2).all()  # tolerances are deviations between seeds
    assert len(jobs) == known + 49
