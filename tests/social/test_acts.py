"""Acts of the platform: what they do to posts and accounts, to whom, from when on, and what is recorded."""

import numpy as np
import pandas as pd
import pytest
from worlds import differing, ran, small

from prism_mesa.analysis.explain.feed import explain_feed
from prism_mesa.errors import ConfigError
from prism_mesa.runs.branch import branch
from prism_mesa.runs.config import make_config
from prism_mesa.runs.social import run
from prism_mesa.social.behavior import build_chart
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.population import SUSPENDED
from prism_mesa.statechart import Statechart

ATTRIBUTES = {
    "toxicity": {"of": "post", "range": [0, 1]},
    "bot": {"of": "agent", "values": [True, False], "share": [1, 4]},
}
BUSY = {"agents_n": 100, "agents_post_rate": 0.4, "agents_activity": 0.9, "network_mean_degree": 12}
TOXIC = "post.toxicity > 0.5"


def acting(*interventions, rounds=5, **params):
    return ran(small(**(BUSY | {"attributes": ATTRIBUTES} | params), interventions=list(interventions)), rounds)


def read_roots(model, since=0):
    rows = [row for row in model.recorder.tables["impressions"] if row["round"] >= since]
    return np.array([row["root"] for row in rows]), np.array([row["agent"] for row in rows])


def toxicity(model, roots):
    return model.posts.attributes[roots, 0]


def done(model, what):
    return [row for row in model.recorder.tables.get("acts", ()) if row["act"] == what]


EVERY_ACT = {
    "remove": {"posts": TOXIC},
    "filter": {"posts": TOXIC},
    "downrank": {"posts": TOXIC, "score": -5},
    "label": {"posts": TOXIC, "effect": {"like": -2}},
    "friction": {"on": "reshare", "abandon": 0.9},
    "cap": {"reshares": 1},
}


@pytest.mark.parametrize("kind", EVERY_ACT)
def test_a_share_of_0_changes_nothing_and_a_share_of_1_is_everybody(kind):
    plain = acting()
    nobody = acting({"name": "act", "at": 1, "share": 0, kind: EVERY_ACT[kind]})
    noted = {"records", "totals"}  # of the posts that were met
    assert {*differing(plain, nobody)} <= noted
    for table in ("transitions", "engagements", "rounds"):
        assert nobody.recorder.tables[table] == plain.recorder.tables[table]
    everybody = acting({"at": 1, kind: EVERY_ACT[kind], "name": "act"})
    assert differing(everybody, acting({"name": "act", "at": 1, "share": 1, kind: EVERY_ACT[kind]})) == []
    assert {*differing(plain, everybody)} > noted


def test_an_effect_of_0_changes_nothing_but_what_is_noted():
    label = {"posts": TOXIC, "effect": {"like": 0, "reshare": 0}}
    assert {*differing(acting(), acting({"at": 1, "label": label}))} == {"records", "totals"}


@pytest.mark.parametrize("act", [{"remove": {"posts": TOXIC}}, {"filter": {"posts": TOXIC}}])
@pytest.mark.parametrize(
    "feed",
    [{"feed_mode": "chronological"}, {"feed_mode": "x_2023", "feed_candidates_trending": 5, "feed_slots_search": 3}],
)
def test_nobody_reads_what_is_taken_out(act, feed):
    model = acting({"at": 2, **act}, **feed)
    roots, _ = read_roots(model, since=2)
    before, _ = read_roots(model)
    assert toxicity(model, roots).max() <= 0.5 < toxicity(model, before).max()


def test_only_treated_agents_lose_the_posts():
    model = acting({"name": "half", "at": 0, "share": 0.5, "filter": {"posts": TOXIC}})
    roots, agents = read_roots(model)
    treated = model.platform.assignments.is_treated("half", agents)
    is_toxic = toxicity(model, roots) > 0.5
    assert not is_toxic[treated].any()
    assert is_toxic[~treated].any()


