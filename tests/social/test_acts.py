"""Acts of the platform: what they do to posts and accounts, to whom, from when on, and what is recorded."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from minds import asked
from worlds import differing, ran, small

from prism_mesa.analysis.explain.feed import explain_feed
from prism_mesa.api.comparison import compare
from prism_mesa.errors import ConfigError, NotedWarning
from prism_mesa.runs.branch import branch
from prism_mesa.runs.config import make_config
from prism_mesa.runs.social import run
from prism_mesa.social.behavior import build_chart
from prism_mesa.social.content.tools import PlatformTools
from prism_mesa.social.model import SocialModel
from prism_mesa.social.round.acts import hidden_from
from prism_mesa.social.state.population import SUSPENDED
from prism_mesa.statechart import AgentState, Statechart
from prism_mesa.studies.measures.catalogue import compute_measures
from prism_mesa.studies.measures.finished import finished_run

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


DRAWN = {f"feed_candidates_{name}": 3 for name in ("out_of_network", "two_hops", "followed")}


@pytest.mark.parametrize("kind", EVERY_ACT)
@pytest.mark.parametrize("candidates", [{}, DRAWN, DRAWN | {"feed_candidates_trending": 4, "feed_slots_search": 2}])
def test_a_share_of_0_changes_nothing_and_a_share_of_1_is_everybody(kind, candidates):
    plain = acting(**candidates)
    nobody = acting({"name": "act", "at": 1, "share": 0, kind: EVERY_ACT[kind]}, **candidates)
    noted = {"records", "totals"}  # of the posts that were met
    assert {*differing(plain, nobody)} <= noted
    for table in ("transitions", "engagements", "rounds"):
        assert nobody.recorder.tables[table] == plain.recorder.tables[table]
    everybody = acting({"at": 1, kind: EVERY_ACT[kind], "name": "act"}, **candidates)
    treated = acting({"name": "act", "at": 1, "share": 1, kind: EVERY_ACT[kind]}, **candidates)
    assert differing(everybody, treated) == []
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
    treated = model.platform.act_state.is_treated("half", agents)
    is_toxic = toxicity(model, roots) > 0.5
    assert not is_toxic[treated].any()
    assert is_toxic[~treated].any()


@pytest.mark.parametrize("candidates", [{}, DRAWN, DRAWN | {"feed_candidates_trending": 4, "feed_slots_search": 2}])
@pytest.mark.parametrize("mode", ["chronological", "x_2023", "preference"])
def test_an_agent_is_shown_what_all_would_be_shown_with_its_acts(candidates, mode):
    field = "toxicity" if "feed_slots_search" in candidates else "relevance"
    acts = [
        {"name": "a", "filter": {"posts": TOXIC}},
        {"name": "b", "downrank": {"posts": "post.toxicity < 0.3", "score": -0.2}},
        {"name": "c", "filter": {"posts": f"post.{field} < 0.5"}},
    ]

    def after(*acts):
        return acting(*({**act, "at": 2} for act in acts), rounds=3, feed_mode=mode, **candidates).platform

    mixed = after(*({**act, "share": 0.5} for act in acts))
    rows = np.arange(100)
    treated = np.array([mixed.act_state.is_treated(act["name"], rows) for act in acts])
    for is_on in product([False, True], repeat=3):
        same = after(*(act for act, on in zip(acts, is_on, strict=True) if on))
        members = rows[(is_on == treated.T).all(axis=1)]
        for row in members[mixed.population.n_feed[members] > 0]:
            feeds = [world.population.feed[row, : world.population.n_feed[row]].tolist() for world in (mixed, same)]
            assert feeds[0] == feeds[1]


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
    assert model.platform.act_state.is_treated("c", refused).all()
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


def test_a_follow_that_is_decided_before_a_suspension_begins_stays():
    model = acting({"at": 1, "suspend": {"accounts": "agent.bot == True"}}, rounds=1)
    row = int(np.flatnonzero(model.population.attributes[:, 0] == 1)[0])
    other = int(np.setdiff1d(np.arange(100), [row, *model.network.followees(row)])[0])
    assert model.agent(row).follow(other)
    ran(model, 1)
    assert model.population.membership[row] == SUSPENDED
    assert other in model.network.followees(row)


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


def test_effects_above_0_are_factors_on_small_chances():
    rare = {"agents_threshold_mean": 0.17, "agents_threshold_sd": 0, "utility_appeal_sigma": 0}
    rare |= {"utility_sensitivity": 0.03, "utility_closeness": None}  # so all chances are about equal
    world = rare | {"agents_n": 150_000, "agents_activity": 1, "network_mean_degree": 12, "recorder": None}

    def rates(*acts):
        totals = acting(*acts, rounds=1, **world).totals
        return np.array([totals[name] for name in ("likes", "replies", "reshares")]) / totals["impressions"]

    base = rates()
    assert base.sum() < 0.02
    ratios = rates({"at": 0, "label": {"effect": {"like": 0.5, "reply": 0.5, "reshare": -0.5}}}) / base
    assert ratios == pytest.approx(np.exp([0.5, 0.5, -0.5]), rel=0.1)


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
    model = acting(*acts, rounds=1, reasoner=asked(lambda _: '{"next_state": "scrolling"}'))
    platform, rows = model.platform, np.arange(100)
    options = (AgentState.COMPOSING, AgentState.SCROLLING)
    post = int(np.flatnonzero(model.posts.root == np.arange(len(model.posts)))[0])
    all_questions = questions(
        AgentColumns(platform, rows),
        PostColumns(platform, rows, np.full(100, post)),
        ["decides"] * 100,
        [options] * 100,
    )
    prompts = [question_prompt(question) for question in all_questions]
    assert all("Readers added context" in prompt for prompt in prompts)
    blind = platform.act_state.is_treated("blind", rows)
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
    same = branch(whole, 4, {"interventions": [{"like": {"posts": "post.likes > 1000000", "n": 1}}]})
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
        ({"remove": {"posts": "post.kind"}}, "neither true nor false"),
        ({"remove": {"posts": "post.kind > 3"}}, "neither true nor false"),
        ({"post": {"by": "agent.bot", "text": "Vote.", "attributes": {"toxicity": 7}}}, "toxicity: 7"),
        ({"friction": {"on": "reply", "abandon": 1, "draft": "draft.toxic > 0.5"}}, "draft.toxic "),
        ({"friction": {"on": "reply", "abandon": 1, "draft": "post.toxicity > 0.5"}}, "draft.toxicity"),
        ({"label": {"effect": {"like": 1}}}, "utility.sensitivity"),
        ({}, "nothing"),
    ],
)
def test_acts_that_cannot_be_carried_out_are_refused_by_name(act, words):
    with pytest.raises(ConfigError, match="interventions") as error:
        SocialModel(agents_n=20, attributes=ATTRIBUTES, utility_sensitivity=0, interventions=[{"at": 1, **act}])
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_comparison_says_what_acts_did(tmp_path):
    config = {"attributes": ATTRIBUTES, "agents.n": 40, "rounds": 3}
    act = {"name": "gone", "at": 1, "remove": {"posts": TOXIC}}
    configs = [make_config(config | {"interventions": acts}) for acts in ([], [act])]
    plain, removed = (run(config, out=tmp_path / str(i)).run_dir for i, config in enumerate(configs))
    notes = compare(plain, removed, measures=["likes"], why=False).notes
    removals = pd.read_parquet(removed / "acts.parquet")
    assert any(note.startswith("other:") and "gone" in note and f" {len(removals)}" in note for note in notes)


def test_an_act_that_met_nothing_is_noted():
    result = run(
        make_config(
            {
                "attributes": ATTRIBUTES,
                "agents.n": 20,
                "rounds": 3,
                "interventions": [
                    {"name": "never", "at": 1, "label": {"posts": "post.likes > 1000", "effect": {"like": -1}}}
                ],
            }
        )
    )
    assert any("never" in note and "nothing happened" in note for note in result.summary["notes"])


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_a_label_without_an_effect_puts_the_choice_to_the_oracle(scheduler):
    def decides(prompt):
        return '{"next_state": "scrolling"}' if "Context." in prompt else '{"next_state": "composing"}'

    label = {"at": 0, "label": {"posts": TOXIC, "text": "Context.", "effect": None}}
    model = acting(label, reasoner=asked(decides), scheduler=scheduler, rounds=3)
    roots = np.array([row["root"] for row in model.recorder.tables["engagements"]])
    assert len(roots)
    assert toxicity(model, roots).max() <= 0.5
    with pytest.warns(NotedWarning, match="null: no effect"):
        acting(label, rounds=1)


DRAFTS = {
    "hot": {"of": "agent", "values": [False, True]},
    "offensive": {"of": "post", "values": [False, True], "inherits": "hot", "parent": 0.5},
    "heat": {"of": "post", "range": [0, 1], "parent": 0.9},
}


def replies(model):
    return np.flatnonzero(model.posts.kind == 1)


def test_replies_take_some_of_their_attributes_from_the_posts_that_they_answer():
    model = acting(attributes=DRAFTS, agents_reply=0.9, agents_like=0.05)
    rows, parent = replies(model), model.posts.parent[replies(model)]
    of_author, of_parent = model.population.attributes[model.posts.author[rows], 0], model.posts.attributes[parent, 0]
    value, differ = model.posts.attributes[rows, 0], of_author != of_parent
    assert 0.3 < (value == of_parent)[differ].mean() < 0.7
    assert (value == of_author)[~differ].all()
    assert np.abs(model.posts.attributes[rows, 1] - 0.9 * model.posts.attributes[parent, 1]).max() <= 0.1 + 1e-6


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_a_friction_on_drafts_stops_some_and_makes_others_milder(scheduler):
    friction = {"on": "reply", "abandon": 0.4, "milder": 0.6, "draft": "draft.offensive == True"}
    chances = {"attributes": DRAFTS, "agents_reply": 0.9, "agents_like": 0.05}
    plain = acting(**chances)
    model = acting({"name": "ask", "at": 2, "friction": friction}, **chances, scheduler=scheduler)
    written, is_offensive = (values[replies(model)] for values in (model.posts.written, model.posts.attributes[:, 0]))
    assert is_offensive[written < 2].any()
    assert not is_offensive[written >= 2].any()
    assert len(done(model, "soften")) > 5 < len(done(model, "abandon"))
    softened = acting({"at": 2, "friction": friction | {"abandon": 0, "milder": 1}}, **chances, scheduler=scheduler)
    first = replies(plain)[plain.posts.written[replies(plain)] == 2]
    n_offensive = plain.posts.attributes[first, 0].sum()
    assert n_offensive == sum(row["round"] == 2 for row in done(softened, "soften"))


def test_frictions_on_drafts_are_the_same_by_rows_and_by_columns():
    friction = {"on": "reply", "abandon": 0.3, "milder": 0.3, "draft": "draft.heat > 0.4"}
    act = {"name": "ask", "at": 1, "share": 0.7, "friction": friction}
    one, other = (acting(act, attributes=DRAFTS, agents_reply=0.9, scheduler=kind) for kind in ("columns", "mesa"))
    assert differing(one, other) == []


def test_interventions_apply_in_order_of_their_rounds_and_keep_their_numbers():
    later, sooner = {"at": 3, "set": {"feed.mode": "chronological"}}, {"at": 1, "set": {"feed.mode": "random"}}
    one, other = acting(later, sooner), acting(sooner, later)
    assert differing(one, other) == []
    assert [act.at for act in one.params.interventions] == [3, 1]
    with pytest.raises(ConfigError, match=r"interventions: 1: remove\.posts: post.likez"):
        acting(later, {"at": 0, "remove": {"posts": "post.likez > 2"}})


@pytest.mark.parametrize("act", [{"friction": {"on": "like", "abandon": 0.1}}, {"filter": {"posts": TOXIC}}])
def test_more_acts_than_there_are_bits_for_are_refused(act):
    with pytest.raises(ConfigError, match="33 acts"):
        acting(*[{"at": 0, **act}] * 33)


def test_a_downrank_in_units_of_relevance_counts_in_a_feed_by_preference():
    model = acting({"at": 0, "downrank": {"posts": TOXIC, "score": -1}}, feed_mode="preference", rounds=2)
    for row in range(100):
        feed = model.population.feed[row, : model.population.n_feed[row]]
        is_toxic = toxicity(model, feed) > 0.5
        assert (np.diff(is_toxic.astype(int)) >= 0).all()


def test_tools_do_not_show_what_a_filter_takes_out_for_their_reader():
    act = {"name": "some", "at": 0, "share": 0.5, "filter": {"posts": "post.relevance < 0.6"}}
    model = small(**BUSY, attributes=ATTRIBUTES, interventions=[act])
    ran(model, 2)
    posts = np.arange(len(model.posts))
    for row in range(20):
        is_low = model.platform.similarities(np.full(len(posts), row), posts) / 127**2 < 0.2
        is_treated = model.platform.act_state.is_treated("some", np.array([row]))[0]
        assert (hidden_from(model.platform, row, posts) == (is_low & is_treated)).mean() > 0.99


def test_effects_of_several_labels_add_up():
    utility = {"utility_sensitivity": 0.05}
    labels = [{"at": 0, "label": {"posts": TOXIC, "effect": {"like": effect}}} for effect in (2, -2)]
    plain, cancelling = acting(**utility), acting(*labels, **utility)
    assert {*differing(plain, cancelling)} == {"records", "totals"}
    effect = {"like": -1.2, "reply": -0.4}
    whole = acting({"at": 0, "label": {"effect": effect}})
    parts = acting(
        *[{"name": f"half_{i}", "at": 0, "label": {"effect": {k: v / 2 for k, v in effect.items()}}} for i in "ab"]
    )
    assert whole.totals["likes"] == pytest.approx(parts.totals["likes"], rel=0.3)


def test_draws_do_not_depend_on_where_an_intervention_stands():
    friction, idle = {"at": 0, "friction": {"on": "like", "abandon": 0.5}}, {"at": 0, "cap": {"reshares": 10**6}}
    one, other = acting(friction, idle), acting(idle, friction)
    assert {*differing(one, other)} <= {"records", "totals"}
    assert [row["agent"] for row in done(one, "abandon")] == [row["agent"] for row in done(other, "abandon")]


def test_an_account_stays_suspended_while_any_suspension_holds():
    bots = {"accounts": "agent.bot == True"}
    acts = {"at": 1, "until": 3, "suspend": bots}, {"at": 2, "until": 5, "suspend": bots | {"posts": "remove"}}
    model = acting(*acts, rounds=2)
    is_bot = model.population.attributes[:, 0] == 1
    for round_ in (2, 3, 4):
        ran(model, 1)
        assert not model.population.present[is_bot].any()
        roots, _ = read_roots(model, since=round_)
        assert not is_bot[model.posts.author[roots]].any()
    assert ran(model, 1).population.present.all()


def test_old_posts_are_removed_too():
    model = acting({"at": 4, "remove": {}}, rounds=5, feed_window=2)
    tools = PlatformTools(model.platform, 0, tick=1)
    assert "removed" in tools.read_thread(0)


def test_refused_reshares_get_no_words():
    model = acting({"at": 0, "cap": {"reshares": 1}}, content="template", agents_reshare=0.9)
    n_reshares = np.count_nonzero(model.posts.kind == 2)
    assert len(done(model, "refuse")) > 5
    assert len(model.posts.texts) < len(acting(content="template", agents_reshare=0.9).posts.texts)
    assert n_reshares == model.posts.reshares[model.posts.root == np.arange(len(model.posts))].sum()


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_no_action_of_a_chart_runs_if_the_agent_gives_up(scheduler):
    likes = []
    chart = build_chart()
    own = [
        replace(t, action=lambda agent, post: likes.append(agent.row)) if t.target is AgentState.ENGAGING_LIKE else t
        for t in chart.transitions
    ]
    noisy = Statechart(chart.states, own, chart.initial, timeouts=chart.timeouts)
    acting({"at": 0, "friction": {"on": "like", "abandon": 1}}, chart=noisy, scheduler=scheduler, rounds=2)
    assert likes == []


def test_the_mildest_value_is_one_that_is_not_interrupted():
    friction = {"on": "reply", "milder": 1, "draft": "draft.heat < 0.5"}
    model = acting({"at": 0, "friction": friction}, attributes=DRAFTS, agents_reply=0.9)
    assert model.posts.attributes[replies(model), 1].min() >= 0.5


def test_a_reply_that_is_given_up_is_not_written_milder_before():
    frictions = [
        {"on": "reply", "milder": 1, "draft": "draft.heat > 0.2"},
        {"on": "reply", "abandon": 1, "draft": "draft.heat < 2"},
    ]
    model = acting(*[{"at": 0, "friction": friction} for friction in frictions], attributes=DRAFTS, agents_reply=0.9)
    assert not done(model, "soften")
    assert len(done(model, "abandon"))
    assert not len(replies(model))


def test_tools_hide_numbers_and_show_labels():
    acts = (
        {"at": 0, "like": {"n": 41}},
        {"at": 0, "hide": ["likes"]},
        {"at": 0, "label": {"text": "Readers say", "effect": {"like": 0}}},
    )
    model = small(
        **BUSY, attributes=ATTRIBUTES, interventions=acts, reasoner=asked(lambda _: '{"next_state": "scrolling"}')
    )
    text = PlatformTools(ran(model, 1).platform, 0, tick=1).search_posts("")
    assert "Readers say" in text
    assert "likes" not in text


def test_measures_by_post_leave_out_posts_for_which_the_act_has_not_begun(tmp_path):
    act = {"name": "late", "at": 0, "label": {"coverage": 0.5, "delay": 500, "effect": {"like": -1}}}
    config = {"agents.n": 60, "rounds": 4, "interventions": [act]}
    folder = run(make_config(config), out=tmp_path).run_dir
    found = compute_measures(finished_run(folder), ["size@late", "later_engagement@late"])
    assert all(np.isnan(value) for value in found.values())
