"""Small studies."""

import pytest
from worlds import plain

from prism_mesa.studies.design.study_design import design_study
from prism_mesa.studies.params import study_params

SMALL = plain({"agents.n": 20, "rounds": 2, "network.mean_degree": 5})


@pytest.fixture
def designed():
    """Return what makes a small study from its values."""

    def make(**values):
        given = {"question": "Does it?", "base": SMALL, "measures": ["reshares"], "seeds": 3, "keep": "measures"}
        return design_study(study_params({**given, **values}, "mine.yaml"), "mine", "mine.yaml")

    return make