def test_a_filter_can_read_the_reader():
    model = acting({"at": 0, "filter": {"posts": "post.relevance < 0.6"}})
    rows = model.recorder.tables["impressions"]
    pairs = np.array([row["agent"] for row in rows]), np.array([row["post"] for row in rows])
    similarities = model.platform.similarities(*pairs)
    assert ((1 + similarities / 127**2) / 2).min() >= 0.59


def test_replies_and_reshares_of_a_removed_post_go_with_it():
    model = acting({"at": 3, "remove": {"posts": "post.kind == 'post'"}}, rounds=6)
    assert len(read_roots(model, since=2)[0])
    assert len(read_roots(model, since=4)[0]) == 0


def test_removed_posts_return_when_the_intervention_ends():
    model = acting({"at": 1, "until": 3, "remove": {}}, rounds=5)
    rounds = [row["round"] for row in model.recorder.tables["impressions"]]
    assert set(rounds) == {0, 3, 4}


def test_a_delay_counts_from_the_birth_of_the_post():
    act = {"name": "late", "at": 1, "remove": {"posts": TOXIC, "coverage": 1, "delay": 2}}
    model = acting(act, rounds=5, clock_round_minutes=60)
    removed = {row["post"]: row["round"] for row in done(model, "remove")}
    assert removed
    for post, round_ in removed.items():
        assert round_ == max(1, model.posts.round[post] + 2)
    assert all(row["round"] < removed.get(row["root"], 99) for row in model.recorder.tables["impressions"])


def test_coverage_draws_the_posts_and_the_others_are_control(tmp_path):
    act = {"name": "some", "at": 0, "label": {"posts": TOXIC, "coverage": 0.5, "effect": {"like": -1}}}
    config = {"attributes": ATTRIBUTES, "agents.n": 80, "rounds": 6, "interventions": [act]}
    folder = run(make_config(config), out=tmp_path).run_dir
    table, impressions = (pd.read_parquet(folder / f"{name}.parquet") for name in ("posts", "impressions"))
    posts = table[table["root"] == table["post"]]
    counts = posts["some"].astype(object).fillna("not met").value_counts()
    is_met = posts["some"].notna()
    assert (posts["toxicity"][is_met] > 0.5).all()
    assert (posts["some_round"][~is_met] == -1).all()
    assert counts["treated"]
    assert counts["control"]
    assert counts["not met"]
    labelled = impressions["label"].notna()
    treated = impressions["root"].map(table["some"]) == "treated"
    assert (labelled == treated).all()


@pytest.mark.parametrize("cap", [1, 3])
def test_no_root_has_more_reshares_than_its_cap(cap):
    model = acting({"at": 0, "cap": {"reshares": cap}}, feed_mode="chronological", agents_reshare=0.9)
    plain = acting(feed_mode="chronological", agents_reshare=0.9)
    assert model.posts.reshares.max() == cap < plain.posts.reshares.max()
    assert len(done(model, "refuse"))
    counted = np.bincount(model.posts.root[model.posts.kind == 2], minlength=len(model.posts))
    assert counted.max() <= cap


def test_a_cap_binds_only_the_agents_that_it_applies_to():
    model = acting({"name": "c", "at": 0, "share": 0.5, "cap": {"reshares": 1}}, agents_reshare=0.9)
    refused = np.array([row["agent"] for row in done(model, "refuse")])
    assert len(refused)
    assert model.platform.assignments.is_treated("c", refused).all()
    assert model.posts.reshares.max() > 1


def test_suspended_accounts_are_gone_and_come_back():
    act = {"at": 1, "until": 3, "suspend": {"accounts": "agent.bot == True", "posts": "remove"}}
    model = acting(act, rounds=2, agents_churn_back=1.0)
    is_bot = model.population.attributes[:, 0] == 1
    assert (model.population.membership[is_bot] == SUSPENDED).all()
    assert not model.population.present[is_bot].any()
    ran(model, 1)
    assert not model.population.present[is_bot].any()
    _, readers = read_roots(model, since=1)
    roots, _ = read_roots(model, since=1)
    assert not is_bot[readers].any()
    assert not is_bot[model.posts.author[roots]].any()
    ran(model, 1)
    assert model.population.present.all()


