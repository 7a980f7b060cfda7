"""The catalogue of measures: what each is of, its unit, its range, and where it comes from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from prism_mesa.errors import ConfigError, did_you_mean
from prism_mesa.runs.config import Config


@dataclass(frozen=True)
class FinishedRun:
    """A run that has come to its end, as measures see it.

    Attributes:
        config: Its whole configuration.
        summary: What ``prism run --json`` prints of it.
        table: A table by name, one of `social.tables`.
        follows: Who follows whom: columns `src` and `dst`, rows of `agents`; `dst` follows `src`.
    """

    config: Config
    summary: Mapping[str, Any]
    table: Callable[[str], pd.DataFrame]
    follows: Callable[[], pd.DataFrame]


@dataclass(frozen=True)
class Measure:
    """A number of a finished run.

    Attributes:
        compute: Returns it; NaN where it is not defined.
        meaning: In words; begins in lower case, and ends without a full stop.
        unit: Of what it counts; `share` from 0 to 1.
        low: Its smallest possible value.
        high: Its largest possible value.
        source: Where its definition comes from; empty: its meaning says all.
        tables: Those that it reads while rounds are run (`transitions`, `impressions`, `engagements`, `rounds`,
            `ticks`), which are recorded only if some measure reads them; None: it may read any.
    """

    name: str
    compute: Callable[[FinishedRun], float]
    meaning: str
    unit: str
    low: float
    high: float
    source: str = ""
    tables: tuple[str, ...] | None = ()


MEASURES: Final[Mapping[str, Measure]] = {
    one.name: one
    for one in (
        Measure(
            "reshares",
            lambda run: float(run.summary["engagement"]["reshares"]),
            "reshares of all rounds",
            "reshares",
            0,
            float("inf"),
        ),
    )
}
"""All measures that come with PRISM, by name."""


def find_measure(name: str) -> Measure:
    """Return a measure by its name, or one of a user's own, ``module:function``.

    Raises:
        ConfigError: If there is none; the module of a user's own is imported for that.
    """
    if name in MEASURES:
        return MEASURES[name]
    raise ConfigError(f"measures: {name}: no such measure.{did_you_mean(name, MEASURES)}")


def measured(run: FinishedRun, names: Sequence[str]) -> dict[str, float]:
    """Return measures of a run, by name.

    Raises:
        RunError: If one raises, or returns no number; the message names it.
    """
    return {name: find_measure(name).compute(run) for name in names}
