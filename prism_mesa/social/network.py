"""The follow network: who sees whose posts, as compressed sparse rows. It is never changed during a round."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lgamma
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.errors import ConfigError, DataError
from prism_mesa.social.files import read_table
from prism_mesa.social.params import NetworkParams
from prism_mesa.social.seen import ragged
from prism_mesa.streams import Streams

type Ints = npt.NDArray[np.integer[Any]]

_ATTEMPTS = 8


@dataclass(frozen=True)
class FollowNetwork:
    """Who follows whom among agents 0 .. n-1.

    Attributes:
        indptr: Shape (n + 1,): agent i follows ``indices[indptr[i]:indptr[i + 1]]``, ascending.
        indices: Followed agents, int32.
        dropped: What a file held that could not be used, in words -> count.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    dropped: tuple[tuple[str, int], ...] = ()

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of follows."""
        return len(self.indices)

    @cached_property
    def n_followers(self) -> npt.NDArray[np.int64]:
        """Followers of each agent."""
        return np.bincount(self.indices, minlength=self.n_agents)

    @cached_property
    def n_followees(self) -> npt.NDArray[np.int64]:
        """How many each agent follows."""
        return np.diff(self.indptr)

    def followees(self, agent: int) -> npt.NDArray[np.int32]:
        """Return whom `agent` follows, ascending."""
        return self.indices[self.indptr[agent] : self.indptr[agent + 1]]

    def edges(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return all follows as (src, dst): dst follows src."""
        return self.indices, np.repeat(np.arange(self.n_agents), self.n_followees)

    def with_agent(self, follows: Sequence[int], followers: Sequence[int]) -> "FollowNetwork":
        """Return the network with one more agent, the last one."""
        new = self.n_agents
        src, dst = self.edges()
        more_src = [*follows, *([new] * len(followers))]
        more_dst = [*([new] * len(follows)), *followers]
        return from_edges(np.append(src, more_src).astype(np.int64), np.append(dst, more_dst), new + 1)


