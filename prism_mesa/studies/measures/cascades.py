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
    index_measure,
    is_kind,
    is_sampled,
    mean,
    measured_posts,
    ratio,
    share_measure,
    summary,
)

_CLAUSET: Final = "Clauset, Shalizi and Newman 2009, doi:10.1137/070710111"
_JUUL: Final = "at equal sizes: Juul and Ugander 2021, doi:10.1073/pnas.2100786118"
_WHICH: Final = "posts (of runs of 60 hours or more without those of the first 24 and the last 18)"
ENOUGH_OF_100: Final = 200  # cascades of at least 100 that the exponent of their sizes needs
SEEN_ENOUGH: Final = 600  # impressions that a post needs to count for rates per impression
_SAMPLES: Final = 100
_MIDDLE: Final = (10, 99)  # sizes of the cascades whose shapes are compared
LARGE: Final = 56  # posts of the smallest large cascade, as in Twitter15/16
ENOUGH_LARGE: Final = 20  # large cascades that their shapes need
WHICH: Final = f"cascades of at least {LARGE} posts; NaN with fewer than {ENOUGH_LARGE} such"


def measured_sizes(run: FinishedRun) -> npt.NDArray[np.int64]:
    """Return the sizes of the cascades of the measured posts."""
    return np.asarray(run.once(measured_posts).cascades["size"], np.int64)


def _exponent(above: int, enough: int, run: FinishedRun) -> float:
    tail = tail_exponent(measured_sizes(run), above)
    return tail.exponent if tail.n >= enough and np.isfinite(tail.exponent) else nan


def _tail(run: FinishedRun) -> PowerLaw:
    """Return the power law of the sizes from 10 on."""
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


def _at_hop(hop: int, run: FinishedRun) -> float:
    numbers = reproduction(run.once(measured_hops))
    return float(numbers[hop]) if len(numbers) > hop else nan


def _shape(column: str, run: FinishedRun) -> float:
    trees = run.once(measured_posts).cascades
    return mean(trees[column][trees["size"].between(*_MIDDLE)])


def follow_network(run: FinishedRun) -> FollowNetwork:
    """Return who follows whom at the end."""
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


