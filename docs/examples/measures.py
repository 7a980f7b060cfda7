"""Measures of your own: how far untrue posts spread in a finished run."""

from typing import Any


def untrue_read(run: Any) -> float:
    """Return the share of impressions of untrue posts; NaN if nothing was read."""
    read = run.table("impressions")["root"]
    return float(run.table("posts").set_index("post")["untrue"].loc[read].mean())


def untrue_reshares(run: Any) -> float:
    """Return the mean number of reshares of an untrue post; NaN if there is none."""
    posts = run.table("posts")
    return float(posts.query("untrue and kind == 'post'")["reshares"].mean())
