"""Measures of the studies on notes: views and engagements of noted posts before and after the note.

Noted posts are those that have the note in the arm without effect. Functions of two runs find the same posts in the
other arm by author and round of writing, and count from the same note on, so each post is compared with itself.
"""

from functools import partial
from math import nan

import numpy as np

ROUNDS_48_HOURS = 96
BIRTHS = 48, 96
"""Rounds of half an hour in which measured posts appear; the first day fills the platform, the last 48 hours spread."""
HOUR = 2
"""Rounds of an hour."""
CLOCK = 15 / 4.5
"""How many times as fast reposts come: three quarters within 4.5 hours (one run without effects), for real posts 15."""


def is_measured(run):
    posts = run.table("posts")
    return ((posts["kind"] == "post") & posts["round"].between(*BIRTHS, inclusive="left")).to_numpy()


def note_rounds(label, lag, run):
    """Return the round in which the note of each measured post is shown; NaN for posts without one.

    A note is shown `lag` rounds before its label works. In arms without this label, no post has one.
    """
    posts = run.table("posts")
    if label not in posts:
        return np.full(len(posts), nan)
    start = posts[f"{label}_round"].to_numpy(np.float64, na_value=nan)
    is_noted = run.compute(is_measured) & (posts[label] == "treated").to_numpy() & (start >= 0)
    return np.where(is_noted, start - lag, nan)


def noted(label, lag, run):
    """Return the noted posts of a run: row, round of the note, round of birth."""
    start = note_rounds(label, lag, run)
    rows = np.flatnonzero(np.isfinite(start))
    return rows, start[rows], run.table("posts")["round"].to_numpy()[rows]


def same_posts(rows, against, run):
    """Return the rows in `run` of posts of the run `against`; posts are equal in author and round of writing."""
    posts = run.table("posts")
    own = posts[posts["kind"] == "post"].drop_duplicates(["author", "written"])
    row = own.set_index(["author", "written"])["post"]
    return row.reindex(list(map(tuple, against.table("posts")[["author", "written"]].to_numpy()[rows]))).to_numpy(
        np.int64
    )


def events(kind, run):
    """Return root, round and number of the views, or of an action, of all posts."""
    if kind == "views":
        rows = run.table("views")
        return rows["root"].to_numpy(), rows["round"].to_numpy(), rows["impressions"].to_numpy(np.float64)
    rows = run.table("engagements")
    if kind != "engagements":
        rows = rows[rows["action"] == kind]
    return rows["root"].to_numpy(), rows["round"].to_numpy(), np.ones(len(rows))


EVENTS = {kind: partial(events, kind) for kind in ("views", "engagements", "reshare", "like", "reply")}


def count(kind, first, end, posts, run):
    """Return the events of each post of (rows in `run`, note, birth), from `first` to `end` rounds since the note.

    Events count in the 48 hours after birth.
    """
    rows, note, birth = posts
    root, rounds, n = run.compute(EVENTS[kind])
    place = np.full(len(run.table("posts")), -1)
    place[rows] = np.arange(len(rows))
    index = place[root]
    index, rounds, n = index[index >= 0], rounds[index >= 0], n[index >= 0]
    since = rounds - note[index]
    keep = (since >= first) & (since < end) & (rounds - birth[index] < ROUNDS_48_HOURS)
    return np.bincount(index[keep], n[keep], len(rows))


def pairs(counter, run, against, label="notes", lag=0):
    """Return a counter for each noted post in `run`, and in the run without the effect of notes."""
    rows, note, birth = noted(label, lag, against)
    return counter((same_posts(rows, against, run), note, birth), run), counter((rows, note, birth), against)


def change(kind, first, end, run, against, **act):
    """Return the change in the events of all noted posts, in percent."""
    here, there = pairs(partial(count, kind, first, end), run, against, **act)
    return 100 * (here.sum() / (there.sum() or nan) - 1)


def change_by_post(kind, run, against, **act):
    """Return the mean over noted posts of the change in the events over a post's life, in percent."""
    here, there = pairs(partial(count, kind, -np.inf, np.inf), run, against, **act)
    return 100 * float((here[there > 0] / there[there > 0]).mean() - 1)


def change_per_view(kind, first, run, against, **act):
    """Return the change in the events per view, from `first` rounds after the note on, in percent."""
    here, there = pairs(partial(count, kind, first, np.inf), run, against, **act)
    views_here, views_there = pairs(partial(count, "views", first, np.inf), run, against, **act)
    return 100 * ((here.sum() / views_here.sum()) / ((there.sum() / views_there.sum()) or nan) - 1)


