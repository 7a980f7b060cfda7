"""A finished run that is played back shows what was on show as it ran, and says what of its folder is damaged."""

import json
import shutil
from dataclasses import replace

import ipyvuetify as v
import pytest
import solara
from worlds import plain

from prism_mesa.errors import DataError, PrismError
from prism_mesa.runs import config, social
from prism_mesa.runs.run_files import read_table
from prism_mesa.statechart import AgentState
from prism_mesa.view.page.live import LiveSource
from prism_mesa.view.page.live_model import PageModel
from prism_mesa.view.page.source import AgentMove, move_lines
from prism_mesa.view.page.trees import largest_cascades
from prism_mesa.view.page.views import show_views
from prism_mesa.view.playback import page, recorded
from prism_mesa.view.playback.recorded import open_recorded
from prism_mesa.view.server.opened import PageContent, content_view, opening_fault

COMES_AND_GOES = {"waiting": 0.2, "join": 0.2, "leave": 0.05, "back": 0.2}
ROUNDS = 4


def churn_config(dynamics="fixed", churn=None):
    agents = {"n": 40, "activity": 0.7, "post_rate": 0.4, "churn": churn or {}}
    agents |= {"threshold_mean": 0.0, "like": 0.3, "reply": 0.3, "reshare": 0.4}
    network = {"mean_degree": 12, "dynamics": dynamics}
    return config.make_config(
        {"agents": agents, "network": network, "rounds": ROUNDS, "seed": 3, "reasoner": {"kind": "rule"}}
    )


@pytest.fixture(scope="module")
def churny(tmp_path_factory):
    """Return the folder of a run in which agents come and go and follows begin; only to be read."""
    return social.run(churn_config("live", COMES_AND_GOES), out=tmp_path_factory.mktemp("runs")).run_dir


def test_each_account_has_the_chart_of_its_kind_live_and_played_back(tmp_path):
    bots = {"name": "bots", "n": 3, "activity": 1.0, "engages": {"like": "post.velocity >= 0"}}
    settings = config.make_config(churn_config().model_dump() | {"accounts": [bots, {"name": "pages", "n": 2}]})
    for source in (LiveSource(PageModel(settings)), open_recorded(social.run(settings, out=tmp_path).run_dir)):
        names = [source.chart(row).name for row in (0, 39, 40, 42, 43, 44)]
        assert [name == names[0] for name in names] == [True, True, False, False, True, True]


def follow_pairs(follows):
    return set(zip(follows.src.tolist(), follows.dst.tolist(), strict=True))


@pytest.fixture
def copied(churny, tmp_path):
    return shutil.copytree(churny, tmp_path / "copy")


@pytest.mark.slow
def test_each_moment_shows_what_the_live_model_showed_also_of_agents_who_come_and_go(tmp_path):
    settings = churn_config(churn=COMES_AND_GOES)
    playback, model = open_recorded(social.run(settings, out=tmp_path).run_dir), PageModel(settings)
    live = LiveSource(model)
    for at in range(-1, ROUNDS):
        if at >= 0:
            model.step()
        moment = playback.at_round(at)
        assert moment.states().tolist() == live.states().tolist()
        assert follow_pairs(moment.follows()) == follow_pairs(live.follows())
        assert moment.follows().followers.tolist() == live.follows().followers.tolist()
        for name in ("author", "kind", "parent", "root", "round"):
            assert getattr(moment.posts(), name).tolist() == getattr(live.posts(), name).tolist()
        assert [moment.agent(row).state for row in (1, 17)] == [live.agent(row).state for row in (1, 17)]
    model.close()


def test_follows_that_begin_hold_from_the_next_round_on(tmp_path):
    settings = churn_config("live", {"waiting": 0.2, "join": 0.2})
    run_dir = social.run(settings, out=tmp_path).run_dir
    began = read_table(run_dir, "follows").query("event == 'follow'")
    assert len(began)
    source = open_recorded(run_dir)
    for follow in began.itertuples():
        pair = (follow.other, follow.agent)
        assert pair not in follow_pairs(source.at_round(follow.round).follows())
        assert follow.round == ROUNDS - 1 or pair in follow_pairs(source.at_round(follow.round + 1).follows())


