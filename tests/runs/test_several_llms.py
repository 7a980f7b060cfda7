"""Runs in which agents have different LLMs."""

import json
from collections import Counter
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
from small_runs import small, table_bytes
from stand_in import StandIn

from prism_mesa import Interview, Ledger, Reasoner, SocialModel, open_run, replay, survey
from prism_mesa.api.runs import branch, resume, run
from prism_mesa.errors import NotedWarning, PrismError
from prism_mesa.runs.config import Config
from prism_mesa.runs.run_files import LEDGER
from prism_mesa.view.page.live import oracle_details
from prism_mesa.view.page.live_model import PageModel, explain_round

TWO = {"gemma3": 0.5, "llama3.2": 0.5}
QUIET = {"pictures": False}
SIDES = {"side": {"of": "agent", "values": ["left", "right"]}}


def by_llm(body):
    """Answer by the LLM and the question, so that swapped ones would show."""
    states = body["format"]["properties"]["next_state"]["enum"]
    said = sha256((body["model"] + body["messages"][-1]["content"]).encode()).digest()
    return json.dumps({"next_state": states[said[0] % len(states)]})


def useless(llm):
    return lambda body: "I would rather not say." if body["model"] == llm else by_llm(body)


def serving(brain=by_llm, models=tuple(TWO), **more):
    return StandIn(brain, models, slots=64, **more)


