"""Measures of cascades, of posts as data have them, of follows, and of seeded posts."""

from collections.abc import Callable
from functools import partial
from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.domain import ACTIONS
from prism_mesa.runs.measures import ENOUGH, TAILS, tail_exponent
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
    have_joined,
    index,
    is_kind,
    is_sampled,
    mean,
    measured_posts,
    ratio,
    share,
    summary,
)

_CLAUSET: Final = "Clauset, Shalizi and Newman 2009, doi:10.1137/070710111"
_GOEL: Final = "Goel, Anderson, Hofman and Watts 2016, doi:10.1287/mnsc.2015.2158"
_JUUL: Final = "at equal sizes: Juul and Ugander 2021, doi:10.1073/pnas.2100786118"
_WHICH: Final = "posts (without the first 24 and the last 18 hours of runs of 60 or more)"
ENOUGH_OF_100: Final = 200  # fewest cascades of at least 100 for an exponent of their sizes
SEEN_ENOUGH: Final = 600  # fewest impressions of a post for rates per impression
_SAMPLES: Final = 100
_MIDDLE: Final = (10, 99)  # range of sizes whose shapes are compared
LARGE: Final = 56  # posts of the smallest large cascade, as in Twitter15/16
ENOUGH_LARGE: Final = 20  # fewest large cascades for their shapes
WHICH: Final = f"cascades of at least {LARGE} posts; needs {ENOUGH_LARGE} of them"


def measured_sizes(run: FinishedRun) -> npt.NDArray[np.int64]:
    """Return the sizes of the cascades of the measured posts."""
    return np.asarray(run.once(measured_posts).cascades["size"], np.int64)


def _exponent(above: int, enough: int, run: FinishedRun) -> float:
    tail = tail_exponent(measured_sizes(run), above)
    return tail.exponent if tail.n >= enough and np.isfinite(tail.exponent) else nan


def _tail(run: FinishedRun) -> PowerLaw:
    """Return the power law of sizes from 10."""
    return fit_power_law(measured_sizes(run), _MIDDLE[0])


def _plausibility(run: FinishedRun) -> float:
    fit = run.once(_tail)
    return plausibility(fit, _SAMPLES, str(run.config.seed)) if fit.n >= ENOUGH else nan


def seen_posts(run: FinishedRun) -> pd.DataFrame:
    """Return the measured posts with enough impressions for rates."""
    posts = run.once(measured_posts).table
    return posts[posts["impressions"] >= SEEN_ENOUGH]


def _rate(counter: str, run: FinishedRun) -> float:
    seen = seen_posts(run)
    return ratio(float(seen[counter].sum()), float(seen["impressions"].sum()))


