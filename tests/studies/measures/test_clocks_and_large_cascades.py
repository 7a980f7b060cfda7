"""Clocks and shapes of large cascades, by small cases that can be worked out by hand."""

from math import isnan

import numpy as np
import pytest
from small_measured_runs import finished

from prism_mesa.social.state.outcomes import cascades
from prism_mesa.studies.measures.cascades import LARGE, LARGE_TREES, MIN_LARGE
from prism_mesa.studies.measures.catalogue import compute_measures
from prism_mesa.studies.measures.rhythms import CLOCKS

HALF_HOURS = {"clock": {"round_minutes": 30}, "rounds": 96, "ticks_per_round": 8, "records": {"views": 1}}


def value(name, views, born, kind=None, config=HALF_HOURS):
    """Return a measure of posts that appear in these rounds, with views (round, root, impressions)."""
    n = len(born)
    posts = {"kind": kind or ["post"] * n, "root": range(n), "parent": [-1] * n, "round": born, "topic": [None] * n}
    cascades = {"root": range(n), "size": [1] * n, "depth": [0] * n, "kind": ["post"] * n}
    columns = dict(zip(("round", "root", "impressions"), zip(*sorted(views), strict=True), strict=True))
    return compute_measures(finished(config, posts=posts, cascades=cascades, views=columns), [name])[name]


def test_half_of_the_impressions_is_reached_within_a_round_in_proportion():
    seen = [(10, 0, 10), (11, 0, 20), (12, 0, 30), (15, 0, 20)]  # 80: 40 after 10 + 20 + a third of 30
    assert value("view_half_life", seen, [10]) == pytest.approx(70)
    assert value("view_half_life", [(10, 0, 40)], [10]) == 15
    assert value("view_half_life", [(10, 0, 40), (14, 0, 40)], [10]) == 30  # half of them when a round ends


def test_the_median_post_counts_and_impressions_after_a_day_do_not():
    seen = [(10, 0, 40), (11, 1, 40), (12, 2, 40), (58, 0, 500)]
    assert value("view_half_life", seen, [10, 10, 10]) == 45


def test_posts_with_few_impressions_without_a_day_of_follow_up_and_replies_do_not_count():
    seen = [(10, 0, 40), (15, 1, 19), (48, 2, 40), (60, 3, 40), (15, 4, 40)]
    born, kind = [10, 10, 48, 49, 10], ["post"] * 4 + ["reply"]
    assert value("view_half_life", seen, born, kind) == 15
    assert value("view_half_life", [*seen, (50, 2, 100)], born, kind) == pytest.approx((15 + 60 + 9) / 2)
    assert isnan(value("view_half_life", [(15, 0, 19)], [10]))


def test_a_post_is_silent_that_gets_at_most_a_hundredth_in_the_twelve_hours_after_its_day():
    born = [0, 0, 0, 0, 25]
    seen = [(0, post, 200) for post in range(4)] + [(48, 0, 2), (48, 1, 3), (71, 2, 3), (72, 3, 50), (25, 4, 200)]
    assert value("silent_after_day", seen, born) == 0.5  # 0 and 3; the last one is not followed for 36 hours
    assert isnan(value("silent_after_day", [(0, 0, 19)], [0]))


def test_where_no_views_are_counted_there_is_no_half_life():
    for name in ("view_half_life", "silent_after_day"):
        assert isnan(value(name, [(0, 0, 40)], [0], config=HALF_HOURS | {"records": {"views": 0}}))


def delays(trees):
    """Return measures of trees whose reshares were made in these rounds after the post, in tick 5 of 8 + 2."""
    n = len(trees)
    posts = {"kind": ["post"] * n, "root": range(n), "parent": [-1] * n, "round": [3] * n, "topic": [None] * n}
    cascades = {"root": range(n), "size": [1 + len(tree) for tree in trees], "depth": [1] * n, "kind": ["post"] * n}
    made = [(root, 3 + after) for root, tree in enumerate(trees) for after in tree]
    root, rounds = (list(column) for column in zip(*made, strict=True))
    engaged = {"round": [*rounds, 90], "tick": [5] * len(made) + [1], "root": [*root, 0]}
    engaged["action"] = ["reshare"] * len(made) + ["like"]
    names = [one.name for one in CLOCKS if one.name.startswith("large")]
    return compute_measures(finished(HALF_HOURS, posts=posts, cascades=cascades, engagements=engaged), names)


def test_delays_are_of_reshares_in_large_cascades_from_the_opening_of_the_round_of_the_post():
    fast = [0] * (LARGE - 1)
    slow = [0] * 20 + [10] * 30 + [20] * 30 + [40] * 20
    found = delays([fast] * MIN_LARGE + [[50]] * 5)
    assert set(found.values()) == {15, 0.25}  # minutes; hours
    found = delays([slow] * MIN_LARGE)
    assert found == {
        "large_delay_lower": 315,
        "large_delay_median": 615 - 300 / 2,  # between the 50th and the 51st of each hundred
        "large_delay_upper": 615,
        "large_reshares_by": 615 / 60,
    }
    assert delays([fast] * MIN_LARGE + [slow] * (MIN_LARGE + 1))["large_reshares_by"] == 615 / 60
    assert all(map(isnan, delays([fast] * (MIN_LARGE - 1)).values()))


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
    trees = [STAR] * MIN_LARGE + [BROOM] * MIN_LARGE + [SMALL] * 500
    assert compute_measures(run_of(trees), NAMES) == pytest.approx(expected)


def test_few_large_cascades_have_no_shape():
    assert all(map(isnan, compute_measures(run_of([STAR] * (MIN_LARGE - 1) + [SMALL] * 50), NAMES).values()))


def test_where_nothing_is_reshared_again_no_reshare_has_another_behind_it():
    found = compute_measures(run_of([STAR] * MIN_LARGE), NAMES)
    assert (found["large_reproduction_2"], found["large_hop_1"]) == (0, 1)
    assert isnan(found["large_reproduction_3"])  # there is no reshare at hop 2
