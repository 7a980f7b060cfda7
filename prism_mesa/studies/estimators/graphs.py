"""The shapes of reshare trees and of the network of follows."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.arrays import Floats, Mask, Rows
from prism_mesa.kernels.network import mutual_pairs
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.streams import make_generator

SIZE_CLASSES: Final = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Lower bounds of the size classes in `shapes_by_size`."""
_CLASSES: Final = np.unique(np.rint(1.1 ** np.arange(200)).astype(np.int64))
"""Lower bounds of classes of similar sizes: each size up to 13 is a class, then steps are 10 %."""
_N_PAIRS: Final = 100_000  # sampled pairs of followees; the standard error of clustering is at most .0016


def hops(parent: Rows, is_reshare: Mask) -> Rows:
    """Return the number of reshares between each node and its root; `is_reshare` marks nodes that reshare a parent."""
    hop = is_reshare.astype(np.int32)
    nodes = np.flatnonzero(is_reshare)
    parents = parent[nodes]
    while len(nodes):  # each pass goes one node up; nodes that have reached a root drop out
        has_grandparent = is_reshare[parents]
        nodes, parents = nodes[has_grandparent], parents[has_grandparent]
        hop[nodes] += 1
        parents = parent[parents]
    return hop


def reproduction(hop: npt.ArrayLike) -> Floats:
    """Return the reproduction numbers: children per node at hop 0, 1, 2, ..., up to the last hop.

    >>> reproduction([0, 0, 1, 1, 1, 2]).round(2).tolist()
    [1.5, 0.33, 0.0]
    """
    nodes = np.bincount(np.asarray(hop, np.int64))
    return np.append(nodes[1:], 0) / np.maximum(nodes, 1)


def matched_difference(size: Rows, value: Floats, is_second: Mask) -> float:
    """Return the mean of the second group of cascades minus the mean of the first, at equal sizes.

    The weight of a class of sizes is the number of cascades in the smaller group (Juul and Ugander 2021,
    doi:10.1073/pnas.2100786118). NaN if no class has cascades of both groups.
    """
    size_class = np.searchsorted(_CLASSES, size, side="right")
    counts, sums = (
        [np.bincount(size_class[group], weight[group]) for group in (~is_second, is_second)]
        for weight in (np.ones(len(size)), value)
    )
    n = min(map(len, counts))
    first, second = (count[:n] for count in counts)
    weights = np.minimum(first, second)
    differences = sums[1][:n] / np.maximum(second, 1) - sums[0][:n] / np.maximum(first, 1)
    return float(weights @ differences / weights.sum()) if weights.any() else float("nan")


def shapes_by_size(cascades: pd.DataFrame) -> pd.DataFrame:
    """Return the mean shapes of cascades of similar sizes: columns `from_size`, `n`, and the means of four columns.

    The columns of `cascades` are `size`, `depth`, `breadth` and `structural_virality`. Depth and breadth depend mainly
    on size (Juul and Ugander 2021, doi:10.1073/pnas.2100786118).
    """
    size = cascades["size"].to_numpy()
    class_index = np.searchsorted(SIZE_CLASSES, size, side="right") - 1
    is_in_class = class_index >= 0
    columns = ["size", "depth", "breadth", "structural_virality"]
    class_groups = cascades.loc[is_in_class, columns].groupby(np.asarray(SIZE_CLASSES)[class_index[is_in_class]])
    means = class_groups.mean()
    means.insert(0, "n", class_groups.size())
    return means.rename_axis("from_size").reset_index()


def degree_assortativity(src: Rows, dst: Rows, n: int) -> float:
    """Return the correlation over follows of the followee's followers with the follower's followees.

    This is networkx's default degree correlation of a directed network (Foster et al. 2010,
    doi:10.1073/pnas.0912671107), with edges from `src` (followee) to `dst` (follower). NaN if degrees do not vary.
    """
    followers, followees = _degrees(src, dst, n)
    edges = max(1, len(src))
    deviation = followers - followers @ followers / edges
    followee_deviation = followees - followees @ followees / edges
    covariance = float(np.bincount(dst, deviation[src], n) @ followee_deviation)  # the sum over follows
    norm = float(np.sqrt((followers @ deviation**2) * (followees @ followee_deviation**2)))
    return covariance / norm if norm > 0 else float("nan")


def _degrees(src: Rows, dst: Rows, n: int) -> tuple[Floats, Floats]:
    """Return the numbers of followers and of followees of each agent."""
    return np.bincount(src, minlength=n).astype(np.float64), np.bincount(dst, minlength=n).astype(np.float64)


def friendship_paradox(src: Rows, dst: Rows, n: int) -> float:
    """Return the share of agents whose followees have, on average, more followers than the agent; NaN without follows.

    Feld 1991, doi:10.1086/229693; on Twitter Hodas, Kooti and Lerman 2013 (ICWSM).
    """
    followers, followees = _degrees(src, dst, n)
    follows = followees > 0
    if not follows.any():
        return float("nan")
    followees_followers = np.bincount(dst, followers[src], n)[follows] / followees[follows]
    return float((followees_followers > followers[follows]).mean())


def mutual_follows(network: FollowNetwork) -> tuple[float, float]:
    """Return mutual follows as a share of all follows, and of the possible number; NaN without follows.

    The possible number is the sum over agents of their followers or their followees, whichever are fewer.
    """
    ends = np.empty((2, network.n_edges // 2), np.int32)
    n_mutual = 2.0 * mutual_pairs(network.indptr, network.indices, ends[0], ends[1])
    possible = float(np.minimum(network.n_followers, network.n_followees).sum())
    return n_mutual / (network.n_edges or float("nan")), n_mutual / (possible or float("nan"))


def degree_correlation(network: FollowNetwork) -> float:
    """Return the correlation of log followers and log followees, over agents with both; NaN if undefined."""
    degrees = np.stack([network.n_followers, network.n_followees]).astype(np.float64)
    logs = np.log(degrees[:, (degrees > 0).all(axis=0)])
    return float(np.corrcoef(logs)[0, 1]) if logs.shape[1] > 1 and np.ptp(logs, axis=1).all() else float("nan")


def clustering(network: FollowNetwork) -> float:
    """Return the mean, over agents, of the share of pairs of followees with a follow between them.

    The mean is estimated from a sample of pairs, which depends only on the network. NaN if no agent has two followees.
    """
    agents = np.flatnonzero(network.n_followees > 1)
    if not len(agents):
        return float("nan")
    draws, n = make_generator("pairs of followees"), network.n_followees
    agent = agents[draws.integers(len(agents), size=_N_PAIRS)]
    first, second = draws.integers(n[agent]), draws.integers(n[agent] - 1)
    starts = network.indptr[agent]
    a, b = network.indices[starts + first], network.indices[starts + second + (second >= first)]
    return float((network.contains(a, b) | network.contains(b, a)).mean())
