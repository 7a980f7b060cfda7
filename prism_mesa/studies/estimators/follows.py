"""Who is followed by whom: degrees at both ends of follows, the friendship paradox, and follows that are returned."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.network import mutual_pairs
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.streams import generator

_PAIRS: Final = 100_000  # pairs of followees that clustering is estimated from: to a standard error of .0016 at most

type Ints = npt.NDArray[np.integer[Any]]


def degree_assortativity(src: Ints, dst: Ints, n: int) -> float:
    """Return the correlation over follows of the followers of who is followed with the followees of who follows.

    It is one of the four degree correlations of a directed network (Foster et al. 2010, doi:10.1073/pnas.0912671107):
    in networkx the one that is meant if nothing is said, with edges from `src` to `dst`. NaN where degrees do not vary.

    Args:
        src: Who is followed, rows from 0.
        dst: Who follows.
        n: How many agents there are.
    """
    followers, followees = _degrees(src, dst, n)
    edges = max(1, len(src))
    mean_followers, mean_followees = followers @ followers / edges, followees @ followees / edges
    one, other = followers - mean_followers, followees - mean_followees
    together = float(np.bincount(dst, one[src], n) @ other)  # the sum over follows
    norm = float(np.sqrt((followers @ one**2) * (followees @ other**2)))
    return together / norm if norm > 0 else float("nan")


def _degrees(src: Ints, dst: Ints, n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return followers and followees of each."""
    return np.bincount(src, minlength=n).astype(np.float64), np.bincount(dst, minlength=n).astype(np.float64)


def friendship_paradox(src: Ints, dst: Ints, n: int) -> float:
    """Return the share of those who follow anybody whose followees have on average more followers than they have.

    Feld 1991, doi:10.1086/229693; on Twitter Hodas, Kooti and Lerman 2013 (ICWSM). NaN where nobody follows.

    Args:
        src: Who is followed, rows from 0.
        dst: Who follows.
        n: How many agents there are.
    """
    followers, followees = _degrees(src, dst, n)
    some = followees > 0
    if not some.any():
        return float("nan")
    theirs = np.bincount(dst, followers[src], n)[some] / followees[some]
    return float((theirs > followers[some]).mean())


def mutual_follows(network: FollowNetwork) -> tuple[float, float]:
    """Return returned follows as a share of all follows, and of the most that could be returned; NaN without any.

    The most is the sum over agents of the smaller of followers and followees.
    """
    ends = np.empty((2, network.n_edges // 2), np.int32)
    returned = 2.0 * mutual_pairs(network.indptr, network.indices, ends[0], ends[1])
    possible = float(np.minimum(network.n_followers, network.n_followees).sum())
    return returned / (network.n_edges or float("nan")), returned / (possible or float("nan"))


def degree_correlation(network: FollowNetwork) -> float:
    """Return the correlation of the logarithms of followers and followees of agents who have both; NaN if undefined."""
    degrees = np.stack([network.n_followers, network.n_followees]).astype(np.float64)
    logs = np.log(degrees[:, (degrees > 0).all(axis=0)])
    return float(np.corrcoef(logs)[0, 1]) if logs.shape[1] > 1 and np.ptp(logs, axis=1).all() else float("nan")


def clustering(network: FollowNetwork) -> float:
    """Return in how many pairs of an agent's followees one follows the other, as a mean over agents who have a pair.

    Of a sample of pairs, the same for the same network; NaN without any.
    """
    some = np.flatnonzero(network.n_followees > 1)
    if not len(some):
        return float("nan")
    draws, n = generator("pairs of followees"), network.n_followees
    agent = some[draws.integers(len(some), size=_PAIRS)]
    first, second = draws.integers(n[agent]), draws.integers(n[agent] - 1)
    begin = network.indptr[agent]
    a, b = network.indices[begin + first], network.indices[begin + second + (second >= first)]
    return float((network.holds(a, b) | network.holds(b, a)).mean())
