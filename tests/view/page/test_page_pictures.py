"""Where agents and the posts of a cascade stand in the page's pictures."""

import numpy as np

from prism_mesa.view.page.network_view import MAX_AGENTS, lay_out, sample_follows
from prism_mesa.view.page.source import Follows, PostColumns
from prism_mesa.view.page.trees import cascade_tree, largest_cascades

POST, REPLY, RESHARE = 0, 1, 2


def two_communities(n=40):
    """Agents of two halves who follow those of their own half alone, and one follow between them."""
    half = n // 2
    pairs = [(a, b) for side in (0, half) for a in range(side, side + half) for b in range(side, side + half) if a != b]
    src, dst = np.array([*pairs, (0, n - 1)]).T
    return Follows(src, dst, np.bincount(src, minlength=n))


def test_who_follow_each_other_stand_together():
    follows = two_communities()
    where = lay_out(follows).points
    left, right = where[:20], where[20:]
    apart = np.hypot(*(left.mean(axis=0) - right.mean(axis=0)))
    spread = max(np.hypot(*(side - side.mean(axis=0)).T).mean() for side in (left, right))
    assert apart > 2 * spread
    assert np.abs(where).max() == 1


def test_of_too_many_agents_and_follows_an_even_sample_is_drawn():
    n = 2 * MAX_AGENTS
    src = np.arange(n)
    follows = Follows(src, (src + 1) % n, np.ones(n, np.int64))
    drawn = lay_out(follows)
    assert len(drawn.agents) == MAX_AGENTS
    assert 0.4 < (drawn.agents < n / 2).mean() < 0.6
    few_src, few_dst = sample_follows(drawn.agents, follows, limit=200)
    assert 120 < len(few_src) < 280
    assert (drawn.agents[few_dst] == (drawn.agents[few_src] + 1) % n).all()


def posts(*rows):
    """Posts given as (kind, parent, root)."""
    kind, parent, root = np.array(rows).T
    return PostColumns(np.arange(len(rows)), kind, parent, root, np.arange(len(rows)))


def test_the_largest_cascades_are_of_posts_and_those_of_replies_are_apart():
    table = posts((POST, -1, 0), (POST, -1, 1), (RESHARE, 1, 1), (REPLY, 0, 3), (RESHARE, 2, 1), (RESHARE, 3, 3))
    assert largest_cascades(table, 5) == [(1, 3)]
    assert largest_cascades(table, 5, kind="reply") == [(3, 2)]
    assert largest_cascades(table, 1) == [(1, 3)]
    assert largest_cascades(posts((POST, -1, 0)), 5) == []


def test_a_tree_has_its_leaves_below_each_other_and_parents_between_them():
    table = posts((POST, -1, 0), (RESHARE, 0, 0), (RESHARE, 0, 0), (RESHARE, 1, 0), (RESHARE, 1, 0))
    tree = cascade_tree(table, 0)
    assert tree.posts.tolist() == [0, 1, 2, 3, 4]
    assert tree.parent.tolist() == [-1, 0, 0, 1, 1]
    assert tree.depth.tolist() == [0, 1, 1, 2, 2]
    assert tree.row.tolist() == [1.25, 0.5, 2.0, 0.0, 1.0]