def asking(server, model=TWO, **more):
    reasoner = {"kind": "ollama", "host": getattr(server, "url", server), "model": model}
    changes = {key: more.pop(key) for key in tuple(more) if key in ("attributes", "content", "rounds", "threads")}
    return small(agents={"n": 40, "activity": 1, "band": 0.3}, reasoner=reasoner | more, **changes)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A run with two LLMs, whose server is gone."""
    with serving() as server:
        return run(asking(server), out=tmp_path_factory.mktemp("done"), **QUIET)


def llm_of_agents(result):
    return open_run(result).table("agents")["llm"].tolist()


def ledger_of(result):
    with Ledger(result.run_dir / LEDGER, read_only=True) as ledger:
        return {answer.key: answer for answer in ledger.answers()}, ledger.asked()


def test_each_agent_is_answered_by_its_own_llm_and_the_ledger_says_by_which(done):
    answers, asked = ledger_of(done)
    llms = llm_of_agents(done)
    assert done.status == "done"
    assert set(llms) == set(TWO)
    assert all(answers[row.key].llm == llms[row.agent] for row in asked)
    assert all(answer.digest for answer in answers.values())


def test_equal_questions_to_different_llms_stay_different():
    asked = Counter()

    def llm(name):
        def answer(prompt):
            asked[name, prompt] += 1
            return "scrolling" if name == "a" else "composing"

        return answer

    with Reasoner({name: llm(name) for name in "ab"}, persona="archetype", archetypes=1) as reasoner:
        model = SocialModel(small(agents={"n": 60, "activity": 1, "band": 0.3}), reasoner=reasoner, rng=1)
        model.run_for(3)
        prompts = [{prompt for name, prompt in asked if name == own} for own in "ab"]
        moved = {own: reasoner.by_llm[own] for own in "ab"}
    assert len(asked) == asked.total()  # each LLM was asked each question once
    assert all(moved[own]["llm"] == len(prompts[place]) for place, own in enumerate("ab"))


def test_a_replay_without_any_server_has_the_same_tables(done):
    assert replay(done).equal


def test_two_runs_have_the_same_tables_however_many_threads_and_questions_at_a_time(done, tmp_path):
    with serving(latency=lambda n, body: 0.002 * (n % 3)) as server:
        again = run(asking(server, threads=2, max_concurrency=3), out=tmp_path, **QUIET)
    assert table_bytes(again.run_dir) == table_bytes(done.run_dir)


def test_a_run_that_was_stopped_goes_on_with_the_llms_that_agents_had(done, tmp_path):
    def stop(round_):
        if round_ == 2:
            raise KeyboardInterrupt

    with serving() as server:
        config = asking(server) | {"checkpoint_every": 1}
        with pytest.raises(KeyboardInterrupt) as stopped:
            run(config, out=tmp_path, on_round=stop, **QUIET)
        found = resume(stopped.value.result.run_dir)
    assert llm_of_agents(found) == llm_of_agents(done)
    assert table_bytes(found.run_dir) == table_bytes(done.run_dir)
    assert found.summary["decisions"]["llms"] == done.summary["decisions"]["llms"]


def test_a_branch_may_divide_agents_otherwise(tmp_path):
    with serving(models=(*TWO, "qwen3")) as server:
        parent = run(asking(server) | {"checkpoint_every": 1}, out=tmp_path / "a", **QUIET)
        same = branch(parent, 2, out=tmp_path / "b", **QUIET)
        other = branch(parent, 2, {"reasoner.model": {"qwen3": 1}}, out=tmp_path / "c", **QUIET)
    assert table_bytes(same.run_dir) == table_bytes(parent.run_dir)
    answers, asked = ledger_of(other)
    assert {answers[row.key].llm for row in asked if row.round >= 2} == {"qwen3"}
    assert {answers[row.key].llm for row in asked if row.round < 2} == set(TWO)
    assert set(llm_of_agents(other)) == {"qwen3"}
    assert replay(other).equal


def test_one_llm_whose_answers_are_all_useless_ends_the_run_and_is_named(tmp_path):
    with (
        serving(useless("gemma3")) as server,
        pytest.raises(PrismError, match=r"gemma3.*its first 20") as ended,
    ):
        run(asking(server, attempts=1), out=tmp_path, **QUIET)
    llms = ended.value.result.summary["decisions"]["llms"]
    assert llms["gemma3"]["answered"] == 0 < llms["llama3.2"]["answered"]


def test_limits_are_shared_by_the_llms(tmp_path):
    with serving() as server:
        found = run(asking(server, max_calls=7), out=tmp_path, **QUIET)
    llms = found.summary["decisions"]["llms"]
    assert sum(own["calls"] for own in llms.values()) == 7
    assert sum(own["budget"] for own in llms.values()) == found.summary["decisions"]["by_source"]["budget"]


def test_each_server_is_asked_for_its_own_llm_alone(tmp_path):
    with serving(models=["gemma3:4b"]) as one, serving(models=["llama3.2"]) as other:
        hosts = {"gemma3:4b": [one.url], "llama3.2": other.url}
        found = run(asking(hosts, {"gemma3:4b": 0.5, "llama3.2": 0.5}), out=tmp_path, **QUIET)
        asked = [{body["model"] for body in server.requests} for server in (one, other)]
    assert asked == [{"gemma3:4b"}, {"llama3.2"}]
    assert replay(found).equal


def test_an_attribute_may_say_which_llm_an_agent_has(tmp_path):
    with serving() as server:
        own = {"attributes": SIDES, "model_by": "side"}
        found = run(asking(server, {"left": "llama3.2", "right": "gemma3"}, **own), out=tmp_path, **QUIET)
    agents = open_run(found).table("agents")
    assert agents["llm"].astype(str).tolist() == agents["side"].map({"left": "llama3.2", "right": "gemma3"}).tolist()
    assert replay(found).equal


def test_agents_write_with_their_own_llm(tmp_path):
    def writes(body):
        return by_llm(body) if "next_state" in json.dumps(body.get("format") or "") else f"Words of {body['model']}"

    with serving(writes) as server:
        found = run(asking(server, content="llm", rounds=2), out=tmp_path, **QUIET)
    posts, llms = open_run(found).table("posts"), llm_of_agents(found)
    words = posts[posts["text"].astype(str).str.startswith("Words of") & (posts["kind"] != "reshare")]
    assert len(words)
    assert all(text == f"Words of {llms[author]}" for text, author in zip(words["text"], words["author"], strict=True))
    assert sum(own["calls"] for own in found.summary["writing"]["llms"].values()) == found.summary["writing"]["calls"]
    assert replay(found).equal


def test_the_page_counts_each_llm_and_tells_which_one_decided():
    with serving() as server:
        model = PageModel(Config.model_validate(asking(server)))
        model.step()
        asked = Counter(body["model"] for body in server.requests)
        told = {row: "\n".join(explain_round(model, row).lines) for row in range(len(model.population))}
        llms = model.llms.assigned_names(np.arange(len(told)), model.population)
        notes = oracle_details(model).notes
        model.close()
    assert [note for note in notes if "calls" in note] == [
        f"{llm}: {n} calls, {n} answers, 0 fallbacks." for llm, n in sorted(asked.items())
    ]
    decided = {row for row, lines in told.items() if "Decided by" in lines}
    assert decided
    assert all(f"Decided by {llms[row]}." in told[row] for row in decided)


def test_where_nobody_is_asked_the_keys_have_no_effect(tmp_path):
    reasoner = {"kind": "rule", "model": TWO, "host": {"gemma3": "http://127.0.0.1:9"}}
    with pytest.warns(NotedWarning, match="reasoner.model"):
        found = run(small(reasoner=reasoner), out=tmp_path, **QUIET)
    assert "llm" not in open_run(found).table("agents")
    assert "llms" not in found.summary["decisions"]


def test_an_agent_is_interviewed_and_surveyed_with_its_own_llm(done, tmp_path):
    llms = llm_of_agents(done)
    with serving() as server:
        for llm in TWO:
            with Interview(done, llms.index(llm), overrides={"reasoner.host": server.url}, out=tmp_path) as talk:
                assert talk.llm.client.name == llm
    questions = {"questions": [{"id": "q", "ask": "Which?", "options": ["yes", "no"]}, {"id": "why", "ask": "Why?"}]}

    def says(body):
        asks_a_letter = "one letter only" in body["messages"][-1]["content"]
        return {"gemma3": "A", "llama3.2": "B"}[body["model"]] if asks_a_letter else f"I am {body['model']}"

    with serving(says) as server:
        asked = survey(done, questions, {"reasoner.host": server.url}, out=tmp_path)
    assert asked.status == "done"
    why = pd.read_parquet(asked.folder / "answers.parquet").query("question == 'why'")
    assert why["text"].tolist() == [f"I am {llms[agent]}" for agent in why["agent"]]
    ledger = {"reasoner.ledger": "replay", "reasoner.ledger_path": str(asked.folder / LEDGER)}
    again = survey(done, questions, ledger, out=tmp_path)
    assert again.summary["calls"] == 0
    assert again.table.equals(asked.table)
