"""Measures of what readers are shown, and of mixing between communities and by attributes (``measure@attribute``)."""

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
from prism_mesa.social.state.posts import POST
from prism_mesa.studies.estimators.graphs import matched_difference
from prism_mesa.studies.measures.measure import (
    FinishedRun,
    Ints,
    Measure,
    communities,
    count_pairs,
    have_joined,
    index,
    is_kind,
    is_sampled,
    main_interests,
    mean,
    measured_posts,
    post_topics,
    ratio,
    share,
    writers,
)

_JOST: Final = "Jost 2006, doi:10.1111/j.2006.0030-1299.14714.x"
_SHANNON: Final = "Shannon 1948, doi:10.1002/j.1538-7305.1948.tb01338.x"
_READERS: Final = "readers whose impressions are recorded"


def effective_numbers(first: Ints, second: Ints, n_second: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return for each first number the effective number of second ones: the exponential of the entropy."""
    firsts, _, count = count_pairs(first, second, n_second)
    if not len(firsts):
        return np.zeros(0)
    begins = np.flatnonzero(np.append(True, firsts[1:] != firsts[:-1]))
    total = np.add.reduceat(count, begins)
    entropy = np.log(total) - np.add.reduceat(count * np.log(count), begins) / total
    return np.exp(entropy)


def _authors(run: FinishedRun) -> float:
    seen = run.table("impressions")
    author = writers(run, seen["root"].to_numpy())
    return mean(effective_numbers(seen["agent"].to_numpy(), author, len(run.table("agents"))))


def _topics(run: FinishedRun) -> float:
    seen = run.table("impressions")
    codes, n = post_topics(run)
    topic = codes[seen["post"].to_numpy()]
    known = topic >= 0
    return mean(effective_numbers(seen["agent"].to_numpy()[known], topic[known], max(n, 1)))


def _reach(run: FinishedRun) -> float:
    seen, agents = run.table("impressions"), run.table("agents")
    codes, _ = post_topics(run)
    topic, topics = codes[seen["post"].to_numpy()], np.unique(codes[codes >= 0])
    known = topic >= 0
    reached, _, _ = count_pairs(topic[known], seen["agent"].to_numpy()[known], max(len(agents), 1))
    recorded = agents["recorded_impressions"].to_numpy() & have_joined(run)
    return ratio(len(reached), len(topics) * int(recorded.sum()))


def _entropy(run: FinishedRun) -> float:
    codes, _ = post_topics(run)
    read = run.table("posts")["impressions"].to_numpy() * (codes >= 0)
    shares = np.bincount(codes[read > 0], read[read > 0])
    shares = shares[shares > 0] / max(1, shares.sum())
    return float(-(shares * np.log2(shares)).sum()) + 0.0 if len(shares) else nan


EXPOSURE: Final = (
    Measure(
        "exposure_authors",
        _authors,
        f"mean effective number of authors that {_READERS} read; the author of a reshare is that of its root",
        *("authors", 1),
        source=_JOST,
        tables=("impressions",),
    ),
    Measure(
        "exposure_topics",
        _topics,
        "mean effective number of topics that they read",
        *("topics", 1),
        source=_JOST,
        tables=("impressions",),
    ),
    share(
        "topic_reach",
        _reach,
        "recorded agents that read about a topic, as a mean over topics",
        tables=("impressions", "churn"),
    ),
    Measure("topic_entropy", _entropy, "entropy of all impressions over topics", "bits", source=_SHANNON),
)


NEWMAN: Final = "Newman 2003, doi:10.1103/PhysRevE.67.026126"
KRACKHARDT: Final = "Krackhardt and Stern 1988, doi:10.2307/2786835"
_COMMUNITIES: Final = "communities (blocks, else main interests)"


def assortativity(sources: Ints, targets: Ints) -> float:
    """Return Newman's coefficient of mixing: 1 if all pairs are within a kind, 0 if kinds mix by chance.

    Kinds of both ends are whole numbers from 0, -1 for none. NaN without known pairs, or if all are of one kind.
    """
    known = (sources >= 0) & (targets >= 0)
    a, b = sources[known], targets[known]
    if not len(a):
        return nan
    kinds = int(max(a.max(), b.max())) + 1
    chance = float(np.bincount(a, minlength=kinds) / len(a) @ (np.bincount(b, minlength=kinds) / len(b)))
    return ratio(float((a == b).mean()) - chance, 1.0 - chance)


def external_internal(sources: Ints, targets: Ints) -> float:
    """Return the E-I index of pairs, without those of kind -1: 1 if all are between kinds, -1 if all are within one."""
    known = (sources >= 0) & (targets >= 0)
    return ratio(float(np.sign((sources != targets)[known] - 0.5).sum()), int(known.sum()))


type _Index = Callable[[Ints, Ints], float]
type _Kinds = Callable[[FinishedRun], Ints]


def index_of_follows(statistic: _Index, kinds: _Kinds, run: FinishedRun) -> float:
    """Return an index of the follows of a run, by the kinds of both agents."""
    kind, edges = kinds(run), run.follows()
    return statistic(kind[edges["src"].to_numpy()], kind[edges["dst"].to_numpy()])


def index_of_rows(table: str, statistic: _Index, kinds: _Kinds, run: FinishedRun) -> float:
    """Return an index of the rows of a table, by the kinds of the agent and of the root's writer."""
    rows, kind = run.table(table), kinds(run)
    return statistic(kind[rows["agent"].to_numpy()], kind[writers(run, rows["root"].to_numpy())])


def _by_community(run: FinishedRun) -> Ints:
    return communities(run).of


def communities_reached(run: FinishedRun, roots: Ints) -> float:
    """Return the mean share of communities in which anybody read a root or a reshare of it; NaN without any."""
    seen, known = run.table("impressions"), communities(run)
    root, community = seen["root"].to_numpy(), known.of[seen["agent"].to_numpy()]
    counted = np.isin(root, roots) & (community >= 0)
    reached, _, _ = count_pairs(root[counted], community[counted], max(known.n, 1))
    return ratio(len(reached), len(roots) * known.n)


def _spread(run: FinishedRun) -> float:
    if is_sampled(run, "impressions"):
        return nan
    posts = run.table("posts")
    return communities_reached(run, np.flatnonzero(is_kind(posts, POST) & (posts["impressions"].to_numpy() > 0)))


HOMOPHILY: Final = (
    index(
        "follow_assortativity",
        partial(index_of_follows, assortativity, _by_community),
        f"assortativity of follows by {_COMMUNITIES}: 1 all within, 0 as by chance; NaN for one community",
        source=NEWMAN,
    ),
    index(
        "follow_interest_assortativity",
        partial(index_of_follows, assortativity, lambda run: main_interests(run)[0]),
        "the same by main interest, in every network",
        source=NEWMAN,
    ),
    index(
        "follow_ei",
        partial(index_of_follows, external_internal, _by_community),
        f"E-I index of follows: 1 all between {_COMMUNITIES}, -1 all within",
        source=KRACKHARDT,
    ),
    *(
        index(
            name,
            partial(index_of_rows, table, external_internal, _by_community),
            f"E-I index of recorded {table}, by {_COMMUNITIES} of reader and author",
            source=KRACKHARDT,
            tables=(table,),
        )
        for name, table in (("impression_ei", "impressions"), ("engagement_ei", "engagements"))
    ),
    share(
        "cascade_communities",
        _spread,
        f"mean share of {_COMMUNITIES} in which anybody read a post, or a reshare of it; needs all impressions",
        tables=("impressions",),
    ),
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
