"""What a post is worth to a reader: the formula, its parts, and what goes by it."""

import math
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import kstest
from worlds import ran, small

from prism_mesa.errors import ConfigError, NotedWarning
from prism_mesa.kernels.draws import mixed
from prism_mesa.kernels.utility import softplus
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import UtilityParams
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.social.state.odds import Odds
from prism_mesa.social.state.posts import POST, RESHARE
from prism_mesa.statechart import AgentState, Statechart, Transition
from prism_mesa.streams import Streams

IDLE, SCROLLING = AgentState.IDLE, AgentState.SCROLLING
ALL = {
    "utility_sensitivity": 0.05,
    "utility_weight": 0.5,
    "agents_threshold_mean": 0.3,
    "agents_band": 0.1,
    "agents_activity": 0.9,
    "agents_post_rate": 0.5,
    "clock_round_minutes": 30,
}


LEANING = {"of": "agent", "range": [-1, 3]}
PARTY = {"of": "agent", "values": ["left", "right", "none"]}
COHORT = {"of": "agent", "values": [10, 20, 50]}
ALIKE = [
    {"attributes": {"party": PARTY, "age": LEANING, by: own}, "agents_homophily_by": by, "agents_homophily_engaging": k}
    for by, own, k in (("leaning", LEANING, 6.0), ("party", PARTY, -4.0), ("cohort", COHORT, 1.1))
]


def plain_unlike(model, reader, author):
    """Return by how much two agents are unlike, from the words of `agents.homophily`."""
    by = model.params.agents.homophily.by
    if by is None:
        return 0.0
    one, other = (getattr(model.agent(row), by) for row in (reader, author))
    return {"leaning": lambda: abs(one - other) / 4, "cohort": lambda: abs(one - other) / 40}.get(
        by, lambda: float(one != other)
    )()


def close_ties(model, reader):
    network = model.network
    return network.close_indices[network.close_indptr[reader] : network.close_indptr[reader + 1]].tolist()


def either(one, other):
    """Return the soft maximum of two log-odds, how far they are apart rounded to 1/256."""
    apart = math.floor(abs(one - other) * 256 + 0.5) / 256
    return max(one, other) + math.log1p(math.exp(-apart))


def plain_utility(model, reader, post_id):
    """Return the utility of a post by the formula, number by number."""
    own, posts = model.params.utility, model.posts
    relevance = model.post(post_id, reader).relevance
    root, author = int(posts.root[post_id]), int(posts.author[post_id])
    is_reshare = posts.kind[post_id] == RESHARE
    follows = author in model.network.followees(reader).tolist()
    share = own.gamma if is_reshare or not follows else 1.0
    hours = max(model.round - int(posts.round[root]), 0) * model.params.clock.round_minutes / 60
    bits = int(mixed(np.uint64(mixed(model.streams.key("mood"), posts.key[root])), np.uint64(reader)))
    u = ((bits >> 48) + 0.5) / 2**16
    reason = share * float(posts.appeal[root])
    if own.closeness is not None and author in close_ties(model, reader):
        reason = either(reason, own.closeness)
    odds = reason + own.reshared * is_reshare - own.theta * math.log1p(hours) + own.mood * math.log(u / (1 - u))
    odds -= model.params.agents.homophily.engaging * plain_unlike(model, reader, int(posts.author[root]))
    return own.weight * relevance + own.sensitivity * odds


CLOSE = {"network_mutual": 0.8, "network_mean_degree": 12, "utility_closeness": 2.5}


@pytest.mark.parametrize("more", [{}, {"feed_mode": "x_algo"}, CLOSE, CLOSE | {"utility_closeness": None}, *ALIKE])
def test_utility_is_what_the_formula_says(more):
    model = ran(small(**ALL | more, utility_reshared=-0.5, rng=3), 5)
    kinds = set()
    for post_id in range(0, len(model.posts), 3):
        for reader in (0, 7, 19):
            kinds.add(int(model.posts.kind[post_id]))
            found = model.post(post_id, reader).utility
            assert found == pytest.approx(plain_utility(model, reader, post_id), abs=1e-6)
    assert RESHARE in kinds


@pytest.mark.parametrize("more", [{}, CLOSE, *ALIKE])
def test_what_makes_up_utility_adds_up_to_it(more):
    model = ran(small(**ALL | more, utility_reshared=-0.5, rng=3), 5)
    own = model.params.utility
    for post_id in range(0, len(model.posts), 3):
        for reader in (0, 7, 19):
            parts, post = model.platform.log_odds(reader, post_id), model.post(post_id, reader)
            whole = own.weight * post.relevance + own.sensitivity * sum(parts.values())
            assert whole == pytest.approx(post.utility, abs=1e-12)


