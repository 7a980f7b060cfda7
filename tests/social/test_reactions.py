"""What agents react to: the likes and the attribute of a post, and what their sessions were worth."""

import numpy as np
import pytest
from worlds import differing, ran, small

from prism_mesa.errors import ConfigError, NotedWarning
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round.acts import carry_out_acts
from prism_mesa.social.state.posts import POST, RESHARE

ATTRIBUTES = {
    "veracity": {"of": "post", "values": [True, False]},
    "slant": {"of": "post", "range": [-1, 1]},
    "kin": {"of": "post", "values": ["cat", "dog"]},
}
BUSY = {
    "agents_n": 200,
    "agents_activity": 0.9,
    "agents_post_rate": 0.4,
    "agents_threshold_mean": 0.3,
    "network_mean_degree": 12,
    "utility_sensitivity": 0.05,
    "utility_weight": 0.3,
    "utility_appeal_sigma": 1.0,
    "attributes": ATTRIBUTES,
    "records_transitions": 0,
}
SEEDED = {"name": "seeded", "at": 1, "like": {"posts": "post.slant > 0", "n": 20}}
"""The platform adds likes to half of the posts."""


def living(*interventions, rounds=6, **params):
    return ran(small(**BUSY | params, interventions=list(interventions)), rounds)


def engaged_share(model, chosen, since=2):
    """Return the shares of impressions of chosen roots, and of others, with an engagement; `chosen` is a mask."""
    counts = np.zeros((2, 2))
    for column, table in enumerate(("impressions", "engagements")):
        roots = np.array([row["root"] for row in model.recorder.tables[table] if row["round"] >= since])
        counts[column] = np.bincount(chosen[roots].astype(int), minlength=2)
    return (counts[1] / counts[0])[::-1]


def appeal_by(attribute, effect):
    return {"utility_appeal_by_attribute": attribute, "utility_appeal_by_effect": effect}


OFF = {"utility_counts": 0.0, "utility_appeal_by_attribute": None, "agents_returns_online": 0.0}


def test_off_changes_nothing_and_keeps_no_memory():
    plain, off = living(SEEDED), living(SEEDED, **OFF)
    assert differing(plain, off) == []
    assert len(off.platform.session_worth.n) == 0


@pytest.mark.parametrize("effect", [{}, {"false": 0.0}, {"true": 0.0, "false": 0.0}])
def test_an_effect_of_0_changes_nothing(effect):
    params = appeal_by("veracity", effect)
    if not effect:
        with pytest.warns(NotedWarning, match="it counts only with utility.appeal_by.effect"):
            model = living(**params)
    else:
        model = living(**params)
    assert differing(living(), model) == []


def test_counts_raise_engagement_with_liked_posts():
    plain, counted = living(SEEDED), living(SEEDED, utility_counts=0.6)
    (liked, others), (liked_before, others_before) = (
        engaged_share(model, model.posts.attributes[:, 1] > 0) for model in (counted, plain)
    )
    assert liked > 1.4 * liked_before
    assert liked - others > 2 * abs(liked_before - others_before)


def test_hidden_likes_are_no_reason_and_rankers_still_see_them():
    ranked, hide = {"feed_mode": "x_2023"}, {"at": 0, "hide": ["likes"]}
    hidden, plain = living(SEEDED, hide, utility_counts=0.6, **ranked), living(SEEDED, **ranked)
    assert differing(plain, hidden) == []
    unliked = living(hide, utility_counts=0.6, **ranked)
    assert unliked.recorder.tables["impressions"] != hidden.recorder.tables["impressions"]


def test_it_is_noted_if_nobody_reads_what_is_hidden():
    hide = {"at": 0, "hide": ["likes"]}
    with pytest.warns(NotedWarning, match="interventions: 0 .*: no effect: only an LLM reads these numbers"):
        living(hide, rounds=1)
    with pytest.warns(NotedWarning, match="only an LLM reads these numbers"):
        living({"at": 0, "hide": ["replies"]}, rounds=1, utility_counts=0.6)
    assert "only an LLM" not in " ".join(living(hide, {"at": 1, "set": {"utility.counts": 1}}, rounds=1).notes)


