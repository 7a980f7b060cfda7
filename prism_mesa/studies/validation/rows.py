"""The table of a validation: which targets apply, what was simulated, and whether it is inside."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, isfinite, nan
from typing import Final

import numpy as np
import pandas as pd

from prism_mesa.runs.config import Config
from prism_mesa.studies.measures.catalogue import find_measure
from prism_mesa.studies.measures.measure import SHORTEST_H
from prism_mesa.studies.statistics.significance import interval
from prism_mesa.studies.validation.real import Real
from prism_mesa.studies.validation.targets import TARGETS, Target

LEAST_AGENTS: Final = 10_000
LEAST_FOLLOWEES: Final = 150  # below it real rates and real sizes exclude each other: a post gets too few impressions
WINDOW_MIN: Final = (20, 60)  # minutes of a round that stands for a window of 30 in which somebody looked in once
LONGEST_ROUND_MIN: Final = 60  # minutes of a round by which delays of an hour can be told
DAY_H: Final = 24
LEAST_PERSONS: Final = 234  # as many as the data of windows of use have: fewer agents tell less than they do
OF_PERSONS: Final = ("window", "rounds", "day", "days")
"""Needs that a world of few agents, or of less than a day, does not meet: shares of a handful are accidents, and what
is not a day old has had no time to be seen."""

MANY_AGENTS: Final = 60_000
"""From so many on a world is to have cascades of 100 enough for an exponent: without them that target is outside."""

OF_SMALL_GRAPHS: Final = (
    "post_reshares",
    *("window_liked", "window_reshared", "window_replied", "window_posted", "window_none"),
)
"""What is held against data on a graph from a file with few followees."""


def why_not(target: Target, config: Config, agents: float, followees: float) -> str:
    """Return why a target does not apply to a world, in a few words; empty if it does.

    Args:
        target: The target.
        config: The world's configuration; that of a variant has the same targets as what it is a variant of.
        agents: How many there are; of a graph from a file only a run tells.
        followees: How many an agent follows on average, in the runs.
    """
    minutes = config.clock.round_minutes
    if target.needs in OF_PERSONS and (told := too_little(config, agents)):
        return told
    few = followees < LEAST_FOLLOWEES
    if config.network.kind == "edges" and few and target.required and target.measure not in OF_SMALL_GRAPHS:
        return f"a graph with {followees:.1f} followees: only reshares per post and windows of use"
    if target.needs in ("sizes", "many"):
        if agents < LEAST_AGENTS:
            return f"{agents:,.0f} agents: a post needs some 1,000 impressions ({LEAST_AGENTS:,} agents)"
        if few:
            return f"{followees:.0f} followees: a post needs some 1,000 impressions ({LEAST_FOLLOWEES} followees)"
    if target.needs == "graph" and agents < LEAST_AGENTS:
        return f"{agents:,.0f} agents: among so few many follow each other by chance ({LEAST_AGENTS:,} agents)"
    if target.needs == "many" and agents < MANY_AGENTS:
        return f"{agents:,.0f} agents: enough large cascades need {MANY_AGENTS:,}"
    if target.needs == "window" and not WINDOW_MIN[0] <= minutes <= WINDOW_MIN[1]:
        return f"rounds of {minutes:g} minutes: the data are of windows of 30"
    if target.needs in ("rounds", "days") and minutes > LONGEST_ROUND_MIN:
        return f"rounds of {minutes:g} minutes: too long to tell delays"
    if target.needs == "days" and config.rounds * minutes < SHORTEST_H * 60:
        least = ceil(SHORTEST_H * 60 / minutes)
        return f"{config.rounds * minutes / 60:.3g} hours: followed for too short ({SHORTEST_H} hours, {least} rounds)"
    if target.measure == "hours_r" and minutes > LONGEST_ROUND_MIN:
        return f"rounds of {minutes:g} minutes: too long to tell hours"
    return ""


def too_little(config: Config, agents: float) -> str:
    """Return why a world is too small or too short for anything that agents do, and what it takes; empty if not."""
    minutes = config.clock.round_minutes
    if agents < LEAST_PERSONS:
        return f"{agents:,.0f} agents: too few to compare shares (at least {LEAST_PERSONS} agents)"
    if config.rounds * minutes < DAY_H * 60:
        return f"{config.rounds * minutes / 60:.3g} hours: less than a day (at least {least_rounds(config)} rounds)"
    return ""


def least_rounds(config: Config) -> int:
    """Return the rounds of a day."""
    return ceil(DAY_H * 60 / config.clock.round_minutes)


_MOST_MISSING = 0.5
"""Of seeds without a value, where the others speak for none."""


@dataclass(frozen=True)
class Row:
    """A target and what was simulated.

    Attributes:
        simulated: Mean over seeds that have a value; NaN without any.
        low: Where the 95 % interval of the mean begins, within what is possible; NaN of fewer than two seeds.
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


def target_rows(
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
    ends = interval(known[:, None]) if len(known) > 1 else (np.array([nan]), np.array([nan]))
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
