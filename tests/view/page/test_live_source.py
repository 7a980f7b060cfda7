"""What the page shows of a model that runs: it is the model's, round by round, and telling it changes nothing."""

import threading

import numpy as np
import pytest
from worlds import plain

from prism_mesa.errors import DataError
from prism_mesa.params import nested
from prism_mesa.reasoner import Reasoner
from prism_mesa.runs.records.in_memory import RowsInMemory
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.social.round import run_round
from prism_mesa.social.state.posts import POST, REPLY
from prism_mesa.social.state.texts import NO_TEXT
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.statechart import STATE_COLORS, STATES, AgentState
from prism_mesa.view.page import live_model
from prism_mesa.view.page.live import LiveSource
from prism_mesa.view.page.live_model import PageModel
from prism_mesa.view.page.source import NOT_THERE

CONFIG = SocialParams.model_validate(
    nested(plain({"agents.n": 60, "rounds": 6, "seed": 5, "agents.activity": 0.8, "agents.post_rate": 0.4}))
)


@pytest.fixture(scope="module")
def shown():
    """A source after four rounds, and what a recorder noted of the same run."""
    model = PageModel(CONFIG)
    for _ in range(4):
        model.step()
    recorder = RowsInMemory(SOCIAL_TABLES)
    with_records = SocialModel(CONFIG, recorder=recorder)
    for _ in range(4):
        with_records.step()
    return LiveSource(model), recorder


def silent_replies(posts):
    return np.flatnonzero((posts.kind == REPLY) & (posts.words == NO_TEXT)).tolist()


def assert_attributed(source, posts, post):
    """Return what the page shows of a reply without words, after checking whose text it says that is."""
    above = int(posts.parent[post])
    while posts.kind[above] != POST:
        above = int(posts.parent[above])
    writer = source.agent_name(int(posts.author[above]))
    assert source.post_text(post) == f"(in reply to {writer}: {posts.said(above)})"
    return source.post_text(post)


def told(source, row):
    """Return an agent whose round has been told."""
    source.tell(row)
    return source.agent(row)


def last_transitions(recorder):
    table = recorder.table("transitions")
    return table[table["round"] == 3]


def test_the_columns_of_rounds_are_those_of_the_table(shown):
    source, recorder = shown
    rounds = recorder.table("rounds")
    columns = source.round_columns()
    assert list(columns) == list(rounds.columns)
    for name in columns:
        np.testing.assert_allclose(columns[name], rounds[name])


def test_an_agents_state_is_the_most_that_it_did_in_the_round(shown):
    source, recorder = shown
    order = [state.value for state in STATE_COLORS]
    most = (
        last_transitions(recorder)
        .groupby("agent", observed=True)["to_state"]
        .agg(lambda names: max(names.astype(str), key=order.index))
    )
    states = source.states()
    assert {row: STATES[states[row]].value for row in most.index} == most.to_dict()
    assert (np.delete(states, most.index) == AgentState.IDLE.code).all()


def test_who_is_not_on_the_platform_has_no_state():
    model = PageModel(CONFIG)
    model.step()
    model.population.present[3] = False
    assert LiveSource(model).states()[3] == NOT_THERE


def test_an_agents_moves_are_its_transitions(shown):
    source, recorder = shown
    table = last_transitions(recorder)
    for row in table["agent"].unique()[:10].tolist():
        own = table[table["agent"] == row]
        moves = source.agent(row).moves
        assert [move.tick for move in moves] == own["tick"].tolist()
        assert [move.target.value for move in moves] == own["to_state"].tolist()
        assert [move.is_open for move in moves] == own["open"].tolist()


def test_why_tells_what_the_agent_did_in_the_round(shown):
    source, recorder = shown
    table = last_transitions(recorder)
    liked = table[table["to_state"] == "engaging_like"]
    row, post = int(liked["agent"].iloc[0]), int(liked["post"].iloc[0])
    before, agent = source.agent(row), told(source, row)
    assert before.why_note == "Why it did so is told as soon as no new round comes."
    assert before.why[0].startswith("tick 0: idle -> scrolling")
    assert (before.moves, before.state, agent.why_note) == (agent.moves, agent.state, "")
    assert [one.did for one in before.feed] == [one.did for one in agent.feed]
    assert agent.why[0].startswith("Round 3: ")
    assert any("engaging_like" in line and f"post {post} by" in line for line in agent.why)
    assert "like" in next(one.did for one in agent.feed if one.post == post)
    assert all(one.told for one in agent.feed)


@pytest.mark.parametrize("comes", ["another round", "another agent", "nothing"])
def test_why_is_not_told_of_what_is_no_longer_on_show(monkeypatch, comes):
    monkeypatch.setattr(PageModel, "rest_s", 0.0)
    model = PageModel(CONFIG)
    model.step()
    source, heard = LiveSource(model), []
    with model.lock:  # as while a round runs; the timer's thread waits for it
        call_off = source.tell_soon(3, lambda: heard.append(source.at))
        [timer] = [one for one in threading.enumerate() if isinstance(one, threading.Timer)]
        if comes == "another round":
            model.step()
        elif comes == "another agent":
            call_off()
    timer.join(60)
    is_told = source.agent(3).why_note != "Why it did so is told as soon as no new round comes."
    assert (heard, is_told) == (([0], True) if comes == "nothing" else ([], False))


