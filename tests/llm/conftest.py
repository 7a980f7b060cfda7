"""Fixtures that several files here share."""

import socket

import pytest
from stand_in import StandIn


@pytest.fixture
def nobody():
    """An address where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def server():
    with StandIn() as server:
        yield server
