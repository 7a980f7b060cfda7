"""What a measure is, and what it sees of a run."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any

import pandas as pd

from prism_mesa.runs.config import Config


@dataclass(frozen=True)
class FinishedRun:
    """A run that has come to its end, as measures see it.

    Attributes:
        config: Its whole configuration.
        summary: What ``prism run --json`` prints of it.
        table: A table by name, one of `social.tables`; measures share it, so who changes it changes a copy.
        follows: Who follows whom: columns `src` and `dst`, rows of `agents`; `dst` follows `src`.
    """

    config: Config
    summary: Mapping[str, Any]
    table: Callable[[str], pd.DataFrame]
    follows: Callable[[], pd.DataFrame]
    _known: dict[Callable[..., Any], Any] = field(default_factory=dict, repr=False, compare=False)

    def once[T](self, work: "Callable[[FinishedRun], T]") -> T:
        """Return what a function makes of the run; measures that ask for the same share it."""
        if work not in self._known:
            self._known[work] = work(self)
        found: T = self._known[work]
        return found


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
            `churn`, `ticks`, `views`), which are recorded only if some measure reads them; None: it may read any.
    """

    name: str
    compute: Callable[[FinishedRun], float]
    meaning: str
    unit: str
    low: float = 0.0
    high: float = inf
    source: str = ""
    tables: tuple[str, ...] | None = ()


def first_sentence(thing: object) -> str:
    """Return the first sentence of the docstring of a user's own function, on one line, without its full stop.

    >>> first_sentence(ratio)
    'Return a part of a whole, NaN of a whole of 0'
    """
    text = " ".join((getattr(thing, "__doc__", None) or "").split("\n\n")[0].split())
    return re.split(r"(?<!\.\w)\.(?:\s|$)", text, maxsplit=1)[0]


def said(*keys: str) -> Callable[[FinishedRun], float]:
    """Return what takes a number from the summary, by its keys from the outermost on; NaN where one is missing."""

    def number(run: FinishedRun) -> float:
        found: Any = run.summary
        for key in keys:
            if key not in found:
                return nan
            found = found[key]
        return float(found)

    return number


def ratio(part: float, whole: float) -> float:
    """Return a part of a whole, NaN of a whole of 0."""
    return part / whole if whole else nan
