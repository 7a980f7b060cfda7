"""A plugin of pytest: which lines of a package each test runs, and how long the test takes.

    TOUCHED_PACKAGE=/path/of/package TOUCHED_DIR=/path/of/results pytest -p touched_lines

Each process appends a pickle (test, CPU seconds, {file: lines}) for each test that passed, so a crash loses
only the last test. Lines that a test runs in other processes, and those of compiled kernels, are not seen.
"""

import os
import pickle
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from time import process_time
from types import CodeType
from typing import Any, Final

import pytest

_EVENTS: Final = sys.monitoring.events
_TOOL: Final = 3
_PACKAGE: Final = os.environ.get("TOUCHED_PACKAGE", "")
_lines: dict[str, set[int]] = defaultdict(set)
_passed: dict[str, bool] = {}


def _starts(code: CodeType, _offset: int) -> Any:
    if code.co_filename.startswith(_PACKAGE):
        sys.monitoring.set_local_events(_TOOL, code, _EVENTS.LINE)
    return sys.monitoring.DISABLE


def _line(code: CodeType, line: int) -> Any:
    _lines[code.co_filename].add(line)
    return sys.monitoring.DISABLE


def pytest_configure() -> None:
    sys.monitoring.use_tool_id(_TOOL, "touched lines")
    sys.monitoring.register_callback(_TOOL, _EVENTS.PY_START, _starts)
    sys.monitoring.register_callback(_TOOL, _EVENTS.LINE, _line)
    sys.monitoring.set_events(_TOOL, _EVENTS.PY_START)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _lines.clear()
    sys.monitoring.restart_events()
    before = process_time()
    done = yield
    if _passed.pop(item.nodeid, False):
        with (Path(os.environ["TOUCHED_DIR"]) / f"{os.getpid()}.pickles").open("ab") as found:
            pickle.dump((item.nodeid, process_time() - before, dict(_lines)), found)
    return done


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _passed[report.nodeid] = report.passed and _passed.get(report.nodeid, True)


def pytest_sessionfinish() -> None:
    sys.monitoring.set_events(_TOOL, 0)
    sys.monitoring.free_tool_id(_TOOL)