def test_columns_agents_and_one_post_have_the_same_utility_to_the_last_bit():
    model = ran(small(**ALL, rng=4), 4)
    readers, posts = np.meshgrid(np.arange(30), np.arange(0, len(model.posts), 5), indexing="ij")
    readers, posts = readers.ravel(), posts.ravel()
    platform = model.platform
    columns = platform.utilities(readers, posts, platform.matches(readers, posts))
    assert columns.tolist() == [
        model.post(post, row).utility for row, post in zip(readers.tolist(), posts.tolist(), strict=True)
    ]


def test_without_sensitivity_utility_is_relevance_whatever_its_weight():
    with pytest.warns(NotedWarning, match="utility.weight: no effect: .*utility.sensitivity"):
        model = ran(small(utility_weight=2.0), 1)
    post = model.post(0, 5)
    assert post.utility == post.relevance


def test_the_odds_of_appeal_are_lognormal_with_mean_one_and_hang_on_the_key_alone():
    keys = Streams(1).bits("keys", np.arange(200_000))
    odds = Odds(UtilityParams(sensitivity=0.03, appeal_sigma=1.0), Streams(5), 1.0)
    appeal = odds.draw_appeal(keys).astype(float)
    assert np.exp(appeal).mean() == pytest.approx(1, abs=0.02)
    assert appeal.std() == pytest.approx(1, abs=0.01)
    assert (odds.draw_appeal(keys[::-1])[::-1] == appeal.astype(np.float32)).all()


def test_moods_are_logistic_and_differ_between_agents_and_roots():
    model = ran(
        small(
            **ALL | dict.fromkeys(("utility_weight", "utility_appeal_sigma", "utility_theta"), 0.0),
            utility_closeness=None,
            rng=2,
        ),
        6,
    )
    roots = np.flatnonzero(model.posts.root == np.arange(len(model.posts)))
    readers, posts = (both.ravel() for both in np.meshgrid(np.arange(30), roots))
    platform = model.platform
    moods = platform.utilities(readers, posts, platform.matches(readers, posts)) / 0.05
    assert len(moods) > 2000
    assert kstest(moods, "logistic").pvalue > 1e-3


def test_a_reshare_has_the_appeal_of_its_root_of_which_gamma_is_left():
    model = ran(
        small(
            **ALL | {"utility_theta": 0.0, "utility_mood": 0.0, "utility_weight": 0.0, "agents_threshold_mean": 0.0},
            utility_gamma=0.25,
            utility_reshared=0.0,
            utility_appeal_sigma=0.5,
        ),
        6,
    )
    posts = model.posts
    reshare = int(np.flatnonzero(posts.kind == RESHARE)[0])
    root = int(posts.root[reshare])
    follower = next(row for row in range(30) if int(posts.author[root]) in model.network.followees(row).tolist())
    appeal = float(posts.appeal[root])
    assert model.post(reshare, follower).utility == pytest.approx(0.05 * 0.25 * appeal)
    assert model.post(root, follower).utility == pytest.approx(0.05 * appeal)


@pytest.mark.parametrize(
    ("appeal", "kind", "odds"),
    [
        (-30.0, POST, 4.0),  # the post appeals to nobody: the tie alone counts
        (30.0, POST, 30.0),  # the post alone
        (4.0, POST, 4.0 + math.log(2)),
        (2.0, POST, math.log(math.exp(2) + math.exp(4))),
        (2.0, RESHARE, math.log(math.exp(0.5 * 2) + math.exp(4)) - 3),  # gamma takes from the appeal, the hop from both
        (-30.0, RESHARE, 4.0 - 3),
    ],
)
def test_a_close_tie_is_another_reason_to_engage_and_each_hop_takes_from_both(appeal, kind, odds):
    off = {"utility_weight": 0.0, "utility_mood": 0.0, "utility_theta": 0.0}
    keen = {"agents_threshold_mean": 0.0, "agents_reshare": 0.8, "utility_closeness": 4.0}
    model = ran(small(**ALL | CLOSE | off | keen, utility_gamma=0.5, utility_reshared=-3.0), 6)
    posts = model.posts
    post, reader = next(
        (post, close[0])
        for post in np.flatnonzero(posts.kind == kind).tolist()
        if (close := close_ties(model, int(posts.author[post])))
    )
    posts.appeal[posts.root[post]] = appeal
    found = model.platform.log_odds(reader, post)
    assert sum(found.values()) == pytest.approx(odds, abs=0.001)
    assert found["by a close tie"] == pytest.approx(odds - (found["its appeal"] + found["passed on"]), abs=0.001)
    assert model.post(post, reader).utility == pytest.approx(0.05 * sum(found.values()), abs=1e-12)


def test_reasons_are_combined_by_a_table_whose_numbers_are_the_same_on_every_machine():
    table = Odds(UtilityParams(), Streams(1), 1.0).tables(small().network, np.zeros((30, 0)), Exposure(0)).soft
    exact = [(1 + (Decimal(-k) / 256).exp()).ln() for k in range(20 * 256 + 1)]
    assert table.tolist() == np.array(exact).astype(np.float32).tolist()
    for x in (-1000.0, -20.0, -0.3, 0.0, 0.001, 5.0, 1000.0):
        assert softplus(x, table) == pytest.approx(max(x, 0) + math.log1p(math.exp(-abs(x))), abs=0.001)
    assert softplus(1000.0, table) == pytest.approx(1000.0, abs=1e-8)


