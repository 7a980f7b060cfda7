"""Why an agent did what it did, told from a run."""

import json
import re

import pytest
from asking_worlds import WORLD, asking
from minds import SPEAKS, THINKS, thought, words_of
from stand_in import StandIn, prompt_text
from worlds import plain

from prism_mesa.analysis.explain.report import report_lines
from prism_mesa.analysis.explain.trace import RoundOfAgent, Thought
from prism_mesa.analysis.explain.why import _most_eventful, why
from prism_mesa.errors import DataError
from prism_mesa.llm import Ledger
from prism_mesa.runs.social import run

# -- why ---------------------------------------------------------------------------------------------


def test_why_explains_a_reshare_with_guards_prompt_answer_and_draws(tmp_path):
    with StandIn(brain=lambda body: '{"next_state": "composing"}') as server:
        result = run(asking(server), out=tmp_path)
        asked = server.n_requests
        moves = result.table("transitions").query("open")[["round", "agent"]]
        reshares = result.table("engagements").query("action == 'reshare'").merge(moves, on=["round", "agent"])
        agent, round_ = int(reshares.iloc[0]["agent"]), int(reshares.iloc[0]["round"])
        explanation = why(result.run_dir, str(agent), round_)
        assert server.n_requests == asked
    text = "\n".join(report_lines(explanation))
    for part in (
        f"(agent {agent}) likes",
        f"Round {round_}: it came online",
        "The guards leave it open: composing or scrolling?",
        "post.utility > agent.high_threshold: false",
        f"Decided by Ollama llama3.2 at {server.url}.",
        "You decide what one user of a social media platform does next.",
        'It answered: {"next_state": "composing"}',
        "What it will do with the post is drawn from its habits",
        "evaluating -> composing",
        "composing -> engaging_reshare, on 'compose_done': it reshares",
    ):
        assert part in text


def test_why_says_that_an_answer_was_shared_by_an_archetype(tmp_path):
    with StandIn(brain=lambda body: '{"next_state": "composing"}') as server:
        result = run(asking(server, persona="archetype", archetypes=2), out=tmp_path)
    with Ledger(result.run_dir / "decisions.sqlite", read_only=True) as ledger:
        rows = ledger.asked()
    second = next(row for row in rows if row.source == "cache")
    first = next(row for row in rows if row.key == second.key)
    others = len({row.agent for row in rows if row.key == second.key}) - 1
    told = "\n".join(report_lines(why(result.run_dir, str(second.agent), second.round)))
    agents = "1 other agent" if others == 1 else f"{others} other agents"
    by = f", asked for first by agent {first.agent} in round {first.round}."
    assert f"The answer is shared with {agents} of the archetype in this run{by}" in told
    own = "\n".join(report_lines(why(result.run_dir, str(first.agent), first.round)))
    assert f"The answer is shared with {agents} of the archetype in this run." in own


@pytest.mark.parametrize("persona", ["archetype", "individual"])
def test_why_says_where_an_archetype_is_asked_about_other_words_than_the_posts(tmp_path, persona):
    with StandIn(brain=lambda body: '{"next_state": "composing"}') as server:
        result = run(asking(server, persona=persona), out=tmp_path)
    differ = []
    for agent in range(0, 40, 8):
        explanation = why(result.run_dir, str(agent))
        moves = [move for move in explanation.shown.moves if move.stored is not None]
        others = sum(json.dumps(move.post.text)[1:-1] not in json.dumps(move.stored.prompt) for move in moves)
        assert sum("in other words" in line for line in report_lines(explanation)) == others
        differ.append(others)
    assert any(differ) == (persona == "archetype")


@pytest.mark.slow
def test_why_tells_the_same_moves_as_the_records(tmp_path):
    with StandIn() as server:
        result = run(asking(server), out=tmp_path)
    records = result.table("transitions")
    for agent in (0, 11, 23):
        explanation = why(result.run_dir, str(agent))
        seen = [
            (r.round, move.tick, move.trigger, move.state.value, move.target.value)
            for r in explanation.rounds
            for move in r.moves
            if move.target is not None and move.target is not move.state
        ]
        own = records[(records["agent"] == agent) & ~records["trigger"].isin(["feed_ready", "round_ends"])]
        columns = ["round", "tick", "trigger", "from_state", "to_state"]
        assert seen == list(own[columns].itertuples(index=False, name=None))


