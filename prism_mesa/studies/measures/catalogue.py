"""The catalogue of measures: find measures by name and compute them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from math import inf, isinf
from pathlib import Path
from typing import Any, Final

import numpy as np

from prism_mesa.domain import SHARE
from prism_mesa.errors import ConfigError, PrismError, RunError, did_you_mean, printable
from prism_mesa.params import short_repr
from prism_mesa.runs.identity import digest, module_digest
from prism_mesa.social.behavior import load_chart
from prism_mesa.studies.measures.cascades import CASCADES, LARGE_TREES, OBSERVED, SEEDED
from prism_mesa.studies.measures.engagement import CHURN, DECISIONS, ENGAGEMENT, INEQUALITY, STATE_SHARES, state_share
from prism_mesa.studies.measures.exposure import EXPOSURE, HOMOPHILY, measure_by_attribute
from prism_mesa.studies.measures.measure import FinishedRun, Measure, first_sentence
from prism_mesa.studies.measures.rhythms import CLOCKS, RHYTHMS, SESSIONS, SPREADS

__all__ = ["MEASURES", "SUBJECTS", "FinishedRun", "Measure", "compute_measures", "find_measure"]

SUBJECTS: Final[Mapping[str, Sequence[Measure]]] = {
    "Engagement": ENGAGEMENT,
    "Cascades": CASCADES,
    "Inequality": INEQUALITY,
    "What readers are shown": EXPOSURE,
    "Within and between communities": HOMOPHILY,
    "Seeded posts": SEEDED,
    "Posts, measured as in public data": OBSERVED,
    "Shapes of large cascades": LARGE_TREES,
    "Timing": CLOCKS,
    "Windows of use": SESSIONS,
    "Rhythm and amount of activity": (*RHYTHMS, *SPREADS),
    "Coming and going": CHURN,
    "States": STATE_SHARES,
    "Open choices": DECISIONS,
}
"""All measures of PRISM, by subject."""

MEASURES: Final[Mapping[str, Measure]] = {measure.name: measure for subject in SUBJECTS.values() for measure in subject}


def find_measure(name: str) -> Measure:
    """Return a measure by its name: one of `MEASURES`, ``measure@attribute``, or ``module:function`` of a user.

    A user's function takes a `FinishedRun` and may read all of its tables. A user's `Measure` lists its tables.
    """
    if name in MEASURES:
        return MEASURES[name]
    if name.startswith(SHARE) and ":" not in name:
        return state_share(name.removeprefix(SHARE))
    if "@" in name and ":" not in name:
        return measure_by_attribute(name)
    key = f"measures: {printable(name)}"
    if ":" not in name:
        hint = did_you_mean(name, MEASURES) or " prism study measures lists all; write your own as module:function"
        raise ConfigError(f"{key}: no such measure.{hint}")
    function = _import_function(name, key)
    if isinstance(function, Measure):
        return replace(function, name=name)
    if not callable(function):
        raise ConfigError(f"{key}: must be a function of a finished run, not {short_repr(function)}")
    return Measure(name, function, first_sentence(function) or "a measure of your own", "", -inf, inf, tables=None)


def measure_names(run: FinishedRun) -> list[str]:
    """Return the names of all measures of a run, with the shares of its chart's own states."""
    return [*dict.fromkeys((*MEASURES, *(SHARE + state for state in run.summary["state_shares"])))]


def chart_states(charts: Iterable[str | None]) -> Iterator[str]:
    """Return the states of configured charts (`statechart.chart`)."""
    return (state.value for chart in charts if chart for state in load_chart(chart).members)


def check_states(measures: Iterable[str], states: Iterable[str]) -> None:
    """Raise ConfigError if a measure is the share of a state that is not among `states`."""
    shares = [name for name in measures if name.startswith(SHARE) and ":" not in name and name not in MEASURES]
    known = [SHARE + state for state in states] if shares else []
    for name in shares:
        if name not in known:
            hint = did_you_mean(name, (*MEASURES, *known))
            raise ConfigError(f"measures: {printable(name)}: no such measure, and no chart has such a state.{hint}")


def _import_function(name: str, key: str) -> Any:
    """Return the object that ``module:function`` names."""
    module_name, _, attribute = name.partition(":")
    if not (module_name and attribute):
        raise ConfigError(f"{key}: write your own as module:function, for example my_measures:toxicity")
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"{key}: cannot import {module_name!r}: {error}") from None
    except Exception as error:  # a user's module may raise anything
        raise ConfigError(f"{key}: importing {module_name!r} raised {type(error).__name__}: {error}") from error
    if not hasattr(module, attribute):
        functions = [item for item, value in vars(module).items() if callable(value) and not item.startswith("_")]
        raise ConfigError(f"{key}: {module_name!r} has no {attribute!r}.{did_you_mean(attribute, functions)}")
    return getattr(module, attribute)


def compute_measures(run: FinishedRun, names: Sequence[str]) -> dict[str, float]:
    """Return the values of measures of a run by name; each table is read once."""
    run = with_cache(run)
    return {name: _compute(find_measure(name), run) for name in names}


def with_cache(run: FinishedRun) -> FinishedRun:
    """Return a run that reads each table once."""
    return replace(run, table=cache(run.table), follows=cache(run.follows))


def _compute(measure: Measure, run: FinishedRun) -> float:
    key = f"measures: {printable(measure.name)}"
    try:
        value: object = measure.compute(run)
    except PrismError as error:
        raise RunError(f"{key}: {error}") from error
    except Exception as error:  # a user's function may raise anything
        raise RunError(f"{key}: raised {type(error).__name__}: {error}") from error
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating) or isinf(value):
        raise RunError(f"{key}: returned {short_repr(value)}: return a finite number, or NaN if undefined")
    return float(value)


@cache
def _measures_version() -> str:
    package = Path(__file__).parents[2]
    folders = [package / "studies" / name for name in ("estimators", "measures")]
    files = [path for folder in folders for path in sorted(folder.glob("*.py"))]
    return digest(*(path.read_bytes() for path in (*files, package / "runs" / "measures.py")))


def measure_version(name: str) -> str:
    """Return a digest of the code that defines a measure: PRISM's measures, or the user's module."""
    module, colon, _ = name.partition(":")
    return module_digest(module) if colon else _measures_version()
