"""Whole runs in which an LLM is asked, through the real client: delays, faults, budgets, replay, explanations."""

import asyncio
import json
import re
import sqlite3
from hashlib import blake2b
from pathlib import Path

import pandas as pd
import pytest
from minds import SPEAKS, THINKS, thought, words_of

from prism_mesa import SocialAgent, SocialModel
from prism_mesa.analysis.explain.report import report_lines
from prism_mesa.analysis.explain.trace import RoundOfAgent, Thought, _most_telling, why
from prism_mesa.errors import ConfigError, DataError, RunError
from prism_mesa.llm import Ledger
from prism_mesa.llm.stand_in import FAULTS, Said, StandIn, embedded_brain, first_attempts, prompt_text
from prism_mesa.reasoner import Reasoner
from prism_mesa.runs.ledgers import export_ledger, ledger_stats
from prism_mesa.runs.replay import replay
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.runs.social import run

WORLD = {
    "agents": {"n": 40, "activity": 0.9, "band": 0.3},
    "network": {"mean_degree": 8},
    "rounds": 3,
    "seed": 7,
}


def asking(server, world=WORLD, **reasoner):
    own = {"kind": "ollama", "host": server.url, "timeout_s": 5, **reasoner}
    own |= {} if own.get("attempts") == 1 else {"backoff_s": own.get("backoff_s", 0.01)}
    return world | {"reasoner": own}


def tables_of(run_dir):
    return {file.name: file.read_bytes() for file in sorted(Path(run_dir).glob("*.parquet"))}


def a_delay(seed, most_s):
    """Return a latency that is drawn from what is asked and a seed: 0 to `most_s` seconds."""

    def latency(number, body):
        digest = blake2b(f"{seed} {number} {prompt_text(body)}".encode(), digest_size=2).digest()
        return int.from_bytes(digest) / 65536 * most_s

    return latency


@pytest.mark.slow
def test_answers_that_are_late_by_chance_leave_the_tables_of_five_runs_byte_identical(tmp_path):
    runs = []
    with StandIn(slots=8) as server:
        for seed in range(5):
            server.latency = a_delay(seed, 0.05)
            runs.append(run(asking(server, max_concurrency=8), out=tmp_path))
        assert server.max_busy == 8
    assert runs[0].summary["decisions"]["by_source"]["llm"] > 40
    assert runs[0].table("transitions")["open"].sum() > 40
    assert all(tables_of(r.run_dir) == tables_of(runs[0].run_dir) for r in runs[1:])


def test_the_order_of_answers_does_not_change_who_counts_for_what_in_the_summary(tmp_path):
    counts = []
    with StandIn(slots=8) as server:
        for seed in range(2):
            server.latency = a_delay(seed, 0.05)
            counts.append(run(asking(server, max_concurrency=8), out=tmp_path).summary["decisions"]["by_source"])
    assert counts[0] == counts[1]


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_a_model_can_be_stepped_where_a_loop_already_runs_as_in_jupyter(scheduler):
    async def cell(server):
        model = SocialModel(asking(server), scheduler=scheduler)
        model.run_for(2)
        model.reasoner.close()
        return model.sources["llm"]

    with StandIn() as server:
        assert asyncio.run(cell(server)) == server.n_requests > 0


def test_agents_that_step_one_by_one_end_up_as_those_in_columns(tmp_path):
    with StandIn() as server:
        by = {kind: run(asking(server) | {"scheduler": kind}, out=tmp_path) for kind in ("columns", "mesa")}
    assert tables_of(by["columns"].run_dir) == tables_of(by["mesa"].run_dir)


# -- failures ----------------------------------------------------------------------------------------


REASONS = {
    "timeout": "timeout",
    "drip": "timeout",
    "dropped": "dropped",
    "partial-body": "dropped",
    "bad-request": "http-400",
    "not-found": "http-404",
    "server-error": "server-error",
    "busy": "busy",
    "error-dict": "http-400",
    "error-array": "error-body",
    "error-in-stream": "server-error",
    "not-done": "partial",
    "not-json": "not-json",
    "wrong-shape": "wrong-shape",
    "json-array": "wrong-shape",
    "empty": "empty",
    "useless": "unparsable",
    "invalid-state": "invalid-state",
}


