"""Distilling whole runs, deciding with what came of it, repeating that, and drift: through the command line."""

import json
import sys
from pathlib import Path

import pytest
from stand_in import StandIn
from worlds import plain

from prism_mesa.analysis.distill.dataset import make_training_set
from prism_mesa.analysis.distill.distill import distill
from prism_mesa.analysis.explain.report import report_lines
from prism_mesa.analysis.explain.why import why
from prism_mesa.errors import DataError, PrismWarning
from prism_mesa.runs.replay import replay
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.runs.social import run

WORLD = plain({"agents": {"n": 40, "activity": 0.9, "band": 0.4}, "network.mean_degree": 8, "rounds": 3, "seed": 7})


def asking(server, **reasoner):
    return WORLD | {"reasoner": {"kind": "ollama", "host": server.url, "timeout_s": 5, **reasoner}}


@pytest.fixture(scope="module")
def server():
    with StandIn(slots=8) as server:
        yield server


@pytest.fixture(scope="module")
def asked(server, tmp_path_factory):
    return run(asking(server), out=tmp_path_factory.mktemp("asked"))


@pytest.fixture(scope="module")
def distilled(asked, tmp_path_factory):
    return distill([asked.run_dir], out=tmp_path_factory.mktemp("distilled"))


@pytest.mark.slow
def test_a_lesson_is_every_decision_of_the_llm_and_says_what_was_asked(asked):
    found = make_training_set([asked.run_dir])
    by_source = asked.summary["decisions"]["by_source"]
    [rows] = found.by_options.values()
    assert len(rows) == by_source["llm"] + by_source.get("cache", 0)
    assert {row.ask.question.persona.name for row in rows} <= set(asked.table("agents")["name"])
    assert all(sum(row.probabilities) == pytest.approx(1) for row in rows)
    assert any(row.ask.question.match != 0 for row in rows)
    assert len({(row.ask.round, row.ask.tick, row.ask.agent) for row in rows}) == len(rows)


@pytest.mark.slow
def test_a_run_decided_by_the_distilled_model_asks_nobody_and_is_repeated_from_its_own_copy(distilled, tmp_path):
    mine = tmp_path / "mine.json"
    mine.write_bytes(distilled.file.read_bytes())
    result = run(WORLD | {"reasoner": {"kind": "distilled", "distilled": str(mine)}}, out=tmp_path)
    mine.unlink()
    decisions = result.summary["decisions"]
    assert decisions["by_source"] == {"distilled": decisions["open"]}
    assert decisions["open"] > 50
    assert replay(result.run_dir).equal
    assert "model distilled from" in read_manifest(result.run_dir)["decided_by"]


@pytest.mark.slow
def test_a_run_with_a_share_is_repeated_and_told_and_refuses_another_model(server, distilled, tmp_path):
    result = run(asking(server, llm_share=0.4, distilled=str(distilled.file)), out=tmp_path)
    by_source = result.summary["decisions"]["by_source"]
    assert by_source["distilled"] > by_source["llm"] + by_source.get("cache", 0) > 10
    assert replay(result.run_dir).equal
    agents = result.table("transitions").query("open")["agent"].unique()[:8]
    lines = [line for agent in agents for line in report_lines(why(result.run_dir, str(agent)))]
    assert any("no LLM was asked" in line for line in lines)
    assert any("the nearest known interest (" in line for line in lines)
    copy = result.run_dir / "distilled.json"
    copy.write_text(copy.read_text() + " ")
    with pytest.raises(DataError, match=r"distilled\.json has changed since the run"):
        replay(result.run_dir)
    copy.unlink()
    with pytest.raises(DataError, match=r"distilled\.json cannot be read"):
        replay(result.run_dir)


@pytest.mark.slow
def test_a_share_of_one_leaves_the_tables_as_they_are_without(server, asked, distilled, tmp_path):
    with pytest.warns(PrismWarning, match=r"reasoner.distilled: no effect: the LLM decides all"):
        result = run(asking(server, llm_share=1, distilled=str(distilled.file)), out=tmp_path)
    for file in asked.run_dir.glob("*.parquet"):
        assert (result.run_dir / file.name).read_bytes() == file.read_bytes()


@pytest.mark.slow
def test_the_command_reports_draws_and_shows_how_outcomes_move(prism, asked, tmp_path):
    code, out, _ = prism("distill", asked.run_dir, "--drift", "--out", tmp_path, "--json")
    said = json.loads(out)
    assert code == 0
    scores = said["report"]["choices"][0]["scores"]
    assert scores.keys() == {"logistic", "boosting", "majority", "rule", "llm"}
    assert {row["share"] for row in said["drift"]} == {0, 0.25, 0.5, 1}
    whole = {row["outcome"]: row for row in said["drift"] if row["share"] == 1}
    assert whole["likes"]["value"] == asked.summary["engagement"]["likes"]
    assert [Path(path).is_file() for path in said["pictures"]] == [True, True]


def test_what_cannot_be_distilled_is_said_in_one_line(prism, asked, tmp_path):
    ruled = run(WORLD | {"rounds": 1}, out=tmp_path)
    for arguments, complaint in (
        ((ruled.run_dir,), "give a run with an LLM"),
        ((tmp_path / "none",), "no run there"),
        ((asked.run_dir, "--kind", "magic"), "'magic' is not one of logistic, boosting"),
    ):
        code, _, err = prism("distill", *arguments, "--out", tmp_path)
        assert (code, err.count("\n")) == (2, 1)
        assert complaint in err


def test_without_scikit_learn_its_extra_is_named(prism, asked, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    code, _, err = prism("distill", asked.run_dir)
    assert (code, err.count("\n")) == (2, 1)
    assert "scikit-learn is not installed" in err
