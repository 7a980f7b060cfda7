"""Measures of the studies by user: treated against control agents, and the whole platform.

The treatment is the intervention with a `share`; it starts in round `at`. Differences leave out agents that are not
eligible. Like the field experiments, they adjust for what an agent did before the treatment (linear regression).
"""

from functools import partial
from math import nan

import numpy as np

CONTROL, TREATED = "control", "treated"
TICKS_PER_ENGAGEMENT = 6
POSTS_PER_TICK = 10


def mean(values):
    """Return the mean; NaN if there is nothing, as in arms that treat nobody or everybody."""
    return float(values.mean()) if len(values) else nan


def groups(run):
    """Return the group of each agent; empty text without a treatment."""
    agents = run.table("agents")
    name = next((act.name for act in run.config.interventions if act.share is not None), None)
    return np.full(len(agents), "") if name is None else agents[name].to_numpy()


def compliance(run):
    """Return the share of agents whom a treatment can reach (attribute `complies`); effects are those of assignment."""
    agents = run.table("agents")
    return float((agents["complies"] == True).mean()) if "complies" in agents else 1.0  # noqa: E712


def switched(run):
    return 100 * compliance(run)


def start(run):
    """Return the round in which the treatment starts; without one, after two days."""
    return next((act.at for act in run.config.interventions if act.share is not None), 96)


def is_recorded(run):
    return run.table("agents")["recorded_impressions"].to_numpy(np.bool_)