OBSERVED: Final = (
    share_measure("post_size_1", lambda run: mean(measured_sizes(run) == 1), f"{_WHICH} that nobody reshared"),
    share_measure("post_size_2", lambda run: mean(measured_sizes(run) == 2), "such posts that were reshared once"),
    Measure(
        "post_size_mean", lambda run: mean(measured_sizes(run)), "mean size of their cascades, 1 + reshares", "posts", 1
    ),
    share_measure(
        "post_size_100", lambda run: mean(measured_sizes(run) >= 100), "such posts whose cascade reaches 100"
    ),
    *(
        Measure(
            f"post_tail_{above}",
            partial(_exponent, above, enough),
            f"exponent of the sizes of their cascades from {above} on, if it is a power law; NaN with fewer than "
            f"{enough} such",
            "",
            1,
            source=_CLAUSET,
        )
        for above, enough in ((10, ENOUGH), (100, ENOUGH_OF_100))
    ),
    index_measure(
        "post_tail_ks",
        lambda run: run.once(_tail).ks,
        "largest distance of their cumulative sizes from 10 on from that power law",
        source=_CLAUSET,
        low=0,
    ),
    share_measure(
        "post_tail_p",
        _plausibility,
        f"share of {_SAMPLES} samples of that power law that lie as far from it: below .1 the sizes are no power law; "
        f"NaN with fewer than {ENOUGH} such",
        source=_CLAUSET,
    ),
    Measure(
        "post_reshares",
        lambda run: ratio(len(run.once(measured_posts).reshares), len(run.once(measured_posts).table)),
        "reshares of posts per post, in the rounds of such posts",
        "reshares per post",
    ),
    *(
        Measure(
            f"post_{action}_rate",
            partial(_rate, counter),
            f"{counter} per impression of such posts that were seen at least {SEEN_ENOUGH} times, pooled",
            f"{counter} per impression",
        )
        for action, counter in zip(ACTIONS, COUNTERS, strict=True)
    ),
    Measure(
        "post_impressions",
        lambda run: mean(run.once(measured_posts).table["impressions"]),
        "impressions per such post",
        "impressions",
    ),
    *(
        Measure(
            f"reproduction_{place}",
            partial(_at_hop, place),
            f"reproduction number at hop {place}: reshares per "
            + ("such post, of it itself" if place == 0 else f"reshare at hop {place}"),
            "reshares",
        )
        for place in range(3)
    ),
    Measure(
        "reproduction_later",
        lambda run: ratio(*(float((run.once(measured_hops) >= n).sum()) for n in (2, 1))),
        "reshares of reshares per reshare of such posts",
        "reshares",
    ),
    *(
        Measure(
            f"shape_{name}",
            partial(_shape, column),
            f"mean {dimension} of their cascades of {_MIDDLE[0]} to {_MIDDLE[1]}",
            unit,
            source=_JUUL,
        )
        for name, column, dimension, unit in (
            ("depth", "depth", "depth", "reshares"),
            ("breadth", "breadth", "breadth", "posts"),
            ("virality", "structural_virality", "structural virality", "steps"),
        )
    ),
    Measure("agents", summary("agents"), "agents that are there at the end", "agents"),
    Measure(
        "followees_mean",
        lambda run: mean(run.table("agents")["followees"].to_numpy()[have_joined(run)]),
        "agents that an agent follows, as a mean",
        "agents",
        tables=("churn",),
    ),
    index_measure(
        "degree_assortativity",
        partial(_index_of_edges, graphs.degree_assortativity),
        "correlation over follows of the followers of who is followed with the followees of who follows",
        source="Foster et al. 2010, doi:10.1073/pnas.0912671107",
    ),
    share_measure(
        "friendship_paradox",
        partial(_index_of_edges, graphs.friendship_paradox),
        "agents, of those who follow anybody, whose followees have on average more followers than they have",
        source="Feld 1991, doi:10.1086/229693",
    ),
    share_measure(
        "reciprocity", lambda run: graphs.mutual_follows(run.once(follow_network))[0], "follows that are returned"
    ),
    share_measure(
        "mutual_of_possible",
        lambda run: graphs.mutual_follows(run.once(follow_network))[1],
        "the same as a share of what numbers of followers and followees allow: the sum of the smaller of both",
    ),
    index_measure(
        "followers_followees",
        lambda run: graphs.degree_correlation(run.once(follow_network)),
        "correlation of the logarithms of followers and followees, of agents who have both",
    ),
    share_measure(
        "clustering",
        lambda run: graphs.clustering(run.once(follow_network)),
        "pairs of an agent's followees of whom one follows the other, as a mean over agents; of a sample of pairs",
    ),
)

LARGE_TREES: Final = (
    Measure(
        "large_depth", partial(_large, lambda trees, _: trees["depth"].median()), f"median depth of {WHICH}", "reshares"
    ),
    Measure(
        "large_virality",
        partial(_large, lambda trees, _: trees["structural_virality"].mean()),
        "mean structural virality of such cascades",
        "steps",
        source="Goel, Anderson, Hofman and Watts 2016, doi:10.1287/mnsc.2015.2158",
    ),
    index_measure(
        "large_size_virality",
        partial(_large, lambda trees, _: trees["size"].rank().corr(trees["structural_virality"].rank())),
        "rank correlation (Spearman) of size and structural virality of such cascades",
    ),
    *(
        share_measure(
            f"large_hop_{hop}",
            partial(_large, lambda _, at_hop, hop=hop: at_hop[hop] / at_hop[1:].sum()),  # type: ignore[misc]
            f"reshares of such cascades at hop {hop}, pooled" + (": of the post itself" if hop == 1 else ""),
        )
        for hop in (1, 2, 3)
    ),
    *(
        Measure(
            f"large_reproduction_{hop}",
            partial(_large, lambda _, at_hop, hop=hop: ratio(at_hop[hop], at_hop[hop - 1])),  # type: ignore[misc]
            f"reshares at hop {hop} per reshare at hop {hop - 1} of such cascades, pooled",
            "reshares",
        )
        for hop in (2, 3)
    ),
    share_measure(
        "large_breadth",
        partial(_large, lambda trees, _: (trees["breadth"] / trees["size"]).median()),
        "median of breadth over size of such cascades",
    ),
)