def test_telling_why_changes_nothing():
    plain_model, looked_at = PageModel(CONFIG), PageModel(CONFIG)
    source = LiveSource(looked_at)
    for _ in range(3):
        plain_model.step()
        looked_at.step()
        for row in range(0, 60, 15):
            told(source, row)
    assert plain_model.datacollector.get_model_vars_dataframe().equals(
        looked_at.datacollector.get_model_vars_dataframe()
    )
    assert not looked_at.made_by_class


def test_an_llm_is_not_asked_again_to_tell_why():
    asked = []

    def answer(prompt):
        asked.append(prompt)
        return "composing"

    config = SocialParams.model_validate(
        {**CONFIG.model_dump(exclude_unset=True), "agents": {"n": 60, "band": 0.5, "activity": 1.0, "post_rate": 0.5}}
    )
    model = PageModel(config)
    model.platform.reasoner = Reasoner(answer)
    model._keep_answers()
    source = LiveSource(model)
    model.step()
    moved = model.kept.rows["transitions"]
    row = int(moved["agent"][moved["open"]][0])
    n = len(asked)
    agent = told(source, row)
    assert len(asked) == n > 0
    assert any("The guards leave it open" in line for line in agent.why)
    assert any("It answered: composing" in line for line in agent.why)
    oracle = source.oracle()
    assert oracle.sources["llm"] + oracle.sources.get("cache", 0) == model.round_row["open"]
    assert {one.what: one.spent for one in oracle.spent}["calls"] == n
    model.close()


def test_before_the_first_round_there_is_a_profile_and_nothing_else():
    agent = LiveSource(PageModel(CONFIG)).agent(0)
    assert (agent.feed, agent.moves, agent.why) == ((), (), ())
    assert "press play" in agent.why_note
    assert dict(agent.profile)["followers"].isdigit()


def test_of_many_agents_the_state_before_a_round_is_not_kept(monkeypatch):
    monkeypatch.setattr(live_model, "MOST_REPEATED", 59)
    model = PageModel(CONFIG)
    model.step()
    agent = LiveSource(model).agent(0)
    assert agent.why == ()
    assert "is not kept" in agent.why_note
    assert agent.profile


def test_an_agent_is_found_by_row_id_and_name(shown):
    source, _ = shown
    name = source.agent_name(7)
    assert source.find_agent(" 7 ") == 7
    assert source.agent_name(source.find_agent(name.lower())) == name
    with pytest.raises(DataError, match="no agent 'nobody'"):
        source.find_agent("nobody")


def test_a_post_stands_in_the_round_in_which_it_was_written(shown):
    source, _ = shown
    assert source.posts().round.tolist() == source.model.posts.written.tolist()
    assert source.posts().round.max() == source.at == 3


def test_a_reply_without_words_names_who_wrote_the_text_that_it_shows(shown):
    source, _ = shown
    posts = source.model.posts
    assert "" not in (assert_attributed(source, posts, post) for post in silent_replies(posts))


def test_inputs_that_no_model_can_be_made_with_are_left_out_and_named():
    model = PageModel(CONFIG, {"reasoner.kind": "distilled", "seed": "9", "rounds": 3})
    assert (model.params.seed, model.params.rounds, model.params.reasoner.kind) == (9, 3, "rule")
    assert list(model.faults) == ["reasoner.kind"]


def test_a_round_that_raises_ends_the_run_and_says_why(monkeypatch):
    model = PageModel(CONFIG)
    model.step()

    def fail(*_):
        raise ZeroDivisionError("a guard of one's own")

    monkeypatch.setattr(live_model.SocialModel, "step", fail)
    model.step()
    assert model.fault == "ZeroDivisionError: a guard of one's own"
    assert not model.running
    agent = LiveSource(model).agent(0)
    assert agent.why_note == "The round failed; it cannot be told why."


def test_the_copy_of_a_round_stands_before_it_and_records_nowhere():
    model = PageModel(CONFIG)
    model.step()
    twin = model.as_the_round_opened()
    assert (twin.round, model.round) == (-1, 0)
    assert twin.platform.recorder is None


def test_what_takes_a_while_is_told_as_it_begins_and_as_it_is_done(monkeypatch):
    said = []
    model = PageModel(CONFIG, on_work=said.append)
    assert said == ["a new model is being made ...", ""]
    model.step()
    assert len(said) == 2
    monkeypatch.setattr(live_model, "_SLOW_S", 0.0)
    model.step()
    assert said[2:] == ["a round is being run ...", ""]


def test_a_model_that_holds_what_cannot_be_copied_runs_and_says_why_nothing_is_told():
    model = PageModel(CONFIG)
    model.platform.own_lock = threading.Lock()
    model.step()
    assert (model.round, model.fault) == (0, "")
    assert LiveSource(model).agent(0).why_note == (
        "It cannot be told why: the state before the round could not be kept "
        "(TypeError: cannot pickle '_thread.lock' object)."
    )


@pytest.mark.parametrize("name", ["run_ticks", "commit", "collect"])
def test_whatever_a_round_raises_is_kept_as_its_fault_and_all_that_is_shown_can_be_read(monkeypatch, name):
    def fail(*_):
        raise KeyError("a guard of a user's")

    model = PageModel(CONFIG)
    model.step()
    with monkeypatch.context() as patched:
        patched.setattr(run_round, name, fail)
        model.step()
    source = LiveSource(model)
    assert (model.fault, model.running) == ('KeyError: "a guard of a user\'s"', False)
    assert len(source.round_columns()["round"]) == 1
    assert len(source.states()) == len(source.follows().followers) == 60
    agent = source.agent(0)
    assert agent.why_note == "The round failed; it cannot be told why."
    assert agent.feed_note == "The round failed: what it was shown is not known."
    assert source.oracle().sources is not None