def change_of_shape(column, run, against, **act):
    """Return the change in the mean of a column of cascades, in percent."""

    def shape(posts, run):
        return run.table("cascades").set_index("root")[column].reindex(posts[0]).to_numpy(np.float64)

    here, there = pairs(shape, run, against, **act)
    return 100 * (here.mean() / there.mean() - 1)


def lost(youngest, oldest, run, against):
    """Return the share of reposts lost over the life of posts whose age at the note is between two (rescaled) hours."""
    _, note, birth = noted("notes", 0, against)
    age = (note - birth) / HOUR * CLOCK
    here, there = pairs(partial(count, "reshare", -np.inf, np.inf), run, against)
    keep = (age >= youngest) & (age < oldest)
    return 1 - here[keep].sum() / (there[keep].sum() or nan)


def relative_loss(youngest, oldest, run, against):
    """Return the reposts lost, relative to posts that are 1 to 12 hours old at the note."""
    return lost(youngest, oldest, run, against) / (lost(1, 12, run, against) or nan)


def n_noted(run):
    """Return the number of noted posts."""
    return len(noted("notes", 0, run)[0])


def share_before(kind, label, lag, run):
    """Return the percentage of the events of noted posts in 48 hours that come before the note."""
    posts = noted(label, lag, run)
    total = count(kind, -np.inf, np.inf, posts, run).sum()
    return 100 * float(count(kind, -np.inf, 0, posts, run).sum() / (total or nan))


def reposts_q75_hours(run):
    """Return the hours after birth until three quarters of the reposts of noted posts have come."""
    rows, _, birth = noted("notes", 0, run)
    root, rounds, _ = run.compute(EVENTS["reshare"])
    born = np.full(len(run.table("posts")), nan)
    born[rows] = birth
    age = rounds - born[root]
    age = age[(age >= 0) & (age < ROUNDS_48_HOURS)]
    return float(np.quantile(age, 0.75) / HOUR) if len(age) else nan


def is_misleading(run):
    return run.compute(is_measured) & (run.table("posts")["misleading"] == True).to_numpy()  # noqa: E712


def noted_share(run):
    """Return the percentage of misleading posts with a note."""
    return 100 * float(np.isfinite(note_rounds("notes", 0, run))[is_misleading(run)].mean())


def of_misleading(kind, run):
    """Return the number of events of all misleading posts in the 48 hours after their birth."""
    rows = np.flatnonzero(is_misleading(run))
    birth = run.table("posts")["round"].to_numpy()[rows]
    return float(count(kind, -np.inf, np.inf, (rows, birth, birth), run).sum())


for _kind, _name in (("views", "views"), ("reshare", "reposts"), ("like", "likes"), ("reply", "replies")):
    for _act, _label, _lag in (("", "notes", 0), ("lag_", "lagged", HOUR)):
        _values = {"label": _label, "lag": _lag}
        globals()[f"{_act}{_name}_life"] = partial(change, _kind, -np.inf, np.inf, **_values)
        globals()[f"{_act}{_name}_after"] = partial(change, _kind, 0, np.inf, **_values)
        globals()[f"{_act}{_name}_before"] = partial(share_before, _kind, _label, _lag)
        globals()[f"{_act}{_name}_per_view"] = partial(change_per_view, _kind, _lag, **_values)
    globals()[f"{_name}_by_post"] = partial(change_by_post, _kind)
for _first, _end in ((0, 1), (1, 3), (3, 6), (6, 12), (12, 24), (24, 36), (36, 48)):
    globals()[f"views_{_first}_{_end}"] = partial(change, "views", HOUR * _first, HOUR * _end)
    _rounds = [np.ceil(HOUR * _hour / CLOCK - 0.4) for _hour in (_first, _end)]  # whole rounds; .4 of one is left out
    globals()[f"scaled_{_first}_{_end}"] = partial(change, "views", *_rounds)
lost_12_23 = partial(relative_loss, 12, 23)
lost_23_47 = partial(relative_loss, 23, 47)
lost_later = partial(relative_loss, 47, np.inf)
depth = partial(change_of_shape, "depth")
breadth = partial(change_of_shape, "breadth")
virality = partial(change_of_shape, "structural_virality")
misleading_engagements = partial(of_misleading, "engagements")
misleading_reposts = partial(of_misleading, "reshare")
