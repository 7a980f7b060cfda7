"""The field experiments that come with PRISM: their studies, arms, measures and figures fit together."""

from pathlib import Path

import pytest

from prism_mesa.api.experiments import Experiments

ROOT = Path(__file__).parents[3]
FILE = ROOT / "configs" / "studies" / "experiments" / "outcomes.yaml"


@pytest.mark.parametrize("scale", ["full", "small"])
def test_every_outcome_has_an_arm_and_a_measure(monkeypatch, tmp_path, scale):
    monkeypatch.chdir(ROOT)
    experiments = Experiments(file=FILE, scale=scale, out=tmp_path)
    files = {file.name for file in FILE.parent.glob("*.yaml")} - {"outcomes.yaml", "users.yaml"}
    assert {item.study for item in experiments.experiments.values()} == files


def test_outcomes_that_are_predicted_first_have_no_published_value(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    kept_back = ("slaughter_course", "chuai_2026", "chuai_2024", "muchnik_2013", "nyhan_2023", "beknazar_2022")
    experiments = Experiments(kept_back, file=FILE, out=tmp_path).experiments
    outcomes = [outcome for item in experiments.values() for outcome in item.outcomes.values()]
    assert {outcome.published for outcome in outcomes if outcome.role == "predicted"} == {None}
