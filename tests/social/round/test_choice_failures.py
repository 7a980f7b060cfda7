"""Choices that an LLM does not make: faults, servers that die, limits."""

import pandas as pd
import pytest
from asking_worlds import WORLD, asking
from stand_in import StandIn
from worlds import plain

from prism_mesa import SocialModel
from prism_mesa.llm import Ledger
from prism_mesa.reasoner import Reasoner
from prism_mesa.runs.replay import replay
from prism_mesa.runs.social import run

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
    "error-array": "server-error",
    "not-done": "partial",
    "not-json": "not-json",
    "wrong-shape": "wrong-shape",
    "json-array": "wrong-shape",
    "empty": "empty",
    "useless": "unparsable",
    "invalid-state": "invalid-state",
}


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


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Return a run whose server had no faults."""
    with StandIn() as server:
        return run(asking(server), out=tmp_path_factory.mktemp("good"))


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


def test_what_was_never_sent_because_a_limit_ran_out_is_budget_also_with_a_dead_server(tmp_path, caplog):
    with StandIn() as server:
        limits = {"max_calls": 20, "max_concurrency": 4, "max_fallback_share": 1.0}
        result = run(asking(server, **limits), out=tmp_path, on_round=lambda done: server.stop() if done == 1 else None)
    asked = pd.DataFrame(Ledger(result.run_dir / "decisions.sqlite", read_only=True).asked())
    assert set(asked.query("source == 'fallback'")["reason"]) <= {"refused", "dropped", "circuit-open", "still-down"}
    assert (asked["source"] == "budget").any()


def test_an_llm_function_that_raises_an_interrupt_does_not_hang_its_caller():
    def llm(prompt):
        raise SystemExit

    with Reasoner(llm) as reasoner, pytest.raises(RuntimeError, match="the LLM's function raised SystemExit"):
        SocialModel(plain(WORLD), reasoner=reasoner).run_for(2)
