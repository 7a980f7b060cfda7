"""Published outcomes and verdicts on simulated ones, with expected values worked out by hand."""

from math import nan

import pandas as pd
import pytest

from prism_mesa.errors import ConfigError
from prism_mesa.params import validate_params
from prism_mesa.studies.experiments.evaluation import OutcomeRow, evaluate
from prism_mesa.studies.experiments.outcomes import Experiment, Outcome


def outcome(**values):
    return Outcome(what="likes", role="predicted", **values)


def row(value, low, high, **values):
    return OutcomeRow("experiment", "likes", outcome(**values), value, low, high, 3)


def test_a_published_number_without_an_interval_allows_a_factor_of_one_and_a_half():
    assert outcome(published=-12).allowed == (-18, -8)
    assert outcome(published=-12, range=(-13, -11)).allowed == (-13, -11)
    assert row(-17.9, -30, -5, published=-12).verdict == "inside"
    assert row(-18.1, -30, -5, published=-12).verdict == "outside"


def test_a_null_result_is_right_if_the_interval_holds_0_and_is_no_wider_than_the_published_one():
    null = {"published": 0, "range": (-1, 1)}
    assert row(0.5, -0.4, 1.4, **null).verdict == "inside"
    assert row(0.5, -1, 2, **null).verdict == "open"
    assert row(0.5, 0.1, 0.9, **null).verdict == "outside"
    assert row(0, nan, nan, **null).verdict == "open"


def test_a_published_direction_is_right_if_the_whole_interval_is_on_its_side():
    assert row(-2, -3, -1, published="lower").verdict == "inside"
    assert row(-2, -5, 1, published="lower").verdict == "open"
    assert row(2, 1, 3, published="lower").verdict == "outside"


@pytest.mark.parametrize(
    ("value", "values", "right"),
    [
        (-1, {"published": -5}, True),
        (1, {"published": -5}, False),
        (2, {"published": 17, "unit": "ratio"}, True),
        (0.9, {"published": 17, "unit": "ratio"}, False),
        (1, {"published": "higher"}, True),
        (1, {"published": 0, "range": (-1, 1)}, None),
        (1, {}, None),
    ],
)
def test_a_sign_is_right_on_the_published_side_of_no_effect(value, values, right):
    assert row(value, nan, nan, **values).sign_right is right


def test_a_sign_is_established_if_the_whole_interval_is_on_its_side():
    assert row(-2, -3, -1, published=-5).sign_established is True
    assert row(-2, -5, 1, published=-5).sign_established is False
    assert row(-2, nan, nan, published=-5).sign_established is False
    assert row(2, 1.1, 3, published=17, unit="ratio").sign_established is True
    assert row(1, 0.5, 2, published=0, range=(-1, 1)).sign_established is None


def test_an_outcome_without_a_published_result_gets_no_verdict():
    assert row(3, 2, 4).verdict == "not published"
    assert row(nan, nan, nan, published=1).verdict == "no value"


@pytest.mark.parametrize(
    ("compare", "expected"), [("value", 15.0), ("difference", 5.0), ("percent", 50.0), ("ratio", 1.5)]
)
def test_arms_are_compared_seed_by_seed(compare, expected):
    runs = pd.DataFrame({"arm": ["a", "b"] * 2, "seed": [1, 1, 2, 2], "m": [12.0, 8.0, 18.0, 12.0]})
    values = {"what": "likes", "role": "predicted", "measure": "m", "compare": compare}
    experiment = Experiment(title="t", study="s.yaml", arm="a", against="b", outcomes={"likes": values})
    [result] = evaluate("experiment", experiment, runs)
    assert (result.value, result.n) == (expected, 2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"published": 0}, "range"),
        ({"published": 1, "range": [2, 1]}, "range"),
        ({"published": "lower", "range": [1, 2]}, "range"),
        ({"published": "bigger"}, "published"),
        ({"role": "guessed"}, "role"),
    ],
)
def test_a_wrong_outcome_is_refused_by_its_key(values, message):
    with pytest.raises(ConfigError, match=message):
        validate_params(Outcome, {"what": "likes", "role": "predicted", **values}, "outcomes.yaml")
