"""Measures of what readers are shown: how many authors and topics, and whom each topic reaches."""

from typing import Final

import numpy as np

from prism_mesa.studies.measures.columns import Ints, count_pairs, have_joined, topics_of, writers
from prism_mesa.studies.measures.measure import FinishedRun, Measure, ratio

_JOST: Final = "Jost 2006, doi:10.1111/j.2006.0030-1299.14714.x"
_SHANNON: Final = "Shannon 1948, doi:10.1002/j.1538-7305.1948.tb01338.x"
_OF_RECORDED: Final = "agents whose impressions are recorded"


def effective_numbers(first: Ints, second: Ints, n_second: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the effective number of the second for each different first: the exponential of Shannon's entropy.

    Args:
        first: Whose it is, whole numbers from 0.
        second: What it is, whole numbers from 0.
        n_second: Above all of them.
    """
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
    codes, n = topics_of(run)
    topic = codes[seen["post"].to_numpy()]
    some = topic >= 0
    return _mean(effective_numbers(seen["agent"].to_numpy()[some], topic[some], max(n, 1)))


def _reach(run: FinishedRun) -> float:
    seen, agents = run.table("impressions"), run.table("agents")
    codes, _ = topics_of(run)
    topic, there = codes[seen["post"].to_numpy()], np.unique(codes[codes >= 0])
    some = topic >= 0
    reached, _, _ = count_pairs(topic[some], seen["agent"].to_numpy()[some], max(len(agents), 1))
    recorded = agents["recorded_impressions"].to_numpy() & have_joined(run)
    return ratio(len(reached), len(there) * int(recorded.sum()))


def _entropy(run: FinishedRun) -> float:
    codes, _ = topics_of(run)
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
    Measure(
        "topic_reach",
        _reach,
        f"{_OF_RECORDED} that read anything of a topic, as a mean over topics of which there are posts",
        "share",
        0,
        1,
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