def test_every_fault_of_the_stand_in_has_its_reason_here():
    assert REASONS.keys() == FAULTS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("fault", sorted(REASONS))
def test_a_fault_of_every_answer_is_a_counted_fallback_with_its_reason_and_nothing_is_lost(fault, tmp_path, caplog):
    tiny = WORLD | {"agents": {"n": 12, "activity": 1, "band": 0.4}, "rounds": 1}
    with StandIn(fault=fault, slots=64) as server:
        patience_s = 0.2 if REASONS[fault] == "timeout" else 10.0  # a busy machine is no fault
        limits = {"timeout_s": patience_s, "attempts": 1, "max_concurrency": 64}
        result = run(asking(server, tiny, **limits), out=tmp_path)
    decisions = result.summary["decisions"]
    assert result.status == "failed"
    assert decisions["by_source"] == {"fallback": decisions["open"]}
    assert decisions["fallback_reasons"] == {REASONS[fault]: decisions["open"]}
    assert len(result.table("rounds")) == 1
    assert replay(result.run_dir).equal


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["dropped", "busy", "useless", "empty", "not-json"])
def test_what_can_pass_is_asked_again_and_costs_nothing_but_time(fault, tmp_path):
    with StandIn() as server:
        good = run(asking(server), out=tmp_path)
        server.fault = first_attempts(fault)
        shaken = run(asking(server, max_concurrency=1, backoff_s=0), out=tmp_path)
    assert shaken.summary["decisions"]["by_source"] == good.summary["decisions"]["by_source"]
    assert shaken.summary["decisions"]["llm"]["calls"] == 2 * good.summary["decisions"]["llm"]["calls"]
    assert tables_of(shaken.run_dir) == tables_of(good.run_dir)


@pytest.mark.usefixtures("hurried")
def test_a_server_that_dies_in_mid_run_and_comes_back_costs_only_the_fallbacks_it_caused(tmp_path, caplog):
    with StandIn() as server:

        def one_bad_round(done):
            if done == 2:
                server.stop()
            if done == 3:
                server.start()

        world = WORLD | {"rounds": 6}
        result = run(asking(server, world, max_fallback_share=1.0), out=tmp_path, on_round=one_bad_round)
    fallbacks = result.table("rounds").set_index("round")["fallback"]
    assert fallbacks[2] > 0
    assert fallbacks.drop(2).sum() <= 10  # until the first question after its rest finds the server
    assert fallbacks[5] == 0
    assert result.summary["decisions"]["by_source"]["llm"] > 0
    assert replay(result.run_dir).equal


@pytest.mark.slow
def test_a_dead_server_costs_seconds_and_the_run_is_kept_as_failed(tmp_path, caplog):
    with StandIn() as server:
        started = pd.Timestamp.now()
        result = run(asking(server), out=tmp_path, on_round=lambda done: server.stop() if done == 1 else None)
        took = pd.Timestamp.now() - started
    assert result.status == "failed"
    assert "reasoner.max_fallback_share allows 5.0%" in result.summary["error"]
    assert result.summary["decisions"]["fallback_reasons"].keys() <= {
        "refused",
        "dropped",
        "circuit-open",
        "still-down",
    }
    assert len(result.table("rounds")) == WORLD["rounds"]
    assert took.total_seconds() < 20


def test_two_servers_share_the_questions_and_one_that_dies_is_done_without(tmp_path, caplog):
    with StandIn(slots=2, latency=0.005) as one, StandIn(slots=2, latency=0.005) as two:
        config = asking(one, max_concurrency=4)
        config["reasoner"]["host"] = [one.url, two.url]
        both = run(config, out=tmp_path)
        assert min(one.n_requests, two.n_requests) > 0.3 * (one.n_requests + two.n_requests)
        alone = run(config, out=tmp_path, on_round=lambda done: two.stop() if done == 1 else None)
    assert alone.summary["decisions"]["by_source"] == both.summary["decisions"]["by_source"]
    assert tables_of(alone.run_dir) == tables_of(both.run_dir)