@pytest.mark.slow
def test_why_names_fallbacks_leftovers_and_the_rule(tmp_path, caplog):
    with StandIn(fault="useless") as server:
        limits = {"attempts": 1, "max_calls": 3, "max_fallback_share": 1.0}
        result = run(asking(server, **limits), out=tmp_path)
    by_rule = run(plain(WORLD), out=tmp_path)
    texts = []
    for folder in (result.run_dir, by_rule.run_dir):
        agents = result.table("transitions").query("open and round == 0")["agent"].unique()[:6]
        texts.append("\n".join(line for agent in agents for line in report_lines(why(folder, str(agent), 0))))
    assert "No limit was left to ask the LLM; the fallback 'first' stood in: composing." in texts[0]
    assert "Decided by the rule: no LLM was asked in this run." in texts[1]


@pytest.mark.slow
def test_why_tells_what_an_agent_did_by_tools(tmp_path):
    def brain(body):
        prompt = prompt_text(body)
        if not prompt.endswith(THINKS):
            return words_of(prompt) if prompt.endswith(SPEAKS) else '{"next_state": "composing"}'
        shown = [int(post) for post in re.findall(r"post (\d+) by", prompt)][-2:]
        if not shown:
            return thought(("read_feed", {}))
        return thought(*(("like", {"post": str(post)}) for post in shown), ("post", {"text": "Hear me"}))

    world = WORLD | {"content": "llm", "deliberation": {"iterations": 2}, "agents": {"n": 25, "post_rate": 0.2}}
    world["agents"] |= {"activity": 1.0, "band": 0.0, "threshold_mean": 0.5, "like": 0.0}
    with StandIn(brain, slots=8) as server:
        result = run(asking(server, world), out=tmp_path)
    likes = result.table("engagements").query("action == 'like'")
    moves = result.table("transitions").query("to_state == 'engaging_like'")[["round", "agent", "post"]]
    likes = likes.merge(moves, on=["round", "agent", "post"], how="left", indicator=True).query("_merge == 'left_only'")
    agent = int(likes["agent"].mode()[0])
    by_round = likes[likes["agent"] == agent].groupby("round").size()
    times = [f"{r} ({n} times)" if n > 1 else str(r) for r, n in by_round.items()]
    lines = list(report_lines(why(result.run_dir, str(agent))))
    assert f"  liked by a tool in round {', '.join(times)}" in lines
    assert any(line.startswith("  posted by a tool in round ") for line in lines)
    shown = why(result.run_dir, str(agent)).shown
    own = likes.query("agent == @agent and round == @shown.round")
    assert sorted(activity.post for activity in shown.by_tool if activity.action == "like") == sorted(own["post"])
    posts = result.table("posts")
    for activity in shown.by_tool:
        of = 'posts "Hear me".' if activity.action == "post" else f"post {activity.post} by "
        assert any(line.startswith("      By this tool it ") and of in line for line in lines)
        assert activity.action == "post" or posts["author"][activity.post] != agent


def test_why_shows_the_round_in_which_most_was_done_even_if_all_of_it_by_tools():
    call = {"tool_name": "like", "parameters": {"post": 3}, "result": {"ok": True}}
    failed = call | {"result": {"ok": False}}
    looked = call | {"tool_name": "read_thread"}
    rounds = [RoundOfAgent(r, 0.5, 1.0, came_online=True) for r in range(3)]
    rounds[1].thoughts = [Thought(2, "reply", "tool", json.dumps(call))]
    rounds[2].thoughts = [Thought(2, "reply", "tool", json.dumps(other)) for other in (failed, looked)]
    assert [len(r.by_tool) for r in rounds] == [0, 1, 0]
    assert _most_eventful(rounds) is rounds[1]


def test_why_finds_an_agent_by_row_or_name_and_says_what_is_wrong(tmp_path):
    result = run(plain(WORLD), out=tmp_path)
    names = result.table("agents")["name"]
    name = names[~names.duplicated(keep=False)].iloc[3]
    assert why(result.run_dir, name.lower(), 0).agent.name == name
    with pytest.raises(DataError, match=rf"no agent {name[:-1]!r} there .*Did you mean"):
        why(result.run_dir, name[:-1])
    with pytest.raises(DataError, match=r"no round 9 there \(rounds: 0 .. 2\)"):
        why(result.run_dir, "1", 9)
    with pytest.raises(DataError, match="no run there"):
        why(tmp_path, "1")
