"""Fixtures that several files here share."""

import pytest
from asked_surveys import FILE
from worlds import plain

from prism_mesa.runs.social import run


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    config = plain({"agents": {"n": 40}, "rounds": 4, "ticks_per_round": 6, "seed": 5})
    return run(config, out=tmp_path_factory.mktemp("runs")).run_dir


@pytest.fixture
def questions(tmp_path):
    (tmp_path / "q.yaml").write_text(FILE)
    return "q.yaml"
