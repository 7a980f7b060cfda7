import pytest

from prism_mesa.errors import ConfigError
from prism_mesa.studies.calibration.plan import Axis, calibration_params, read_calibration

FIT = {"likes": {"target": 10, "tolerance": 2, "data": "VoterFraud2020"}}
RANGE = {"agents.activity": [0.1, 0.9]}


def params_of(**values):
    return calibration_params({"parameters": RANGE, "fit": FIT, **values}, "mine.yaml")


def test_a_range_is_a_pair_or_says_that_it_goes_by_factors():
    found = params_of(parameters={**RANGE, "utility.sensitivity": {"low": 0.01, "high": 1, "log": True}}).parameters
    assert (found["agents.activity"].low, found["agents.activity"].high, found["agents.activity"].log) == (
        0.1,
        0.9,
        False,
    )
    assert found["utility.sensitivity"].log


def test_data_that_are_fitted_cannot_be_held_out_however_they_are_written():
    with pytest.raises(ConfigError) as told:
        params_of(holdout={"reshares": {"target": 1, "tolerance": 1, "data": "voterfraud 2020"}})
    assert str(told.value) == (
        "mine.yaml: holdout: reshares: 'voterfraud 2020' is data of fit: likes too: hold out what the fit does not "
        "see, or move it to fit"
    )


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"parameters": {"agents.activity": [0.9, 0.1]}}, "parameters.agents.activity: low must be below high"),
        ({"parameters": {"feed.size": {"low": 0, "high": 9, "log": True}}}, "with log: true low must be above 0"),
        ({"parameters": {"agents.activity": 0.5}}, "parameters.agents.activity"),
        ({"parameters": {}}, "parameters"),
        ({"parameters": {"seed": [1, 9]}}, "parameters: seed: the calibration's own key 'seeds'"),
        ({"set": {"agents": {"activity": 0.5}}}, "set: agents.activity: stands in 'parameters' too"),
        ({"fit": {}}, "fit"),
        ({"fit": {"likes": {"target": 10, "tolerance": 0, "data": "x"}}}, "fit.likes.tolerance: .*greater than 0"),
        ({"fit": {"likes": {"target": 10, "tolerence": 1, "data": "x"}}}, "Did you mean 'tolerance'"),
        ({"minute": 5}, "Did you mean 'minutes'"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_that_names_the_key(values, told):
    with pytest.raises(ConfigError, match=told) as error:
        params_of(**values)
    assert str(error.value).startswith("mine.yaml: ")
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ConfigError, match="no such calibration file"):
        read_calibration(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("axis", "middle"),
    [(Axis("a", 2, 4), 3.0), (Axis("a", 0.01, 100, log=True), 1.0), (Axis("a", 10, 21, whole=True), 16)],
)
def test_places_go_from_the_lowest_to_the_highest_value_and_back(axis, middle):
    assert [axis.value(place) for place in (-1, 0, 0.5, 1, 2)] == [axis.low, axis.low, middle, axis.high, axis.high]
    assert axis.place(axis.value(0.3)) == pytest.approx(0.3, abs=0.03 if axis.whole else 1e-5)
    assert type(axis.value(0.3)) is (int if axis.whole else float)
