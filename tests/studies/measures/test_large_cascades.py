"""Shapes of large cascades, on trees that can be worked out by hand."""

from math import isnan

import numpy as np
import pytest
from small_measured_runs import finished

from prism_mesa.social.cascades import cascades
from prism_mesa.studies.measures.cascades import ENOUGH_LARGE, LARGE, LARGE_TREES
from prism_mesa.studies.measures.catalogue import measured

NAMES = [one.name for one in LARGE_TREES]


def run_of(trees):
    """Return a run of trees; each is a list of the parents of its reshares, 0 for the post itself, 1 for the first."""
    parent, root, kind = [], [], []
    for tree in trees:
        first = len(parent)
        parent += [-1, *(first + above for above in tree)]
        root += [first] * (1 + len(tree))
        kind += ["post", *["reshare"] * len(tree)]
    codes = np.array([0 if one == "post" else 2 for one in kind], np.uint8)
    table = cascades(np.array(parent), np.array(root), codes)
    table["kind"] = "post"
    none = np.zeros(len(parent), int)
    posts = {"parent": parent, "root": root, "kind": kind, "round": none, "author": none, "topic": [None] * len(none)}
    return finished(posts=posts, cascades=table)


STAR = [0] * (LARGE - 1)
BROOM = [0] * 40 + [1] * 12 + [41] * 8 + [53]  # 40 at hop 1, 12 at hop 2, 8 at hop 3, one at hop 4
SMALL = [0, 1, 2, 3, 4, 5]


def test_shapes_are_of_large_cascades_alone_and_hops_are_pooled():
    reshares = 55 + 61
    star = 2 * 55 / 56  # the virality of a star of n nodes: 2 (n - 1) / n
    broom = run_of([BROOM]).table("cascades")["structural_virality"].iloc[0]
    expected = {
        "large_depth": 2.5,
        "large_hop_1": (55 + 40) / reshares,
        "large_hop_2": 12 / reshares,
        "large_hop_3": 8 / reshares,
        "large_reproduction_2": 12 / 95,
        "large_reproduction_3": 8 / 12,
        "large_breadth": (55 / 56 + 40 / 62) / 2,
        "large_virality": (star + broom) / 2,
        "large_size_virality": 1,
    }
    trees = [STAR] * ENOUGH_LARGE + [BROOM] * ENOUGH_LARGE + [SMALL] * 500
    assert measured(run_of(trees), NAMES) == pytest.approx(expected)


def test_few_large_cascades_have_no_shape():
    assert all(map(isnan, measured(run_of([STAR] * (ENOUGH_LARGE - 1) + [SMALL] * 50), NAMES).values()))


def test_where_nothing_is_reshared_again_no_reshare_has_another_behind_it():
    found = measured(run_of([STAR] * ENOUGH_LARGE), NAMES)
    assert (found["large_reproduction_2"], found["large_hop_1"]) == (0, 1)
    assert isnan(found["large_reproduction_3"])  # there is no reshare at hop 2
