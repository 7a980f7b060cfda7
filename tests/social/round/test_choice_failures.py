"""Choices that an LLM does not make: faults, servers that die, limits."""

import pandas as pd
import pytest
from asking_worlds import WORLD, asking, tables_of
from stand_in import FAULTS, Said, StandIn, first_attempts
from worlds import plain

from prism_mesa import SocialModel
from prism_mesa.errors import ConfigError
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


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Return a run whose server had no faults."""
    with StandIn() as server:
        return run(asking(server), out=tmp_path_factory.mktemp("good"))


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["dropped", "busy", "useless", "empty", "not-json"])
def test_what_can_pass_is_asked_again_and_costs_nothing_but_time(fault, good, tmp_path):
    with StandIn(fault=first_attempts(fault)) as server:
        shaken = run(asking(server, max_concurrency=1, backoff_s=0), out=tmp_path)
    assert shaken.summary["decisions"]["by_source"] == good.summary["decisions"]["by_source"]
    assert shaken.summary["decisions"]["llm"]["calls"] == 2 * good.summary["decisions"]["llm"]["calls"]
    assert tables_of(shaken.run_dir) == tables_of(good.run_dir)


@pytest.mark.slow
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


@pytest.mark.slow
def test_two_servers_share_the_questions_and_one_that_dies_is_done_without(tmp_path, caplog):
    with StandIn(slots=2, latency=0.005) as one, StandIn(slots=2, latency=0.005) as two:
        config = asking(one, max_concurrency=4)
        config["reasoner.host"] = [one.url, two.url]
        both = run(config, out=tmp_path)
        assert min(one.n_requests, two.n_requests) > 0.3 * (one.n_requests + two.n_requests)
        alone = run(config, out=tmp_path, on_round=lambda done: two.stop() if done == 1 else None)
    assert alone.summary["decisions"]["by_source"] == both.summary["decisions"]["by_source"]
    assert tables_of(alone.run_dir) == tables_of(both.run_dir)


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
        run(plain(WORLD | {"reasoner": {"kind": "embedded", "model": str(bad)}}), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_llm_function_that_raises_an_interrupt_does_not_hang_its_caller():
    def llm(prompt):
        raise SystemExit

    with Reasoner(llm) as reasoner, pytest.raises(RuntimeError, match="the LLM's function raised SystemExit"):
        SocialModel(plain(WORLD), reasoner=reasoner).run_for(2)