# -- budgets, ledgers, replay ------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_with_2000_decisions_fallbacks_and_leftovers_is_replayed_equal_and_asks_nothing(tmp_path, caplog):
    world = WORLD | {"agents": {"n": 400, "activity": 0.9, "band": 0.5}, "rounds": 4}

    def sometimes(number, body):
        return "useless" if "a" * 2 in prompt_text(body)[-400:] or len(prompt_text(body)) % 9 == 0 else None

    with StandIn(slots=32, fault=sometimes) as server:
        limits = {"max_calls": 1500, "max_calls_per_round": 450, "attempts": 2, "max_fallback_share": 1.0}
        result = run(asking(server, world, max_concurrency=32, **limits), out=tmp_path)
        asked = server.n_requests
        found = replay(result.run_dir)
        assert server.n_requests == asked
    by_source = result.summary["decisions"]["by_source"]
    assert result.summary["decisions"]["open"] > 2000
    assert min(by_source["fallback"], by_source["budget"], by_source["llm"]) > 10
    assert asked <= 1500
    assert found.equal
    assert (found.answered, found.calls) == (result.summary["decisions"]["open"], 0)


def test_spending_a_budget_does_not_depend_on_which_answer_comes_first(tmp_path):
    results = []
    with StandIn(slots=8) as server:
        for seed in range(2):
            server.latency = a_delay(seed, 0.03)
            results.append(run(asking(server, max_calls_per_round=15, max_concurrency=8), out=tmp_path))
    assert results[0].summary["decisions"]["by_source"]["budget"] > 0
    assert results[0].summary["decisions"]["by_source"] == results[1].summary["decisions"]["by_source"]
    assert tables_of(results[0].run_dir) == tables_of(results[1].run_dir)


def test_a_second_run_with_the_same_ledger_in_mode_cache_asks_nothing_and_is_self_contained(tmp_path):
    shared = {"ledger": "cache", "ledger_path": str(tmp_path / "shared.sqlite")}
    with StandIn() as server:
        first = run(asking(server, **shared), out=tmp_path)
        asked = server.n_requests
        second = run(asking(server, **shared), out=tmp_path)
        assert server.n_requests == asked > 0
    assert second.summary["decisions"]["by_source"].keys() == {"cache"}
    assert tables_of(first.run_dir) == tables_of(second.run_dir)
    (tmp_path / "shared.sqlite").unlink()
    assert replay(second.run_dir).equal


def test_mode_replay_reads_fallbacks_of_the_same_configuration_from_a_ledger_that_runs_share(tmp_path, caplog):
    path = {"ledger_path": str(tmp_path / "shared.sqlite"), "max_fallback_share": 1.0, "attempts": 1}
    with StandIn(fault=lambda number, body: "useless" if number % 3 == 0 else None) as server:
        first = run(asking(server, max_concurrency=1, **path), out=tmp_path)
        run(asking(server, WORLD | {"seed": 8}, **path), out=tmp_path)
        asked = server.n_requests
        again = run(asking(server, ledger="replay", **path), out=tmp_path)
        assert server.n_requests == asked
    assert first.summary["decisions"]["by_source"]["fallback"] > 0
    assert tables_of(first.run_dir) == tables_of(again.run_dir)
    assert again.summary["decisions"]["fallback_reasons"] == first.summary["decisions"]["fallback_reasons"]


def test_an_answer_that_the_ledger_lacks_ends_replay_with_the_question(tmp_path):
    with StandIn() as server:
        result = run(asking(server), out=tmp_path)
    ledger = Ledger(result.run_dir / "decisions.sqlite")
    row = next(row for row in ledger.asked() if row.source == "llm" and row.round == 1)
    ledger._db.execute("DELETE FROM answers WHERE key = ?", (row.key,))
    ledger.close()
    where = rf"holds no answer for round 1, tick {row.tick}, agent {row.agent} \(.*\): decides in evaluating"
    with pytest.raises(RunError, match=where):
        replay(result.run_dir)


def test_a_changed_run_is_told_from_its_replay(tmp_path):
    with StandIn() as server:
        result = run(asking(server), out=tmp_path)
    rounds = result.table("rounds")
    rounds.loc[2, "likes"] += 1
    rounds.to_parquet(result.run_dir / "rounds.parquet")
    found = replay(result.run_dir)
    assert not found.equal
    assert found.differences.keys() == {"rounds"}
    assert "row 2, likes: " in found.differences["rounds"]


