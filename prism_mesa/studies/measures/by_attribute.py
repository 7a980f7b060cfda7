"""Measures by an attribute of agents, or of posts, that the configuration declares, named ``measure@attribute``."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf, nan
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.errors import ConfigError, did_you_mean, printable
from prism_mesa.social.state.opinions import bimodality
from prism_mesa.studies.estimators.trees import matched_difference
from prism_mesa.studies.measures.exposure import KRACKHARDT, NEWMAN, assortativity, external_internal
from prism_mesa.studies.measures.measure import (
    FinishedRun,
    Ints,
    Measure,
    have_joined,
    index_measure,
    measured_posts,
    ratio,
    share_measure,
    writers,
)

_COMPARED: Final = 10
"""Posts of the smallest cascades that are compared at equal sizes: smaller ones differ little in shape."""

_SIDES: Final = "of a number the sides are below and above the middle of its range"


def measure_by_attribute(name: str) -> Measure:
    """Return the measure that a name means, such as ``follow_ei@leaning``.

    Raises:
        ConfigError: If there is none.
    """
    base, _, attribute = name.partition("@")
    measures = measures_by_attribute(attribute)
    if base not in measures:
        near = did_you_mean(base, measures) or f" By an attribute there are {', '.join(measures)}."
        raise ConfigError(f"measures: {printable(name)}: no such measure.{near}")
    return measures[base]


def _values(run: FinishedRun, attribute: str, of: str = "agent") -> "pd.Series[float]":
    """Return an attribute of all agents, or of all posts, as the table has it."""
    declared = [name for name, own in run.config.attributes.items() if own.of == of]
    if attribute not in declared:
        have = ", ".join(declared) or "none"
        raise ConfigError(f"{of}s have no attribute {printable(attribute)!r} (attributes of {of}s: {have})")
    return run.table(f"{of}s")[attribute]


def sides(run: FinishedRun, attribute: str) -> npt.NDArray[np.int64]:
    """Return the side of each agent, from 0: its value; of a number 1 above the middle of its range."""
    values, ends = _values(run, attribute), run.config.attributes[attribute].range
    if ends is not None:
        return np.asarray(values.to_numpy(np.float64) > sum(ends) / 2, np.int64)
    return np.asarray(pd.factorize(values, sort=True)[0], np.int64)


def modularity(one: Ints, other: Ints) -> float:
    """Return the modularity of directed pairs between groups: the share within, less what chance would give.

    Args:
        one: The group at one end of each pair, whole numbers from 0.
        other: The group at the other end.
    """
    if not len(one):
        return nan
    kinds = int(max(one.max(), other.max())) + 1
    chance = np.bincount(one, minlength=kinds) / len(one) @ (np.bincount(other, minlength=kinds) / len(one))
    return float((one == other).mean() - chance)


def _of_follows(index: Callable[[Ints, Ints], float], attribute: str, run: FinishedRun) -> float:
    side, edges = sides(run, attribute), run.follows()
    return index(side[edges["src"].to_numpy()], side[edges["dst"].to_numpy()])


def _assortativity(attribute: str, run: FinishedRun) -> float:
    if run.config.attributes.get(attribute) is None or run.config.attributes[attribute].range is None:
        return _of_follows(assortativity, attribute, run)
    values, edges = _values(run, attribute).to_numpy(np.float64), run.follows()
    return _correlation(values[edges["src"].to_numpy()], values[edges["dst"].to_numpy()])


def _of_rows(table: str, index: Callable[[Ints, Ints], float], attribute: str, run: FinishedRun) -> float:
    rows, side = run.table(table), sides(run, attribute)
    return index(side[rows["agent"].to_numpy()], side[writers(run, rows["root"].to_numpy())])


def _share_across(one: Ints, other: Ints) -> float:
    return ratio(int((one != other).sum()), len(one))


def _with_followers(attribute: str, run: FinishedRun) -> float:
    joined = have_joined(run)
    both = (_values(run, attribute), run.table("agents")["followers"])
    ranks = [column[joined].rank().to_numpy() for column in both]
    return _correlation(*ranks)


def _stances(attribute: str, run: FinishedRun) -> npt.NDArray[np.float64]:
    """Return a number of the agents that are there at the end."""
    values = _values(run, attribute)
    if run.config.attributes[attribute].range is None:
        raise ConfigError(f"{printable(attribute)}: opinions are numbers of a range, and it has values")
    return np.asarray(values[run.table("agents")["present"]], np.float64)


def _mean(attribute: str, run: FinishedRun) -> float:
    stances = _stances(attribute, run)
    return float(stances.mean()) if len(stances) else nan


def _variance(attribute: str, run: FinishedRun) -> float:
    stances = _stances(attribute, run)
    return float(stances.var()) if len(stances) else nan


def _bimodality(attribute: str, run: FinishedRun) -> float:
    stances = _stances(attribute, run)
    if not len(stances):
        return nan
    gaps = stances - stances.mean()
    return bimodality(*(float((gaps**power).mean()) for power in (2, 3, 4)))


def _matched(column: str, attribute: str, run: FinishedRun) -> float:
    """Return by how much a column of `cascades` is larger for posts of the second value, at equal sizes."""
    values, declared = _values(run, attribute, "post"), run.config.attributes[attribute]
    if declared.range is None and len(declared.values or ()) != 2:
        raise ConfigError(f"{printable(attribute)}: two groups of posts are compared; give it two values, or a range")
    trees = run.once(measured_posts).cascades
    trees = trees[trees["size"] >= _COMPARED]
    values, ends = values.iloc[trees["root"]], declared.range
    second = values > sum(ends) / 2 if ends is not None else values == list(declared.values or ())[1]
    return matched_difference(trees["size"].to_numpy(), trees[column].to_numpy(np.float64), second.to_numpy(np.bool_))


def _correlation(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    """Return Pearson's coefficient; NaN where one of the two does not vary."""
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return nan
    return float(np.corrcoef(one, other)[0, 1])


