"""Fixtures that several files here share."""

import pytest


@pytest.fixture(scope="module")
def us_data():
    from statsmodels.datasets import macrodata  # takes seconds to load

    return macrodata.load_pandas().data
