"""Measures of one's own, of finished runs: how far untrue posts come."""

from typing import Any


def untrue_read(run: Any) -> float:
    """Return the share of impressions that were of untrue posts; NaN if nothing was read."""
    read = run.table("impressions")["root"]
    return float(run.table("posts").set_index("post")["untrue"].loc[read].mean())


def untrue_reshares(run: Any) -> float:
    """Return how often an untrue post was reshared, as a mean over untrue posts; NaN without any."""
    posts = run.table("posts")
    return float(posts.query("untrue and kind == 'post'")["reshares"].mean())
