"""Calibration files, and those that come with PRISM."""

from pathlib import Path

import pytest

from prism_mesa.errors import ConfigError
from prism_mesa.studies.calibration.plan import Axis, calibration_params, plan_calibration, read_calibration

FIT = {"likes": {"target": 10, "tolerance": 2, "data": "VoterFraud2020"}}
RANGE = {"agents.activity": [0.1, 0.9]}


def params_of(**values):
    return calibration_params({"parameters": RANGE, "fit": FIT, **values}, "mine.yaml")


def test_a_range_is_a_pair_or_has_keys():
    found = params_of(parameters={**RANGE, "utility.sensitivity": {"low": 0.01, "high": 1, "log": True}}).parameters
    assert found["agents.activity"].model_dump() == {"low": 0.1, "high": 0.9, "log": False}
    assert found["utility.sensitivity"].log


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"holdout": {"reshares": {"target": 1, "tolerance": 1, "data": "voterfraud 2020"}}}, "holdout: reshares: "),
        ({"parameters": {"agents.activity": [0.9, 0.1]}}, "parameters.agents.activity: low must be below high"),
        ({"parameters": {"feed.size": {"low": 0, "high": 9, "log": True}}}, "low must be above 0"),
        ({"parameters": {"agents.activity": 0.5}}, "parameters.agents.activity"),
        ({"parameters": {}}, "parameters"),
        ({"parameters": {"seed": [1, 9]}}, "parameters: seed: "),
        ({"set": {"agents": {"activity": 0.5}}}, "set: agents.activity: "),
        ({"fit": {"likes": {"target": 10, "tolerance": 0, "data": "x"}}}, "fit.likes.tolerance"),
        ({"minute": 5}, "Did you mean 'minutes'"),
    ],
)
def test_a_wrong_key_is_named_in_one_line(values, fault):
    with pytest.raises(ConfigError, match=fault) as error:
        params_of(**values)
    assert str(error.value).startswith("mine.yaml: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("axis", "middle"),
    [(Axis("a", 2, 4), 3.0), (Axis("a", 0.01, 100, log=True), 1.0), (Axis("a", 10, 21, whole=True), 16)],
)
def test_places_go_from_the_lowest_to_the_highest_value_and_back(axis, middle):
    assert [axis.value(place) for place in (-1, 0, 0.5, 1, 2)] == [axis.low, axis.low, middle, axis.high, axis.high]
    assert axis.position(axis.value(0.3)) == pytest.approx(0.3, abs=0.03 if axis.whole else 1e-5)
    assert type(axis.value(0.3)) is (int if axis.whole else float)


FOLDER = Path(__file__).parents[3] / "configs" / "calibrations"


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_shipped_calibration_can_be_run_has_an_effect_and_holds_something_out(file):
    plan = plan_calibration(read_calibration(file), file.stem, str(file))
    assert plan.notes == ()
    assert plan.params.holdout
    assert plan.params.runs >= 2 * plan.n_initial
