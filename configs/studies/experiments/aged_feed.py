"""A ranked feed in which posts age fast, for the study notes_ranked.yaml."""

HALF_LIFE = 80 / 30
"""Rounds until the score of a post is half: 80 minutes, the half-life of impressions on X (Pfeffer et al. 2023)."""


def rate_and_age(columns):
    """Return the engagements per impression of each post (shrunk by 100 impressions at a rate of .005), less by age."""
    engagements = columns["post.likes"] + columns["post.replies"] + columns["post.reshares"] + 0.5
    return engagements / (columns["post.impressions"] + 100.0) * 0.5 ** (columns["post.age"] / HALF_LIFE)