def per_agent(kind, is_late, run):
    """Return how many of something each agent has, before or from the start of the treatment."""
    agents = run.table("agents")
    if kind == "time":  # ticks: ten posts are passed in a tick, and an engagement takes six
        views = per_agent("views", is_late, run)
        return views / POSTS_PER_TICK + TICKS_PER_ENGAGEMENT * per_agent("engagements", is_late, run)
    if kind.endswith("toxic"):
        rows = run.table("posts")
        rows = rows[(rows["kind"] != "reshare") & (rows["toxic"] == True)]  # noqa: E712
        who, rounds = rows["author"].to_numpy(), rows["written"].to_numpy()
    elif kind == "follows":
        rows = run.table("follows")
        rows = rows[rows["event"] == "follow"]
        who, rounds = rows["agent"].to_numpy(), rows["round"].to_numpy()
    else:
        rows = run.table("impressions" if kind == "views" else "engagements")
        if kind not in ("views", "engagements"):
            rows = rows[rows["action"] == kind]
        who, rounds = rows["agent"].to_numpy(), rows["round"].to_numpy()
    keep = (rounds >= start(run)) == is_late
    if kind == "later_toxic":  # in the second half of the treatment, or before it
        keep &= (not is_late) | (rounds >= (start(run) + run.config.rounds) // 2)
    counts = np.bincount(who[keep], minlength=len(agents)).astype(np.float64)
    if kind == "views":
        counts[~is_recorded(run)] = nan
    return counts


def adjusted(kind, run):
    """Return each agent's number from the start on, less what its number before predicts."""
    after, before = per_agent(kind, True, run), per_agent(kind, False, run)
    known = np.isfinite(after)
    x = before - before[known].mean()
    slope = (x[known] * after[known]).mean() / (x[known] ** 2).mean() if x[known].any() else 0.0
    return after - slope * x


def difference(kind, run):
    """Return the mean of treated minus control agents, and the mean and standard deviation of control agents."""
    values, group = adjusted(kind, run), groups(run)
    treated = values[(group == TREATED) & np.isfinite(values)]
    control = values[(group == CONTROL) & np.isfinite(values)]
    raw = per_agent(kind, True, run)[(group == CONTROL) & np.isfinite(values)]
    return compliance(run) * (mean(treated) - mean(control)), mean(control), raw.std() if len(raw) else nan


def in_sd(kind, run):
    """Return treated minus control agents in standard deviations of the control agents."""
    effect, _, sd = difference(kind, run)
    return effect / sd if sd else nan


def in_percent(kind, run):
    """Return treated minus control agents in percent of the control agents."""
    effect, mean, _ = difference(kind, run)
    return 100 * effect / mean if mean else nan


def prompted(act, run):
    """Return how many of 100 prompts made agents give up (`abandon`) or write a milder reply (`soften`)."""
    acts = run.table("acts")["act"]
    replies = run.table("posts")
    replies = replies[(replies["kind"] == "reply") & (replies["written"] >= start(run))]
    treated = (groups(run) == TREATED)[replies["author"]]
    flagged = ((replies["toxic"] == True) & (replies["score"] < 0.7)) | (replies["score"] > 0.99)  # noqa: E712
    sent = int((flagged.to_numpy() & treated).sum())
    stopped, softened = int((acts == "abandon").sum()), int((acts == "soften").sum())
    return 100 * {"abandon": stopped, "soften": softened}[act] / ((sent + stopped + softened) or nan)


def level(kind, run):
    """Return the mean over all agents, from the start of the treatment on."""
    return float(np.nanmean(per_agent(kind, True, run)))


def shown(run):
    """Return the views from the start of the treatment on: the reader's row, the post and its root."""
    rows = run.table("impressions")
    rows = rows[rows["round"] >= start(run)]
    return rows["agent"].to_numpy(), rows["post"].to_numpy(), rows["root"].to_numpy()


def views_of(group, run):
    """Return the reader, post and root of the views of a group."""
    agent, post, root = shown(run)
    keep = groups(run)[agent] == group
    return agent[keep], post[keep], root[keep]


def is_reshare(run, agent, post, root):
    return (run.table("posts")["kind"] == "reshare").to_numpy()[post]


def is_source(value, run, agent, post, root):
    return (run.table("posts")["source"] == value).to_numpy()[root]


def is_toxic(run, agent, post, root):
    return (run.table("posts")["toxic"] == True).to_numpy()[root]  # noqa: E712


def is_friend(run, agent, post, root):
    """Return which views are of posts by mutual follows, at the end of the run."""
    edges, n = run.follows(), len(run.table("agents"))
    keys = edges["src"].to_numpy(np.int64) * n + edges["dst"].to_numpy()
    backwards = edges["dst"].to_numpy(np.int64) * n + edges["src"].to_numpy()
    mutual = np.sort(keys[np.isin(keys, backwards)])
    author = run.table("posts")["author"].to_numpy(np.int64)[root]
    return np.isin(author * n + agent, mutual)


def distance(run, agent, root):
    leaning = run.table("agents")["leaning"].to_numpy()
    return np.abs(leaning[run.table("posts")["author"].to_numpy()[root]] - leaning[agent])


def is_side(low, high, run, agent, post, root):
    """Return which views are of authors at a distance in leaning between two values."""
    gap = distance(run, agent, root)
    return (gap >= low) & (gap < high)


def share(which, group, run):
    """Return the percentage of a group's views that `which` selects."""
    views = views_of(group, run)
    return 100 * mean(which(run, *views))


def points(which, run):
    """Return the share of treated minus that of control agents, in percentage points."""
    return compliance(run) * (share(which, TREATED, run) - share(which, CONTROL, run))


def change(which, run):
    """Return the share of treated against that of control agents, in percent."""
    return compliance(run) * 100 * (share(which, TREATED, run) / (share(which, CONTROL, run) or nan) - 1)


def typical_ratio(counter, reverse, run):
    """Return the ratio of the geometric means of 1 + a counter of shown posts, treated : control agents."""
    counts = np.log1p(run.table("posts")[counter].to_numpy(np.float64))
    logs = [mean(counts[views_of(group, run)[2]]) for group in (TREATED, CONTROL)]
    return float(np.exp((logs[1] - logs[0]) if reverse else (logs[0] - logs[1])))


def rate(which, action, group, run):
    """Return the engagements per view of a group with the posts that `which` selects."""
    views = views_of(group, run)
    rows = run.table("engagements")
    rows = rows[(rows["round"] >= start(run)) & is_recorded(run)[rows["agent"]]]
    if action:
        rows = rows[rows["action"] == action]
    agent, post, root = (rows[key].to_numpy() for key in ("agent", "post", "root"))
    keep = groups(run)[agent] == group
    n = which(run, agent[keep], post[keep], root[keep]).sum()
    return float(n / (which(run, *views).sum() or nan))


def rate_change(which, action, run):
    """Return the engagements per view of treated against control agents, in percent."""
    return compliance(run) * 100 * (rate(which, action, TREATED, run) / (rate(which, action, CONTROL, run) or nan) - 1)


def anything(run, agent, post, root):
    return np.ones(len(post), np.bool_)


def extremity(run):
    """Return the distance of leanings from the middle, treated minus control agents, in standard deviations."""
    values, group = np.abs(run.table("agents")["leaning"].to_numpy(np.float64)), groups(run)
    control = values[group == CONTROL]
    return compliance(run) * (mean(values[group == TREATED]) - mean(control)) / (control.std() if len(control) else nan)


for _kind in ("views", "time", "like", "reply", "reshare", "engagements", "follows", "toxic", "later_toxic"):
    globals()[f"{_kind}_sd"] = partial(in_sd, _kind)
    globals()[f"{_kind}_percent"] = partial(in_percent, _kind)
    globals()[f"{_kind}_level"] = partial(level, _kind)
for _value in ("untrustworthy", "political"):
    _which = partial(is_source, _value)
    globals()[f"{_value}_control"] = partial(share, _which, CONTROL)
    globals()[f"{_value}_change"] = partial(change, _which)
    globals()[f"{_value}_points"] = partial(points, _which)
for _side, _low, _high in (("like_minded", 0, 0.5), ("neutral", 0.5, 1), ("cross_cutting", 1, 3)):
    _which = partial(is_side, _low, _high)
    globals()[f"{_side}_control"] = partial(share, _which, CONTROL)
    globals()[f"{_side}_treated"] = partial(share, _which, TREATED)
    globals()[f"{_side}_points"] = partial(points, _which)
    globals()[f"{_side}_rate"] = partial(rate_change, _which, "")
cancelled = partial(prompted, "abandon")
milder = partial(prompted, "soften")
reshares_control = partial(share, is_reshare, CONTROL)
reshares_treated = partial(share, is_reshare, TREATED)
toxic_control = partial(share, is_toxic, CONTROL)
friends_control = partial(share, is_friend, CONTROL)
friends_points = partial(points, is_friend)
likes_per_view = partial(rate_change, anything, "like")
for _counter in ("likes", "reshares", "replies"):
    globals()[f"{_counter}_ratio"] = partial(typical_ratio, _counter, False)
    globals()[f"{_counter}_ratio_off"] = partial(typical_ratio, _counter, True)
