"""Fixtures that several files here share."""

import pytest
from foreign_runs import WORLD
from stand_in import StandIn

from prism_mesa.runs.social import run


@pytest.fixture(scope="module")
def server():
    with StandIn(slots=8) as server:
        yield server


@pytest.fixture(scope="module")
def asked(server, tmp_path_factory):
    """A run that an LLM decided."""
    reasoner = {"kind": "ollama", "host": server.url, "timeout_s": 30}
    return run(WORLD | {"reasoner": reasoner}, out=tmp_path_factory.mktemp("asked")).run_dir
