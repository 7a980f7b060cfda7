"""Measures of the studies on true and false posts, and on a first like."""

from functools import partial
from math import nan

import numpy as np

from prism_mesa.studies.measures.catalogue import find_measure
from prism_mesa.studies.measures.measure import measured_posts

LARGE = 100
"""Likes of a very large post: about one in a thousand has as many without the vote."""
BIRTHS = 48, 156


def false_against_true(number, run):
    """Return the number of false against that of true posts, in percent."""
    return 100 * (number("False", run) / (number("True", run) or nan) - 1)


def of_value(column, value, run):
    """Return the mean of a column of cascades over measured posts with a value of `veracity`."""
    posts = run.compute(measured_posts)
    keep = (posts.table["veracity"].astype(str) == value).to_numpy()
    return float(posts.cascades[column].to_numpy(np.float64)[keep].mean())


def reshare_odds(value, run):
    posts = run.compute(measured_posts).table
    posts = posts[posts["veracity"].astype(str) == value]
    rate = posts["reshares"].sum() / posts["impressions"].sum()
    return rate / (1 - rate)


def at_equal_size(shape, run):
    """Return the difference of false and true posts in a shape at equal size, in standard deviations."""
    column = {"virality": "structural_virality"}.get(shape, shape)
    trees = run.compute(measured_posts).cascades
    sd = trees[column].to_numpy(np.float64)[trees["size"] >= 10].std()
    return find_measure(f"matched_{shape}@veracity").compute(run) / sd


def voted(run):
    """Return the rows of the posts that have the vote, or would have it."""
    posts = run.table("posts")
    keep = (posts["vote"] == "treated") & (posts["kind"] == "post") & posts["round"].between(*BIRTHS)
    return posts[keep.to_numpy(np.bool_, na_value=False)]


def likes_given(run):
    """Return the number of likes by agents for each post."""
    rows = run.table("engagements")
    return np.bincount(rows["root"][rows["action"] == "like"], minlength=len(run.table("posts")))


def likes(run):
    """Return the mean number of likes by agents."""
    return float(likes_given(run)[voted(run)["post"]].mean())


def very_large(run):
    """Return the percentage of posts with at least a hundred likes by agents."""
    return 100 * float((likes_given(run)[voted(run)["post"]] >= LARGE).mean())


def next_like(run):
    """Return the likes per view of posts in the round in which they appear."""
    posts, views, rows = run.table("posts"), run.table("views"), run.table("engagements")
    born = np.full(len(posts), -1)
    born[voted(run)["post"]] = voted(run)["round"]
    n_views = views["impressions"][views["round"].to_numpy() == born[views["root"]]].sum()
    is_first = (rows["action"] == "like").to_numpy() & (rows["round"].to_numpy() == born[rows["root"]])
    return float(is_first.sum() / (n_views or nan))


odds = partial(false_against_true, reshare_odds)
size = partial(false_against_true, partial(of_value, "size"))
depth = partial(false_against_true, partial(of_value, "depth"))
equal_depth = partial(at_equal_size, "depth")
equal_breadth = partial(at_equal_size, "breadth")
equal_virality = partial(at_equal_size, "virality")
