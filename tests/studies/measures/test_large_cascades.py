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


def value(trees, name):
    return measured(run_of(trees), [name])[name]


STAR = [0] * (LARGE - 1)
BROOM = [0] * 40 + [1] * 12 + [41] * 8 + [53]  # 40 at hop 1, 12 at hop 2, 8 at hop 3, one at hop 4
SMALL = [0, 1, 2, 3, 4, 5]


def test_shapes_are_of_large_cascades_alone_and_hops_are_pooled():
    trees = [STAR] * ENOUGH_LARGE + [BROOM] * ENOUGH_LARGE + [SMALL] * 500
    reshares = 55 + 61
    assert value(trees, "large_depth") == 2.5
    assert value(trees, "large_hop_1") == pytest.approx((55 + 40) / reshares)
    assert value(trees, "large_hop_2") == pytest.approx(12 / reshares)
    assert value(trees, "large_hop_3") == pytest.approx(8 / reshares)
    assert value(trees, "large_reproduction_2") == pytest.approx(12 / 95)
    assert value(trees, "large_reproduction_3") == pytest.approx(8 / 12)
    assert value(trees, "large_breadth") == pytest.approx((55 / 56 + 40 / 62) / 2)
    star = 2 * 55 / 56  # a star of n nodes: 2 (n - 1) / n
    broom = run_of([BROOM]).table("cascades")["structural_virality"].iloc[0]
    assert value(trees, "large_virality") == pytest.approx((star + broom) / 2)
    assert value(trees, "large_size_virality") == pytest.approx(1)


def test_few_large_cascades_have_no_shape():
    assert all(isnan(value([STAR] * (ENOUGH_LARGE - 1) + [SMALL] * 50, name)) for name in NAMES)
    assert isnan(value([SMALL] * 50, "large_depth"))


def test_where_nothing_is_reshared_again_no_reshare_has_another_behind_it():
    assert value([STAR] * ENOUGH_LARGE, "large_reproduction_2") == 0
    assert isnan(value([STAR] * ENOUGH_LARGE, "large_reproduction_3"))  # there is no reshare at hop 2
    assert value([STAR] * ENOUGH_LARGE, "large_hop_1") == 1
