"""Finished runs of a few rows, written by hand."""

import pandas as pd

from prism_mesa.runs.config import Config
from prism_mesa.studies.measures.catalogue import FinishedRun

AGENTS = {
    "interests": ["tea;jazz", "tea", "jazz;tea", ""],
    "followers": [3, 1, 0, 0],
    "recorded_impressions": [True] * 4,
}
POSTS = {
    # a post of agent 0, its reshare by agent 1, a post of agent 1, a reply of agent 2 that nobody read
    "author": [0, 1, 1, 2],
    "kind": ["post", "reshare", "post", "reply"],
    "root": [0, 0, 2, 3],
    "reshares": [1, 0, 0, 0],
    "impressions": [5, 0, 3, 0],
    "topic": ["tea", "tea", "jazz", None],
}
IMPRESSIONS = {"agent": [1, 2, 2, 3, 3, 0, 2, 3], "post": [0, 0, 1, 1, 0, 2, 2, 2], "root": [0, 0, 0, 0, 0, 2, 2, 2]}
ENGAGEMENTS = {"agent": [1, 0, 2], "root": [0, 2, 0]}
CASCADES = {
    "root": [0, 2, 3],
    "size": [2, 1, 1],
    "depth": [1, 0, 0],
    "breadth": [1, 1, 1],
    "kind": ["post", "post", "reply"],
}
FOLLOWS = {"src": [0, 0, 0, 1], "dst": [1, 2, 3, 0]}
SUMMARY = {
    "engagement": {"likes": 6, "replies": 1, "reshares": 1, "posts": 2},
    "impressions": 16,
    "recorded": {"impressions": {"share": 1.0}, "engagements": {"share": 1.0}},
    "seeded": [],
}


def finished(config=None, summary=None, follows=None, **tables):
    """Return a finished run of these tables; those that are not given are the ones above."""
    own = {
        "agents": AGENTS,
        "posts": POSTS,
        "impressions": IMPRESSIONS,
        "engagements": ENGAGEMENTS,
        "cascades": CASCADES,
    } | tables
    frames = {name: pd.DataFrame(columns) for name, columns in own.items()}
    for table, column in (("posts", "topic"), ("posts", "kind"), ("cascades", "kind")):
        frames[table][column] = frames[table][column].astype("category")
    return FinishedRun(
        Config.model_validate(config or {}),
        SUMMARY | (summary or {}),
        frames.__getitem__,
        lambda: pd.DataFrame(FOLLOWS if follows is None else follows),
    )
