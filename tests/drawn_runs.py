"""Folders of runs whose tables are made up, so that what a figure shows can be told beforehand."""

import json

import numpy as np
import pandas as pd

from prism_mesa.statechart import AgentState

STATES = [state.value for state in AgentState]


def rounds_table(n, *, first=0.02):
    """Return a table `rounds` whose shares differ from state to state; engagements rise."""
    shares = np.linspace(first, 0.23, 8)
    shares /= shares.sum()
    columns = {f"share_{name}": np.roll(shares, i)[:1].repeat(n) for i, name in enumerate(STATES)}
    counts = {"likes": np.arange(n) * 3, "replies": np.arange(n), "reshares": np.full(n, 2)}
    return pd.DataFrame({"round": np.arange(n), "impressions": 100, **columns, **counts})


def posts_table(impressions, **counters):
    """Return a table `posts` of posts that nobody has passed on, of an author each."""
    n = len(impressions)
    known = {"post": np.arange(n), "author": np.arange(n), "kind": "post", "parent": -1, "root": np.arange(n)}
    counts = {"likes": 0, "replies": 0, "reshares": 0} | counters
    return pd.DataFrame({**known, "round": 0, "impressions": impressions, **counts})


def kept_run(folder, *, seed=1, n_agents=50, settings=None, **tables):
    """Write the folder of a run with some tables, and return it."""
    folder.mkdir(parents=True)
    config = {"seed": seed, "agents": {"n": n_agents}, **(settings or {})}
    (folder / "manifest.json").write_text(json.dumps({"status": "done", "seed": seed, "config": config}))
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet")
    return folder
