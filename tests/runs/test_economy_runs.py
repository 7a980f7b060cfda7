"""Runs of nations: tables, replay, failures, why, configuration."""

import json
from pathlib import Path

import pytest
import yaml
from advisors import LLM, advisor, failing_from

from prism_mesa.analysis.explain.economy import why_nation
from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.errors import DataError, RunError
from prism_mesa.llm import Ledger
from prism_mesa.params import list_leaves
from prism_mesa.runs.config import EconomyConfig, load
from prism_mesa.runs.economy import run_economy
from prism_mesa.runs.replay import replay
from prism_mesa.runs.run_files import read_manifest, read_table

ROOT = Path(__file__).parents[2]


FILE = ROOT / "configs" / "economy.yaml"


def table_bytes(folder):
    return {file.name: file.read_bytes() for file in sorted(Path(folder).glob("*.parquet"))}


@pytest.fixture(scope="module")
def run_of_llm(tmp_path_factory):
    return run_economy({**LLM, "rounds": 8, "seed": 3}, out=tmp_path_factory.mktemp("out"), llm=advisor)


# -- what a run leaves -----------------------------------------------------------------------------------


def test_a_run_leaves_its_manifest_eight_tables_and_its_ledger(run_of_llm):
    files = {file.name for file in run_of_llm.run_dir.iterdir()}
    assert files == {"manifest.json", "decisions.sqlite", *(f"{table}.parquet" for table in ECONOMY_TABLES)}
    manifest = read_manifest(run_of_llm.run_dir)
    assert (manifest["system"], manifest["status"], manifest["seed"]) == ("economy", "done", 3)
    assert manifest["llm"]["prompt_style"] == "chain_of_thought"
    assert manifest["config"]["economy"]["macro"]["okun"] == 0.45
    assert manifest["summary"] == run_of_llm.summary


def test_every_decision_is_recorded_with_what_became_of_it(run_of_llm):
    decisions, summary = run_of_llm.table("decisions"), run_of_llm.summary["decisions"]
    assert len(decisions) == 8 * 5 == summary["made"]
    counts = decisions["outcome"].value_counts()
    for outcome in ("accepted", "no_change", "rejected", "not_understood"):
        assert counts.get(outcome, 0) == summary[outcome] > 0
    assert (decisions["reason"] != "").equals(decisions["outcome"].isin(["rejected", "not_understood"]))
    chains = run_of_llm.table("reasoning")
    assert sorted(chains["chain_id"]) == sorted(decisions["reasoning_chain_id"])
    assert chains["prompt"].str.contains("Think step-by-step").all()


def test_a_rejected_policy_has_failed_verdicts_and_no_effect(run_of_llm):
    decisions = run_of_llm.table("decisions").query("outcome == 'rejected'")
    verdicts, seen = run_of_llm.table("verdicts"), run_of_llm.table("indicators")
    for decision in decisions.to_dict("records"):
        of = verdicts[(verdicts["round"] == decision["round"]) & (verdicts["nation"] == decision["nation"])]
        assert (~of["passed"]).any()
        own = seen[seen["nation"] == decision["nation"]].set_index("round")
        if decision["round"] > 0:
            instruments = own[["policy_rate", "spending", "taxes"]]
            assert instruments.loc[decision["round"]].equals(instruments.loc[decision["round"] - 1])


def test_baselines_are_other_policies_under_the_same_shocks(tmp_path):
    result = run_economy({"rounds": 12}, out=tmp_path)
    seen, baselines = result.table("indicators"), result.table("baselines")
    same = baselines[baselines["policy"] == "taylor"]
    assert same["output_gap"].to_numpy() == pytest.approx(seen["output_gap"].to_numpy())
    assert result.summary["loss"] == pytest.approx(result.summary["baseline_loss"]["taylor"])
    assert result.summary["baseline_loss"]["nothing"] != result.summary["loss"]


# -- the same bytes ---------------------------------------------------------------------------------------


def test_the_same_configuration_and_answers_give_the_same_bytes(run_of_llm, tmp_path):
    again = run_economy({**LLM, "rounds": 8, "seed": 3}, out=tmp_path, llm=advisor)
    assert table_bytes(again.run_dir) == table_bytes(run_of_llm.run_dir)


@pytest.mark.slow
def test_a_replay_asks_nobody_and_every_table_is_equal(run_of_llm):
    found = replay(run_of_llm.run_dir)
    assert (found.differences, found.answered, found.recomputed, found.calls) == ({}, 40, 0, 0)
    assert set(found.rows) == set(ECONOMY_TABLES)


def test_measures_in_answers_are_carried_out_and_replayed(tmp_path):
    def llm(prompt):
        rate = {"lever": "policy_rate", "how": "by", "size": len(prompt) % 7 / 10, "unit": "points", "target": None}
        return json.dumps({"action": "Dearer credit", "reasoning": "So.", "confidence": 1, "measures": [rate]})

    result = run_economy({**LLM, "rounds": 2}, out=tmp_path, llm=llm)
    decisions = result.table("decisions")
    assert set(decisions["action"]) == {"Dearer credit"}
    assert set(decisions["read_by"]) == {"answer"}
    assert decisions["policy"].str.startswith("policy rate by +0.").any()
    assert replay(result.run_dir).differences == {}
    assert not any("read it" in line for line in why_nation(result.run_dir, "Canada"))


