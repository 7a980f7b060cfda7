"""Measures by a declared attribute of agents or posts, named ``measure@attribute``."""

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
from prism_mesa.studies.estimators.graphs import matched_difference
from prism_mesa.studies.measures.exposure import (
    KRACKHARDT,
    NEWMAN,
    assortativity,
    external_internal,
    index_of_follows,
    index_of_rows,
)
from prism_mesa.studies.measures.measure import (
    FinishedRun,
    Ints,
    Measure,
    have_joined,
    index,
    measured_posts,
    ratio,
    share,
)

type Floats = npt.NDArray[np.float64]

_COMPARED: Final = 10  # posts of the smallest cascades that are compared at equal sizes: smaller ones hardly differ
_SIDES: Final = "for numbers, sides are below and above the middle of the range"
_AT_END: Final = "over agents that are present at the end"


def measure_by_attribute(name: str) -> Measure:
    """Return the measure of a name such as ``follow_ei@leaning``.

    Raises:
        ConfigError: If there is none.
    """
    base, _, attribute = name.partition("@")
    measures = measures_by_attribute(attribute)
    if base not in measures:
        near = did_you_mean(base, measures) or f" By an attribute there are {', '.join(measures)}."
        raise ConfigError(f"measures: {printable(name)}: no such measure.{near}")
    return measures[base]


def _values(run: FinishedRun, attribute: str, kind: str = "agent") -> "pd.Series[float]":
    """Return an attribute of all agents, or of all posts."""
    declared = [name for name, params in run.config.attributes.items() if params.of == kind]
    if attribute not in declared:
        known = ", ".join(declared) or "none"
        raise ConfigError(f"{kind}s have no attribute {printable(attribute)!r} (attributes of {kind}s: {known})")
    return run.table(f"{kind}s")[attribute]


def sides(run: FinishedRun, attribute: str) -> npt.NDArray[np.int64]:
    """Return the side of each agent, from 0: its value; for a number, 1 above the middle of its range."""
    values, ends = _values(run, attribute), run.config.attributes[attribute].range
    if ends is not None:
        return np.asarray(values.to_numpy(np.float64) > sum(ends) / 2, np.int64)
    return np.asarray(pd.factorize(values, sort=True)[0], np.int64)


def modularity(sources: Ints, targets: Ints) -> float:
    """Return the modularity of directed pairs of groups, from 0: the share within groups, minus that by chance."""
    if not len(sources):
        return nan
    kinds = int(max(sources.max(), targets.max())) + 1
    shares = [np.bincount(ends, minlength=kinds) / len(sources) for ends in (sources, targets)]
    return float((sources == targets).mean() - shares[0] @ shares[1])


def _assortativity(attribute: str, run: FinishedRun) -> float:
    params = run.config.attributes.get(attribute)
    if params is None or params.range is None:
        return index_of_follows(assortativity, partial(sides, attribute=attribute), run)
    values, edges = _values(run, attribute).to_numpy(np.float64), run.follows()
    return _correlation(values[edges["src"].to_numpy()], values[edges["dst"].to_numpy()])


def _share_across(sources: Ints, targets: Ints) -> float:
    return ratio(int((sources != targets).sum()), len(sources))


def _with_followers(attribute: str, run: FinishedRun) -> float:
    joined, columns = have_joined(run), (_values(run, attribute), run.table("agents")["followers"])
    first, second = (column[joined].rank().to_numpy() for column in columns)
    return _correlation(first, second)


