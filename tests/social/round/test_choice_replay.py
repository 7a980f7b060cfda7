"""Budgets, ledgers and replay of runs in which an LLM decides."""

import pytest
from asking_worlds import WORLD, a_delay, asking, tables_of
from stand_in import StandIn, prompt_text

from prism_mesa.errors import ConfigError, RunError
from prism_mesa.llm import Ledger
from prism_mesa.runs.replay import replay
from prism_mesa.runs.social import run

# -- budgets, ledgers, replay ------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_with_300_decisions_fallbacks_and_leftovers_is_replayed_equal_and_asks_nothing(tmp_path, caplog):
    world = WORLD | {"agents": {"n": 80, "activity": 1.0, "post_rate": 0.5, "band": 0.5}, "rounds": 6}

    def sometimes(number, body):
        return "useless" if "a" * 2 in prompt_text(body)[-400:] or len(prompt_text(body)) % 9 == 0 else None

    with StandIn(slots=32, fault=sometimes) as server:
        limits = {"max_calls": 110, "max_calls_per_round": 33, "attempts": 2, "max_fallback_share": 1.0}
        result = run(asking(server, world, max_concurrency=32, **limits), out=tmp_path)
        asked = server.n_requests
        found = replay(result.run_dir)
        assert server.n_requests == asked
    by_source = result.summary["decisions"]["by_source"]
    assert result.summary["decisions"]["open"] > 300
    assert min(by_source["fallback"], by_source["budget"], by_source["llm"]) > 10
    assert asked <= 110
    assert found.equal
    assert (found.answered, found.calls) == (result.summary["decisions"]["open"], 0)


@pytest.mark.slow
def test_spending_a_budget_does_not_depend_on_which_answer_comes_first(tmp_path):
    results = []
    with StandIn(slots=8) as server:
        for seed in range(2):
            server.latency = a_delay(seed, 0.03)
            results.append(run(asking(server, max_calls_per_round=15, max_concurrency=8), out=tmp_path))
    assert results[0].summary["decisions"]["by_source"]["budget"] > 0
    assert results[0].summary["decisions"]["by_source"] == results[1].summary["decisions"]["by_source"]
    assert tables_of(results[0].run_dir) == tables_of(results[1].run_dir)


@pytest.mark.slow
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


@pytest.mark.slow
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


# -- what a review found -----------------------------------------------------------------------------


@pytest.mark.slow
def test_replay_takes_the_answers_of_the_llm_and_options_that_are_configured(tmp_path):
    shared = {"ledger_path": str(tmp_path / "shared.sqlite")}
    with StandIn(models=("llama3.2", "qwen"), brain=lambda body: '{"next_state": "composing"}') as server:
        cold = run(asking(server, **shared), out=tmp_path)
        server.brain = lambda body: '{"next_state": "scrolling"}'
        warm = run(asking(server, temperature=1.0, **shared), out=tmp_path)
        run(asking(server, model="qwen", **shared), out=tmp_path)
        again = run(asking(server, ledger="replay", **shared), out=tmp_path)
        assert tables_of(again.run_dir) == tables_of(cold.run_dir) != tables_of(warm.run_dir)
        with pytest.raises(ConfigError, match=r"has no answers of the configured LLM with these options .*qwen"):
            run(asking(server, ledger="replay", model="mistral", **shared), out=tmp_path)


def test_a_run_from_files_is_replayed_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "edges.csv").write_text("src,dst\n" + "".join(f"{i},{(i * 7 + 1) % 20}\n" for i in range(20)))
    monkeypatch.chdir(tmp_path)
    with StandIn() as server:
        world = WORLD | {"network": {"edges": "edges.csv"}, "agents": {"activity": 1, "band": 0.5}}
        result = run(asking(server, world), out=tmp_path)
    monkeypatch.chdir("/")
    assert replay(result.run_dir).equal
