"""The table of a validation: which targets apply, the simulated values, and whether they are inside."""

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
LEAST_FOLLOWEES: Final = 150  # below it a post gets too few impressions for both real rates and real sizes
WINDOW_MIN: Final = (20, 60)  # minutes of a round that stands for a window of 30 in which a person looked in once
LONGEST_ROUND_MIN: Final = 60  # minutes of a round in which delays of an hour can be told
DAY_H: Final = 24
LEAST_PERSONS: Final = 234  # as many as in the data of windows of use
MANY_AGENTS: Final = 60_000  # from this size on, too few cascades of 100 for an exponent are outside
_OF_PERSONS: Final = ("window", "rounds", "day", "days")  # needs that few agents, or less than a day, do not meet
_OF_SMALL_GRAPHS: Final = (
    "post_reshares",
    *("window_liked", "window_reshared", "window_replied", "window_posted", "window_none"),
)
"""Measures that are compared with data on a graph from a file with few followees."""


def why_not(target: Target, config: Config, agents: float, followees: float) -> str:
    """Return why a target does not apply to a world; empty if it does.

    Args:
        target: The target.
        config: The configuration of the world; a variant has the targets of the configuration that it changes.
        agents: The number of agents; for a graph from a file only a run tells.
        followees: How many agents an agent follows on average.
    """
    minutes, needs = config.clock.round_minutes, target.needs
    if needs in _OF_PERSONS and (reason := _too_small(config, agents)):
        return reason
    few = followees < LEAST_FOLLOWEES
    if config.network.kind == "edges" and few and target.required and target.measure not in _OF_SMALL_GRAPHS:
        return f"a graph with {followees:.1f} followees: only reshares per post and windows of use"
    if needs in ("sizes", "many"):
        if agents < LEAST_AGENTS:
            return f"{agents:,.0f} agents: a post needs some 1,000 impressions ({LEAST_AGENTS:,} agents)"
        if few:
            return f"{followees:.0f} followees: a post needs some 1,000 impressions ({LEAST_FOLLOWEES} followees)"
    if needs == "graph" and agents < LEAST_AGENTS:
        return f"{agents:,.0f} agents: among so few many follow each other by chance ({LEAST_AGENTS:,} agents)"
    if needs == "many" and agents < MANY_AGENTS:
        return f"{agents:,.0f} agents: enough large cascades need {MANY_AGENTS:,}"
    if needs == "window" and not WINDOW_MIN[0] <= minutes <= WINDOW_MIN[1]:
        return f"rounds of {minutes:g} minutes: the data are of windows of 30"
    if minutes > LONGEST_ROUND_MIN and (needs in ("rounds", "days") or target.measure == "hours_r"):
        return f"rounds of {minutes:g} minutes: too long to tell {'hours' if needs == 'day' else 'delays'}"
    if needs == "days" and config.rounds * minutes < SHORTEST_H * 60:
        least = ceil(SHORTEST_H * 60 / minutes)
        return f"{config.rounds * minutes / 60:.3g} hours: followed for too short ({SHORTEST_H} hours, {least} rounds)"
    return ""


def _too_small(config: Config, agents: float) -> str:
    """Return why a world is too small or too short for any target of what agents do; empty if it is not."""
    hours = config.rounds * config.clock.round_minutes / 60
    if agents < LEAST_PERSONS:
        return f"{agents:,.0f} agents: too few to compare shares (at least {LEAST_PERSONS} agents)"
    if hours < DAY_H:
        return f"{hours:.3g} hours: less than a day (at least {least_rounds(config)} rounds)"
    return ""


def least_rounds(config: Config) -> int:
    """Return the rounds of a day."""
    return ceil(DAY_H * 60 / config.clock.round_minutes)


@dataclass(frozen=True)
class Row:
    """A target and the simulated values.

    Attributes:
        simulated: Mean over the seeds that have a value; NaN without any.
        low: Lower end of the 95 % interval of the mean, within the measure's range; NaN for fewer than two seeds.
        high: Its upper end.
        n: Seeds that have a value.
        of: All seeds.
        share_inside: The share of all seeds whose own value is inside.
        inside: Whether the mean is inside; None if the target does not apply, or only informs.
        why_not: Why it does not apply; empty if it does.
        computed: Whether the real value was computed from data, not carried by PRISM.
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
        """The simulated value as a multiple of the real value; NaN if that is not above 0."""
        return self.simulated / self.real if self.real > 0 else nan

    @property
    def fails(self) -> bool:
        """Whether a configuration fails because of it."""
        return self.target.required and self.inside is False


def target_rows(
    runs: pd.DataFrame, real: Real, excused: Callable[[Target], str], targets: Sequence[Target] = TARGETS
) -> tuple[Row, ...]:
    """Return the table of runs.

    A measure that is NaN in half of the runs or more is outside: there is no tail to measure an exponent of.

    Args:
        runs: The runs of one condition: a row for each seed, a column for each measure. Failed runs are left out.
        real: Real values.
        excused: Returns why a target does not apply, empty if it does.
        targets: All targets, with their roles.
    """
    done = runs[runs["status"] == "done"]
    return tuple(_row(target, done, real, excused(target)) for target in targets)


def _row(target: Target, done: pd.DataFrame, real: Real, why_not: str) -> Row:
    values = done[target.measure].to_numpy(np.float64)
    known = values[np.isfinite(values)]
    mean = float(known.mean()) if len(known) else nan
    measure = find_measure(target.measure)
    low, high = (float(np.clip(end[0], measure.low, measure.high)) for end in interval(known[:, None]))
    within = (values >= target.low) & (values <= target.high)  # NaN is not
    judged = target.required and not why_not and len(values) > 0
    enough = len(known) > len(values) / 2
    return Row(
        target,
        real=real.values[target.measure],
        simulated=mean,
        low=low,
        high=high,
        n=len(known),
        of=len(values),
        share_inside=float(within.mean()) if judged else nan,
        inside=bool(enough and target.low <= mean <= target.high) if judged else None,
        why_not=why_not,
        computed=target.measure in real.computed,
    )


def as_json(row: Row) -> dict[str, object]:
    """Return a row for JSON, with None for NaN and infinities; `low` and `high` are the interval of the mean."""
    target = row.target
    values: dict[str, object] = {
        "measure": target.measure,
        "real": row.real,
        "simulated": row.simulated,
        "low": row.low,
        "high": row.high,
        "inside": row.inside,
        "from": target.low,
        "to": target.high,
        "share_inside": row.share_inside,
        "ratio": row.ratio,
        "computed": row.computed,
        "of_seeds": row.of,
        "seeds": row.n,
        "required": target.required,
        "role": target.role,
        "source": target.source,
        "told": target.told,
        "not_applicable": row.why_not or None,
    }
    return {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in values.items()}
