"""The picture of docs/interventions.md: what each act of the platform changes, in paired runs. Takes two minutes.

uv run python docs/pictures/interventions.py
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from prism_mesa import RunResult, run
from prism_mesa.view.plots import save
from prism_mesa.view.plots.style import CM, GREY, INK, PALETTE, SMALL, WIDE, axes_legend, percent_ticks, tidy

AGENTS, SEEDS, ROUNDS, AT = 2000, range(1, 6), 48, 24
WORLD = {
    "agents.n": AGENTS,
    "rounds": ROUNDS,
    "reasoner.kind": "rule",
    "agents.activity": 0.3,
    "agents.hours": None,  # equally many readers in all rounds
    "agents.session": 20,
    "network.mean_degree": 40,
    "feed.mode": "x_2023",
    "attributes.misleading": {"of": "post", "values": [True, False], "share": [0.3, 0.7]},
    "attributes.bot": {"of": "agent", "values": [True, False], "share": [0.1, 0.9]},
}
MISLEADING, BOT, TEXT = "post.misleading == True", "agent.bot == True", "Vote on Sunday."
ACTS: Mapping[str, Mapping[str, Any]] = {
    "set": {"set": {"feed.mode": "chronological"}},
    "label": {"label": {"posts": MISLEADING, "effect": {"reshare": -1.2}}},
    "friction": {"friction": {"on": "reply", "abandon": 0.6}},
    "cap": {"at": 0, "cap": {"reshares": 5}},
    "remove": {"remove": {"posts": MISLEADING, "delay": 6}},
    "suspend": {"suspend": {"accounts": BOT}},
    "suspend_remove": {"suspend": {"accounts": BOT, "posts": "remove"}},
    "filter": {"name": "half", "share": 0.5, "filter": {"posts": "post.kind == 'reshare'"}},
    "downrank": {"downrank": {"posts": MISLEADING, "score": -0.1}},
    "like": {"name": "liked", "like": {"posts": "post.kind == 'post'", "n": 20, "coverage": 0.5}},
    "post": {"post": {"by": BOT, "text": TEXT, "every": 8}},
}

LOWEST = 5e-4
"""The lowest share of posts in a panel on a logarithmic scale."""

type Numbers = Any
type Measure = Callable[[RunResult], Numbers]


def joined(result: RunResult, table: str) -> pd.DataFrame:
    """Return rows of a table, with the post of each row (`_post`), its root (`_root`), and the post's author."""
    posts, rows = result.table("posts"), result.table(table)
    authors = result.table("agents").add_suffix("_author")
    rows = rows.merge(posts.add_suffix("_post"), left_on="post", right_on="post_post")
    rows = rows.merge(posts.add_suffix("_root"), left_on="root", right_on="post_root")
    return rows.merge(authors, left_on="author_post", right_on="agent_author")


def per_round(table: str, query: str) -> Measure:
    """Return a measure: how many rows of `joined` fulfil a query in each round."""
    return lambda result: np.bincount(joined(result, table).query(query)["round"], minlength=ROUNDS)


def reshares_read(group: str) -> Measure:
    """Return a measure: reshares that each agent of a group reads in each round."""

    def measure(result: RunResult) -> Numbers:
        members = result.table("agents").query(f"half == '{group}'")["agent"]
        rows = joined(result, "impressions").query("kind_post == 'reshare' and agent in @members")
        return np.bincount(rows["round"], minlength=ROUNDS) / len(members)

    return measure


def mean_age(result: RunResult) -> Numbers:
    """Return the mean age of the roots that agents read, in rounds, in each round."""
    return joined(result, "impressions").eval("age = round - round_root").groupby("round")["age"].mean().to_numpy()


def share_reshared(result: RunResult) -> Numbers:
    """Return the shares of posts with at least 1, 2, ..., 40 reshares."""
    reshares = result.table("posts").query("kind == 'post'")["reshares"].to_numpy()
    return (reshares[:, None] >= np.arange(1, 41)).mean(axis=0)


def engagements(query: str) -> Measure:
    """Return a measure: engagements per post within 0, 1, ..., 11 rounds, of the posts of twelve rounds in a query."""
    query = f"kind == 'post' and {AT} <= round < {AT + 12} and {query}"

    def measure(result: RunResult) -> Numbers:
        posts = result.table("posts").query(query)["post"]
        rows = joined(result, "engagements").query("root in @posts")
        return np.bincount(rows["round"] - rows["round_root"], minlength=ROUNDS)[:12].cumsum() / len(posts)

    return measure


