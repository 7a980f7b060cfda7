"""The catalogue of measures: what each is of, its unit, its range, and where it comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from math import inf, isinf
from pathlib import Path
from typing import Any, Final

import numpy as np

from prism_mesa.errors import ConfigError, PrismError, RunError, did_you_mean, printable
from prism_mesa.params import shown
from prism_mesa.runs.identity import digest, module_digest
from prism_mesa.studies.measures.by_attribute import measure_by_attribute
from prism_mesa.studies.measures.cascades import CASCADES, SEEDED
from prism_mesa.studies.measures.engagement import CHURN, DECISIONS, ENGAGEMENT, INEQUALITY, STATE_SHARES
from prism_mesa.studies.measures.exposure import EXPOSURE, HOMOPHILY
from prism_mesa.studies.measures.measure import FinishedRun, Measure, first_sentence
from prism_mesa.studies.measures.observed import LARGE_TREES, OBSERVED
from prism_mesa.studies.measures.rhythms import CLOCKS, RHYTHMS, SPREADS
from prism_mesa.studies.measures.sessions import SESSIONS

__all__ = ["MEASURES", "SUBJECTS", "FinishedRun", "Measure", "find_measure", "measured"]

SUBJECTS: Final[Mapping[str, Sequence[Measure]]] = {
    "Engagement": ENGAGEMENT,
    "Cascades": CASCADES,
    "Inequality": INEQUALITY,
    "What readers are shown": EXPOSURE,
    "Within and between communities": HOMOPHILY,
    "Seeded posts": SEEDED,
    "Posts as data have them": OBSERVED,
    "Shapes of large cascades": LARGE_TREES,
    "Clocks": CLOCKS,
    "Windows of use": SESSIONS,
    "When and how much": (*RHYTHMS, *SPREADS),
    "Coming and going": CHURN,
    "States": STATE_SHARES,
    "Open choices": DECISIONS,
}
"""All measures that come with PRISM, by what they are about."""

MEASURES: Final[Mapping[str, Measure]] = {one.name: one for measures in SUBJECTS.values() for one in measures}
"""The same by name."""


def find_measure(name: str) -> Measure:
    """Return a measure by its name, ``measure@attribute``, or one of a user's own, ``module:function``.

    A function is called with a `FinishedRun`, and may read all of it; a `Measure` in its place says what it reads.

    Raises:
        ConfigError: If there is none; the module of a user's own is imported for that.
    """
    if name in MEASURES:
        return MEASURES[name]
    if "@" in name and ":" not in name:
        return measure_by_attribute(name)
    key = f"measures: {printable(name)}"
    if ":" not in name:
        near = did_you_mean(name, MEASURES) or " prism study measures lists all; your own is written module:function"
        raise ConfigError(f"{key}: no such measure.{near}")
    found = _own(name, key)
    if isinstance(found, Measure):
        return replace(found, name=name)
    if not callable(found):
        raise ConfigError(f"{key}: is no function of a finished run, but {shown(found)}")
    return Measure(name, found, first_sentence(found) or "a measure of your own", "", -inf, inf, tables=None)


def _own(name: str, key: str) -> Any:
    """Return what ``module:function`` names."""
    module_name, _, own = name.partition(":")
    if not (module_name and own):
        raise ConfigError(f"{key}: write your own as module:function, for example my_measures:toxicity")
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"{key}: cannot import {module_name!r}: {error}") from None
    except Exception as error:  # a module of a user's own may fail in any way
        raise ConfigError(f"{key}: importing {module_name!r} raised {type(error).__name__}: {error}") from error
    if not hasattr(module, own):
        functions = [found for found, value in vars(module).items() if callable(value) and not found.startswith("_")]
        raise ConfigError(f"{key}: {module_name!r} has no {own!r}.{did_you_mean(own, functions)}")
    return getattr(module, own)


def measured(run: FinishedRun, names: Sequence[str]) -> dict[str, float]:
    """Return measures of a run, by name; each table is read once for all of them."""
    once = replace(run, table=cache(run.table), follows=cache(run.follows))
    return {name: _value(find_measure(name), once) for name in names}


def _value(measure: Measure, run: FinishedRun) -> float:
    key = f"measures: {printable(measure.name)}"
    try:
        found: object = measure.compute(run)
    except PrismError as error:
        raise RunError(f"{key}: {error}") from error
    except Exception as error:  # a function of a user's own may fail in any way
        raise RunError(f"{key}: raised {type(error).__name__}: {error}") from error
    if isinstance(found, bool) or not isinstance(found, int | float | np.integer | np.floating) or isinf(found):
        raise RunError(
            f"{key}: returned {shown(found)}: a measure is one finite number, or NaN where it is not defined"
        )
    return float(found)


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
