"""`prism validate` from the command line to its report, on tiny worlds; runs are made in the process of the test."""

import json
from pathlib import Path

import pytest
from worlds import PLAIN_FILE

from prism_mesa.view.plots import files

TINY = (
    PLAIN_FILE,
    "name=run",
    "agents.n=40",
    "rounds=6",
    "ticks_per_round=8",
    "clock.round_minutes=30",
    "network.mean_degree=6",
    "utility.sensitivity=0.03",
    "reasoner.kind=rule",
)


DAY = (
    *(given for given in map(str, TINY) if not given.startswith(("agents.n=", "rounds="))),
    "agents.n=240",
    "rounds=48",
)
"""The least world of which anything is held against data."""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(files, "DPI", 20)  # pictures are looked at elsewhere


def folder():
    [found] = Path("results").glob("validation-*")
    return found


@pytest.mark.slow
def test_a_validation_prints_its_table_leaves_its_report_and_ends_with_1_where_a_target_is_missed(prism, jobs):
    code, out, err = prism("validate", *DAY, "--seeds", 2)
    assert code == 1
    assert "outside" in out
    assert "not applicable: 240 agents" in out
    assert "targets inside, jointly" in err
    assert "fitted to:" in out
    page = (folder() / "report.md").read_text()
    assert all((folder() / "figures" / f"{name}.png").is_file() for name in ("cascades", "rhythms", "shapes"))
    assert "VoterFraud2020" in page
    told = json.loads((folder() / "validation.json").read_text())
    assert told["seeds"] == [42, 43]
    assert told["passed"] is False
    assert len(jobs) == 2
    code, again, _ = prism("validate", *DAY, "--seeds", 2, "--json")
    assert (code, len(jobs)) == (1, 2)  # nothing is run twice
    assert json.loads(again) == told["targets"]
    assert set(json.loads(again)[0]) >= {"measure", "real", "simulated", "low", "high", "inside"}


@pytest.mark.slow
def test_of_a_world_too_small_to_compare_nothing_is_judged_and_it_is_said_what_it_takes(prism, jobs):
    code, out, err = prism("validate", *TINY, "--seeds", 1)
    assert code == 1
    assert "outside" not in out
    assert "nothing is validated (1 seed); a validation takes at least 234 agents and 48 rounds" in err


@pytest.mark.slow
def test_null_models_are_run_beside_it_with_the_same_seeds(prism, jobs):
    code, out, err = prism("validate", *TINY, "--variant", "one_probability", "--variant", "flat_hours", "--seeds", 1)
    assert code == 1, err
    assert "thresholds of variants" in err
    told = json.loads((folder() / "validation.json").read_text())
    assert set(told["variants"]) == {"one_probability", "flat_hours"}
    assert {row["measure"] for row in told["variants"]["flat_hours"]} == {row["measure"] for row in told["targets"]}
    match = told["matches"]["one_probability"]
    assert 0 <= match["threshold"] <= 1
    assert "one_probability: all impressions are reshared with the same probability" in out
    assert "## What each variant breaks" in (folder() / "report.md").read_text()
    before = len(jobs)
    _, _, err = prism("validate", *TINY, "--variant", "one_probability", "--seeds", 1)
    assert len(jobs) == before  # its threshold is remembered
    assert "thresholds" not in err


def test_an_unknown_variant_or_folder_of_data_is_bad_input(prism, jobs, tmp_path):
    code, _, err = prism("validate", *TINY, "--variant", "no_apeal")
    assert code == 2
    assert "Did you mean 'no_appeal'" in err
    code, _, err = prism("validate", *TINY, "--data", tmp_path)
    assert code == 2
    assert "holds none of" in err
    assert jobs == []


def test_a_null_model_needs_the_mechanism(prism, jobs):
    without = [given.replace("utility.sensitivity=0.03", "utility.sensitivity=0") for given in map(str, TINY)]
    code, _, err = prism("validate", *without, "--variant", "nulls", "--seeds", 1)
    assert code == 2
    assert "utility.sensitivity above 0" in err
