"""Posts that users place: who writes them, when they appear, and that nothing else moves."""

from itertools import product

import numpy as np
import pytest
from worlds import differing, ran, small

from prism_mesa import Config
from prism_mesa.errors import ConfigError
from prism_mesa.params import nest_keys, validate_params
from prism_mesa.social.state.posts import POST
from prism_mesa.social.world.seeded import share_across

BLOCKS = {
    "agents_n": 200,
    "network_kind": "stochastic_block",
    "network_blocks": 4,
    "network_mean_degree": 12,
    "rounds": 12,
}


def world(**params):
    return small(**BLOCKS | params)


def across_by_hand(model):
    """Return the share of followers of another block, agent by agent."""
    block = [row // 50 for row in range(200)]
    followers = {row: [] for row in range(200)}
    for row in range(200):
        for followed in model.network.followees(row).tolist():
            followers[followed].append(row)
    return {row: sum(block[f] != block[row] for f in own) / max(1, len(own)) for row, own in followers.items()}


@pytest.mark.parametrize(("size", "position"), [*product(["small", "large"], ["bridge", "periphery"])])
def test_authors_are_of_the_tenth_of_their_size_and_of_it_the_fifth_of_their_position(size, position):
    model = world(posts_seeded_count=8, posts_seeded_size=size, posts_seeded_position=position)
    followers, across = model.network.n_followers, across_by_hand(model)
    chosen = sorted(set(model.seeded.author.tolist()))
    assert len(chosen) == 4  # a fifth of a tenth of 200
    tenth = sorted(followers.tolist())
    assert all(followers[a] <= tenth[19] if size == "small" else followers[a] >= tenth[-20] for a in chosen)
    of_size = [
        row for row in range(200) if (followers[row] < tenth[19] if size == "small" else followers[row] > tenth[-20])
    ]
    beyond = [across[row] for row in of_size if row not in chosen]
    own = [across[row] for row in chosen]
    assert (min(own) >= max(beyond)) if position == "bridge" else (max(own) <= min(beyond))
    assert model.seeded.across_shares.tolist() == [across[a] for a in model.seeded.author.tolist()]
    assert model.seeded.followers.tolist() == followers[model.seeded.author].tolist()


def test_they_appear_one_a_round_with_the_same_texts_whoever_writes_them():
    small_ones, large_ones = (
        ran(world(posts_seeded_count=3, posts_seeded_round=2, posts_seeded_size=size), 6) for size in ("small", "large")
    )
    assert small_ones.seeded.text_id.tolist() == large_ones.seeded.text_id.tolist()
    assert small_ones.seeded.author.tolist() != large_ones.seeded.author.tolist()
    for model in (small_ones, large_ones):
        facts = model.seeded.to_facts(model.posts)
        rows = [fact["post"] for fact in facts]
        assert [fact["round"] for fact in facts] == model.posts.round[rows].tolist() == [2, 3, 4]
        assert model.posts.author[rows].tolist() == [fact["author"] for fact in facts] == model.seeded.author.tolist()
        assert model.posts.text_id[rows].tolist() == model.seeded.text_id.tolist()
        assert set(model.posts.kind[rows].tolist()) == {POST}


def test_before_the_first_one_a_run_is_as_without_and_only_those_that_appeared_are_told():
    without = ran(world(agents_post_rate=0.3), 4)
    placed = world(agents_post_rate=0.3, posts_seeded_count=2, posts_seeded_round=4)
    ran(placed, 4)
    assert placed.seeded.to_facts(placed.posts) == []
    assert set(differing(without, placed)) <= {"notes", "params", "schedule", "seeded"}
    ran(placed, 1)
    assert [fact["round"] for fact in placed.seeded.to_facts(placed.posts)] == [4]
    assert placed.posts.kind.tolist().count(POST) == ran(without, 1).posts.kind.tolist().count(POST) + 1


def test_follows_of_who_is_in_no_community_do_not_count():
    community = np.array([0, 1, 0, -1])
    followed, follower = np.array([0, 0, 0, 3, 1]), np.array([1, 2, 3, 0, 3])
    assert share_across(community, followed, follower, 4).tolist() == [0.5, 0, 0, 0]


def test_posts_that_would_come_after_the_last_round_are_refused():
    values = nest_keys({"rounds": 10, "posts.seeded.count": 8, "posts.seeded.round": 3})
    with pytest.raises(
        ConfigError,
        match=r"posts.seeded.count=8 posts, one a round from posts.seeded.round=3 on, need rounds=11 or more",
    ):
        validate_params(Config, values, "config")
    assert validate_params(Config, values | {"rounds": 11}, "config").posts.seeded.count == 8