def draw(
    axes: Axes,
    title: str,
    label: str,
    plain: Numbers,
    lines: Mapping[str, Numbers],
    xlabel: str = "round",
    first: int = 0,
) -> None:
    """Draw a panel: without the act in grey, and with the act; x begins at `first`."""
    tidy(axes, title)
    x = np.arange(first, first + len(plain))
    axes.plot(x, plain, color=GREY, lw=1.6, clip_on=False)
    for (name, values), color, dashes in zip(lines.items(), PALETTE, ("-", (0, (3, 1))), strict=False):
        axes.plot(x, values, color=color, ls=dashes, lw=1.3, label=name, clip_on=False)
    if len(lines) > 1:
        axes_legend(axes, handlelength=1.8, borderaxespad=0.2)
    if xlabel == "round":
        axes.axvline(AT, color=INK, lw=0.7, ls=":")
    axes.set_xticks(range(0, len(plain) + 1, len(plain) // 4))
    axes.set_ylim(bottom=0)
    axes.set_xlabel(xlabel, fontsize=SMALL)
    axes.set_ylabel(label, fontsize=SMALL)


def draw_key(axes: Axes) -> None:
    """Draw the legend of all panels."""
    axes.set_axis_off()
    entries = (
        Line2D([], [], color=GREY, lw=1.6, label="without the act"),
        Line2D([], [], color=PALETTE[0], lw=1.3, label="with the act"),
        Line2D([], [], color=INK, lw=0.7, ls=":", label="round in which it begins"),
    )
    axes_legend(axes, handles=entries, loc="upper left", borderaxespad=0)
    hide = f"Means of {len(SEEDS)} seeds, {AGENTS:,} agents.\n\nhide has no panel: it changes\nonly what an LLM reads."
    axes.text(0.02, 0.5, hide, va="top", fontsize=SMALL, transform=axes.transAxes)


def picture(mean: Callable[[str, Measure], Numbers]) -> Figure:
    """Return the picture; `mean` returns the mean of a measure over the runs with an act, or with `none`."""
    figure = Figure(figsize=(WIDE * CM, 19 * CM), layout="constrained")
    *axes, key, unused = figure.subplots(4, 3).flat
    panels = dict(zip((act for act in ACTS if act != "suspend_remove"), axes, strict=True))

    def compare(act: str, title: str, label: str, measure: Measure) -> None:
        draw(panels[act], f"{act}: {title}", label, mean("none", measure), {"": mean(act, measure)})

    misleading = per_round("impressions", "misleading_root")
    resharing = per_round("engagements", "misleading_root and action == 'reshare'")
    compare("set", "chronological feed", "age of posts read (hours)", mean_age)
    compare("label", "misleading posts", "misleading posts reshared", resharing)
    compare("friction", "before replies", "replies", per_round("engagements", "action == 'reply'"))
    compare("remove", "misleading, after 6 hours", "misleading posts read", misleading)
    compare("downrank", "misleading posts", "misleading posts read", misleading)
    compare("post", "bots, every 8 rounds", "these posts read", per_round("impressions", f"text_root == '{TEXT}'"))

    by_bots = per_round("impressions", "bot_author")
    suspended = {"kept": mean("suspend", by_bots), "removed": mean("suspend_remove", by_bots)}
    draw(panels["suspend"], "suspend: bots, their posts", "posts by bots read", mean("none", by_bots), suspended)
    panels["suspend"].legend_.set_loc((0.58, 0.6))  # between the lines
    groups = ("treated", "control")
    plain = mean("none", per_round("impressions", "kind_post == 'reshare'")) / AGENTS
    filtered = {group: mean("filter", reshares_read(group)) for group in groups}
    draw(panels["filter"], "filter: reshares, half the agents", "reshares read by an agent", plain, filtered)
    liked, every = {group: mean("like", engagements(f"liked == '{group}'")) for group in groups}, engagements("True")
    title, xlabel = "like: half the posts, 20 likes", "age of the post (hours)"
    draw(panels["like"], title, "engagements per post", mean("none", every), liked, xlabel)
    title, label, xlabel = "cap: 5 reshares, from round 0", "share of posts", "reshares, at least"
    plain, capped = mean("none", share_reshared), {"": np.maximum(mean("cap", share_reshared), LOWEST)}
    draw(panels["cap"], title, label, plain, capped, xlabel, first=1)
    panels["cap"].set(xscale="log", yscale="log", xticks=[1, 2, 5, 10, 20, 40], xticklabels=[1, 2, 5, 10, 20, 40])
    panels["cap"].set_ylim(LOWEST)
    panels["cap"].minorticks_off()
    percent_ticks(panels["cap"].yaxis)
    draw_key(key)
    unused.set_axis_off()
    return figure


if __name__ == "__main__":
    runs = {
        act: [run({**WORLD, "seed": seed, "interventions": entries}, out=mkdtemp(), pictures=False) for seed in SEEDS]
        for act, entries in {"none": [], **{name: [{"at": AT, **act}] for name, act in ACTS.items()}}.items()
    }
    figure = picture(lambda act, measure: np.mean([measure(result) for result in runs[act]], axis=0))
    save(figure, Path(__file__).parent / "interventions.png")
