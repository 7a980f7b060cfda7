"""A feed of one's own: the newest posts first, but what has a label as if it were a day older."""

from prism_mesa import F

DEMOTION = 24
"""Rounds by which a label makes a post older."""

demoting = 0 - F.post.age - DEMOTION * F.post.labelled