def test_posts_grow_old():
    model = ran(small(**ALL | {"utility_mood": 0.0, "utility_theta": 0.8}), 5)
    own = model.params.utility
    age = 4 * 0.5
    post, reader = 0, int(model.network.indptr.searchsorted(1))
    model.platform.round = int(model.posts.round[post])
    young = model.post(post, reader).utility
    model.platform.round += 4
    assert young - model.post(post, reader).utility == pytest.approx(0.05 * own.theta * math.log1p(age), rel=1e-5)


def test_posts_go_on_growing_old_in_a_run_that_is_longer_than_was_said():
    model = small(**ALL | {"utility_mood": 0.0, "utility_theta": 0.8}, rounds=1)
    model.run_for(4)
    aged = [model.platform.log_odds(5, 0)["its age"] for model.platform.round in (0, 1, 2, 20, 2000)]
    assert aged == pytest.approx([-0.8 * math.log1p(0.5 * age) for age in (0, 1, 2, 20, 2000)])


# -- glances ---------------------------------------------------------------------------------------------------


def of_round(model, table, round_):
    return [row for row in model.recorder.tables[table] if row["round"] == round_]


@pytest.mark.parametrize("glances", [2, 5, 40])
def test_a_scrolling_agent_stops_at_the_first_post_that_is_not_below_its_band(glances):
    model = small(**ALL, feed_glances=glances, feed_size=40, feed_window=8, ticks_per_round=12, rng=6)
    for round_ in range(6):
        model.step()
        sees = {
            (m["tick"], m["agent"]): m["post"]
            for m in of_round(model, "transitions", round_)
            if m["trigger"] == "sees_post"
        }
        seen = {}
        for row in of_round(model, "impressions", round_):
            seen.setdefault((row["tick"], row["agent"]), []).append(row["post"])
        assert max(map(len, seen.values())) <= glances
        assert sees.keys() <= seen.keys()
        for (tick, agent), posts in seen.items():
            low = model.population.engagement_threshold[agent] - model.platform.half_band
            worth = [model.post(post, agent).utility for post in posts]
            if (tick, agent) in sees:
                assert posts[-1] == sees[tick, agent]
                assert worth.pop() >= low
            assert all(value < low for value in worth)
    assert model.platform.totals["impressions"] == len(model.recorder.tables["impressions"])


def test_who_passes_posts_does_not_tire_of_scrolling():
    model = small(
        **ALL | {"agents_threshold_mean": 1.0, "utility_mood": 0.0, "utility_appeal_sigma": 0.0},
        feed_glances=2,
        feed_size=60,
        feed_window=9,
        statechart_default_timeout_ticks=2,
        network_mean_degree=20,
        rng=1,
    )
    ran(model, 9)
    rests = [m for m in of_round(model, "transitions", 8) if m["to_state"] == "resting"]
    passed = {}
    for row in of_round(model, "impressions", 8):
        passed[row["agent"]] = max(row["tick"], passed.get(row["agent"], 0))
    assert max(passed.values()) > 4
    assert all(m["tick"] > passed.get(m["agent"], 0) for m in rests)


@pytest.mark.parametrize("scheduler", ["mesa", "columns"])
def test_under_a_chart_that_knows_no_posts_nothing_is_passed(scheduler):
    order = [IDLE, SCROLLING, *(state for state in AgentState if state not in (IDLE, SCROLLING)), IDLE]
    steps = [Transition("feed_ready" if a is IDLE else "timeout", a, b) for a, b in pairwise(order)]
    chart = Statechart(AgentState, steps, IDLE)
    model = ran(small(**ALL, feed_glances=10, chart=chart, scheduler=scheduler), 3)
    assert model.population.n_feed.any()
    assert model.platform.totals["impressions"] == 0


def test_feeds_are_as_long_as_a_session():
    model = small(
        agents_n=300,
        network_kind="erdos_renyi",
        network_mean_degree=290,
        agents_activity=1.0,
        agents_activity_sigma=0.0,
        agents_post_rate=1.0,
        feed_size=1000,
        feed_glances=100,
        feed_window=5,
        **{key: value for key, value in ALL.items() if key.startswith("utility")},
        agents_threshold_mean=1.0,
    )
    model.run_for(3)
    assert model.round_row["impressions"] > 300 * 256


def test_what_cannot_be_is_refused():
    for key, value in (("utility_gamma", 1.5), ("utility_sensitivity", -1), ("feed_glances", 0), ("feed_size", 10_001)):
        with pytest.raises(ConfigError, match=key.replace("_", ".", 1)):
            SocialModel(**{key: value})
