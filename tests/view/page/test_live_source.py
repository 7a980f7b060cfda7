"""What the page shows of a model that runs: it is the model's, round by round, and telling it changes nothing."""

import threading

import numpy as np
import pytest
from worlds import plain

from prism_mesa.params import nest_keys
from prism_mesa.reasoner import Reasoner
from prism_mesa.runs.records.in_memory import RowsInMemory
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.social.round import run_round
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.statechart import STATE_COLORS, STATES, AgentState
from prism_mesa.view.page.live import LiveSource
from prism_mesa.view.page.live_model import PageModel

CONFIG = SocialParams.model_validate(
    nest_keys(plain({"agents.n": 60, "rounds": 6, "seed": 5, "agents.activity": 0.8, "agents.post_rate": 0.4}))
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


def explained(source, row):
    """Return an agent whose round has been told."""
    source.explain(row)
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


def test_an_agents_moves_are_its_transitions(shown):
    source, recorder = shown
    table = last_transitions(recorder)
    for row in table["agent"].unique()[:10].tolist():
        rows = table[table["agent"] == row]
        moves = source.agent(row).moves
        assert [move.tick for move in moves] == rows["tick"].tolist()
        assert [move.target.value for move in moves] == rows["to_state"].tolist()
        assert [move.is_open for move in moves] == rows["open"].tolist()


def test_why_tells_what_the_agent_did_in_the_round(shown):
    source, recorder = shown
    table = last_transitions(recorder)
    liked = table[table["to_state"] == "engaging_like"]
    row, post = int(liked["agent"].iloc[0]), int(liked["post"].iloc[0])
    before, agent = source.agent(row), explained(source, row)
    assert before.why_note == "The reasons appear once no new round starts."
    assert before.why[0].startswith("tick 0: idle -> scrolling")
    assert (before.moves, before.state, agent.why_note) == (agent.moves, agent.state, "")
    assert [item.engagements for item in before.feed] == [item.engagements for item in agent.feed]
    assert agent.why[0].startswith("Round 3: ")
    assert any("engaging_like" in line and f"post {post} by" in line for line in agent.why)
    assert "like" in next(item.engagements for item in agent.feed if item.post == post)
    assert all(item.reason for item in agent.feed)


@pytest.mark.parametrize("comes", ["another round", "another agent", "nothing"])
def test_why_is_not_told_of_what_is_no_longer_on_show(monkeypatch, comes):
    monkeypatch.setattr(PageModel, "rest_s", 0.0)
    model = PageModel(CONFIG)
    model.step()
    source, heard = LiveSource(model), []
    with model.lock:  # as while a round runs; the timer's thread waits for it
        call_off = source.explain_soon(3, lambda: heard.append(source.round))
        [timer] = [item for item in threading.enumerate() if isinstance(item, threading.Timer)]
        if comes == "another round":
            model.step()
        elif comes == "another agent":
            call_off()
    timer.join(60)
    is_told = source.agent(3).why_note != "The reasons appear once no new round starts."
    assert (heard, is_told) == (([0], True) if comes == "nothing" else ([], False))


def test_telling_why_changes_nothing():
    plain_model, looked_at = PageModel(CONFIG), PageModel(CONFIG)
    source = LiveSource(looked_at)
    for _ in range(3):
        plain_model.step()
        looked_at.step()
        for row in range(0, 60, 15):
            explained(source, row)
    assert plain_model.datacollector.get_model_vars_dataframe().equals(
        looked_at.datacollector.get_model_vars_dataframe()
    )
    assert not looked_at.agents_by_class


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
    moved = model.last_round.rows["transitions"]
    row = int(moved["agent"][moved["open"]][0])
    n = len(asked)
    agent = explained(source, row)
    assert len(asked) == n > 0
    assert any("The guards leave it open" in line for line in agent.why)
    assert any("It answered: composing" in line for line in agent.why)
    oracle = source.oracle()
    assert oracle.sources["llm"] + oracle.sources.get("cache", 0) == model.round_row["open"]
    assert oracle.spent["calls"][0] == n
    model.close()


@pytest.mark.parametrize("name", ["run_ticks", "collect"])
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
    assert agent.why_note == "The round failed and cannot be explained."
    assert agent.feed_note == "The round failed, so its feed is unknown."
    assert source.oracle().sources is not None
