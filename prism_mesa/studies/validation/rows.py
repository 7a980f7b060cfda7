"""The table of a validation: each target with what was simulated, and whether that is inside."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite, nan

import numpy as np
import pandas as pd

from prism_mesa.studies.measures.catalogue import find_measure
from prism_mesa.studies.statistics.intervals import interval
from prism_mesa.studies.validation.real import Real
from prism_mesa.studies.validation.targets import TARGETS, Target

_MOST_MISSING = 0.5
"""Of seeds without a value, where the others speak for none."""


@dataclass(frozen=True)
class Row:
    """A target and what was simulated.

    Attributes:
        target: The target.
        real: Its real value.
        simulated: Mean over seeds that have a value; NaN without any.
        low: Where the 95 % interval of the mean begins, within what is possible; NaN of fewer than two seeds.
        high: Where it ends.
        n: Seeds that have a value.
        of: All seeds.
        share_inside: Of all seeds, those whose own value is inside.
        inside: Whether the mean is; None where the target does not apply, or only informs.
        why_not: Why it does not apply; empty if it does.
        computed: Whether the real value was computed from data here, not carried.
    """

    target: Target
    real: float
    simulated: float
    low: float
    high: float
    n: int
    of: int
    share_inside: float
    inside: bool | None
    why_not: str
    computed: bool

    @property
    def ratio(self) -> float:
        """The simulated value as a multiple of the real one; NaN where the real one is not above 0."""
        return self.simulated / self.real if self.real > 0 else nan

    @property
    def fails(self) -> bool:
        """Whether a configuration fails by it."""
        return self.target.required and self.inside is False


def rows_of(
    runs: pd.DataFrame, real: Real, excused: Callable[[Target], str], targets: Sequence[Target] = TARGETS
) -> tuple[Row, ...]:
    """Return the table of some runs.

    A measure that is no number in half of the runs or more is outside: there is no tail to measure an exponent of.

    Args:
        runs: Those of one condition, a row for each seed, with a column for each measure; failed ones are left out.
        real: Real values.
        excused: Returns why a target does not apply, empty if it does.
        targets: All targets, with what was fitted.
    """
    done = runs[runs["status"] == "done"]
    return tuple(_row(target, done, real, excused(target)) for target in targets)


def _row(target: Target, done: pd.DataFrame, real: Real, why_not: str) -> Row:
    values = done[target.measure].to_numpy(np.float64)
    known = values[np.isfinite(values)]
    mean = float(known.mean()) if len(known) else nan
    ends = interval((known[:, None],)) if len(known) > 1 else (np.array([nan]), np.array([nan]))
    measure = find_measure(target.measure)
    low, high = (float(np.clip(end[0], measure.low, measure.high)) for end in ends)
    within = (values >= target.low) & (values <= target.high)  # NaN is not
    judged = target.required and not why_not and len(values) > 0
    enough = len(known) > _MOST_MISSING * len(values)
    inside = bool(enough and target.low <= mean <= target.high) if judged else None
    share = float(within.mean()) if judged else nan
    seeds = len(known), len(values)
    computed = target.measure in real.computed
    return Row(target, real.values[target.measure], mean, low, high, *seeds, share, inside, why_not, computed)


def as_json(row: Row) -> dict[str, object]:
    """Return a row as JSON has it: null for what is no number; `low` and `high` are the interval of the mean."""
    target = row.target
    numbers = {"real": row.real, "simulated": row.simulated, "low": row.low, "high": row.high}
    bounds = {"from": target.low, "to": target.high, "share_inside": row.share_inside}
    told: dict[str, object] = {"measure": target.measure, **_finite(numbers), "inside": row.inside, **_finite(bounds)}
    told |= {**_finite({"ratio": row.ratio}), "computed": row.computed, "of_seeds": row.of}
    told |= {"seeds": row.n, "required": target.required, "role": target.role, "source": target.source}
    return told | {"told": target.told, "not_applicable": row.why_not or None}


def _finite(numbers: dict[str, float]) -> dict[str, float | None]:
    return {name: value if isfinite(value) else None for name, value in numbers.items()}