_GOEL: Final = "Goel, Anderson, Hofman and Watts 2016, doi:10.1287/mnsc.2015.2158"


def _mean_of_posts(column: str, run: FinishedRun) -> float:
    """Return the mean of a column of `cascades` over posts; NaN without any."""
    trees = run.table("cascades")
    return float(trees[column][is_kind(trees, POST)].mean())


CASCADES: Final = (
    Measure("cascades", summary("cascades.n"), "posts, each with its tree of reshares", "cascades"),
    Measure("cascade_mean", summary("cascades.mean_size"), "mean size of a cascade, 1 + reshares", "posts", 1),
    Measure("cascade_max", summary("cascades.max_size"), "size of the largest cascade", "posts", 1),
    share_measure("cascade_never_reshared", summary("cascades.share_never_reshared"), "posts that nobody reshared"),
    Measure(
        "cascade_depth_mean",
        partial(_mean_of_posts, "depth"),
        "mean depth of a cascade: reshares from the post to the farthest one",
        "reshares",
        source=_GOEL,
    ),
    Measure("cascade_depth", summary("cascades.max_depth"), "depth of the deepest cascade", "reshares", source=_GOEL),
    Measure(
        "cascade_breadth_mean",
        partial(_mean_of_posts, "breadth"),
        "mean breadth of a cascade: most reshares at one depth, 1 of a lone post",
        "posts",
        1,
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
            f"exponent of the tail of sizes from {above} on, if it is a power law; NaN with fewer than {ENOUGH} such",
            "",
            1,
            source=_CLAUSET,
        )
        for above in TAILS
    ),
)


def _seeded(run: FinishedRun, column: str) -> npt.NDArray[Any]:
    """Return a number of each seeded post, from the summary."""
    return np.array([post[column] for post in run.summary["seeded"]])


def _sizes(run: FinishedRun) -> npt.NDArray[Any]:
    if not run.summary["seeded"]:
        return np.zeros(0)
    trees = run.table("cascades")
    return np.asarray(trees["size"])[np.searchsorted(trees["root"].to_numpy(), _seeded(run, "post"))]


def _impressions(run: FinishedRun) -> float:
    posts = _seeded(run, "post").astype(np.int64)
    return mean(run.table("posts")["impressions"].to_numpy()[posts]) if len(posts) else nan


def _communities(run: FinishedRun) -> float:
    if not run.summary["seeded"] or is_sampled(run, "impressions"):
        return nan
    return communities_reached(run, _seeded(run, "post"))


SEEDED: Final = (
    Measure(
        "seeded_cascade_mean",
        lambda run: mean(_sizes(run)),
        "mean size of the cascades of seeded posts, 1 + reshares",
        "posts",
        1,
    ),
    Measure("seeded_impressions", _impressions, "mean impressions of a seeded post and its copies", "impressions"),
    share_measure(
        "seeded_communities",
        _communities,
        "communities in which anybody read a seeded post or a reshare of it, as a mean over them; NaN where not all "
        "impressions are recorded",
        tables=("impressions",),
    ),
    Measure(
        "seeded_followers",
        lambda run: mean(_seeded(run, "followers")),
        "mean followers of the authors of seeded posts, at the beginning",
        "agents",
    ),
    share_measure(
        "seeded_bridging",
        lambda run: mean(_seeded(run, "share_across")),
        "share of the followers of the authors of seeded posts who are of other communities, at the beginning, as a "
        "mean over posts",
    ),
)