def post_hops(run: FinishedRun) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Return the number of reshares between each row of `posts` and its root, and whether it is a reshare."""
    posts = run.table("posts")
    joins = is_kind(posts, RESHARE)
    return np.asarray(hops(posts["parent"].to_numpy(np.int64, na_value=-1), joins), np.int32), joins


def measured_hops(run: FinishedRun) -> npt.NDArray[np.int32]:
    """Return the hop of each measured post, 0, and of each of its reshares."""
    mask, (hop, joins) = run.once(measured_posts).mask, run.once(post_hops)
    return np.asarray(hop[mask | (joins & mask[run.table("posts")["root"].to_numpy()])])


def _reshares_per_post(run: FinishedRun) -> float:
    posts = run.once(measured_posts)
    return ratio(len(posts.reshares), len(posts.table))


def _mean_impressions(run: FinishedRun) -> float:
    return mean(run.once(measured_posts).table["impressions"])


def _reshared_again(run: FinishedRun) -> float:
    hop = run.once(measured_hops)
    return ratio(float((hop >= 2).sum()), float((hop >= 1).sum()))


def _mean_followees(run: FinishedRun) -> float:
    return mean(run.table("agents")["followees"].to_numpy()[have_joined(run)])


def _mutual_follows(run: FinishedRun) -> tuple[float, float]:
    return graphs.mutual_follows(run.once(follow_network))


def _at_hop(hop: int, run: FinishedRun) -> float:
    numbers = reproduction(run.once(measured_hops))
    return float(numbers[hop]) if len(numbers) > hop else nan


def _shape(column: str, run: FinishedRun) -> float:
    trees = run.once(measured_posts).cascades
    return mean(trees[column][trees["size"].between(*_MIDDLE)])


def follow_network(run: FinishedRun) -> FollowNetwork:
    """Return the follows at the end of the run."""
    edges = run.follows()
    return from_edges(edges["src"].to_numpy(), edges["dst"].to_numpy(), len(run.table("agents")))


def _index_of_edges(index: Callable[..., float], run: FinishedRun) -> float:
    edges = run.follows()
    return index(edges["src"].to_numpy(), edges["dst"].to_numpy(), len(run.table("agents")))


def large_trees(run: FinishedRun) -> tuple[pd.DataFrame, npt.NDArray[np.intp]]:
    """Return the large cascades, and the number of their posts at hop 0, 1, 2, ..."""
    trees = run.once(measured_posts).cascades
    trees, posts = trees[trees["size"] >= LARGE], run.table("posts")
    is_large = np.zeros(len(posts), np.bool_)
    is_large[trees["root"].to_numpy()] = True
    hop, joins = run.once(post_hops)
    return trees, np.bincount(hop[is_large[posts["root"].to_numpy()] & (joins | is_large)], minlength=4)


def _large(statistic: Callable[[pd.DataFrame, npt.NDArray[np.intp]], float], run: FinishedRun) -> float:
    trees, at_hop = run.once(large_trees)
    return float(statistic(trees, at_hop)) if len(trees) >= ENOUGH_LARGE else nan


def _mean_virality(trees: pd.DataFrame, _: npt.NDArray[np.intp]) -> float:
    return float(trees["structural_virality"].mean())


def _large_hop(hop: int, run: FinishedRun) -> float:
    return _large(lambda _, at_hop: at_hop[hop] / at_hop[1:].sum(), run)


def _large_reproduction(hop: int, run: FinishedRun) -> float:
    return _large(lambda _, at_hop: ratio(at_hop[hop], at_hop[hop - 1]), run)


OBSERVED: Final = (
    share("post_size_1", lambda run: mean(measured_sizes(run) == 1), f"{_WHICH} that nobody reshared"),
    share("post_size_2", lambda run: mean(measured_sizes(run) == 2), "such posts with one reshare"),
    Measure("post_size_mean", lambda run: mean(measured_sizes(run)), "mean size of their cascades", "posts", 1),
    share("post_size_100", lambda run: mean(measured_sizes(run) >= 100), "such posts whose cascade reaches 100"),
    *(
        Measure(
            f"post_tail_{above}",
            partial(_exponent, above, enough),
            f"exponent of the sizes of their cascades from {above} on, as of a power law; needs {enough} of them",
            *("", 1),
            source=_CLAUSET,
        )
        for above, enough in ((10, ENOUGH), (100, ENOUGH_OF_100))
    ),
    index(
        "post_tail_ks",
        lambda run: run.once(_tail).ks,
        "largest distance of their cumulative sizes from 10 on from that power law",
        source=_CLAUSET,
        low=0,
    ),
    share(
        "post_tail_p",
        _plausibility,
        f"samples (of {_SAMPLES}) of that law that lie as far from it: below .1 it is none; needs {ENOUGH} cascades",
        source=_CLAUSET,
    ),
    Measure("post_reshares", _reshares_per_post, "reshares per post in the rounds of such posts", "reshares per post"),
    *(
        Measure(
            f"post_{action}_rate",
            partial(_rate, counter),
            f"{counter} per impression of such posts with at least {SEEN_ENOUGH} impressions, pooled",
            f"{counter} per impression",
        )
        for action, counter in zip(ACTIONS, COUNTERS, strict=True)
    ),
    Measure("post_impressions", _mean_impressions, "impressions per such post", "impressions"),
    *(
        Measure(f"reproduction_{hop}", partial(_at_hop, hop), f"reshares per {what}: reproduction number", "reshares")
        for hop, what in enumerate(("such post, of itself", "reshare at hop 1", "reshare at hop 2"))
    ),
    Measure("reproduction_later", _reshared_again, "reshares of reshares per reshare of such posts", "reshares"),
    *(
        Measure(
            f"shape_{column.removeprefix('structural_')}",
            partial(_shape, column),
            f"mean {column.replace('_', ' ')} of their cascades of {_MIDDLE[0]} to {_MIDDLE[1]} posts",
            unit,
            source=_JUUL,
        )
        for column, unit in (("depth", "reshares"), ("breadth", "posts"), ("structural_virality", "steps"))
    ),
    Measure("agents", summary("agents"), "agents that are present at the end", "agents"),
    Measure("followees_mean", _mean_followees, "mean followees of an agent", "agents", tables=("churn",)),
    index(
        "degree_assortativity",
        partial(_index_of_edges, graphs.degree_assortativity),
        "correlation over follows of the followee's followers with the follower's followees",
        source="Foster et al. 2010, doi:10.1073/pnas.0912671107",
    ),
    share(
        "friendship_paradox",
        partial(_index_of_edges, graphs.friendship_paradox),
        "followers whose followees have on average more followers than they have",
        source="Feld 1991, doi:10.1086/229693",
    ),
    share("reciprocity", lambda run: run.once(_mutual_follows)[0], "follows that are returned"),
    share(
        "mutual_of_possible",
        lambda run: run.once(_mutual_follows)[1],
        "returned follows, of the most that degrees allow",
    ),
    index(
        "followers_followees",
        lambda run: graphs.degree_correlation(run.once(follow_network)),
        "correlation of the logarithms of followers and followees, of agents with both",
    ),
    share(
        "clustering",
        lambda run: graphs.clustering(run.once(follow_network)),
        "pairs of an agent's followees with a follow between them, as a mean over agents; from a sample of pairs",
    ),
)

LARGE_TREES: Final = (
    Measure(
        "large_depth", partial(_large, lambda trees, _: trees["depth"].median()), f"median depth of {WHICH}", "reshares"
    ),
    Measure("large_virality", partial(_large, _mean_virality), "their mean structural virality", "steps", source=_GOEL),
    index(
        "large_size_virality",
        partial(_large, lambda trees, _: trees["size"].rank().corr(trees["structural_virality"].rank())),
        "rank correlation (Spearman) of their size and structural virality",
    ),
    *(share(f"large_hop_{hop}", partial(_large_hop, hop), f"their reshares at hop {hop}, pooled") for hop in (1, 2, 3)),
    *(
        Measure(
            f"large_reproduction_{hop}",
            partial(_large_reproduction, hop),
            f"their reshares at hop {hop} per reshare at hop {hop - 1}, pooled",
            "reshares",
        )
        for hop in (2, 3)
    ),
    share(
        "large_breadth",
        partial(_large, lambda trees, _: (trees["breadth"] / trees["size"]).median()),
        "median of their breadth over size",
    ),
)


def _mean_of_posts(column: str, run: FinishedRun) -> float:
    """Return the mean of a column of `cascades` over posts; NaN without any."""
    trees = run.table("cascades")
    return float(trees[column][is_kind(trees, POST)].mean())


CASCADES: Final = (
    Measure("cascades", summary("cascades.n"), "posts, each with its tree of reshares", "cascades"),
    Measure("cascade_mean", summary("cascades.mean_size"), "mean size of a cascade, 1 + reshares", "posts", 1),
    Measure("cascade_max", summary("cascades.max_size"), "size of the largest cascade", "posts", 1),
    share("cascade_never_reshared", summary("cascades.share_never_reshared"), "posts that nobody reshared"),
    Measure(
        "cascade_depth_mean",
        partial(_mean_of_posts, "depth"),
        "mean depth of a cascade: reshares from the post to the farthest",
        "reshares",
        source=_GOEL,
    ),
    Measure("cascade_depth", summary("cascades.max_depth"), "depth of the deepest cascade", "reshares", source=_GOEL),
    Measure(
        "cascade_breadth_mean",
        partial(_mean_of_posts, "breadth"),
        "mean breadth of a cascade: most reshares at one depth, 1 for a lone post",
        *("posts", 1),
        source=_GOEL,
    ),
    Measure("cascade_breadth", summary("cascades.max_breadth"), "breadth of the broadest", "posts", 1, source=_GOEL),
    Measure(
        "cascade_virality",
        summary("cascades.mean_structural_virality"),
        "mean structural virality of cascades with a reshare: mean distance of all pairs in the tree; 0 without any",
        "steps",
        source=_GOEL,
    ),
    Measure(
        "cascade_virality_max",
        summary("cascades.max_structural_virality"),
        "structural virality of the most viral cascade",
        "steps",
        source=_GOEL,
    ),
    *(
        Measure(
            f"cascade_tail_{above}",
            summary(f"cascades.tail_exponents.above_{above}.exponent"),
            f"exponent of the tail of sizes from {above} on, as of a power law; needs {ENOUGH} of them",
            *("", 1),
            source=_CLAUSET,
        )
        for above in TAILS
    ),
)


def _seeded(run: FinishedRun, column: str) -> npt.NDArray[Any]:
    """Return a number of each seeded post, from the summary."""
    return np.array([post[column] for post in run.summary["seeded"]])


def _mean_seeded(column: str, run: FinishedRun) -> float:
    return mean(_seeded(run, column))


def _mean_seeded_size(run: FinishedRun) -> float:
    if not run.summary["seeded"]:
        return nan
    trees = run.table("cascades")
    return mean(np.asarray(trees["size"])[np.searchsorted(trees["root"].to_numpy(), _seeded(run, "post"))])


def _impressions(run: FinishedRun) -> float:
    posts = _seeded(run, "post").astype(np.int64)
    return mean(run.table("posts")["impressions"].to_numpy()[posts]) if len(posts) else nan


def _communities(run: FinishedRun) -> float:
    if not run.summary["seeded"] or is_sampled(run, "impressions"):
        return nan
    return communities_reached(run, _seeded(run, "post"))


SEEDED: Final = (
    Measure("seeded_cascade_mean", _mean_seeded_size, "mean size of the cascades of seeded posts", "posts", 1),
    Measure("seeded_impressions", _impressions, "mean impressions of a seeded post and its copies", "impressions"),
    share(
        "seeded_communities",
        _communities,
        "mean share of communities in which anybody read a seeded post, or a reshare of it; needs all impressions",
        tables=("impressions",),
    ),
    Measure("seeded_followers", partial(_mean_seeded, "followers"), "mean followers of their authors", "agents"),
    share(
        "seeded_bridging",
        partial(_mean_seeded, "share_across"),
        "their authors' followers in other communities at the start, as a mean over posts",
    ),
)