@pytest.mark.parametrize(
    ("table", "column"),
    [("transitions", "open"), ("agents", "activity"), ("rounds", "fallback"), ("follows", "event")],
)
def test_a_column_that_is_missing_is_said_before_anything_is_drawn(copied, table, column):
    read_table(copied, table).drop(columns=column).to_parquet(copied / f"{table}.parquet")
    with pytest.raises(DataError, match=f"{table}.parquet: there is no column '{column}'"):
        open_recorded(copied)


@pytest.mark.parametrize("table", ["transitions", "follows", "agents"])
def test_a_table_that_is_torn_is_said_in_one_line_in_place_of_the_page(copied, table):
    file = copied / f"{table}.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    message = content_view(PageContent("runs", (copied,)))
    assert f"{table}.parquet cannot be read" in message
    assert "\n" not in message


@pytest.mark.parametrize(("table", "column"), [("transitions", "agent"), ("impressions", "post")])
def test_rows_about_what_is_not_there_are_said(copied, table, column):
    rows = read_table(copied, table)
    rows.loc[0, column] = 10_000
    rows.to_parquet(copied / f"{table}.parquet")
    with pytest.raises(DataError, match=f"'{table}' is damaged: row 0, column '{column}': there is no 10000"):
        open_recorded(copied)


def test_a_configuration_of_more_agents_than_the_tables_makes_no_network_and_the_page_says_so(copied):
    file = copied / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["config"]["agents"]["n"] = 5_000_000
    file.write_text(json.dumps(manifest))
    source = open_recorded(copied)
    assert len(source.follows().followers) == 40
    assert any("5,000,000" in value for _, value in source.facts)


@pytest.mark.parametrize("error", [PrismError("no ledger"), KeyError("tick")])
def test_a_run_that_cannot_be_repeated_says_so_whatever_was_raised_and_can_be_asked_again(churny, monkeypatch, error):
    def fail(*_, **__):
        raise error

    source, changes = open_recorded(churny), []
    row = int(source.tables.transitions.in_round(source.round)["agent"].iloc[0])
    at_first = source.agent(row)
    with monkeypatch.context() as patched:
        patched.setattr(recorded, "why", fail)
        source.explain(row, lambda: changes.append(True))
    failed = source.agent(row)
    assert failed.why_note.startswith("No explanation: ")
    assert (failed.why, failed.ask_label) == (at_first.why, f"{at_first.ask_label} once more")
    assert (source.tables.explaining, changes) == (None, [True])
    monkeypatch.setattr(recorded, "why", lambda *_, **__: None)
    monkeypatch.setattr(recorded, "report_lines", lambda _: ["Round 3: it liked."])
    source.explain(row, lambda: None)
    again = source.agent(row)
    assert (again.why, again.why_note, again.ask_label) == (("Round 3: it liked.",), "", "")


def test_a_card_of_the_round_of_a_post_says_that_other_views_are_of_another_one_and_takes_them_there(churny):
    source, went = open_recorded(churny), []
    _, rendered = solara.render(show_views(source, source.round, "run", went.append), handle_error=False)
    tree = next(
        widget for widget in rendered.find(v.VuetifyTemplate).widgets if widget.has_trait("curved") and widget.curved
    )
    card = next(widget for widget in rendered.find(v.VuetifyTemplate).widgets if widget.has_trait("suggested"))
    assert card.aside == ""
    root = largest_cascades(source.posts(), 1)[0][0]
    wrote = int(source.tables.posts.written[root])
    tree.vue_pick({"id": int(source.posts().author[root]), "node": 0})
    assert wrote < source.round
    assert card.aside == (f"In round {wrote}, the agent wrote the post; the other views show round {source.round}.")
    card.vue_follow(None)
    assert went == [wrote]
    rendered.close()


