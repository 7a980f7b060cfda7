"""A feed of your own: the newest posts first, with labelled posts ranked as if they were a day older."""

from prism_mesa import F

DEMOTION = 24
"""Rounds that a label adds to the age of a post."""

demoting = 0 - F.post.age - DEMOTION * F.post.labelled
