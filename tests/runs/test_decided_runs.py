"""Runs in which a decision model decides: repeated, asked why, distilled, surveyed."""

import json

import numpy as np
import pytest
from stand_in import Decisions, StandIn
from worlds import plain

from prism_mesa.analysis.distill.dataset import training_set_of
from prism_mesa.analysis.explain.report import report_lines
from prism_mesa.analysis.explain.why import why
from prism_mesa.analysis.survey.survey import survey
from prism_mesa.errors import ConfigError, PrismWarning, RunError
from prism_mesa.llm import Ledger
from prism_mesa.runs.ledgers import ledger_stats
from prism_mesa.runs.replay import replay
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.runs.social import run

MODEL = "d1-omni:600m"
WORLD = plain({"agents": {"n": 40, "activity": 0.9, "band": 0.4}, "network.mean_degree": 8, "rounds": 3, "seed": 7})
QUESTIONS = {
    "questions": [
        {"id": "rain", "ask": "How often?", "options": ["never", "at times", "always"], "scale": True},
        {"id": "drink", "ask": "What do you drink?", "options": ["tea", "coffee"]},
    ]
}


def deciding(server, **reasoner):
    return WORLD | {
        "reasoner": {"kind": "ollama", "host": server.url, "answer": "decision", "timeout_s": 5, **reasoner}
    }


@pytest.fixture(scope="module")
def server():
    with StandIn(models=(MODEL,), decisions=Decisions()) as server:
        yield server


@pytest.fixture(scope="module")
def decided(server, tmp_path_factory):
    return run(deciding(server, decision_orders=2), out=tmp_path_factory.mktemp("decided"))


def test_all_is_answered_and_recorded_with_two_calls_a_decision(decided, server):
    stats = ledger_stats(decided.run_dir)
    assert stats["fallbacks"] == {}
    assert stats["answers"] > 10
    assert decided.status == "done"
    assert len(server.decisions.asked) == 2 * stats["answers"]
    llm = read_manifest(decided.run_dir)["llm"]
    assert (llm["name"], llm["answer"], llm["decoding"]) == (
        MODEL,
        "decision",
        {"answer": "decision", "decision_orders": 2},
    )


def test_it_is_repeated_from_its_ledger(decided):
    assert replay(decided.run_dir).equal


def test_why_tells_what_the_model_was_asked_and_what_the_draw_fell_on(decided):
    with Ledger(decided.run_dir / "decisions.sqlite", read_only=True) as ledger:
        row = next(row for row in ledger.asked() if row.source == "llm")
    told = "\n".join(report_lines(why(decided.run_dir, str(row.agent), row.round)))
    assert "So the chances are" in told
    assert MODEL in told


def test_what_it_gave_can_be_distilled(decided):
    examples = [one for group in training_set_of([decided.run_dir]).by_options.values() for one in group]
    assert len(examples) > 10
    assert all(0 < share < 1 for example in examples for share in example.probabilities)


def test_archetypes_are_asked_more_rarely(server, tmp_path):
    before = len(server.decisions.asked)
    kept = run(deciding(server, persona="archetype", archetypes=2), out=tmp_path)
    assert len(server.decisions.asked) - before < ledger_stats(kept.run_dir)["questions"]
    assert replay(kept.run_dir).equal


def test_closed_questions_and_scales_are_decisions_and_the_survey_is_repeated(decided, server, tmp_path):
    server.decisions.meant.clear()
    result = survey(decided.run_dir, QUESTIONS, agents=5, out=tmp_path)
    assert {question["asked_by"] for question in result.summary["questions"]} == {"decision"}
    assert {body["questions"]["answer"]["type"] for _, body in server.decisions.asked[-8:]} == {"score", "choice"}
    with Ledger(result.folder / "decisions.sqlite", read_only=True) as ledger:
        for one in ledger.answers():
            asked = json.loads(one.raw)["asked"]
            assert all((one.prompt, tuple(order)) in server.decisions.meant for order in asked)
    old = {"reasoner.ledger": "replay", "reasoner.ledger_path": str(result.folder / "decisions.sqlite")}
    again = survey(decided.run_dir, QUESTIONS, old, agents=5, out=tmp_path)
    np.testing.assert_array_equal(again.table["mean"], result.table["mean"])


def test_open_questions_and_texts_need_an_llm_that_chats(decided, server, tmp_path):
    one = {"questions": [{"id": "q", "ask": "Why?"}]}
    with pytest.raises(ConfigError, match="only decides"):
        survey(decided.run_dir, one, {"reasoner.model": MODEL}, agents=2, out=tmp_path)
    with pytest.raises((ConfigError, RunError), match="only decides"):
        run(deciding(server, model=MODEL) | {"content": "llm"}, out=tmp_path)


def test_what_a_decision_does_not_depend_on_is_said_to_have_no_effect(server, tmp_path):
    with pytest.warns(PrismWarning, match=r"reasoner.temperature, reasoner.seed: no effect"):
        run(deciding(server, temperature=1, seed=5) | {"rounds": 1}, out=tmp_path)
    with pytest.warns(PrismWarning, match=r"reasoner.decision_orders: no effect"):
        run(WORLD | {"reasoner": {"kind": "rule", "decision_orders": 2}, "rounds": 1}, out=tmp_path)