def test_a_changed_answer_in_the_ledger_is_found_by_the_replay(run_of_llm, tmp_path):
    import shutil
    import sqlite3

    copy = tmp_path / "copy"
    shutil.copytree(run_of_llm.run_dir, copy)
    with sqlite3.connect(copy / "decisions.sqlite") as db:
        db.execute("UPDATE answers SET raw = replace(raw, 'Reason', 'Motive')")
    assert "decisions" in replay(copy).differences


# -- failures ----------------------------------------------------------------------------------------------


@pytest.fixture
def failed_run(tmp_path):
    with pytest.raises(RunError, match=r"2010Q2: the LLM gave the agent no usable answer \(unparsable, attempts: 2\)"):
        run_economy({**LLM, "rounds": 6}, out=tmp_path, llm=failing_from("2010Q2"))
    [folder] = tmp_path.iterdir()
    return folder


def test_an_llm_that_fails_ends_the_run_as_failed_with_what_it_had_recorded(failed_run):
    manifest = read_manifest(failed_run)
    assert manifest["status"] == "failed"
    assert manifest["summary"]["rounds"] == 2
    assert manifest["summary"]["decisions"]["failures"] == {"unparsable": 1}
    assert sorted(set(read_table(failed_run, "indicators")["quarter"])) == ["2009Q4", "2010Q1"]
    with Ledger(failed_run / "decisions.sqlite", read_only=True) as ledger:
        last = [row for row in ledger.asked() if row.round == 2 and row.tick == 0]
    assert sorted((row.agent, row.source, row.reason) for row in last) == [
        (0, "llm", ""),
        (1, "llm", ""),
        (2, "failed", "unparsable"),
        (3, "llm", ""),
        (4, "llm", ""),
    ]


def test_a_run_that_fails_at_once_leaves_tables_to_read_and_nothing_to_repeat(tmp_path):
    with pytest.raises(RunError, match="2009Q4"):
        run_economy({**LLM, "rounds": 3}, out=tmp_path, llm=failing_from("2009Q4"))
    [folder] = tmp_path.iterdir()
    assert [len(read_table(folder, table)) for table in ("nations", "baselines")] == [5, 0]
    with pytest.raises(DataError, match="no quarter is known to be complete"):
        replay(folder)


# -- why ----------------------------------------------------------------------------------------------------


def test_why_tells_what_was_seen_said_read_judged_and_done(run_of_llm):
    decisions = run_of_llm.table("decisions")
    rejected = decisions[decisions["outcome"] == "rejected"].iloc[0]
    told = "\n".join(why_nation(run_of_llm.run_dir, rejected["nation"], rejected["quarter"]))
    assert f"{rejected['quarter']} (quarter {rejected['round']}):" in told
    assert "| Current economic state:" in told
    assert rejected["action"] in told
    assert "FAILED" in told
    assert "It was rejected by the validator, without any effect." in told


def test_nothing_that_a_nation_or_an_llm_wrote_steers_the_terminal(tmp_path):
    evil = "\x1b]0;pwned\x07\x1b[31mEVIL" + "Z" * 5000

    def llm(prompt):
        if "turn one sentence" in prompt:
            measure = {"lever": "tariff", "how": "to", "size": 10, "unit": "points", "target": evil}
            return json.dumps({"understood": True, "measures": [measure]})
        return json.dumps({"action": f"Tariffs flurble {evil[:40]}", "reasoning": evil, "confidence": 1})

    result = run_economy({**LLM, "rounds": 1}, out=tmp_path, llm=llm)
    told = list(why_nation(result.run_dir, "Canada"))
    assert all(line.isprintable() for line in told)
    assert len(told) < 100


@pytest.mark.parametrize(
    ("nation", "quarter", "says"),
    [
        ("Swedn", None, r"no nation 'Swedn' there .*Did you mean 'Sweden'\?"),
        ("Sweden", "2031Q1", r"no quarter 2031Q1 there \(quarters: 2009Q4 .. 2011Q3, or 0 .. 7\)"),
        ("Sweden", "soon", "no quarter soon there"),
        ("\u00b2", None, "no nation"),
    ],
)
def test_why_says_what_there_is(run_of_llm, nation, quarter, says):
    with pytest.raises(DataError, match=says):
        list(why_nation(run_of_llm.run_dir, nation, quarter))


# -- the configuration ----------------------------------------------------------------------------------


def dotted(values, prefix=""):
    for key, value in values.items():
        if isinstance(value, dict):
            yield from dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def test_the_default_file_names_every_key_once():
    named = list(dotted(yaml.safe_load(FILE.read_text(encoding="utf-8"))))
    assert sorted(named) == sorted(key for key, _ in list_leaves(EconomyConfig))


def test_the_default_file_is_the_default_configuration_but_for_who_decides():
    assert load(EconomyConfig, FILE).economy.policy == "llm"
    assert load(EconomyConfig, FILE, ["economy.policy=taylor"]) == EconomyConfig()
