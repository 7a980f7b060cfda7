"""Measures of the studies on notes: views and engagements of noted posts before and after the note."""

from functools import partial
from math import nan

import numpy as np

BIRTHS = 48, 120
"""Rounds of half an hour in which measured posts appear; the first day fills the platform, the last 36 hours spread."""
HOUR = 2
"""Rounds of an hour."""


def is_measured(run):
    posts = run.table("posts")
    return ((posts["kind"] == "post") & posts["round"].between(*BIRTHS, inclusive="left")).to_numpy()


def label_rounds(run):
    """Return the round in which the label of each measured post begins; NaN for posts without one."""
    posts = run.table("posts")
    start = posts["notes_round"].to_numpy(np.float64, na_value=nan)
    is_noted = run.compute(is_measured) & (posts["notes"] == "treated").to_numpy() & (start >= 0)
    return np.where(is_noted, start, nan)


def events(run, kind):
    """Return root, round and number of the views, or of an action, of all posts."""
    if kind == "views":
        rows = run.table("views")
        return rows["root"].to_numpy(), rows["round"].to_numpy(), rows["impressions"].to_numpy(np.float64)
    rows = run.table("engagements")
    if kind != "engagements":
        rows = rows[rows["action"] == kind]
    return rows["root"].to_numpy(), rows["round"].to_numpy(), np.ones(len(rows))


def count(kind, first, end, run):
    """Return the number of events of noted posts from `first` to `end`, in rounds since the note."""
    root, rounds, n = events(run, kind)
    since = rounds - run.compute(label_rounds)[root]
    return float(n[(since >= first) & (since < end)].sum())


def share_before(kind, run):
    """Return the percentage of the events of noted posts that come before the note."""
    return 100 * count(kind, -np.inf, 0, run) / (count(kind, -np.inf, np.inf, run) or nan)


def per_view(kind, run):
    """Return the events per view of noted posts from the note on."""
    return count(kind, 0, np.inf, run) / (count("views", 0, np.inf, run) or nan)


def mean_shape(column, run):
    """Return the mean of a column of cascades over noted posts."""
    trees = run.table("cascades")
    values = trees[column].to_numpy(np.float64)[np.isfinite(run.compute(label_rounds)[trees["root"].to_numpy()])]
    return float(values.mean()) if len(values) else nan


def reposts_by_age(youngest, oldest, run):
    """Return the reposts over the life of posts whose age in hours at the note lies between two values."""
    age = (run.compute(label_rounds) - run.table("posts")["round"].to_numpy()) / HOUR
    root, _, _ = events(run, "reshare")
    number = float(((age[root] >= youngest) & (age[root] < oldest)).sum())
    return number or nan


def noted_share(run):
    """Return the percentage of misleading posts with a note."""
    is_misleading = run.compute(is_measured) & (run.table("posts")["misleading"] == True).to_numpy()  # noqa: E712
    return 100 * float(np.isfinite(run.compute(label_rounds))[is_misleading].mean())


def of_misleading(kind, run):
    """Return the number of events of all misleading posts."""
    is_misleading = run.compute(is_measured) & (run.table("posts")["misleading"] == True).to_numpy()  # noqa: E712
    root, _, n = events(run, kind)
    return float(n[is_misleading[root]].sum())


for _kind, _name in (("views", "views"), ("reshare", "reposts"), ("like", "likes"), ("reply", "replies")):
    globals()[f"{_name}_life"] = partial(count, _kind, -np.inf, np.inf)
    globals()[f"{_name}_after"] = partial(count, _kind, 0, np.inf)
    globals()[f"{_name}_before"] = partial(share_before, _kind)
    globals()[f"{_name}_per_view"] = partial(per_view, _kind)
for _first, _end in ((0, 1), (1, 3), (3, 6), (6, 12), (12, 24), (24, 36), (36, 48)):
    globals()[f"views_{_first}_{_end}"] = partial(count, "views", HOUR * _first, HOUR * _end)
age_1_12 = partial(reposts_by_age, 1, 12)
age_12_23 = partial(reposts_by_age, 12, 23)
age_23_47 = partial(reposts_by_age, 23, 47)
age_later = partial(reposts_by_age, 47, np.inf)
depth = partial(mean_shape, "depth")
breadth = partial(mean_shape, "breadth")
virality = partial(mean_shape, "structural_virality")
misleading_engagements = partial(of_misleading, "engagements")
misleading_reposts = partial(of_misleading, "reshare")