def test_only_the_agents_that_an_act_applies_to_lose_the_likes():
    blind = {"name": "blind", "at": 0, "hide": ["likes"], "share": 0.5}
    model = living(SEEDED, blind, utility_counts=0.6, rounds=4)
    platform = model.platform
    platform.round += 1
    carry_out_acts(platform)
    post = int(np.flatnonzero(model.posts.likes > 10)[0])
    odds = [platform.log_odds(row, post) for row in range(200)]
    is_blind = platform.act_state.is_treated("blind", np.arange(200))
    seen = 0.6 * np.log1p(model.posts.likes[model.posts.root[post]])
    assert [part["its likes"] for part in odds] == pytest.approx(np.where(is_blind, 0, seen), rel=1e-6)


@pytest.mark.parametrize(
    ("params", "gain"),
    [
        (appeal_by("veracity", {False: 1.0}), lambda a: np.where(a[:, 0] == 0, 1.0, 0.0)),
        (appeal_by("kin", {"dog": 1.0, "cat": -2.0}), lambda a: np.where(a[:, 2] == 1, 1.0, -2.0)),
        (appeal_by("slant", 1.5), lambda a: 1.5 * a[:, 1]),
    ],
)
def test_an_attribute_changes_the_log_odds_of_its_posts_and_their_reshares(params, gain):
    plain, model = living(rounds=3), living(rounds=3, **params)
    roots = np.flatnonzero(plain.posts.round == 0)  # the same in both
    readers = roots % 200
    utility, without = (
        each.platform.utilities(readers, roots, each.platform.similarities(readers, roots)) for each in (model, plain)
    )
    expected = gain(model.posts.attributes)[model.posts.root]
    assert (utility - without) / 0.05 == pytest.approx(expected[roots], abs=1e-6)
    name = f"by its {params['utility_appeal_by_attribute']}"
    posts = np.flatnonzero(model.posts.kind == RESHARE)[:20]
    assert len(posts) == 20
    assert [model.platform.log_odds(0, int(post))[name] for post in posts] == pytest.approx(expected[posts])


def test_an_attribute_raises_engagement_with_its_posts_and_not_with_others():
    plain, model = living(), living(**appeal_by("veracity", {False: 1.0}))
    (false, true), (false_before, true_before) = (
        engaged_share(each, each.posts.attributes[:, 0] == 0) for each in (model, plain)
    )
    assert false > 1.5 * false_before
    assert true == pytest.approx(true_before, rel=0.15)


def test_likes_and_attributes_are_parts_of_utility():
    model = living(SEEDED, utility_counts=0.6, utility_weight=0.5, **appeal_by("slant", 2.0))
    for post in range(0, len(model.posts), 7):
        parts, seen = model.platform.log_odds(5, post), model.post(post, 5)
        assert 0.5 * seen.relevance + 0.05 * sum(parts.values()) == pytest.approx(seen.utility, abs=1e-12)


# -- returns ---------------------------------------------------------------------------------------------------


VISITING = {"agents_activity": 0.4, "agents_activity_sigma": 0.3, "agents_returns_first": 3, "records_transitions": 1}
WORSE = {"name": "worse", "at": 10, "share": 0.5, "filter": {"posts": "post.relevance > 0.55"}}


def visits(model, since=14):
    """Return in how many rounds each agent came online."""
    moves = model.recorder.tables["transitions"]
    rows = [row["agent"] for row in moves if row["trigger"] == "feed_ready" and row["round"] >= since]
    return np.bincount(rows, minlength=200)


def test_agents_whose_sessions_got_worse_come_less_often_than_their_pair():
    params = VISITING | {"agents_returns_online": 60.0, "utility_weight": 1.0, "agents_threshold_mean": 0.6}
    worse, plain = living(WORSE, rounds=30, **params), living(rounds=30, **params)
    before = [visits(model, since=0) - visits(model, since=11) for model in (worse, plain)]
    assert (before[0] == before[1]).all()
    treated = worse.platform.act_state.is_treated("worse", np.arange(200))
    changes = visits(worse) - visits(plain)
    assert changes[treated].mean() < -1
    assert abs(changes[~treated].mean()) < 0.5
    memory = worse.platform.session_worth
    assert (memory.last - memory.first)[treated].mean() < -0.01


@pytest.mark.parametrize("strength", ["online", "session"])
def test_a_strength_of_0_changes_nothing(strength):
    params = VISITING | {"agents_session": 8.0, "agents_returns_first": 5}
    with pytest.warns(NotedWarning, match="agents.returns.half_life: no effect"):
        plain = living(**params, agents_returns_half_life=2.0, agents_returns_online=0.0)
    tiny = living(**params, agents_returns_half_life=2.0, **{f"agents_returns_{strength}": 1e-300})
    for table in ("rounds", "impressions", "engagements", "transitions"):
        assert tiny.recorder.tables[table] == plain.recorder.tables[table]
    assert tiny.platform.session_worth.n.max() == 6


