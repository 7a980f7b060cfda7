"""Who the agents are is in a snapshot only if somebody has changed it."""

import numpy as np
import pytest

from prism_mesa.errors import DataError
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.population import IDENTITY_COLUMNS

SMALL = {"agents_n": 20, "network_mean_degree": 4.0, "reasoner_kind": "rule", "rounds": 4}


def test_what_the_parameters_give_is_left_out_and_stays() -> None:
    model = SocialModel(**SMALL)
    model.step()
    kept, other = model.snapshot(), SocialModel(**SMALL)
    assert not set(IDENTITY_COLUMNS) & kept["platform"]["population"].keys()
    other.restore(kept)
    for name in IDENTITY_COLUMNS:
        assert np.array_equal(getattr(other.population, name), getattr(model.population, name))


def test_what_was_changed_comes_back() -> None:
    model = SocialModel(**SMALL)
    model.population.activity[3] = 0.125
    model.step()
    other = SocialModel(**SMALL)
    other.restore(model.snapshot())
    assert other.population.activity[3] == 0.125


def test_agents_that_were_changed_before_are_not_taken_for_those_of_the_run() -> None:
    model, other = SocialModel(**SMALL), SocialModel(**SMALL)
    model.step()
    other.population.activity[3] = 0.125
    with pytest.raises(DataError, match="were changed before its first round"):
        other.restore(model.snapshot())


def test_of_who_they_are_only_what_was_changed_is_kept() -> None:
    model = SocialModel(**SMALL)
    model.population.activity[3] = 0.125
    model.step()
    assert set(IDENTITY_COLUMNS) & model.snapshot()["platform"]["population"].keys() == {"numbers"}