def from_edges(src: Ints, dst: Ints, n: int) -> FollowNetwork:
    """Return the network in which each `dst` follows its `src`; order and repetitions do not matter.

    Follows of oneself and repeated follows are left out and counted.
    """
    keep = src != dst
    packed = np.sort(dst[keep].astype(np.int64) * n + src[keep])
    packed = packed[np.append(packed[1:] != packed[:-1], True)] if len(packed) else packed
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(packed // n, minlength=n), out=indptr[1:])
    loops, repeats = int(len(src) - keep.sum()), int(keep.sum() - len(packed))
    dropped = tuple((what, count) for what, count in (("self-follows", loops), ("repeated follows", repeats)) if count)
    return FollowNetwork(indptr, (packed % n).astype(np.int32), dropped)


def load_network(path: str) -> tuple[FollowNetwork, list[str]]:
    """Read an edge list and return the network and the agents' ids, sorted; row i of the network is id i.

    Ids may be numbers or strings (sorted as numbers if all of them are).

    Raises:
        DataError: If the file is missing, lacks a column, or has no usable row.
    """
    table = read_table(path, "network.edges", needs=("src", "dst"), ids=("src", "dst"))
    usable = table[["src", "dst"]].dropna()
    if usable.empty:
        raise DataError(f"network.edges: {path}: no row has both src and dst")
    both = pd.concat([usable["src"], usable["dst"]], ignore_index=True)
    if not pd.api.types.is_integer_dtype(both):
        both = _whole_numbers(both)
    codes, ids = pd.factorize(both, sort=True)
    network = from_edges(codes[: len(usable)], codes[len(usable) :], len(ids))
    if not network.n_edges:
        raise DataError(f"network.edges: {path}: every row is an agent that follows itself")
    blank = len(table) - len(usable)
    dropped = network.dropped + ((("rows without src or dst", blank),) if blank else ())
    return FollowNetwork(network.indptr, network.indices, dropped), [str(i) for i in ids]


def _whole_numbers(ids: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return ids as integers where all are whole numbers (a blank cell makes pandas read floats), else as text."""
    numbers = pd.to_numeric(ids, errors="coerce")
    whole = numbers.notna().all() and bool((numbers == numbers.round()).all()) and bool((numbers.abs() < 2**53).all())
    same = whole and (
        pd.api.types.is_float_dtype(ids) or bool((ids.astype(str) == numbers.astype("int64").astype(str)).all())
    )
    return numbers.astype("int64") if same else ids.astype(str).str.strip()


def generate_network(params: NetworkParams, n: int, streams: Streams) -> FollowNetwork:
    """Return a network of `n` agents of the kind that `params` names.

    Raises:
        ConfigError: If `mean_degree` is not possible among `n` agents, or within and between their blocks.
    """
    degree = params.mean_degree
    if degree > n - 1:
        raise ConfigError(
            f"network.mean_degree: {degree} is more than the {n - 1} others that one of {n} agents can follow: "
            f"give network.mean_degree={n - 1} or less, or more agents"
        )
    if params.kind == "configuration":
        return _configuration(params, n, streams)
    seed = streams.child_seed("network")
    if params.kind == "erdos_renyi":
        graph = nx.fast_gnp_random_graph(n, degree / (n - 1), seed=seed, directed=True)
        return _from_graph(graph, n)
    if params.kind == "stochastic_block":
        return _from_graph(_blocks(params, n, seed), n)
    if params.kind == "watts_strogatz":
        graph = nx.watts_strogatz_graph(n, max(2, round(degree / 2) * 2), params.rewire, seed=seed)
        return _from_graph(graph.to_directed(), n)
    return _barabasi_albert(params, n, streams, seed)


def _from_graph(graph: Any, n: int) -> FollowNetwork:
    edges = np.array(list(graph.edges()), np.int64).reshape(-1, 2)
    return from_edges(edges[:, 0], edges[:, 1], n)


def _blocks(params: NetworkParams, n: int, seed: int) -> Any:
    """Directed stochastic block model: `within` of an agent's follows stay inside its block."""
    if params.blocks > n:
        raise ConfigError(f"network.blocks: {params.blocks} is more than the {n} agents")
    sizes = [len(part) for part in np.array_split(np.arange(n), params.blocks)]
    share, size = (params.within if params.blocks > 1 else 1.0), sizes[-1]
    p_in = params.mean_degree * share / max(1, size - 1)
    p_out = params.mean_degree * (1.0 - share) / max(1, n - sizes[0])
    if p_in > 1.0 or p_out > 1.0:
        raise ConfigError(
            f"network.within: {share:g} of {params.mean_degree:g} follows do not fit: a block of {size} agents has "
            f"{size - 1} others inside and {n - sizes[0]} outside; change it, network.blocks or network.mean_degree"
        )
    matrix = [[p_in if i == j else p_out for j in range(params.blocks)] for i in range(params.blocks)]
    return nx.stochastic_block_model(sizes, matrix, seed=seed, directed=True)


def _barabasi_albert(params: NetworkParams, n: int, streams: Streams, seed: int) -> FollowNetwork:
    """Newcomers follow the popular (Barabasi and Albert 1999), and a share of them is followed back."""
    m = min(n - 1, max(1, round(params.mean_degree / (1 + params.reciprocity))))
    edges = np.array(list(nx.barabasi_albert_graph(n, m, seed=seed).edges()), np.int64)
    old, new = edges.min(axis=1), edges.max(axis=1)
    back = streams.uniform("follow back", new, index=old) < params.reciprocity
    return from_edges(np.append(old, new[back]), np.append(new, old[back]), n)


def _configuration(params: NetworkParams, n: int, streams: Streams) -> FollowNetwork:
    """Directed configuration model: popularity is lognormal, follows are drawn in proportion to it.

    Each agent has a Poisson number of followees and follows whom it draws, once; what a repetition cost is
    drawn again, and at last drawn without replacement.
    """
    agents = np.arange(n)
    popularity = np.exp(params.follower_sigma * streams.normal("popularity", agents))
    cumulative = np.cumsum(popularity)
    cumulative /= cumulative[-1]
    wanted = np.minimum(_poisson(params.mean_degree, streams.uniform("followees", agents)), n - 1)
    network = from_edges(np.zeros(0, np.int64), np.zeros(0, np.int64), n)
    for attempt in range(_ATTEMPTS):
        missing = wanted - network.n_followees
        again, place = np.repeat(agents, missing), ragged(np.zeros_like(missing), missing)[0]
        network = _with(network, _drawn(cumulative, streams, f"follow {attempt}", again, place), again)
    short = np.flatnonzero(network.n_followees < wanted)
    for block in np.array_split(short, max(1, len(short) * n >> 22)):
        network = _completed(network, block, wanted[block], popularity, streams)
    return FollowNetwork(network.indptr, network.indices)


def _poisson(mean: float, u: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the Poisson numbers whose cumulative probability first exceeds `u`."""
    k = np.arange(int(mean + 12 * np.sqrt(mean) + 12))
    logs = k * np.log(mean) - mean - np.array([lgamma(i + 1) for i in k])
    return np.searchsorted(np.cumsum(np.exp(logs)), u, side="right")


def _with(network: FollowNetwork, src: Ints, dst: Ints) -> FollowNetwork:
    have_src, have_dst = network.edges()
    return from_edges(np.append(have_src, src), np.append(have_dst, dst), network.n_agents)


def _completed(
    network: FollowNetwork, agents: Ints, wanted: Ints, popularity: npt.NDArray[np.float64], streams: Streams
) -> FollowNetwork:
    """Let `agents` follow as many as `wanted`: the smallest of exponential draws with rates of popularity.

    Efraimidis and Spirakis 2006, doi:10.1016/j.ipl.2005.11.003.
    """
    n = network.n_agents
    u = streams.uniform("follow at last", np.repeat(agents, n), index=np.tile(np.arange(n), len(agents)))
    rank = -np.log1p(-u).reshape(-1, n) / popularity
    at, owner = ragged(network.indptr[agents], network.n_followees[agents])
    rank[owner, network.indices[at]] = np.inf
    rank[np.arange(len(agents)), agents] = np.inf
    order = np.argsort(rank, axis=1)
    missing = wanted - network.n_followees[agents]
    place, owner = ragged(np.zeros_like(missing), missing)
    return _with(network, order[owner, place], agents[owner])


def _drawn(cumulative: npt.NDArray[np.float64], streams: Streams, purpose: str, agent: Ints, place: Ints) -> Ints:
    u = streams.uniform(purpose, agent, index=place)
    return np.minimum(np.searchsorted(cumulative, u, side="right"), len(cumulative) - 1)
