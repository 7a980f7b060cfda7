"""Fixtures that several files here share."""

import pytest
from turn_events import Garden
from wall_tools import Wall

from prism_mesa.deliberation.tools import ToolRegistry


@pytest.fixture
def garden():
    return Garden()


@pytest.fixture
def wall():
    return Wall([])


@pytest.fixture
def registry(wall):
    return ToolRegistry([wall.reply, wall.vote], timeout_s=None)
