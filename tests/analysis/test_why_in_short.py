"""`prism why` begins with what an agent did and why, in at most five plain lines."""

import re
import shlex

import pytest
from worlds import plain

from prism_mesa.analysis.explain.report import MAX_LINES
from prism_mesa.api.runs import run, why
from prism_mesa.runs.run_files import read_table
from prism_mesa.view.summaries import _commands, run_lines

WORLD = {"agents": {"n": 40, "activity": 0.8, "post_rate": 0.2}, "network": {"mean_degree": 10}, "rounds": 5, "seed": 3}
UNEXPLAINED = ("utility", "log-odds", "relevance", "evaluating", "composing", "high_threshold")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return run(plain(WORLD), out=tmp_path_factory.mktemp("runs"), pictures=False)


def row_of_engagement(result, *, is_open):
    """Return a like that the guards settled, or left open."""
    likes = result.table("engagements").query("action == 'like'")
    drafts = result.table("transitions").query("to_state == 'composing' and trigger == 'decides'")
    found = likes.merge(drafts, on=["round", "agent", "post"])
    return found[found["open"] == is_open].iloc[0]


@pytest.mark.parametrize("is_open", [False, True])
def test_an_engagement_is_told_with_its_reason(result, is_open):
    liked = row_of_engagement(result, is_open=is_open)
    lines = why(result, int(liked["agent"]), int(liked["round"])).brief
    like = next(line for line in lines if line.startswith("It liked") and f"post {liked['post']} by " in line)
    assert ("left it open, and the rule chose this" in like) == is_open
    assert ("above which it always engages" in like) == (not is_open)


@pytest.mark.parametrize("chart", ["heeding", "heeding_above"])
def test_under_a_chart_of_ones_own_only_what_it_does_is_told(tmp_path, chart):
    noted = {"noted": {"of": "post", "values": [True, False], "share": [0.5, 0.5]}}
    config = plain({**WORLD, "attributes": noted, "statechart": {"chart": f"own_charts:{chart}"}})
    result = run(config, out=tmp_path, pictures=False)
    briefs, text = [], ""
    for agent in range(0, 40, 4):
        report = why(result, agent, trust=True)
        briefs += report.brief
        text += str(report)
    assert "always" not in text
    assert "It ignores posts below" not in text
    assert re.search(r"Its band is -?[\d.]+ to -?[\d.]+;", text)
    told = [line for line in briefs if "was true" in line]
    assert told
    assert all(re.search(r"was true \(.*post\.noted = (True|False)", line) for line in told)


def test_every_agent_has_five_plain_lines_at_most(result):
    for agent in range(0, 40, 3):
        for at in (None, 0):
            report = why(result, agent, at)
            assert 2 <= len(report.brief) <= MAX_LINES
            assert report.lines[: len(report.brief)] == report.brief
            text = re.sub(r'"[^"]*"', "", " ".join(report.brief))
            assert not [word for word in UNEXPLAINED if word in text]
            assert len(report.lines) > len(report.brief)


def test_an_agent_that_did_nothing_is_told_so_and_why(result):
    online = result.table("transitions").query("round == 0")["agent"]
    away = next(row for row in range(40) if row not in set(online))
    lines = why(result, away, 0).brief
    assert "neither posted nor engaged with any post" in lines[0] or "posted" in lines[0]
    assert "stayed offline: its chance to come online was " in lines[1]


def test_rounds_before_an_agent_joined_are_not_counted(tmp_path):
    agents = {**WORLD["agents"], "churn": {"waiting": 0.5, "join": 0.4}}
    churned = run(plain({**WORLD, "agents": agents}), out=tmp_path, pictures=False)
    joined = churned.table("churn").query("event == 'join'").iloc[0]
    [first, *_] = why(churned, int(joined["agent"])).brief
    assert f" of the {5 - joined['round']} round" in first
    assert "in which it was a member" in first


def test_of_a_post_the_rounds_come_first_in_which_it_was_in_the_feed(result):
    read = read_table(result.run_dir, "impressions").iloc[-1]
    lines = why(result, int(read["agent"]), post=int(read["post"])).brief
    assert ": in its feed" in lines[1]
    assert any(f"round {read['round']}: in its feed" in line for line in lines)


def test_a_run_ends_with_two_commands_that_can_be_typed(result, prism):
    commands = dict(run_lines(result.summary))["next"].split("; ")
    assert [shlex.split(one)[1] for one in commands] == ["why", "app"]
    code, out, _ = prism(*shlex.split(commands[0])[1:])
    assert (code, len(out.splitlines()) <= MAX_LINES + 1) == (0, True)
    assert shlex.split(commands[1])[2] == str(result.run_dir)
    assert "next" not in dict(run_lines(result.summary | {"status": "failed"}))


@pytest.mark.parametrize("name", ["Côte d'Ivoire", "-5", "$HOME; ls"])
def test_the_next_commands_of_any_name_can_be_pasted_into_a_shell(name):
    summary = {"run_dir": "/tmp/a b/run-1"}
    why_, then = _commands(summary, name, "replay").split("; prism replay ")
    words = [word for word in shlex.split(why_) if word != "--"]
    assert words == ["prism", "why", "/tmp/a b/run-1", name]
    assert shlex.split(then) == ["/tmp/a b/run-1"]
    assert name[0] != "-" or " -- " in why_
