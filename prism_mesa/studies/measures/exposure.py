"""Measures of what readers are shown, and of mixing by communities and by attributes (``measure@attribute``)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf, nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.arrays import Floats, Ints, Rows
from prism_mesa.errors import ConfigError, did_you_mean, printable
from prism_mesa.social.state.opinions import bimodality
from prism_mesa.social.state.posts import POST
from prism_mesa.studies.estimators.graphs import matched_difference
from prism_mesa.studies.measures.measure import (
    FinishedRun,
    Measure,
    attribute_values,
    communities,
    count_pairs,
    index,
    is_kind,
    is_sampled,
    joined_agents,
    main_interests,
    mean,
    measured_posts,
    post_topics,
    ratio,
    root_authors,
    share,
)
from prism_mesa.studies.measures.treatment import measures_in_rounds, measures_of_treatment

_JOST: Final = "Jost 2006, doi:10.1111/j.2006.0030-1299.14714.x"
_SHANNON: Final = "Shannon 1948, doi:10.1002/j.1538-7305.1948.tb01338.x"


def effective_numbers(readers: Rows, categories: Rows, n_categories: int) -> Floats:
    """Return the effective number of categories that each reader sees: the exponential of the entropy."""
    distinct, _, count = count_pairs(readers, categories, n_categories)
    if not len(distinct):
        return np.zeros(0)
    starts = np.flatnonzero(np.append(True, distinct[1:] != distinct[:-1]))
    total = np.add.reduceat(count, starts)
    entropy = np.log(total) - np.add.reduceat(count * np.log(count), starts) / total
    return np.asarray(np.exp(entropy))


def _effective_authors(run: FinishedRun) -> float:
    impressions = run.table("impressions")
    author = root_authors(run, impressions["root"].to_numpy())
    return mean(effective_numbers(impressions["agent"].to_numpy(), author, len(run.table("agents"))))


def _effective_topics(run: FinishedRun) -> float:
    impressions = run.table("impressions")
    codes, n = post_topics(run)
    topic = codes[impressions["post"].to_numpy()]
    has_topic = topic >= 0
    return mean(effective_numbers(impressions["agent"].to_numpy()[has_topic], topic[has_topic], max(n, 1)))


def _topic_reach(run: FinishedRun) -> float:
    impressions, agents = run.table("impressions"), run.table("agents")
    codes, _ = post_topics(run)
    topic, topics = codes[impressions["post"].to_numpy()], np.unique(codes[codes >= 0])
    has_topic = topic >= 0
    reached, _, _ = count_pairs(topic[has_topic], impressions["agent"].to_numpy()[has_topic], max(len(agents), 1))
    is_recorded = agents["recorded_impressions"].to_numpy() & joined_agents(run)
    return ratio(len(reached), len(topics) * int(is_recorded.sum()))


def _topic_entropy(run: FinishedRun) -> float:
    codes, _ = post_topics(run)
    impressions = run.table("posts")["impressions"].to_numpy() * (codes >= 0)
    shares = np.bincount(codes[impressions > 0], impressions[impressions > 0])
    shares = shares[shares > 0] / max(1, shares.sum())
    return float(-(shares * np.log2(shares)).sum()) + 0.0 if len(shares) else nan


EXPOSURE: Final = (
    Measure(
        "exposure_authors",
        _effective_authors,
        "mean effective number of authors in a reader's recorded impressions; reshares count for the root's author",
        *("authors", 1),
        source=_JOST,
        tables=("impressions",),
    ),
    Measure(
        "exposure_topics",
        _effective_topics,
        "mean effective number of topics in a reader's recorded impressions",
        *("topics", 1),
        source=_JOST,
        tables=("impressions",),
    ),
    share(
        "topic_reach",
        _topic_reach,
        "recorded agents that read about a topic, as a mean over topics",
        tables=("impressions", "churn"),
    ),
    Measure("topic_entropy", _topic_entropy, "entropy of the topics of all impressions", "bits", source=_SHANNON),
)


_NEWMAN: Final = "Newman 2003, doi:10.1103/PhysRevE.67.026126"
_KS: Final = "Krackhardt and Stern 1988, doi:10.2307/2786835"
_COMMUNITIES: Final = "communities (blocks, else main interests)"


def _mixing_shares(sources: Rows, targets: Rows) -> tuple[float, float]:
    """Return the share of pairs within a group, and the share expected by chance; NaN without pairs."""
    has_groups = (sources >= 0) & (targets >= 0)
    a, b = sources[has_groups], targets[has_groups]
    if not len(a):
        return nan, nan
    groups = int(max(a.max(), b.max())) + 1
    chance = float(np.bincount(a, minlength=groups) / len(a) @ (np.bincount(b, minlength=groups) / len(b)))
    return float((a == b).mean()), chance


def assortativity(sources: Rows, targets: Rows) -> float:
    """Return Newman's coefficient of mixing: 1 if all pairs are within a group, 0 if groups mix by chance.

    Groups are integers from 0; pairs with group -1 (none) are left out. NaN without pairs, or if all pairs are in the
    same group.
    """
    share_within, chance = _mixing_shares(sources, targets)
    return ratio(share_within - chance, 1.0 - chance)


def modularity(sources: Rows, targets: Rows) -> float:
    """Return the modularity of directed pairs: the share within groups minus the share expected by chance."""
    share_within, chance = _mixing_shares(sources, targets)
    return share_within - chance


def external_internal(sources: Rows, targets: Rows) -> float:
    """Return the E-I index: 1 if all pairs are between groups, -1 if within; pairs with group -1 are left out."""
    has_groups = (sources >= 0) & (targets >= 0)
    return ratio(float(np.sign((sources != targets)[has_groups] - 0.5).sum()), int(has_groups.sum()))


type _Statistic = Callable[[npt.NDArray[Any], npt.NDArray[Any]], float]
type _Groups = Callable[[FinishedRun], npt.NDArray[Any]]


def _follow_index(statistic: _Statistic, groups: _Groups, run: FinishedRun) -> float:
    group, edges = groups(run), run.follows()
    return statistic(group[edges["src"].to_numpy()], group[edges["dst"].to_numpy()])


def _row_index(table: str, statistic: _Statistic, groups: _Groups, run: FinishedRun) -> float:
    rows, group = run.table(table), groups(run)
    return statistic(group[rows["agent"].to_numpy()], group[root_authors(run, rows["root"].to_numpy())])


def _ei_measures(groups: _Groups, label: str, note: str = "") -> tuple[Measure, ...]:
    meaning = f"by {label}: 1 if all are between groups, -1 if all within{note}"
    follows = partial(_follow_index, external_internal, groups)
    return (
        index("follow_ei", follows, f"E-I index of follows {meaning}", source=_KS),
        *(
            index(
                f"{row}_ei",
                partial(_row_index, f"{row}s", external_internal, groups),
                f"E-I index of recorded {row}s {meaning}",
                source=_KS,
                tables=(f"{row}s",),
            )
            for row in ("impression", "engagement")
        ),
    )


def _community_groups(run: FinishedRun) -> Rows:
    return communities(run).groups


def communities_reached(run: FinishedRun, roots: Rows) -> float:
    """Return the mean share of communities that read a root or its reshares; NaN without roots or all impressions."""
    if is_sampled(run, "impressions"):
        return nan
    impressions, partition = run.table("impressions"), communities(run)
    root, community = impressions["root"].to_numpy(), partition.groups[impressions["agent"].to_numpy()]
    is_counted = np.isin(root, roots) & (community >= 0)
    reached, _, _ = count_pairs(root[is_counted], community[is_counted], max(partition.n, 1))
    return ratio(len(reached), len(roots) * partition.n)


def _cascade_communities(run: FinishedRun) -> float:
    posts = run.table("posts")
    return communities_reached(run, np.flatnonzero(is_kind(posts, POST) & (posts["impressions"].to_numpy() > 0)))


HOMOPHILY: Final = (
    index(
        "follow_assortativity",
        partial(_follow_index, assortativity, _community_groups),
        f"assortativity of follows by {_COMMUNITIES}: 1 if all are within, 0 as by chance; NaN for one community",
        source=_NEWMAN,
    ),
    index(
        "follow_interest_assortativity",
        partial(_follow_index, assortativity, lambda run: main_interests(run)[0]),
        "assortativity of follows by main interest",
        source=_NEWMAN,
    ),
    *_ei_measures(_community_groups, _COMMUNITIES),
    share(
        "cascade_communities",
        _cascade_communities,
        f"mean share of {_COMMUNITIES} in which a post or its reshares are read; needs all impressions",
        tables=("impressions",),
    ),
)


_MIN_SIZE: Final = 10  # minimum size of cascades that are compared at equal sizes: smaller cascades hardly differ
_SIDES: Final = "numbers are split at the middle of the range"
_AT_END: Final = "over agents on the platform at the end"


def measure_by_attribute(name: str) -> Measure:
    """Return the measure with a name such as ``follow_ei@leaning``; raise ConfigError if it does not exist."""
    base, _, attribute = name.partition("@")
    measures = measures_by_attribute(attribute, base)
    if base not in measures:
        suggestion = did_you_mean(base, measures) or f" Measures by an attribute: {', '.join(measures)}."
        raise ConfigError(f"measures: {printable(name)}: no such measure.{suggestion}")
    return measures[base]


def sides(run: FinishedRun, attribute: str) -> Ints:
    """Return the side of each agent: the index of its value, or for numbers 1 above the middle of the range, else 0."""
    values, ends = attribute_values(run, attribute), run.config.attributes[attribute].range
    if ends is not None:
        return np.asarray(values.to_numpy(np.float64) > sum(ends) / 2, np.int64)
    return np.asarray(pd.factorize(values, sort=True)[0], np.int64)


def _assortativity(attribute: str, run: FinishedRun) -> float:
    params = run.config.attributes.get(attribute)
    if params is None or params.range is None:
        return _follow_index(assortativity, partial(sides, attribute=attribute), run)
    return _follow_index(_correlation, lambda run: attribute_values(run, attribute).to_numpy(np.float64), run)


def _share_across(sources: Rows, targets: Rows) -> float:
    return ratio(int((sources != targets).sum()), len(sources))


def _correlation_with_followers(attribute: str, run: FinishedRun) -> float:
    has_joined, columns = joined_agents(run), (attribute_values(run, attribute), run.table("agents")["followers"])
    first, second = (column[has_joined].rank().to_numpy() for column in columns)
    return _correlation(first, second)


def _correlation(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> float:
    """Return Pearson's correlation; NaN if `first` or `second` does not vary."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return nan
    return float(np.corrcoef(first, second)[0, 1])


