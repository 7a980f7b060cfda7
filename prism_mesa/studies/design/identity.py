"""What makes measures the same measures, and values in words."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from prism_mesa.runs.identity import digest, module_digest

_PACKAGE: Final = Path(__file__).parents[2]


@cache
def measures_version() -> str:
    """Return what stands for the code of the measures that come with PRISM."""
    folders = [_PACKAGE / "studies" / name for name in ("estimators", "measures")]
    files = [path for folder in folders for path in sorted(folder.glob("*.py"))]
    return digest(*(path.read_bytes() for path in (*files, _PACKAGE / "runs" / "measures.py")))


def measure_version(name: str) -> str:
    """Return what stands for the code of a measure: for one of a user's own, its module's file."""
    module, colon, _ = name.partition(":")
    return module_digest(module) if colon else measures_version()


def shortest(values: Mapping[str, Any]) -> str:
    """Return values by key in one line, as a user would write them: ``feed.mode=x_algo, agents.n=500``.

    >>> shortest({"feed.mode": "x_algo", "agents.n": 500})
    'feed.mode=x_algo, agents.n=500'
    """
    return ", ".join(f"{key}={json.dumps(v) if not isinstance(v, str) else v}" for key, v in values.items())
