"""Measures of what readers are shown, and of follows, impressions and engagements between communities."""

from collections.abc import Callable
from math import nan
from typing import Final

import numpy as np

from prism_mesa.domain import POST_KINDS
from prism_mesa.social.state.posts import POST
from prism_mesa.studies.measures.measure import (
    FinishedRun,
    Ints,
    Measure,
    category_codes,
    communities,
    count_pairs,
    have_joined,
    index_measure,
    is_sampled,
    main_interests,
    post_topics,
    ratio,
    share_measure,
    writers,
)

_JOST: Final = "Jost 2006, doi:10.1111/j.2006.0030-1299.14714.x"
_SHANNON: Final = "Shannon 1948, doi:10.1002/j.1538-7305.1948.tb01338.x"
_OF_RECORDED: Final = "agents whose impressions are recorded"


def effective_numbers(first: Ints, second: Ints, n_second: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the effective number of the second (below `n_second`) for each first: the exponential of the entropy."""
    whose, _, count = count_pairs(first, second, n_second)
    if not len(whose):
        return np.zeros(0)
    begins = np.flatnonzero(np.append(True, whose[1:] != whose[:-1]))
    total = np.add.reduceat(count, begins)
    entropy = np.log(total) - np.add.reduceat(count * np.log(count), begins) / total
    return np.exp(entropy)


def _mean(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    return ratio(float(values.sum()), len(values))


def _authors(run: FinishedRun) -> float:
    seen = run.table("impressions")
    author = writers(run, seen["root"].to_numpy())
    return _mean(effective_numbers(seen["agent"].to_numpy(), author, len(run.table("agents"))))


def _topics(run: FinishedRun) -> float:
    seen = run.table("impressions")
    codes, n = post_topics(run)
    topic = codes[seen["post"].to_numpy()]
    some = topic >= 0
    return _mean(effective_numbers(seen["agent"].to_numpy()[some], topic[some], max(n, 1)))


def _reach(run: FinishedRun) -> float:
    seen, agents = run.table("impressions"), run.table("agents")
    codes, _ = post_topics(run)
    topic, there = codes[seen["post"].to_numpy()], np.unique(codes[codes >= 0])
    some = topic >= 0
    reached, _, _ = count_pairs(topic[some], seen["agent"].to_numpy()[some], max(len(agents), 1))
    recorded = agents["recorded_impressions"].to_numpy() & have_joined(run)
    return ratio(len(reached), len(there) * int(recorded.sum()))


def _entropy(run: FinishedRun) -> float:
    codes, _ = post_topics(run)
    read = run.table("posts")["impressions"].to_numpy() * (codes >= 0)
    shares = np.bincount(codes[read > 0], read[read > 0])
    shares = shares[shares > 0] / max(1, shares.sum())
    return float(-(shares * np.log2(shares)).sum()) + 0.0 if len(shares) else float("nan")


EXPOSURE: Final = (
    Measure(
        "exposure_authors",
        _authors,
        "effective number of authors of what a reader reads, of a reshare who wrote what it passes on, as a mean over "
        f"readers among {_OF_RECORDED}; NaN without any",
        "authors",
        1,
        source=_JOST,
        tables=("impressions",),
    ),
    Measure(
        "exposure_topics",
        _topics,
        f"effective number of topics of what it reads, as a mean over readers among {_OF_RECORDED}; NaN without any",
        "topics",
        1,
        source=_JOST,
        tables=("impressions",),
    ),
    share_measure(
        "topic_reach",
        _reach,
        f"{_OF_RECORDED} that read anything of a topic, as a mean over topics of which there are posts",
        tables=("impressions", "churn"),
    ),
    Measure(
        "topic_entropy",
        _entropy,
        "entropy of all impressions over the topics of what was read; NaN without any impression",
        "bits",
        source=_SHANNON,
    ),
)


NEWMAN: Final = "Newman 2003, doi:10.1103/PhysRevE.67.026126"
KRACKHARDT: Final = "Krackhardt and Stern 1988, doi:10.2307/2786835"
_COMMUNITIES: Final = "communities (blocks of `stochastic_block`, else agents with the same main interest)"


def assortativity(one: Ints, other: Ints) -> float:
    """Return Newman's coefficient of a mixing matrix: 1 if all pairs are of a kind, 0 if kinds mix by chance.

    Args:
        one: The kind at one end of each pair, whole numbers from 0, -1 for none.
        other: The kind at the other end.

    Returns:
        The coefficient, of pairs whose kinds are known; NaN without any, or where all are of one kind.
    """
    known = (one >= 0) & (other >= 0)
    a, b = one[known], other[known]
    if not len(a):
        return nan
    kinds = int(max(a.max(), b.max())) + 1
    chance = float(np.bincount(a, minlength=kinds) / len(a) @ (np.bincount(b, minlength=kinds) / len(b)))
    return ratio(float((a == b).mean()) - chance, 1.0 - chance)


def external_internal(one: Ints, other: Ints) -> float:
    """Return the E-I index of pairs: 1 if all are of two kinds, -1 if all are of one; NaN without any.

    Args:
        one: The kind at one end of each pair, -1 for none; these are left out.
        other: The kind at the other end.
    """
    known = (one >= 0) & (other >= 0)
    return ratio(float(np.sign((one != other)[known] - 0.5).sum()), int(known.sum()))


def _follows(
    index: Callable[[Ints, Ints], float], kinds: Callable[[FinishedRun], Ints]
) -> Callable[[FinishedRun], float]:
    def value(run: FinishedRun) -> float:
        kind, edges = kinds(run), run.follows()
        return index(kind[edges["src"].to_numpy()], kind[edges["dst"].to_numpy()])

    return value


def _by_community(run: FinishedRun) -> Ints:
    return communities(run).of


def _ei_of(table: str) -> Callable[[FinishedRun], float]:
    """Return what takes the E-I index of rows of a table: the agent, and who wrote what it read or engaged with."""

    def value(run: FinishedRun) -> float:
        rows, community = run.table(table), communities(run).of
        return external_internal(community[rows["agent"].to_numpy()], community[writers(run, rows["root"].to_numpy())])

    return value


def communities_reached(run: FinishedRun, roots: Ints) -> float:
    """Return the share of communities in which anybody read a post, as a mean over some; NaN without any.

    Args:
        run: A run that records all impressions.
        roots: The posts, each its own root.
    """
    seen, known = run.table("impressions"), communities(run)
    root, community = seen["root"].to_numpy(), known.of[seen["agent"].to_numpy()]
    asked = np.zeros(len(run.table("posts")), np.bool_)
    asked[roots] = True
    some = asked[root] & (community >= 0)
    reached, _, _ = count_pairs(root[some], community[some], max(known.n, 1))
    return ratio(len(reached), len(roots) * known.n)


def _spread(run: FinishedRun) -> float:
    if is_sampled(run, "impressions"):
        return nan
    posts = run.table("posts")
    codes, kinds = category_codes(posts["kind"])
    own = codes == (kinds.index(POST_KINDS[POST]) if POST_KINDS[POST] in kinds else len(kinds))
    return communities_reached(run, np.flatnonzero(own & (posts["impressions"].to_numpy() > 0)))


HOMOPHILY: Final = (
    index_measure(
        "follow_assortativity",
        _follows(assortativity, _by_community),
        f"assortativity of follows by {_COMMUNITIES}: 1 all within, 0 as by chance; NaN if there is one community",
        source=NEWMAN,
    ),
    index_measure(
        "follow_interest_assortativity",
        _follows(assortativity, lambda run: main_interests(run)[0]),
        "the same by main interest in every network",
        source=NEWMAN,
    ),
    index_measure(
        "follow_ei",
        _follows(external_internal, _by_community),
        f"E-I index of follows: 1 all between {_COMMUNITIES}, -1 all within",
        source=KRACKHARDT,
    ),
    index_measure(
        "impression_ei",
        _ei_of("impressions"),
        f"E-I index of impressions by {_COMMUNITIES} of reader and writer; of agents whose impressions are recorded",
        source=KRACKHARDT,
        tables=("impressions",),
    ),
    index_measure(
        "engagement_ei",
        _ei_of("engagements"),
        "the same of likes, replies and reshares; of agents whose engagements are recorded",
        source=KRACKHARDT,
        tables=("engagements",),
    ),
    share_measure(
        "cascade_communities",
        _spread,
        f"{_COMMUNITIES} in which anybody read a post or a reshare of it, as a mean over posts that were read; NaN "
        "where not all impressions are recorded",
        tables=("impressions",),
    ),
)