def test_a_run_that_has_not_ended_or_was_given_python_objects_is_not_replayed(tmp_path):
    with StandIn() as server:
        with pytest.raises(KeyboardInterrupt):
            run(asking(server), out=tmp_path / "a", on_round=lambda done: (_ for _ in ()).throw(KeyboardInterrupt))
        scripted = run(asking(server), out=tmp_path / "b", prepare=lambda model: None)
    [broken] = (tmp_path / "a").iterdir()
    with pytest.raises(DataError, match=r"has not come to its end \(status interrupted, 1 of 3 rounds\)"):
        replay(broken)
    with pytest.raises(DataError, match="was given a chart, agents or a reasoner in Python"):
        replay(scripted.run_dir)


def test_a_run_decided_by_rule_is_replayed_too(tmp_path):
    result = run(WORLD, out=tmp_path)
    found = replay(result.run_dir, out=tmp_path / "again")
    assert found.equal
    assert read_manifest(found.run_dir)["status"] == "done"


def test_a_ledger_is_counted_and_exported(tmp_path):
    with StandIn() as server:
        result = run(asking(server), out=tmp_path)
    found = ledger_stats(result.run_dir)
    by_source = result.summary["decisions"]["by_source"]
    assert (found["answers"], found["sources"]) == (by_source["llm"], by_source)
    assert found["tokens"] == result.summary["decisions"]["llm"]["tokens"]
    files = export_ledger(result.run_dir / "decisions.sqlite", tmp_path / "tables")
    answers, asked = (pd.read_parquet(path) for path, _ in files.values())
    assert set(answers["choice"]) == {"composing", "scrolling"}
    assert len(asked) == result.summary["decisions"]["open"]
    assert set(asked["key"]) == set(answers["key"])


# -- kinds of users ----------------------------------------------------------------------------------


def test_one_call_serves_every_agent_of_a_kind_and_each_draws_for_itself(tmp_path):
    shared = {"persona": "archetype", "answer": "probabilities", "archetypes": 2}
    with StandIn() as server:
        result = run(asking(server, **shared), out=tmp_path)
        prompts = {prompt_text(body) for body in server.requests}
    by_source = result.summary["decisions"]["by_source"]
    assert by_source["llm"] == len(prompts) < by_source["cache"]
    assert not any("Your last changes of state" in prompt or "Author" in prompt for prompt in prompts)
    assert replay(result.run_dir).equal


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
        "post.relevance > agent.high_threshold: false",
        f"Decided by Ollama llama3.2 at {server.url}.",
        "You decide what one user of a social media platform does next.",
        'It answered: {"next_state": "composing"}',
        "What it will do with the post is drawn from its habits",
        "evaluating -> composing",
        "composing -> engaging_reshare, on 'compose_done': it reshares",
    ):
        assert part in text


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


def test_why_names_fallbacks_leftovers_and_the_rule(tmp_path, caplog):
    with StandIn(fault="useless") as server:
        limits = {"attempts": 1, "max_calls": 3, "max_fallback_share": 1.0}
        result = run(asking(server, **limits), out=tmp_path)
    by_rule = run(WORLD, out=tmp_path)
    texts = []
    for folder in (result.run_dir, by_rule.run_dir):
        agents = result.table("transitions").query("open and round == 0")["agent"].unique()[:6]
        texts.append("\n".join(line for agent in agents for line in report_lines(why(folder, str(agent), 0))))
    assert "No limit was left to ask the LLM; the fallback 'first' stood in: composing." in texts[0]
    assert "Decided by the rule: no LLM was asked in this run." in texts[1]


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
    rounds = [RoundOfAgent(r, 0.5, came_online=True) for r in range(3)]
    rounds[1].thoughts = [Thought(2, "reply", "tool", json.dumps(call))]
    rounds[2].thoughts = [Thought(2, "reply", "tool", json.dumps(other)) for other in (failed, looked)]
    assert [len(r.by_tool) for r in rounds] == [0, 1, 0]
    assert _most_telling(rounds) is rounds[1]


def test_why_finds_an_agent_by_row_or_name_and_says_what_is_wrong(tmp_path):
    result = run(WORLD, out=tmp_path)
    names = result.table("agents")["name"]
    name = names[~names.duplicated(keep=False)].iloc[3]
    assert why(result.run_dir, name.lower(), 0).agent.name == name
    with pytest.raises(DataError, match=rf"no agent {name[:-1]!r} there .*Did you mean"):
        why(result.run_dir, name[:-1])
    with pytest.raises(DataError, match=r"no round 9 there \(rounds: 0 .. 2\)"):
        why(result.run_dir, "1", 9)
    with pytest.raises(DataError, match="no run there"):
        why(tmp_path, "1")