def test_the_page_counts_the_cascades_that_the_summary_counts(tmp_path):
    busy = {"agents": {"n": 40, "activity": 1.0, "post_rate": 0.1, "threshold_mean": 0.3}, "rounds": 8}
    result = social.run(config.make_config(plain(busy | {"network": {"mean_degree": 15}})), out=tmp_path)
    trees = read_table(result.run_dir, "cascades")
    assert trees.query("kind == 'reply'")["size"].max() > 1
    source = open_recorded(result.run_dir)
    reshared = trees.query("kind == 'post' and size > 1")
    assert len(largest_cascades(source.posts(), 10_000)) == len(reshared)
    assert page.counts_so_far(source)["largest cascade, posts"] == result.summary["cascades"]["max_size"]
    replies = largest_cascades(source.posts(), 10_000, kind="reply")
    assert len(replies) == len(trees.query("kind == 'reply' and size > 1"))


def test_a_reply_without_words_names_who_wrote_the_text_that_it_shows(churny):
    source, posts = open_recorded(churny), read_table(churny, "posts")
    silent = posts.index[(posts["kind"] == "reply") & posts["text"].isna()]
    assert len(silent)
    for post in silent:
        above = int(posts["parent"][post])
        while posts["kind"][above] != "post":
            above = int(posts["parent"][above])
        writer = source.agent_name(int(posts["author"][above]))
        assert source.post_text(post) == f"(in reply to {writer}: {posts['text'][above]})"


def test_two_runs_share_their_axes_and_the_head_names_what_differs(churny, tmp_path):
    settings = config.make_config({"agents": {"n": 40, "activity": 0.9, "post_rate": 0.8}, "rounds": 6, "seed": 4})
    sources = [open_recorded(run) for run in (churny, social.run(settings, out=tmp_path).run_dir)]
    _, rendered = solara.render(page.playback_page(sources), handle_error=False)
    widgets = rendered.find(v.VuetifyTemplate).widgets
    axes = [(widget.span, widget.min_top) for widget in widgets if widget.has_trait("stacked")]
    assert len(axes) == 6
    assert axes[:3] == axes[3:]
    assert {span for span, _ in axes} == {6}
    [head] = [widget for widget in widgets if widget.has_trait("facts")]
    facts = dict(head.facts)
    assert (facts["seed"], facts["rounds"], facts["agents.post_rate"]) == ("3 | 4", "4 | 6", "0.4 | 0.8")
    assert "agents.n" not in facts
    rendered.close()
    assert page.differing_settings([sources[0]] * 2) == [("settings", "the same in both")]


def test_the_list_of_an_agents_moves_folds_what_comes_again():
    kinds = [("scrolling", "evaluating"), ("evaluating", "scrolling")] * 7
    moves = [AgentMove(tick, "x", AgentState(a), AgentState(b), tick) for tick, (a, b) in enumerate(kinds, 1)]
    first = AgentMove(0, "feed_ready", AgentState.IDLE, AgentState.SCROLLING)
    lines = list(move_lines([first, *moves], str))
    assert lines[0] == "tick 0: idle -> scrolling, on 'feed_ready'"
    assert lines[1:] == ["ticks 1 to 14: scrolling -> evaluating -> scrolling, 7 times"]
    opened = replace(moves[-1], is_open=True)
    assert len(list(move_lines([*moves[:-1], opened], str))) == 3  # an open choice is not folded away


def test_what_is_wrong_only_with_the_world_of_a_config_is_said_before_the_page_opens(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text("agents: {n: 20}\nnetwork: {edges: nowhere.csv}\n")
    assert "nowhere.csv" in opening_fault(PageContent("model", (file,)))
    file.write_text("agents: {n: 20}\nnetwork: {mean_degree: 4}\n")
    assert opening_fault(PageContent("model", (file,))) == ""
