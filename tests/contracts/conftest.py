"""What the contracts' code takes for granted: pytest's plugins for coroutines and spies, and the objects it names."""

import asyncio
import inspect
from contextlib import ExitStack
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from prism_mesa.llm import LLMClient


def pytest_configure(config):
    config.addinivalue_line("markers", "asyncio: a coroutine, which is run in an event loop of its own")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def mocker():
    """The one thing of pytest-mock that the contracts use."""

    with ExitStack() as patches:

        def spy(of, name):
            return patches.enter_context(patch.object(of, name, autospec=True, side_effect=getattr(of, name)))

        yield SimpleNamespace(spy=spy)


@pytest.fixture
def mock_llm_client():
    """Return a client over a function that always says the same decision."""
    clients = []

    def client_of(decision):
        clients.append(LLMClient(lambda prompt: decision.model_dump_json()))
        return clients[-1]

    yield client_of
    for client in clients:
        client.close()