# -- a real LLM --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_real_llm_behind_the_real_protocol_decides_a_run_that_is_replayed_equal(tmp_path):
    pytest.importorskip("xllamacpp", reason="the extra 'embedded' is not installed")
    tiny = WORLD | {"agents": {"n": 12, "activity": 1, "band": 0.2}, "rounds": 1}
    with StandIn(brain=embedded_brain(), models=("smollm2:135m",), slots=1) as server:
        limits = {"model": "smollm2:135m", "timeout_s": 120, "max_calls": 2}
        result = run(asking(server, tiny, **limits), out=tmp_path)
        assert 0 < server.n_requests <= 2
    with Ledger(result.run_dir / "decisions.sqlite") as ledger:
        answers = ledger.answers()
    assert {json.loads(answer.raw)["next_state"] for answer in answers} <= {"composing", "scrolling"}
    assert replay(result.run_dir).equal


@pytest.mark.slow
def test_the_embedded_llm_decides_where_no_server_is_and_its_run_is_replayed_equal(tmp_path):
    pytest.importorskip("xllamacpp", reason="the extra 'embedded' is not installed")
    world = WORLD | {"posts": {"circulating": 4}, "reasoner": {"kind": "auto", "host": "http://127.0.0.1:9"}}
    result = run(world, out=tmp_path)
    decisions = result.summary["decisions"]
    assert decisions["decided_by"] == "embedded SmolLM2-135M-Instruct (llama.cpp)"
    assert "http://127.0.0.1:9 does not answer" in decisions["note"]
    assert read_manifest(result.run_dir)["llm"]["persona"] == "archetype"
    assert decisions["by_source"]["cache"] > decisions["by_source"]["llm"] > 0
    assert replay(result.run_dir).equal


def test_the_same_answers_make_the_same_run_wherever_they_come_from():
    def llm(prompt):
        return json.dumps({"next_state": "scrolling" if len(prompt) % 2 else "composing"})

    with Reasoner(llm) as one, Reasoner(llm, max_concurrency=1) as other:
        totals = []
        for reasoner in (one, other):
            model = SocialModel(WORLD, reasoner=reasoner)
            model.run_for(3)
            totals.append(model.totals)
    assert totals[0] == totals[1]


# -- what a review found -----------------------------------------------------------------------------


def test_replay_takes_the_answers_of_the_llm_and_options_that_are_configured(tmp_path):
    shared = {"ledger_path": str(tmp_path / "shared.sqlite")}
    with StandIn(models=("llama3.2", "qwen"), brain=lambda body: '{"next_state": "composing"}') as server:
        cold = run(asking(server, **shared), out=tmp_path)
        server.brain = lambda body: '{"next_state": "scrolling"}'
        warm = run(asking(server, temperature=1.0, **shared), out=tmp_path)
        run(asking(server, model="qwen", **shared), out=tmp_path)
        again = run(asking(server, ledger="replay", **shared), out=tmp_path)
        assert tables_of(again.run_dir) == tables_of(cold.run_dir) != tables_of(warm.run_dir)
        with pytest.raises(ConfigError, match=r"holds no answers of the LLM and options .*qwen"):
            run(asking(server, ledger="replay", model="mistral", **shared), out=tmp_path)


def test_a_ledger_that_is_not_there_is_bad_input_in_replay_and_nothing_is_made(tmp_path):
    typo = tmp_path / "typo.sqlite"
    with pytest.raises(DataError, match=r"typo.sqlite: no such file"):
        run(WORLD | {"reasoner": {"kind": "auto", "ledger": "replay", "ledger_path": str(typo)}}, out=tmp_path / "out")
    assert not typo.exists()
    assert not (tmp_path / "out").exists()


def test_looking_at_a_file_of_somebody_elses_changes_nothing_in_it(tmp_path):
    db = sqlite3.connect(tmp_path / "other.db")
    db.execute("CREATE TABLE mine (x)")
    db.commit()
    db.close()
    before = (tmp_path / "other.db").read_bytes()
    for look in (ledger_stats, Ledger):
        with pytest.raises(DataError, match="not a ledger"):
            look(tmp_path / "other.db")
    assert (tmp_path / "other.db").read_bytes() == before


