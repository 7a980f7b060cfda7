"""An action that raises in a round leaves its agent as it was, whether columns move it or it does its tick alone."""

from dataclasses import fields, replace

import numpy as np
import pytest
from worlds import plain, small

from prism_mesa.errors import RunError
from prism_mesa.reasoner import Reasoner
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.runs.social import run
from prism_mesa.social.behavior import social_chart
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.statechart import AgentState, Statechart

IDLE, SCROLLING = AgentState.IDLE, AgentState.SCROLLING
ALL_ONLINE = {"agents_activity": 1.0, "agents_activity_sigma": 0.0, "agents_post_rate": 0.5}
LAST = 7
WAYS = ["columns", "mesa"]


def acting(trigger, action):
    """Return the default chart with an action at every transition of a trigger."""
    own = [replace(t, action=action) if t.trigger == trigger else t for t in social_chart.transitions]
    return Statechart(AgentState, own, IDLE, timeouts={AgentState.RESTING: 2}, name="acting")


def standing(model, row):
    """Return all that the platform knows of an agent."""
    population = model.population
    names = [column.name for column in fields(population) if column.name != "numbers"]
    columns = [getattr(population, name) for name in (*names, *AGENT_FIELDS)]
    own = [column[row].tolist() if isinstance(column, np.ndarray) else column[row] for column in columns]
    return own, model.history.entries(row), row in model.platform.engagements.individual_rows


def acted_until(model, raises):
    """Return an action that writes down who acts, how it stood, and raises where it is told to; it changes a lot."""
    acted = []

    def acts(agent, post):
        acted.append((agent.row, standing(agent.model, agent.row)))
        agent.engagement_threshold, agent.name, agent.pending_action = 0.25, "Nobody", "like"
        agent.mood = "good"
        unread = agent.read()
        if unread is not None:
            agent.like(unread)
            agent.reply(unread, "well said")
        agent.write("I was here")
        if raises(agent):
            agent.state = AgentState.RESTING
            raise LookupError("out of paper")

    return acted, acts


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("trigger", ["feed_ready", "sees_post"])
def test_an_action_that_raises_leaves_its_agent_as_it_was_and_those_before_it_have_gone_on(way, trigger):
    acted, acts = acted_until(None, lambda agent: agent.row == LAST)
    model = small(chart=acting(trigger, acts), scheduler=way, **ALL_ONLINE)
    with pytest.raises(LookupError, match="out of paper"):
        model.step()
    assert [row for row, _ in acted] == sorted(row for row, _ in acted)
    row, before = acted[-1]
    assert row == LAST
    assert standing(model, LAST) == before
    assert not hasattr(model.agent(LAST), "mood")
    target = {"feed_ready": SCROLLING, "sees_post": AgentState.EVALUATING}[trigger]
    assert {model.agent(row).state for row, _ in acted[:-1]} == {target}
    later = set(range(LAST + 1, 30)) - {row for row, _ in acted}
    assert model.agent(LAST).state not in (target, AgentState.RESTING)
    assert target not in {model.agent(row).state for row in later}


@pytest.mark.parametrize("way", WAYS)
def test_the_error_of_an_action_names_agent_state_trigger_round_tick_and_line(way):
    def breaks(agent, post):
        if agent.model.round == 1:
            raise LookupError("out of paper")

    model = small(chart=acting("sees_post", breaks), scheduler=way, **ALL_ONLINE)
    with pytest.raises(LookupError, match="out of paper") as caught:
        model.run_for(2)
    [note] = caught.value.__notes__
    row, line = int(note.split()[1]), breaks.__code__.co_firstlineno + 2
    assert note == (
        f"agent {row} in round 1, tick 1, scrolling on sees_post: the action of scrolling --sees_post--> evaluating, "
        f"test_raising_actions.py:{line} in breaks"
    )


def test_an_action_after_an_answer_of_an_llm_is_undone_too():
    acted, acts = acted_until(None, lambda agent: agent.row > LAST)
    model = small(
        chart=acting("decides", acts),
        reasoner=Reasoner(lambda prompt: "composing"),
        agents_band=1.0,
        **ALL_ONLINE,
    )
    with pytest.raises(LookupError) as caught:
        model.run_for(3)
    assert "evaluating on decides: the action of evaluating --decides--> composing" in caught.value.__notes__[0]
    row, before = acted[-1]
    assert standing(model, row) == before
    assert model.agent(row).state is AgentState.EVALUATING


# A run


def breaks_in_round_1(agent, post):
    if agent.model.round >= 1:
        raise LookupError("out\nof paper")


LINE = breaks_in_round_1.__code__.co_firstlineno + 2
BUSY = {"agents": {"n": 20, "activity": 1.0, "activity_sigma": 0.0}, "network": {"mean_degree": 6}, "rounds": 3}


def test_a_run_whose_action_raises_says_where_in_its_manifest(tmp_path):
    chart = acting("sees_post", breaks_in_round_1)
    with pytest.raises(RunError, match=r"round 1: LookupError: out of paper \(agent \d+ in round 1, tick 1, ") as stop:
        run(plain(BUSY), out=tmp_path, chart=chart)
    manifest = read_manifest(stop.value.result.run_dir)
    assert manifest["status"] == "failed"
    assert f"--sees_post--> evaluating, test_raising_actions.py:{LINE} in breaks_in_round_1)" in manifest["error"]