def test_sessions_get_longer_if_they_are_worth_more():
    params = VISITING | {"agents_session": 8.0, "agents_session_sigma": 0.0, "utility_weight": 1.0}
    worse = living(WORSE, rounds=20, agents_returns_session=30.0, **params)
    plain = living(WORSE, rounds=20, **{key: value for key, value in params.items() if "returns" not in key})
    treated = worse.platform.act_state.is_treated("worse", np.arange(200))

    def n_read(model):
        return np.bincount([row["agent"] for row in model.recorder.tables["impressions"] if row["round"] > 14])

    assert n_read(worse)[treated].sum() < 0.9 * n_read(plain)[treated].sum()


def test_memory_is_of_mean_utility_and_begins_with_the_first_sessions():
    model = small(**BUSY | VISITING, agents_returns_online=1.0, agents_returns_half_life=1.0)
    first, last, sessions = (np.zeros(200) for _ in range(3))
    for round_ in range(8):
        model.step()
        worth = {}
        for row in (row for row in model.recorder.tables["impressions"] if row["round"] == round_):
            worth.setdefault(row["agent"], []).append(row["post"])
        for agent, posts in worth.items():
            readers, ids = np.full(len(posts), agent), np.array(posts)
            utility = model.platform.utilities(readers, ids, model.platform.similarities(readers, ids)).mean()
            sessions[agent] += 1
            share = 1 / sessions[agent] if sessions[agent] <= 3 else 0.5
            last[agent] += share * (utility - last[agent])
            first[agent] = last[agent] if sessions[agent] <= 3 else first[agent]
    memory = model.platform.session_worth
    assert memory.n.tolist() == sessions.tolist()
    assert memory.first == pytest.approx(first, abs=1e-6)
    assert memory.last == pytest.approx(last, abs=1e-6)


def test_a_newcomer_starts_without_memory():
    model = living(**VISITING, agents_returns_online=50.0)
    SocialAgent(model, follows=[0, 1, 2], activity=1.0)
    ran(model, 1)
    assert len(model.platform.session_worth.n) == 201
    assert model.platform.session_worth.n[200] <= 1


# -- bad input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (appeal_by("truth", {"false": 1}), "'truth' is not an attribute of posts"),
        (appeal_by("veracity", {"maybe": 1}), "veracity: give .VALUE: NUMBER, ....* for true, false, not 'maybe'"),
        (appeal_by("veracity", 0.5), "veracity: give .VALUE: NUMBER, ....* for true, false, not 0.5"),
        (appeal_by("slant", {"low": 1}), "slant: give a number per unit, not 'low'"),
        (appeal_by("slant", 21), "give a number from -20 to 20"),
        (appeal_by("veracity", {"false": "much"}), "give a number from -20 to 20"),
    ],
)
def test_an_effect_that_does_not_fit_is_refused_by_name(params, words):
    with pytest.raises(ConfigError, match=rf"utility\.appeal_by\.\w+: {words}") as error:
        SocialModel(agents_n=20, attributes=ATTRIBUTES, **params)
    assert "\n" not in str(error.value)


def test_an_effect_that_fades_is_reduced_by_gamma_after_a_reshare():
    fading = {"utility_appeal_by_fades": True, "utility_gamma": 0.5, "network_close_ties": 0}
    model = living(rounds=3, **appeal_by("slant", 1.5) | fading)
    posts = model.posts
    gain = 1.5 * posts.attributes[posts.root, 1]
    reshares = np.flatnonzero(posts.kind == RESHARE)[:20]
    assert len(reshares) == 20
    appeal = [model.platform.log_odds(0, int(post))["its appeal"] for post in reshares]
    assert appeal == pytest.approx(0.5 * (posts.appeal[posts.root] + gain)[reshares], abs=1e-5)
    pairs = [
        (0, post) for post in np.flatnonzero(posts.kind == POST) if posts.author[post] in model.network.followees(0)
    ]
    assert pairs
    shown = [model.platform.log_odds(row, int(post))["its appeal"] for row, post in pairs]
    assert shown == pytest.approx([posts.appeal[post] + gain[post] for _, post in pairs], abs=1e-5)
