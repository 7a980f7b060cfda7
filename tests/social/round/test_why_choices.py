"""Why an agent did what it did, told from a run."""

import pytest
from asking_worlds import WORLD, asking
from stand_in import StandIn
from worlds import plain

from prism_mesa.analysis.explain.report import report_lines
from prism_mesa.analysis.explain.why import why
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
        "Its action is drawn from its habits",
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
    by = f"; agent {first.agent} asked first, in round {first.round}."
    assert f"The answer is shared with {agents} of the archetype in this run{by}" in told
    own = "\n".join(report_lines(why(result.run_dir, str(first.agent), first.round)))
    assert f"The answer is shared with {agents} of the archetype in this run." in own


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
    assert "No budget was left to ask the LLM; the fallback 'first' stood in: composing." in texts[0]
    assert "Decided by the rule: no LLM was asked in this run." in texts[1]