def test_accounts_keep_their_posts_if_they_may():
    model = acting({"at": 1, "suspend": {"accounts": "agent.bot == True"}})
    roots, _ = read_roots(model, since=1)
    assert (model.population.attributes[model.posts.author[roots], 0] == 1).any()


def test_the_platform_adds_likes_and_posts():
    post = {"by": "agent.bot == True", "text": "Vote.", "attributes": {"toxicity": 0.25}, "every": 2}
    model = acting({"at": 1, "like": {"posts": TOXIC, "n": 7}}, {"at": 1, "post": post}, rounds=4)
    liked = [row["post"] for row in done(model, "like")]
    assert liked
    assert model.posts.likes[liked].min() >= 7
    posted = done(model, "post")
    assert {row["round"] for row in posted} == {1, 3}
    rows = [row["post"] for row in posted]
    assert set(model.posts.visible_texts(rows)) == {"Vote."}
    assert set(toxicity(model, rows).tolist()) == {0.25}


@pytest.mark.parametrize("threshold", [0.45, 0.55, 0.65])
def test_effects_below_0_are_factors_on_the_chance_of_an_action(threshold):
    effect = {"like": -0.7, "reply": -0.3, "reshare": -1.5}
    model = acting(
        {"at": 0, "label": {"posts": TOXIC, "effect": effect}},
        agents_n=400,
        agents_band=0.5,
        agents_threshold_mean=threshold,
        records_transitions=0,
    )
    engagements, tried = model.recorder.tables["engagements"], done(model, "abandon")
    for action, log_factor in effect.items():
        kept = sum(toxicity(model, row["root"]) > 0.5 for row in engagements if row["action"] == action)
        given_up = sum(row["action"] == action for row in tried)
        chance, n = np.exp(log_factor), kept + given_up
        assert n > 30
        assert abs(kept / n - chance) < 3 * np.sqrt(chance * (1 - chance) / n)


def test_an_agent_that_gives_up_scrolls_on_and_counts_nowhere():
    model = acting({"name": "stop", "at": 0, "friction": {"on": "like", "abandon": 1}})
    assert model.posts.likes.sum() == 0
    gone = [row for row in model.recorder.tables["transitions"] if row["trigger"] == "abandons"]
    assert {(row["from_state"], row["to_state"]) for row in gone} == {("composing", "scrolling")}
    assert len(gone) == len(done(model, "abandon")) == model.totals["acts abandon stop"]


def test_a_chart_of_your_own_gets_the_trigger_and_the_run_says_so():
    chart = build_chart()
    own = [t for t in chart.transitions if t.trigger != "abandons"]
    own_chart = Statechart(chart.states, own, chart.initial, timeouts=chart.timeouts, name="own")
    act = {"at": 0, "friction": {"on": "like", "abandon": 1}}
    model = acting(act, chart=own_chart)
    assert model.posts.likes.sum() == 0
    assert any("abandons was added" in note for note in model.notes)


def test_effects_above_0_make_engagement_more_likely():
    utility = {"utility_sensitivity": 0.05, "utility_appeal_sigma": 1.0}
    more = acting({"at": 0, "label": {"effect": {"like": 2, "reply": 2, "reshare": 2}}}, **utility)
    plain = acting(**utility)
    assert more.totals["likes"] > 1.5 * plain.totals["likes"]


@pytest.mark.filterwarnings("ignore:.*only an LLM reads these numbers:prism_mesa.errors.NotedWarning")
def test_a_label_and_a_hidden_count_change_what_the_llm_reads():
    from prism_mesa.reasoner.prompt import question_prompt
    from prism_mesa.social.round.columns import AgentColumns, PostColumns
    from prism_mesa.social.round.questions import questions
    from prism_mesa.statechart import AgentState

    acts = [
        {"at": 0, "like": {"n": 41}},
        {"at": 0, "label": {"text": "Readers added context", "effect": None}},
        {"name": "blind", "at": 0, "hide": ["likes"], "share": 0.5},
    ]
    model = acting(*acts, rounds=1)
    platform, rows = model.platform, np.arange(100)
    options = (AgentState.COMPOSING, AgentState.SCROLLING)
    post = int(np.flatnonzero(model.posts.root == np.arange(len(model.posts)))[0])
    asked = questions(
        AgentColumns(platform, rows),
        PostColumns(platform, rows, np.full(100, post)),
        ["decides"] * 100,
        [options] * 100,
    )
    prompts = [question_prompt(question) for question in asked]
    assert all("Readers added context" in prompt for prompt in prompts)
    blind = platform.assignments.is_treated("blind", rows)
    assert blind.any()
    assert [" likes" in prompt for prompt in prompts] == (~blind).tolist()