def _measures_of_sides(attribute: str, by: str) -> tuple[Measure, ...]:
    return (
        index_measure(
            "follow_ei",
            partial(_of_follows, external_internal, attribute),
            f"E-I index of follows by {by}: 1 all between sides, -1 all within; {_SIDES}",
            source=KRACKHARDT,
        ),
        index_measure(
            "follow_assortativity",
            partial(_assortativity, attribute),
            f"assortativity of follows by {by}: 1 all within, 0 as by chance; of a number the correlation at both ends",
            source=NEWMAN,
        ),
        index_measure(
            "follow_modularity",
            partial(_of_follows, modularity, attribute),
            f"modularity of the follow network by {by}; {_SIDES}",
            source="Leicht and Newman 2008, doi:10.1103/PhysRevLett.100.118703",
        ),
        index_measure(
            "impression_ei",
            partial(_of_rows, "impressions", external_internal, attribute),
            f"E-I index of impressions by {by} of reader and writer; {_SIDES}",
            source=KRACKHARDT,
            tables=("impressions",),
        ),
        index_measure(
            "engagement_ei",
            partial(_of_rows, "engagements", external_internal, attribute),
            f"the same of likes, replies and reshares by {by}; {_SIDES}",
            source=KRACKHARDT,
            tables=("engagements",),
        ),
        share_measure(
            "cross_cutting",
            partial(_of_rows, "impressions", _share_across, attribute),
            f"impressions of what somebody of another side wrote, by {by}; {_SIDES}",
            tables=("impressions",),
        ),
        index_measure(
            "followers_correlation",
            partial(_with_followers, attribute),
            f"rank correlation (Spearman) of {by} and followers; of numbers",
            tables=("churn",),
        ),
    )


def _measures_of_shapes(attribute: str, by: str) -> tuple[Measure, ...]:
    return tuple(
        Measure(
            f"matched_{name}",
            partial(_matched, column, attribute),
            f"{statistic} of cascades of at least {_COMPARED}, by the attribute {by} of posts: second value minus "
            "first (of a number above minus below the middle of its range), at equal sizes",
            unit,
            -inf,
            source="Juul and Ugander 2021, doi:10.1073/pnas.2100786118",
        )
        for name, column, statistic, unit in (
            ("depth", "depth", "mean depth", "reshares"),
            ("breadth", "breadth", "mean breadth", "posts"),
            ("virality", "structural_virality", "mean structural virality", "steps"),
        )
    )


def _measures_of_opinions(attribute: str, by: str) -> tuple[Measure, ...]:
    return (
        Measure(
            "opinion_mean",
            partial(_mean, attribute),
            f"mean of {by} at the end, of the agents that are there",
            "",
            -inf,
        ),
        Measure(
            "opinion_variance",
            partial(_variance, attribute),
            f"variance of {by} at the end: the larger, the farther apart agents are",
            "",
            source="DiMaggio, Evans and Bryson 1996, doi:10.1086/230995",
        ),
        index_measure(
            "opinion_bimodality",
            partial(_bimodality, attribute),
            f"bimodality of {by} at the end, (skewness² + 1) / kurtosis: 5/9 if all are as frequent, 1 of two camps",
            low=0,
            source="Pfister et al. 2013, doi:10.3389/fpsyg.2013.00700",
        ),
    )


def measures_by_attribute(attribute: str) -> dict[str, Measure]:
    """Return all measures by an attribute, by the part of the name before the ``@``."""
    parts = (_measures_of_sides, _measures_of_shapes, _measures_of_opinions)
    return {
        measure.name: replace(measure, name=f"{measure.name}@{attribute}")
        for part in parts
        for measure in part(attribute, f"`{attribute}`")
    }
