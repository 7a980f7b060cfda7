"""What a run has come to, told each round: it agrees with the posts, their trees, and the sums of the rounds."""

import mesa
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import plain_keywords

from prism_mesa import SocialAgent, SocialModel
from prism_mesa.runs.measures import gini
from prism_mesa.social.state.outcomes import OUTCOME_FIELDS, cascades, gini_of_counts
from prism_mesa.social.state.posts import POST

WORLD = plain_keywords(agents_n=80, network_mean_degree=8, agents_activity=0.8, ticks_per_round=8, rounds=12)


class Loud(SocialAgent):
    """Passes on what it sees, and writes."""

    def step(self):
        while post := self.read():
            self.reshare(post)
        if self.model.tick == 1:
            self.write("Listen to me.")


def told(model):
    return model.datacollector.get_model_vars_dataframe()


def check(model):
    """Compare the last row that was told with the posts and the trees under them."""
    posts, last = model.posts, told(model).iloc[-1]
    trees = cascades(posts.parent, posts.root, posts.kind)
    sizes = trees["size"][posts.kind[trees["root"]] == POST]
    assert last["cascades"] == len(sizes)
    assert last["cascade_mean_size"] == pytest.approx(sizes.mean())
    assert last["cascade_max_size"] == sizes.max()
    assert last["cascade_never_reshared"] == pytest.approx((sizes == 1).mean())
    attention = np.bincount(posts.author, posts.impressions, minlength=len(model.population))
    assert model.outcomes.attention.tolist() == attention.tolist()
    assert attention.sum() == last["total_impressions"]
    assert last["attention_gini"] == pytest.approx(gini(attention))


@pytest.mark.parametrize("mode", ["chronological", "random", "preference", "x_algo"])
@pytest.mark.parametrize("window", [1, 4])
def test_outcomes_agree_with_posts_and_trees_after_every_round(mode, window):
    model = SocialModel(**WORLD | {"feed_mode": mode, "feed_window": window})
    for _ in range(8):
        model.step()
        check(model)
    assert model.round_row["cascade_max_size"] > 2
    assert 0 < model.round_row["attention_gini"] < 1


def test_outcomes_agree_where_agents_are_scripted_apply_churn():
    model = SocialModel(**WORLD, statechart_max_history_depth=3)
    Loud(model, 3)
    for round_ in range(8):
        model.step()
        check(model)
        if round_ == 2:
            Loud(model, follows=range(20), followers=range(20, 60))
        if round_ == 4:
            model.agent(3).remove()
    assert len(model.outcomes.attention) == 81


def test_attention_counts_posts_read_between_rounds_that_have_left_the_window():
    model = SocialModel(**WORLD | {"feed_window": 1})
    n_read = 0
    for _ in range(5):
        model.step()
        check(model)
        oldest = model.posts.first_visible(model.round, 1)
        for row in range(80):
            post = model.agent(row).read()
            n_read += post is not None
            assert post is None or post.post_id >= oldest
    assert n_read


def test_a_platform_on_which_nothing_happens_has_no_cascades_and_no_inequality():
    model = SocialModel(**plain_keywords(agents_n=80, network_mean_degree=8, agents_activity=0.0, agents_post_rate=0.0))
    model.run_for(2)
    assert told(model)[list(OUTCOME_FIELDS)].iloc[-1].tolist() == [0.0] * len(OUTCOME_FIELDS)


def test_the_last_round_that_a_batch_returns_tells_of_the_whole_run():
    world = plain_keywords(agents_n=40, network_mean_degree=8)
    arms = world | {"feed_mode": ["chronological", "random"]}
    found = pd.DataFrame(mesa.batch_run(SocialModel, arms, rng=[1, 2], max_steps=4, display_progress=False))
    for _, row in found.iterrows():
        model = SocialModel(**world, feed_mode=row["feed_mode"], rng=int(row["rng"]))
        model.run_for(4)
        assert row["total_reshares"] == told(model)["reshares"].sum() == model.totals["reshares"]
        assert row["attention_gini"] == gini(np.bincount(model.posts.author, model.posts.impressions, minlength=40))


@given(st.lists(st.integers(0, 50) | st.integers(0, 10**11), min_size=1, max_size=60))
def test_counting_equal_numbers_gives_the_same_gini_as_sorting(numbers):
    assert gini_of_counts(np.array(numbers)) == pytest.approx(gini(numbers), abs=1e-9)
