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
    elif kind == "followed":  # accounts followed at the end, or when the treatment starts
        end = np.bincount(run.follows()["dst"], minlength=len(agents)).astype(np.float64)
        return end if is_late else end - per_agent("follows", True, run) + per_agent("unfollows", True, run)
    elif kind in ("follows", "unfollows"):
        rows = run.table("follows")
        rows = rows[rows["event"] == kind.removesuffix("s")]
        who, rounds = rows["agent"].to_numpy(), rows["round"].to_numpy()
    else:
        rows = run.table("impressions" if kind == "views" else "engagements")
        if kind not in ("views", "engagements"):
            rows = rows[rows["action"] == kind]
        who, rounds = rows["agent"].to_numpy(), rows["round"].to_numpy()
    weights = np.ones(len(who))
    if kind == "later_drafts_toxic" and is_late:  # what was sent, and what the prompt stopped or softened
        acts = run.table("acts")
        acts = acts[acts["act"].isin(["abandon", "soften"])]
        who, rounds = np.concatenate([who, acts["agent"]]), np.concatenate([rounds, acts["round"]])
        weights = np.concatenate([weights, np.full(len(acts), flagged_toxic(run))])
        weights[rounds < (start(run) + run.config.rounds) // 2] = 0
    keep = (rounds >= start(run)) == is_late
    counts = np.bincount(who[keep], weights[keep], len(agents))
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


def flagged(run):
    """Return the agent, and whether it is offensive, of each reply that was sent although the classifier noticed it."""
    rows = run.table("posts")
    rows = rows[(rows["kind"] == "reply") & (rows["written"] >= start(run))]
    is_toxic, score = (rows["toxic"] == True).to_numpy(), rows["score"].to_numpy(np.float64)  # noqa: E712
    is_noticed = (is_toxic & (score < 0.7)) | (score > 0.99)
    return rows["author"].to_numpy()[is_noticed], is_toxic[is_noticed]


def flagged_toxic(run):
    """Return the share of offensive replies among those that the classifier notices."""
    return mean(flagged(run)[1])


def prompted(act, run):
    """Return how many of 100 prompts made agents give up (`abandon`) or write a milder reply (`soften`)."""
    acts = run.table("acts")["act"]
    sent = int((groups(run)[flagged(run)[0]] == TREATED).sum())
    stopped, softened = int((acts == "abandon").sum()), int((acts == "soften").sum())
    return 100 * {"abandon": stopped, "soften": softened}[act] / ((sent + stopped + softened) or nan)


def level(kind, run):
    """Return the mean over all agents, from the start of the treatment on."""
    return float(np.nanmean(per_agent(kind, True, run)))


def views_by_group(run):
    """Return the views of each group from the start of the treatment on: the reader's row, the post and its root."""
    rows = run.table("impressions")
    rows = rows[rows["round"] >= start(run)]
    agent, post, root = (rows[key].to_numpy() for key in ("agent", "post", "root"))
    masks = {name: (groups(run) == name)[agent] for name in (CONTROL, TREATED)}
    return {name: (agent[mask], post[mask], root[mask]) for name, mask in masks.items()}


def views_of(group, run):
    """Return the reader, post and root of the views of a group."""
    return run.compute(views_by_group)[group]


def is_reshare(run, agent, post, root):
    return (run.table("posts")["kind"] == "reshare").to_numpy()[post]


def is_source(value, run, agent, post, root):
    return (run.table("posts")["source"] == value).to_numpy()[root]


def is_toxic(run, agent, post, root):
    return (run.table("posts")["toxic"] == True).to_numpy()[root]  # noqa: E712


def friends_at_start(run):
    """Return the mutual follows before the first round, as sorted keys.

    A key is one agent times the number of agents, plus the other.
    """
    edges, n, events = run.follows(), len(run.table("agents")), run.table("follows")
    events = events[events["event"].isin(["follow", "unfollow"])].drop_duplicates(["agent", "other"])
    key = events["other"].to_numpy(np.int64) * n + events["agent"].to_numpy()
    is_new = (events["event"] == "follow").to_numpy()
    end = edges["src"].to_numpy(np.int64) * n + edges["dst"].to_numpy()
    follows = np.union1d(np.setdiff1d(end, key[is_new]), key[~is_new])
    return np.intersect1d(follows, follows % n * n + follows // n)


def is_friend(run, agent, post, root):
    """Return which views are of items that a mutual follow at the start posted or reshared."""
    friends, n = run.compute(friends_at_start), len(run.table("agents"))
    pairs = run.table("posts")["author"].to_numpy(np.int64)[post] * n + agent
    return friends[np.searchsorted(friends[:-1], pairs)] == pairs


def is_side(low, high, run, agent, post, root):
    """Return which views are of items shown by an account at a distance in leaning between two values."""
    leaning = run.table("agents")["leaning"].to_numpy()
    gap = np.abs(leaning[run.table("posts")["author"].to_numpy()[post]] - leaning[agent])
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


def mean_ratio(counter, run):
    """Return the ratio of the means per view of a counter of shown posts, treated : control agents."""
    counts = run.table("posts")[counter].to_numpy(np.float64)
    treated, control = (mean(counts[views_of(group, run)[2]]) for group in (TREATED, CONTROL))
    return treated / (control or nan)


def median_of(counter, group, run):
    """Return the median of a counter over the views of a group."""
    return float(np.median(run.table("posts")[counter].to_numpy(np.float64)[views_of(group, run)[2]]))


def by_reshares(value, run):
    """Return the percentage of the views of a source that come by reshares, in the control group."""
    views = views_of(CONTROL, run)
    keep = is_source(value, run, *views)
    return 100 * mean(is_reshare(run, *views)[keep])


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


def leanings_before(run):
    """Return each agent's leaning when the treatment starts; NaN for agents without recorded impressions."""
    now = run.table("agents")["leaning"].to_numpy(np.float64, copy=True)
    moves = run.table("influences")
    is_early = (moves["round"] < start(run)).to_numpy()
    late = moves[~is_early].drop_duplicates("agent")
    now[late["agent"].to_numpy()] = late["before"]
    now[~is_recorded(run)] = nan
    return now


def extremity(run):
    """Return the distance of leanings from the middle, treated minus control agents.

    It is adjusted for the distance when the treatment starts (linear regression), in standard deviations of that.
    """
    before, after = np.abs(run.compute(leanings_before)), np.abs(run.table("agents")["leaning"].to_numpy(np.float64))
    group, known = groups(run), np.isfinite(before)
    x = before - before[known].mean()
    values = after - (x[known] * after[known]).mean() / (x[known] ** 2).mean() * x
    treated, control = (values[known & (group == name)] for name in (TREATED, CONTROL))
    return compliance(run) * (mean(treated) - mean(control)) / before[known & (group == CONTROL)].std()


def spread(run):
    """Return the standard deviation of leanings at the end, in percent of that when the treatment starts."""
    before = run.compute(leanings_before)
    known = np.isfinite(before)
    return 100 * float(run.table("agents")["leaning"].to_numpy(np.float64)[known].std() / before[known].std())


for _kind in (
    "views",
    "time",
    "like",
    "reply",
    "reshare",
    "engagements",
    "follows",
    "followed",
    "unfollows",
    "toxic",
    "later_drafts_toxic",
):
    globals()[f"{_kind}_sd"] = partial(in_sd, _kind)
    globals()[f"{_kind}_percent"] = partial(in_percent, _kind)
    globals()[f"{_kind}_level"] = partial(level, _kind)
for _value in ("untrustworthy", "political"):
    _which = partial(is_source, _value)
    globals()[f"{_value}_control"] = partial(share, _which, CONTROL)
    globals()[f"{_value}_change"] = partial(change, _which)
    globals()[f"{_value}_points"] = partial(points, _which)
    globals()[f"{_value}_by_reshares"] = partial(by_reshares, _value)
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
    globals()[f"{_counter}_ratio"] = partial(mean_ratio, _counter)
likes_median_ranked = partial(median_of, "likes", TREATED)
likes_median_chronological = partial(median_of, "likes", CONTROL)
