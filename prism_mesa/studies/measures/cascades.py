"""Measures of cascades, measured posts, follows and seeded posts."""

from collections.abc import Callable
from functools import partial
from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.domain import ACTIONS
from prism_mesa.runs.measures import MIN_TAIL, TAILS, tail_exponent
from prism_mesa.social.state.network import FollowNetwork, from_edges
from prism_mesa.social.state.posts import POST, RESHARE
from prism_mesa.social.tables import COUNTERS
from prism_mesa.studies.estimators import graphs
from prism_mesa.studies.estimators.graphs import hops, reproduction
from prism_mesa.studies.estimators.power_law import PowerLaw, fit_power_law, plausibility
from prism_mesa.studies.measures.exposure import communities_reached
from prism_mesa.studies.measures.measure import (
    FinishedRun,
    Measure,
    index,
    is_kind,
    joined_agents,
    mean,
    measured_posts,
    ratio,
    share,
    summary,
)

_CLAUSET: Final = "Clauset, Shalizi and Newman 2009, doi:10.1137/070710111"
_GOEL: Final = "Goel, Anderson, Hofman and Watts 2016, doi:10.1287/mnsc.2015.2158"
_JUUL: Final = "at equal sizes: Juul and Ugander 2021, doi:10.1073/pnas.2100786118"
_MEASURED: Final = "measured posts (not of the first 24 and last 18 hours, in runs of 60 hours or more)"
MIN_CASCADES_OF_100: Final = 200  # minimum number of cascades of at least 100 posts for an exponent of their sizes
MIN_IMPRESSIONS: Final = 600  # minimum number of impressions of a post for rates per impression
_SAMPLES: Final = 100
_SHAPE_SIZES: Final = (10, 99)  # range of sizes whose shapes are compared
LARGE: Final = 56  # minimum size of a large cascade, as in Twitter15/16
MIN_LARGE: Final = 20  # minimum number of large cascades for statistics of their shapes
LARGE_CASCADES: Final = f"large cascades (at least {LARGE} posts; needs {MIN_LARGE} cascades)"
_SHAPES: Final = (("depth", "reshares"), ("breadth", "posts"), ("structural_virality", "steps"))


def measured_sizes(run: FinishedRun) -> npt.NDArray[np.int64]:
    """Return the cascade sizes of measured posts."""
    return np.asarray(run.compute(measured_posts).cascades["size"], np.int64)


def _tail_exponent(min_size: int, min_n: int, run: FinishedRun) -> float:
    tail = tail_exponent(measured_sizes(run), min_size)
    return tail.exponent if tail.n >= min_n and np.isfinite(tail.exponent) else nan


def _fitted_tail(run: FinishedRun) -> PowerLaw:
    """Return a power law fitted to sizes of at least 10."""
    return fit_power_law(measured_sizes(run), _SHAPE_SIZES[0])


def _plausibility(run: FinishedRun) -> float:
    fit = run.compute(_fitted_tail)
    return plausibility(fit, _SAMPLES, str(run.config.seed)) if fit.n >= MIN_TAIL else nan


def widely_seen_posts(run: FinishedRun) -> pd.DataFrame:
    """Return the measured posts with enough impressions for rates per impression."""
    posts = run.compute(measured_posts).table
    return posts[posts["impressions"] >= MIN_IMPRESSIONS]


def _pooled_rate(counter: str, run: FinishedRun) -> float:
    posts = widely_seen_posts(run)
    return ratio(float(posts[counter].sum()), float(posts["impressions"].sum()))