def _correlation(first: Floats, second: Floats) -> float:
    """Return Pearson's coefficient; NaN if one of the two does not vary."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return nan
    return float(np.corrcoef(first, second)[0, 1])


def _opinions(statistic: Callable[[Floats], float], attribute: str, run: FinishedRun) -> float:
    """Return a statistic of the numbers of the agents that are present at the end."""
    values = _values(run, attribute)
    if run.config.attributes[attribute].range is None:
        raise ConfigError(f"{printable(attribute)}: opinions are numbers of a range, and it has values")
    opinions = np.asarray(values[run.table("agents")["present"]], np.float64)
    return float(statistic(opinions)) if len(opinions) else nan


def _bimodality(opinions: Floats) -> float:
    gaps = opinions - opinions.mean()
    return bimodality(*(float((gaps**power).mean()) for power in (2, 3, 4)))


def _matched(column: str, attribute: str, run: FinishedRun) -> float:
    """Return how much larger a column of `cascades` is for posts of the second value, at equal sizes."""
    values, params = _values(run, attribute, "post"), run.config.attributes[attribute]
    if params.range is None and len(params.values or ()) != 2:
        raise ConfigError(f"{printable(attribute)}: two groups of posts are compared; give it two values, or a range")
    trees = run.once(measured_posts).cascades
    trees = trees[trees["size"] >= _COMPARED]
    values = values.iloc[trees["root"]]
    second = values > sum(params.range) / 2 if params.range else values == list(params.values or ())[1]
    return matched_difference(trees["size"].to_numpy(), trees[column].to_numpy(np.float64), second.to_numpy(np.bool_))


def _measures_of_sides(attribute: str, by: str) -> tuple[Measure, ...]:
    kinds = partial(sides, attribute=attribute)
    return (
        index(
            "follow_ei",
            partial(index_of_follows, external_internal, kinds),
            f"E-I index of follows by {by}: 1 all between sides, -1 all within; {_SIDES}",
            source=KRACKHARDT,
        ),
        index(
            "follow_assortativity",
            partial(_assortativity, attribute),
            f"assortativity of follows by {by}: 1 all within, 0 as by chance; for numbers, a correlation",
            source=NEWMAN,
        ),
        index(
            "follow_modularity",
            partial(index_of_follows, modularity, kinds),
            f"modularity of the follow network by {by}; {_SIDES}",
            source="Leicht and Newman 2008, doi:10.1103/PhysRevLett.100.118703",
        ),
        *(
            index(
                name,
                partial(index_of_rows, table, external_internal, kinds),
                f"E-I index of {table} by {by} of reader and author; {_SIDES}",
                source=KRACKHARDT,
                tables=(table,),
            )
            for name, table in (("impression_ei", "impressions"), ("engagement_ei", "engagements"))
        ),
        share(
            "cross_cutting",
            partial(index_of_rows, "impressions", _share_across, kinds),
            f"impressions of authors on another side, by {by}; {_SIDES}",
            tables=("impressions",),
        ),
        index(
            "followers_correlation",
            partial(_with_followers, attribute),
            f"rank correlation (Spearman) of {by} and followers; for numbers",
            tables=("churn",),
        ),
    )


def _measures_of_shapes_and_opinions(attribute: str, by: str) -> tuple[Measure, ...]:
    return (
        *(
            Measure(
                f"matched_{column.removeprefix('structural_')}",
                partial(_matched, column, attribute),
                f"difference of mean {column.replace('_', ' ')} at equal sizes, of cascades of at least {_COMPARED}: "
                f"posts of the second value of {by} minus the first; for numbers, above minus below the middle",
                *(unit, -inf),
                source="Juul and Ugander 2021, doi:10.1073/pnas.2100786118",
            )
            for column, unit in (("depth", "reshares"), ("breadth", "posts"), ("structural_virality", "steps"))
        ),
        Measure("opinion_mean", partial(_opinions, np.mean, attribute), f"mean of {by} {_AT_END}", "", -inf),
        Measure(
            "opinion_variance",
            partial(_opinions, np.var, attribute),
            f"variance of {by} {_AT_END}",
            "",
            source="DiMaggio, Evans and Bryson 1996, doi:10.1086/230995",
        ),
        index(
            "opinion_bimodality",
            partial(_opinions, _bimodality, attribute),
            f"bimodality of {by} {_AT_END}, (skewness² + 1) / kurtosis: 5/9 if uniform, 1 for two camps",
            low=0,
            source="Pfister et al. 2013, doi:10.3389/fpsyg.2013.00700",
        ),
    )


def measures_by_attribute(attribute: str) -> dict[str, Measure]:
    """Return all measures by an attribute, by the part of the name before ``@``."""
    by = f"`{attribute}`"
    measures = (*_measures_of_sides(attribute, by), *_measures_of_shapes_and_opinions(attribute, by))
    return {measure.name: replace(measure, name=f"{measure.name}@{attribute}") for measure in measures}