def _opinion_statistic(statistic: Callable[[Floats], float], attribute: str, run: FinishedRun) -> float:
    """Return a statistic of a numeric attribute over the agents on the platform at the end."""
    values = attribute_values(run, attribute)
    if run.config.attributes[attribute].range is None:
        raise ConfigError(f"{printable(attribute)}: give it a range: opinions are numbers")
    opinions = np.asarray(values[run.table("agents")["present"]], np.float64)
    return float(statistic(opinions)) if len(opinions) else nan


def _bimodality(opinions: Floats) -> float:
    deviations = opinions - opinions.mean()
    return bimodality(*(float((deviations**power).mean()) for power in (2, 3, 4)))


def _matched_difference(column: str, attribute: str, run: FinishedRun) -> float:
    """Return the mean difference in a column of `cascades` at equal sizes: second minus first value of an attribute."""
    values, params = attribute_values(run, attribute, "post"), run.config.attributes[attribute]
    if params.range is None and len(params.values or ()) != 2:
        raise ConfigError(f"{printable(attribute)}: give it two values or a range: two groups of posts are compared")
    trees = run.compute(measured_posts).cascades
    trees = trees[trees["size"] >= _MIN_SIZE]
    values = values.iloc[trees["root"]]
    second = values > sum(params.range) / 2 if params.range else values == list(params.values or ())[1]
    return matched_difference(trees["size"].to_numpy(), trees[column].to_numpy(np.float64), second.to_numpy(np.bool_))


