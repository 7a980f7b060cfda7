"""What a post is worth to a reader: the formula, its parts, and what goes by it."""

import math

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import kstest
from worlds import ran, small

from prism_mesa.errors import NotedWarning
from prism_mesa.kernels.draws import mix
from prism_mesa.social.params import UtilityParams
from prism_mesa.social.state.odds import Odds
from prism_mesa.social.state.posts import RESHARE
from prism_mesa.statechart import AgentState
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
    bits = int(mix(np.uint64(mix(model.streams.key("mood"), posts.key[root])), np.uint64(reader)))
    u = ((bits >> 48) + 0.5) / 2**16
    reason = share * float(posts.appeal[root])
    if own.closeness is not None and author in close_ties(model, reader):
        reason = either(reason, own.closeness)
    odds = reason + own.reshared * is_reshare - own.theta * math.log1p(hours) + own.mood * math.log(u / (1 - u))
    odds -= model.params.agents.homophily.engaging * plain_unlike(model, reader, int(posts.author[root]))
    return own.weight * relevance + own.sensitivity * odds


@pytest.mark.parametrize(
    ("key", "highest"),
    [("weight", 100), ("closeness", 20), *((key, 10) for key in ("sensitivity", "appeal_sigma", "theta", "mood"))],
)
def test_a_part_of_utility_above_its_highest_value_is_refused(key, highest):
    assert getattr(UtilityParams(**{key: highest}), key) == highest
    with pytest.raises(ValidationError, match=rf"{key}\n"):
        UtilityParams(**{key: math.nextafter(highest, math.inf)})


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
    columns = platform.utilities(readers, posts, platform.similarities(readers, posts))
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
    moods = platform.utilities(readers, posts, platform.similarities(readers, posts)) / 0.05
    assert len(moods) > 2000
    assert kstest(moods, "logistic").pvalue > 1e-3


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
