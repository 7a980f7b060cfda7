"""Measures of who has to do with whom: follows, impressions and engagements within and between communities."""

from collections.abc import Callable
from math import nan
from typing import Final

import numpy as np

from prism_mesa.domain import POST_KINDS
from prism_mesa.social.state.posts import POST
from prism_mesa.studies.measures.columns import (
    Ints,
    codes_of,
    communities,
    count_pairs,
    is_sampled,
    main_interests,
    writers,
)
from prism_mesa.studies.measures.measure import FinishedRun, Measure, ratio

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


def _by_interest(run: FinishedRun) -> Ints:
    return main_interests(run)[0]


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
    codes, kinds = codes_of(posts["kind"])
    own = codes == (kinds.index(POST_KINDS[POST]) if POST_KINDS[POST] in kinds else len(kinds))
    return communities_reached(run, np.flatnonzero(own & (posts["impressions"].to_numpy() > 0)))


HOMOPHILY: Final = (
    Measure(
        "follow_assortativity",
        _follows(assortativity, _by_community),
        f"assortativity of follows by {_COMMUNITIES}: 1 all within, 0 as by chance; NaN if there is one community",
        "",
        -1,
        1,
        NEWMAN,
    ),
    Measure(
        "follow_interest_assortativity",
        _follows(assortativity, _by_interest),
        "the same by main interest in every network",
        "",
        -1,
        1,
        NEWMAN,
    ),
    Measure(
        "follow_ei",
        _follows(external_internal, _by_community),
        f"E-I index of follows: 1 all between {_COMMUNITIES}, -1 all within",
        "",
        -1,
        1,
        KRACKHARDT,
    ),
    Measure(
        "impression_ei",
        _ei_of("impressions"),
        f"E-I index of impressions by {_COMMUNITIES} of reader and writer; of agents whose impressions are recorded",
        "",
        -1,
        1,
        KRACKHARDT,
        ("impressions",),
    ),
    Measure(
        "engagement_ei",
        _ei_of("engagements"),
        "the same of likes, replies and reshares; of agents whose engagements are recorded",
        "",
        -1,
        1,
        KRACKHARDT,
        ("engagements",),
    ),
    Measure(
        "cascade_communities",
        _spread,
        f"{_COMMUNITIES} in which anybody read a post or a reshare of it, as a mean over posts that were read; NaN "
        "where not all impressions are recorded",
        "share",
        0,
        1,
        tables=("impressions",),
    ),
)
