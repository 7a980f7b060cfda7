"""An action that raises in a round leaves its agent as it was, whether columns move it or it does its tick alone."""

from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
from worlds import named, plain, small

from prism_mesa.errors import RunError
from prism_mesa.reasoner import Reasoner
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.runs.social import run
from prism_mesa.social.behavior import social_chart
from prism_mesa.social.round.run_round import run_round
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.statechart import AgentState, Statechart, Transition

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
    return own, model.history.entries(row), row in model.platform.engagements.beside


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
def test_what_an_action_noted_before_it_raised_does_not_reach_the_commit(way):
    acted, acts = acted_until(None, lambda agent: agent.row == LAST)
    model = small(chart=acting("sees_post", acts), scheduler=way, **ALL_ONLINE)
    with pytest.raises(LookupError):
        model.step()
    events = model.platform.events
    assert LAST not in {row for _, row, _, _ in events.beside.values()} | {row for row, _, _ in events.texts}
    assert LAST not in {row for row, _ in events.written}
    others = {row for row, _ in acted[:-1]}
    assert others <= {row for row, _ in events.written}
    assert others <= {row for _, row, _, _ in events.beside.values()}


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


@pytest.mark.parametrize("way", WAYS)
def test_the_error_of_a_guard_of_a_strict_chart_names_the_same(way):
    def breaks(agent, post):
        raise LookupError("no idea")

    more = Transition("feed_ready", IDLE, AgentState.RESTING, guard=breaks)
    chart = Statechart(AgentState, [*social_chart.transitions, more], IDLE)
    model = small(chart=chart, scheduler=way, statechart_strict=True, **ALL_ONLINE)
    before = [standing(model, row) for row in range(30)]
    with pytest.raises(LookupError, match="no idea") as caught:
        model.step()
    [note] = caught.value.__notes__
    assert note.startswith(
        "agent 0 in round 0, tick 0, idle on feed_ready: the guard of idle --feed_ready--> resting ["
    )
    assert note.endswith(f"test_raising_actions.py:{breaks.__code__.co_firstlineno + 1} in breaks")
    states = [own[0][12] for own in before]
    assert [standing(model, row)[0][12] for row in range(30)] == states


def test_an_action_after_an_answer_of_an_llm_is_undone_too():
    acted, acts = acted_until(None, lambda agent: agent.row > LAST)
    model = small(
        chart=acting("decides", acts),
        reasoner=Reasoner(lambda question: question.options[0]),
        agents_band=1.0,
        **ALL_ONLINE,
    )
    with pytest.raises(LookupError) as caught:
        model.run_for(3)
    assert "evaluating on decides: the action of evaluating --decides--> composing" in caught.value.__notes__[0]
    row, before = acted[-1]
    assert standing(model, row) == before
    assert model.agent(row).state is AgentState.EVALUATING


@pytest.mark.parametrize("calls", [52, 78])
def test_those_who_acted_before_another_one_raised_have_gone_on_also_if_several_ticks_went_together(calls):
    acted = Counter()

    def acts(agent, post):
        if acted.total() == calls:
            raise LookupError("out of paper")
        acted[agent.row] += 1

    acting = {"sees_post", "action_done"}
    own = [replace(t, action=acts) if t.trigger in acting else t for t in social_chart.transitions]
    chart = Statechart(AgentState, own, IDLE, timeouts={AgentState.RESTING: 2})
    reasoner = Reasoner(lambda prompt: ("composing", "scrolling")[len(prompt) % 2])
    model = small(chart=chart, reasoner=reasoner, agents_band=1.0, **ALL_ONLINE)
    with pytest.raises(LookupError):
        model.run_for(3)
    assert {row: sum(e.trigger in acting for e in model.agent(row).state_history) for row in acted} == acted


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


def test_the_command_line_says_in_one_line_where_an_action_raised(prism):
    chart = named(acting("sees_post", breaks_in_round_1), "raising")
    given = [
        f"{key}={value}" for key, value in plain(BUSY | {"statechart": {"chart": chart}}).items() if value is not None
    ]
    code, _, err = prism("run", *given, "reasoner.kind=rule")
    assert code == 1
    [line] = [line for line in err.splitlines() if line.startswith("prism: ")]
    assert "round 1: LookupError: out of paper (agent " in line
    assert f"test_raising_actions.py:{LINE} in breaks_in_round_1" in line
    assert "Traceback" not in err


def test_what_raises_outside_of_a_run_is_one_line_too(prism, monkeypatch):
    def explains(*_, **__):
        small(chart=acting("sees_post", breaks_in_round_1), **ALL_ONLINE).run_for(2)

    monkeypatch.setattr("prism_mesa.cli.app._command", lambda: explains)
    code, _, err = prism("why", "run", "3")
    assert code == 1
    assert err.startswith("prism: LookupError: out of paper (agent ")
    assert err.endswith(f"test_raising_actions.py:{LINE} in breaks_in_round_1)\n")
    assert err.count("\n") == 1


def test_moves_of_a_round_that_an_action_has_ended_are_recorded_as_they_were():
    raised = []
    _, acts = acted_until(None, lambda agent: agent.row == LAST and agent.model.platform.round == 1 and not raised)
    platform = small(chart=acting("sees_post", acts), **ALL_ONLINE).platform
    run_round(platform)
    before = len(platform.recorder.tables["transitions"])
    with pytest.raises(LookupError):
        run_round(platform)
    raised.append(True)
    noted = Counter((one[0], one[1], one[3]) for part in platform.events.moves for one in zip(*part, strict=True))
    assert len(noted) > 1
    run_round(platform)
    told = platform.recorder.tables["transitions"][before:]
    assert not noted - Counter((row["tick"], row["agent"], row["post"]) for row in told)