def test_explanations_know_what_is_taken_out():
    model = small(**BUSY, attributes=ATTRIBUTES, interventions=[{"at": 0, "remove": {"posts": TOXIC}}])
    ran(model, 2)
    model.platform.round, removed = 1, [row["post"] for row in done(model, "remove")]
    for row in range(100):
        reasons = explain_feed(model, row, removed[0])
        assert not {*reasons.texts} & {*removed}


@pytest.mark.filterwarnings("ignore:.*only an LLM reads these numbers:prism_mesa.errors.NotedWarning")
def test_a_branch_and_a_resumed_run_keep_what_was_done(tmp_path):
    acts = [
        {"name": "late", "at": 0, "remove": {"posts": TOXIC, "coverage": 0.6, "delay": {"median": 3}}},
        {"at": 1, "suspend": {"accounts": "agent.bot == True"}},
    ]
    config = {"attributes": ATTRIBUTES, "agents.n": 60, "rounds": 6, "interventions": acts, "checkpoint_every": 2}
    whole = run(make_config(config), out=tmp_path / "a").run_dir
    same = branch(whole, 4, {"interventions": [{"hide": ["likes"]}]})
    other = branch(whole, 4, {"interventions": [{"remove": {"posts": "post.toxicity < 0.2"}}]})
    for table in ("posts", "impressions", "acts"):
        before, after, changed = (
            pd.read_parquet(folder / f"{table}.parquet") for folder in (whole, same.run_dir, other.run_dir)
        )
        pd.testing.assert_frame_equal(before, after, check_categorical=False)
        early = [frame[frame["round"] < 4].reset_index(drop=True) for frame in (before, changed)]
        if table != "posts":  # whose counters go on
            pd.testing.assert_frame_equal(*early, check_categorical=False)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ({"remove": {"posts": "post.toxic > 0.5"}}, "post.toxic "),
        ({"remove": {"posts": "agent.bot"}}, "agent.bot"),
        ({"remove": {"posts": "post.relevance > 1"}}, "post.relevance"),
        ({"suspend": {"accounts": "post.likes > 1"}}, "post.likes"),
        ({"suspend": {"accounts": "agent.bot"}, "agents": "agent.bot"}, "suspend"),
        ({"cap": {"reshares": 0}}, "abandon: 1"),
        ({"cap": {"reshares": 1}, "hide": ["likes"]}, "cap and hide"),
        ({"label": {"effect": {"share": 1}}}, "share"),
        ({"remove": {"coverage": 0.5}}, "name"),
        ({"remove": {}, "share": 1.5, "name": "x"}, "share"),
        ({"remove": {"coverage": 0.5}, "name": "likes"}, "likes"),
        ({"label": {"effect": {"like": 1}}}, "utility.sensitivity"),
        ({}, "nothing"),
    ],
)
def test_acts_that_cannot_be_carried_out_are_refused_by_name(act, words):
    with pytest.raises(ConfigError, match="interventions") as error:
        SocialModel(agents_n=20, attributes=ATTRIBUTES, utility_sensitivity=0, interventions=[{"at": 1, **act}])
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_an_act_that_met_nothing_is_noted():
    result = run(
        make_config(
            {
                "attributes": ATTRIBUTES,
                "agents.n": 20,
                "rounds": 3,
                "interventions": [
                    {"name": "never", "at": 1, "label": {"posts": "post.likes > 1000", "text": "Context."}}
                ],
            }
        )
    )
    assert any("never" in note and "met nothing" in note for note in result.summary["notes"])
