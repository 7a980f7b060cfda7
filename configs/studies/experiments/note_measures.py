"""Measures of the studies on notes: views and engagements of noted posts before and after the note.

Functions of two runs compare a post with itself: they find it in both runs by author and round of writing, and keep it
if its note is shown in the same round of both. A post that gets the note in one run only is left out, because choosing
posts by their luck in one run would favour that run.
"""

from functools import partial
from math import nan

import numpy as np

ROUNDS_48_HOURS = 96
BIRTHS = 48, 96
"""Rounds of half an hour in which measured posts appear; the first day fills the platform, the last 48 hours spread."""
HOUR = 2
"""Rounds of an hour."""
Q75_HOURS = 15
"""The hours in which three quarters of the reposts of noted posts come on X (Slaughter et al. 2025)."""


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


def paired(run, against, label="notes", lag=0):
    """Return the posts with the same note in both runs: rows in `run`, rows in `against`, note and birth."""
    rows, note, birth = noted(label, lag, against)
    own = same_posts(rows, against, run)
    keep = note_rounds(label, lag, run)[own] == note
    return own[keep], rows[keep], note[keep], birth[keep]


def pairs(counter, run, against, **act):
    """Return a counter for each post of `paired` in `run`, and in the run without the effect of notes."""
    own, rows, note, birth = paired(run, against, **act)
    return counter((own, note, birth), run), counter((rows, note, birth), against)


def n_paired(run, against):
    """Return the number of posts with the same note in both runs."""
    return len(paired(run, against)[0])


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
    """Return the share of reposts lost over the life of posts whose age at the note is between two hours of X.

    An hour of X is as much shorter here as reposts come faster.
    """
    _, _, note, birth = paired(run, against)
    age = (note - birth) / HOUR * Q75_HOURS / reposts_q75_hours(against)
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
    globals()[f"{_name}_until_note"] = partial(change, _kind, -np.inf, 0)
    globals()[f"{_name}_by_post"] = partial(change_by_post, _kind)
for _first, _end in ((0, 1), (1, 3), (3, 6), (6, 12), (12, 24)):
    globals()[f"views_{_first}_{_end}"] = partial(change, "views", HOUR * _first, HOUR * _end)
lost_12_23 = partial(relative_loss, 12, 23)
lost_23_47 = partial(relative_loss, 23, 47)
lost_later = partial(relative_loss, 47, np.inf)
depth = partial(change_of_shape, "depth")
breadth = partial(change_of_shape, "breadth")
virality = partial(change_of_shape, "structural_virality")
misleading_engagements = partial(of_misleading, "engagements")
misleading_reposts = partial(of_misleading, "reshare")
