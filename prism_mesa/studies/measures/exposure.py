"""Measures of what readers are shown, and of follows, impressions and engagements between communities."""

from collections.abc import Callable
from functools import partial
from math import nan
from typing import Final

import numpy as np

from prism_mesa.social.state.posts import POST
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
    post_topics,
    ratio,
    share,
    writers,
)

_JOST: Final = "Jost 2006, doi:10.1111/j.2006.0030-1299.14714.x"
_SHANNON: Final = "Shannon 1948, doi:10.1002/j.1538-7305.1948.tb01338.x"
_READERS: Final = "readers whose impressions are recorded"


def effective_numbers(first: Ints, second: Ints, n_second: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the effective number of the second (below `n_second`) for each first: the exponential of the entropy."""
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