def _side_measures(attribute: str, label: str) -> tuple[Measure, ...]:
    groups = partial(sides, attribute=attribute)
    return (
        *_ei_measures(groups, label, f"; {_SIDES}"),
        index(
            "follow_assortativity",
            partial(_assortativity, attribute),
            f"assortativity of follows by {label}: 1 if all are within groups, 0 by chance; for numbers, a correlation",
            source=_NEWMAN,
        ),
        index(
            "follow_modularity",
            partial(_follow_index, modularity, groups),
            f"modularity of the follow network by {label}; {_SIDES}",
            source="Leicht and Newman 2008, doi:10.1103/PhysRevLett.100.118703",
        ),
        share(
            "cross_cutting",
            partial(_row_index, "impressions", _share_across, groups),
            f"impressions of posts whose author differs from the reader in {label}; {_SIDES}",
            tables=("impressions",),
        ),
        index(
            "followers_correlation",
            partial(_correlation_with_followers, attribute),
            f"rank correlation (Spearman) of {label}, a number, and followers",
            tables=("churn",),
        ),
    )


def _shape_and_opinion_measures(attribute: str, label: str) -> tuple[Measure, ...]:
    return (
        *(
            Measure(
                f"matched_{column.removeprefix('structural_')}",
                partial(_matched_difference, column, attribute),
                f"difference in mean {column.replace('_', ' ')} at equal sizes, second minus first value of {label} "
                f"(numbers: above minus below the middle of the range); cascades of at least {_MIN_SIZE} posts",
                *(unit, -inf),
                source="Juul and Ugander 2021, doi:10.1073/pnas.2100786118",
            )
            for column, unit in (("depth", "reshares"), ("breadth", "posts"), ("structural_virality", "steps"))
        ),
        Measure(
            "opinion_mean", partial(_opinion_statistic, np.mean, attribute), f"mean of {label} {_AT_END}", "", -inf
        ),
        Measure(
            "opinion_variance",
            partial(_opinion_statistic, np.var, attribute),
            f"variance of {label} {_AT_END}",
            "",
            source="DiMaggio, Evans and Bryson 1996, doi:10.1086/230995",
        ),
        index(
            "opinion_bimodality",
            partial(_opinion_statistic, _bimodality, attribute),
            f"bimodality of {label} {_AT_END}, (skewness² + 1) / kurtosis: 5/9 if uniform, 1 for two camps",
            low=0,
            source="Pfister et al. 2013, doi:10.3389/fpsyg.2013.00700",
        ),
    )


def measures_by_attribute(attribute: str, base: str = "exposure_ATTRIBUTE") -> dict[str, Measure]:
    """Return all measures by an attribute, of an intervention, or in rounds; keys are the names before ``@``.

    `base` is such a name; ``exposure_misleading`` measures exposure to posts that are misleading.
    """
    label = f"`{attribute}`"
    measures = measures_in_rounds(attribute, base) or (
        *_side_measures(attribute, label),
        *_shape_and_opinion_measures(attribute, label),
        *measures_of_treatment(attribute, base),
    )
    return {measure.name: replace(measure, name=f"{measure.name}@{attribute}") for measure in measures}