def post_hops(run: FinishedRun) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Return the hop of each row of `posts` (0 for a root), and whether the row is a reshare."""
    posts = run.table("posts")
    is_reshare = is_kind(posts, RESHARE)
    return np.asarray(hops(posts["parent"].to_numpy(np.int64, na_value=-1), is_reshare), np.int32), is_reshare


def measured_hops(run: FinishedRun) -> npt.NDArray[np.int32]:
    """Return the hops of measured posts and their reshares."""
    mask, (hop, is_reshare) = run.compute(measured_posts).mask, run.compute(post_hops)
    return np.asarray(hop[mask | (is_reshare & mask[run.table("posts")["root"].to_numpy()])])


def _reshares_per_post(run: FinishedRun) -> float:
    posts = run.compute(measured_posts)
    return ratio(len(posts.reshares), len(posts.table))


def _later_reproduction(run: FinishedRun) -> float:
    hop = run.compute(measured_hops)
    return ratio(float((hop >= 2).sum()), float((hop >= 1).sum()))


def _mutual_follows(run: FinishedRun) -> tuple[float, float]:
    return graphs.mutual_follows(run.compute(follow_network))


def _reproduction(hop: int, run: FinishedRun) -> float:
    reproductions = reproduction(run.compute(measured_hops))
    return float(reproductions[hop]) if len(reproductions) > hop else nan


def _mean_shape(column: str, run: FinishedRun) -> float:
    trees = run.compute(measured_posts).cascades
    return mean(trees[column][trees["size"].between(*_SHAPE_SIZES)])


def _follow_statistic[T](function: Callable[..., T], run: FinishedRun) -> T:
    edges = run.follows()
    return function(edges["src"].to_numpy(), edges["dst"].to_numpy(), len(run.table("agents")))


def follow_network(run: FinishedRun) -> FollowNetwork:
    """Return the network of follows at the end of a run."""
    return _follow_statistic(from_edges, run)


def large_trees(run: FinishedRun) -> tuple[pd.DataFrame, npt.NDArray[np.intp]]:
    """Return the large cascades, and their numbers of posts at hop 0, 1, 2, ... in all."""
    trees = run.compute(measured_posts).cascades
    trees, posts = trees[trees["size"] >= LARGE], run.table("posts")
    is_large = np.zeros(len(posts), np.bool_)
    is_large[trees["root"].to_numpy()] = True
    hop, is_reshare = run.compute(post_hops)
    return trees, np.bincount(hop[is_large[posts["root"].to_numpy()] & (is_reshare | is_large)], minlength=4)


def _large_statistic(function: Callable[[pd.DataFrame, npt.NDArray[np.intp]], float]) -> Callable[[FinishedRun], float]:
    """Return a function that computes a statistic of large cascades and of their posts by hop; NaN for few cascades."""

    def compute(run: FinishedRun) -> float:
        trees, counts = run.compute(large_trees)
        return float(function(trees, counts)) if len(trees) >= MIN_LARGE else nan

    return compute


OBSERVED: Final = (
    share("post_size_1", lambda run: mean(measured_sizes(run) == 1), f"{_MEASURED} without a reshare"),
    share("post_size_2", lambda run: mean(measured_sizes(run) == 2), "measured posts with one reshare"),
    Measure("post_size_mean", lambda run: mean(measured_sizes(run)), "mean size of a measured cascade", "posts", 1),
    share("post_size_100", lambda run: mean(measured_sizes(run) >= 100), "measured cascades of at least 100 posts"),
    *(
        Measure(
            f"post_tail_{min_size}",
            partial(_tail_exponent, min_size, min_n),
            f"exponent of a power law fitted to measured cascades of at least {min_size} posts; needs {min_n} cascades",
            *("", 1),
            source=_CLAUSET,
        )
        for min_size, min_n in ((10, MIN_TAIL), (100, MIN_CASCADES_OF_100))
    ),
    index(
        "post_tail_ks",
        lambda run: run.compute(_fitted_tail).ks,
        "Kolmogorov-Smirnov distance of measured cascades of at least 10 posts from the fitted power law",
        source=_CLAUSET,
        low=0,
    ),
    share(
        "post_tail_p",
        _plausibility,
        f"share of {_SAMPLES} samples of the law of `post_tail_ks` that have a larger distance; below .1 the law is "
        f"ruled out; needs {MIN_TAIL} cascades",
        source=_CLAUSET,
    ),
    Measure("post_reshares", _reshares_per_post, "reshares per post in the measured rounds", "reshares per post"),
    *(
        Measure(
            f"post_{action}_rate",
            partial(_pooled_rate, counter),
            f"{counter} per impression of measured posts with at least {MIN_IMPRESSIONS} impressions, pooled",
            f"{counter} per impression",
        )
        for action, counter in zip(ACTIONS, COUNTERS, strict=True)
    ),
    Measure(
        "post_impressions",
        lambda run: mean(run.compute(measured_posts).table["impressions"]),
        "mean impressions of a measured post",
        "impressions",
    ),
    *(
        Measure(
            f"reproduction_{hop}", partial(_reproduction, hop), f"reproduction number: reshares per {node}", "reshares"
        )
        for hop, node in enumerate(("measured post", "reshare at hop 1", "reshare at hop 2"))
    ),
    Measure(
        "reproduction_later", _later_reproduction, "reshares of reshares, per reshare of measured posts", "reshares"
    ),
    *(
        Measure(
            f"shape_{column.removeprefix('structural_')}",
            partial(_mean_shape, column),
            f"mean {column.replace('_', ' ')} of measured cascades of {_SHAPE_SIZES[0]} to {_SHAPE_SIZES[1]} posts",
            unit,
            source=_JUUL,
        )
        for column, unit in _SHAPES
    ),
    Measure("agents", summary("agents"), "agents on the platform at the end", "agents"),
    Measure(
        "followees_mean",
        lambda run: mean(run.table("agents")["followees"].to_numpy()[joined_agents(run)]),
        "mean number of followees",
        "agents",
        tables=("churn",),
    ),
    index(
        "degree_assortativity",
        partial(_follow_statistic, graphs.degree_assortativity),
        "correlation, over follows, of the followee's followers and the follower's followees",
        source="Foster et al. 2010, doi:10.1073/pnas.0912671107",
    ),
    share(
        "friendship_paradox",
        partial(_follow_statistic, graphs.friendship_paradox),
        "agents whose followees have, on average, more followers than the agent",
        source="Feld 1991, doi:10.1086/229693",
    ),
    share("reciprocity", lambda run: run.compute(_mutual_follows)[0], "follows that are returned"),
    share(
        "mutual_of_possible",
        lambda run: run.compute(_mutual_follows)[1],
        "returned follows, as a share of the maximum that the agents' degrees allow",
    ),
    index(
        "followers_followees",
        lambda run: graphs.degree_correlation(run.compute(follow_network)),
        "correlation of log followers and log followees over agents",
    ),
    share(
        "clustering",
        lambda run: graphs.clustering(run.compute(follow_network)),
        "mean share of pairs of an agent's followees with a follow between them (estimated from sampled pairs)",
    ),
)

LARGE_TREES: Final = (
    Measure(
        "large_depth",
        _large_statistic(lambda trees, _: trees["depth"].median()),
        f"median depth of {LARGE_CASCADES}",
        "reshares",
    ),
    Measure(
        "large_virality",
        _large_statistic(lambda trees, _: trees["structural_virality"].mean()),
        f"mean structural virality of {LARGE_CASCADES}",
        "steps",
        source=_GOEL,
    ),
    index(
        "large_size_virality",
        _large_statistic(lambda trees, _: trees["size"].rank().corr(trees["structural_virality"].rank())),
        "rank correlation (Spearman) of size and structural virality of large cascades",
    ),
    *(
        share(
            f"large_hop_{hop}",
            _large_statistic(partial(lambda hop, _, counts: counts[hop] / counts[1:].sum(), hop)),
            f"share of the reshares in large cascades that are at hop {hop}",
        )
        for hop in (1, 2, 3)
    ),
    *(
        Measure(
            f"large_reproduction_{hop}",
            _large_statistic(partial(lambda hop, _, counts: ratio(counts[hop], counts[hop - 1]), hop)),
            f"reshares at hop {hop} per reshare at hop {hop - 1}, in all large cascades",
            "reshares",
        )
        for hop in (2, 3)
    ),
    share(
        "large_breadth",
        _large_statistic(lambda trees, _: (trees["breadth"] / trees["size"]).median()),
        "median breadth of large cascades, as a share of their size",
    ),
)


def _mean_over_posts(column: str, run: FinishedRun) -> float:
    trees = run.table("cascades")
    return float(trees[column][is_kind(trees, POST)].mean())


CASCADES: Final = (
    Measure("cascades", summary("cascades.n"), "number of cascades (posts with their trees of reshares)", "cascades"),
    Measure("cascade_mean", summary("cascades.mean_size"), "mean size of cascades (1 + reshares)", "posts", 1),
    Measure("cascade_max", summary("cascades.max_size"), "size of the largest cascade", "posts", 1),
    share("cascade_never_reshared", summary("cascades.share_never_reshared"), "posts without a reshare"),
    Measure(
        "cascade_depth_mean",
        partial(_mean_over_posts, "depth"),
        "mean depth of cascades (reshares from the post to the farthest reshare)",
        "reshares",
        source=_GOEL,
    ),
    Measure("cascade_depth", summary("cascades.max_depth"), "maximum depth of a cascade", "reshares", source=_GOEL),
    Measure(
        "cascade_breadth_mean",
        partial(_mean_over_posts, "breadth"),
        "mean breadth of cascades (largest number of reshares at one depth; 1 without reshares)",
        *("posts", 1),
        source=_GOEL,
    ),
    Measure(
        "cascade_breadth", summary("cascades.max_breadth"), "maximum breadth of a cascade", "posts", 1, source=_GOEL
    ),
    Measure(
        "cascade_virality",
        summary("cascades.mean_structural_virality"),
        "mean structural virality of cascades with reshares (mean distance between pairs of posts); 0 without any",
        "steps",
        source=_GOEL,
    ),
    Measure(
        "cascade_virality_max",
        summary("cascades.max_structural_virality"),
        "maximum structural virality of a cascade",
        "steps",
        source=_GOEL,
    ),
    *(
        Measure(
            f"cascade_tail_{min_size}",
            summary(f"cascades.tail_exponents.above_{min_size}.exponent"),
            f"exponent of a power law fitted to cascades of at least {min_size} posts; needs {MIN_TAIL} cascades",
            *("", 1),
            source=_CLAUSET,
        )
        for min_size in TAILS
    ),
)


def _seeded_column(run: FinishedRun, column: str = "post") -> npt.NDArray[Any]:
    """Return a column of the summary of seeded posts, by default their rows in `posts`."""
    return np.array([post[column] for post in run.summary["seeded"]])


def _mean_seeded_size(run: FinishedRun) -> float:
    trees = run.table("cascades")
    return mean(np.asarray(trees["size"])[np.searchsorted(trees["root"].to_numpy(), _seeded_column(run))])


SEEDED: Final = (
    Measure("seeded_cascade_mean", _mean_seeded_size, "mean cascade size of seeded posts", "posts", 1),
    Measure(
        "seeded_impressions",
        lambda run: mean(run.table("posts")["impressions"].to_numpy()[_seeded_column(run).astype(np.int64)]),
        "mean impressions of a seeded post, its reshares included",
        "impressions",
    ),
    share(
        "seeded_communities",
        lambda run: communities_reached(run, _seeded_column(run)),
        "mean share of communities in which a seeded post or its reshares are read; needs all impressions",
        tables=("impressions",),
    ),
    Measure(
        "seeded_followers",
        lambda run: mean(_seeded_column(run, "followers")),
        "mean followers of authors of seeded posts",
        "agents",
    ),
    share(
        "seeded_bridging",
        lambda run: mean(_seeded_column(run, "share_across")),
        "share of the author's followers in other communities at the start, as a mean over seeded posts",
    ),
)