def test_a_damaged_ledger_is_told_in_a_line(tmp_path):
    with StandIn() as server:
        result = run(asking(server), out=tmp_path)
    file = result.run_dir / "decisions.sqlite"
    good = file.read_bytes()
    file.write_bytes(good[:4096] + b"\x5a" * (len(good) - 4096))
    with pytest.raises(DataError, match=r"is damaged|not a ledger"):
        ledger_stats(result.run_dir)
    file.write_bytes(good)
    ledger = Ledger(file)
    ledger._db.execute("UPDATE answers SET raw = 'nonsense'")
    ledger.close()
    with pytest.raises(RunError, match=r"cannot be repeated: the ledger .* what stands there is none"):
        replay(result.run_dir)


def test_a_reasoner_that_was_interrupted_serves_the_next_model():
    class Impatient(SocialAgent):
        def step(self):
            if (self.model.round, self.model.tick) == (0, 5):
                raise KeyboardInterrupt

    async def slow(prompt):
        await asyncio.sleep(0.02)
        return '{"next_state": "scrolling"}'

    with Reasoner(slow, max_concurrency=2) as reasoner:
        interrupted = SocialModel(WORLD, reasoner=reasoner)
        Impatient(interrupted, 0)
        with pytest.raises(KeyboardInterrupt):
            interrupted.step()
        model = SocialModel(WORLD, reasoner=reasoner)
        model.run_for(1)
    assert model.totals["open"] == sum(model.sources.values()) > 0


def test_every_model_on_one_reasoner_has_the_whole_of_its_limits():
    with Reasoner(lambda prompt: '{"next_state": "scrolling"}', max_calls=5) as reasoner:
        asked = []
        for seed in (1, 2):
            model = SocialModel(WORLD, reasoner=reasoner, seed=seed)
            model.run_for(1)
            asked.append(model.sources["llm"])
    assert asked == [5, 5]


def test_what_was_never_sent_because_a_limit_ran_out_is_budget_also_with_a_dead_server(tmp_path, caplog):
    with StandIn() as server:
        limits = {"max_calls": 20, "max_concurrency": 4, "max_fallback_share": 1.0}
        result = run(asking(server, **limits), out=tmp_path, on_round=lambda done: server.stop() if done == 1 else None)
    asked = pd.DataFrame(Ledger(result.run_dir / "decisions.sqlite", read_only=True).asked())
    assert set(asked.query("source == 'fallback'")["reason"]) <= {"refused", "dropped", "circuit-open", "still-down"}
    assert (asked["source"] == "budget").any()


def test_counts_of_tokens_that_can_be_none_end_no_run(tmp_path):
    def absurd(body):
        return Said('{"next_state": "scrolling"}', (), 10**25, -500)

    with StandIn(brain=absurd) as server:
        result = run(asking(server, max_tokens=20_000), out=tmp_path)
    assert result.summary["decisions"]["llm"]["tokens"] == 0
    assert result.summary["decisions"]["by_source"]["budget"] > 0


def test_a_file_that_is_no_gguf_is_bad_input_before_the_run(tmp_path):
    pytest.importorskip("xllamacpp", reason="the extra 'embedded' is not installed")
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF\x03\0\0\0garbage")
    with pytest.raises(ConfigError, match=r"llama.cpp cannot load .*bad.gguf"):
        run(WORLD | {"reasoner": {"kind": "embedded", "model": str(bad)}}, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_from_files_is_replayed_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "edges.csv").write_text("src,dst\n" + "".join(f"{i},{(i * 7 + 1) % 20}\n" for i in range(20)))
    monkeypatch.chdir(tmp_path)
    with StandIn() as server:
        world = WORLD | {"network": {"edges": "edges.csv"}, "agents": {"activity": 1, "band": 0.5}}
        result = run(asking(server, world), out=tmp_path)
    monkeypatch.chdir("/")
    assert replay(result.run_dir).equal


def test_an_llm_function_that_raises_an_interrupt_does_not_hang_its_caller():
    def llm(prompt):
        raise SystemExit

    with Reasoner(llm) as reasoner, pytest.raises(RuntimeError, match="the LLM's function raised SystemExit"):
        SocialModel(WORLD, reasoner=reasoner).run_for(2)
