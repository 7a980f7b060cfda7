"""Whole runs of which an LLM writes the texts: repeated, shared, and failed."""

import json
from pathlib import Path

import pytest
from minds import SPEAKS, THINKS, thought, whim
from stand_in import StandIn, choose_by_hash, prompt_text
from worlds import plain
from writing_worlds import WORLD, asking

from prism_mesa.analysis.distill.distill import distill
from prism_mesa.errors import ConfigError, RunError
from prism_mesa.llm import Ledger, factory
from prism_mesa.runs.replay import replay
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.runs.social import run

# -- whole runs: replay --------------------------------------------------------------------------------


def tables_of(run_dir):
    return {file.name: file.read_bytes() for file in sorted(Path(run_dir).glob("*.parquet"))}


def is_text(body):
    return prompt_text(body).endswith((SPEAKS, THINKS))


@pytest.fixture(scope="module")
def asked_once(tmp_path_factory):
    """Return a server and a run that asked it."""
    with StandIn(slots=8) as server:
        yield server, run(asking(server), out=tmp_path_factory.mktemp("asked"))


RUNS = {
    "as it is": {},
    "two iterations": {"deliberation": {"iterations": 2}},
    "no open choice": {"agents": {"band": 0.0}},
    "nothing at all": {"max_calls": 0},
    "limits": {"max_calls": 70, "max_calls_per_round": 30},
    "actions are asked for": {"asks_action": True},
    "probabilities": {"answer": "probabilities", "persona": "archetype", "archetypes": 2},
    "spent on the followed": {"max_calls": 60, "spend_on": "followed"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_repeated_from_its_folder_with_thoughts_and_notes(name, asked_once, tmp_path):
    given = dict(RUNS[name])
    world = WORLD | {"deliberation": given.pop("deliberation", {})}
    server, result = asked_once
    if RUNS[name]:
        result = run(asking(server, world, **given), out=tmp_path)
    n = server.n_requests
    found = replay(result.run_dir, out=tmp_path / "again")
    assert server.n_requests == n
    assert (found.differences, found.calls) == ({}, 0)
    asked = Ledger(result.run_dir / "decisions.sqlite").asked()
    assert found.answered + found.texts == len(asked)
    writing = result.summary["writing"]
    assert writing["written"] + writing["budget"] > 10
    assert found.rows["thoughts"] > 10
    again = json.loads((found.run_dir / "manifest.json").read_text())["summary"]["writing"]
    assert {name: again[name] for name in ("written", "failed", "budget", "reasons")} == {
        name: writing[name] for name in ("written", "failed", "budget", "reasons")
    }


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("which", ["some", "all"])
def test_a_run_with_failures_is_repeated_with_its_failures(which, tmp_path, caplog):
    def fault(number, body):
        if which == "all":
            return "server-error"
        return (None, None, "empty", "server-error", "useless", "not-json")[whim(prompt_text(body), 6)]

    with StandIn(slots=8, fault=fault) as server:
        given = {"attempts": 1, "max_fallback_share": 1.0, "asks_action": True, "fallback": "rule"}
        result = run(asking(server, **given), out=tmp_path)
    assert result.summary["writing"]["failed"] > 5
    assert (result.summary["writing"]["written"] > 5) == (which == "some")
    found = replay(result.run_dir)
    assert (found.differences, found.calls) == ({}, 0)


@pytest.mark.slow
def test_words_that_no_file_can_hold_are_mended_and_the_run_can_be_repeated(tmp_path, caplog):
    def brain(body):
        prompt = prompt_text(body)
        if prompt.endswith(THINKS):
            calls = [
                (name, {key: "half \ud800 \x00"}) for name, key in (("recall", "about"), ("search_posts", "words"))
            ]
            return thought(*calls).replace("Hm.", "Hm \\u0000" if whim(prompt, 2) else "Hm \\ud800")
        return f"half a \ud800 pair {whim(prompt, 1000)}" if prompt.endswith(SPEAKS) else choose_by_hash(body)

    with StandIn(brain, slots=8) as server:
        result = run(asking(server), out=tmp_path)
    assert result.status == "done"
    assert result.table("posts").query("kind == 'reply'")["text"].str.startswith("half a ? pair ").all()
    assert replay(result.run_dir).equal


@pytest.mark.slow
def test_a_run_that_shares_its_choices_with_a_distilled_model_is_repeated_with_its_texts(tmp_path):
    with StandIn(slots=8) as server:
        first = run(asking(server, agents={"n": 40, "band": 0.4}), out=tmp_path)
        model = distill([first.run_dir], out=tmp_path / "distilled").file
        result = run(asking(server, llm_share=0.5, distilled=str(model)), out=tmp_path)
    assert result.summary["decisions"]["by_source"].keys() >= {"llm", "distilled"}
    assert result.summary["writing"]["written"] > 10
    found = replay(result.run_dir)
    assert (found.differences, found.calls) == ({}, 0)


@pytest.mark.slow
def test_a_second_run_with_the_same_ledger_asks_nothing_and_stands_by_itself(tmp_path):
    shared = {"ledger": "cache", "ledger_path": str(tmp_path / "shared.sqlite")}
    with StandIn(slots=8) as server:
        first = run(asking(server, **shared), out=tmp_path)
        n = server.n_requests
        second = run(asking(server, **shared), out=tmp_path)
        assert server.n_requests == n > 50
    assert second.summary["writing"]["calls"] == 0
    assert tables_of(first.run_dir) == tables_of(second.run_dir)
    (tmp_path / "shared.sqlite").unlink()
    assert replay(second.run_dir).equal


@pytest.mark.slow
def test_the_latency_of_a_server_leaves_no_trace(tmp_path):
    runs = []
    with StandIn(slots=8) as server:
        for seed in range(2):
            server.latency = lambda number, body, seed=seed: whim(f"{seed} {prompt_text(body)}", 20) / 1000
            runs.append(run(asking(server, max_calls_per_round=40), out=tmp_path))
    assert tables_of(runs[0].run_dir) == tables_of(runs[1].run_dir)
    assert "thoughts.parquet" in tables_of(runs[0].run_dir)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 8}, "holds no answer for round 0, "),
        ({"deliberation": {"notes_told": 0, "result_chars": 90, "iterations": 3}}, "holds no answer for round 0, "),
        ({"network": {"mean_degree": 3}}, "holds no answer for round "),
    ],
    ids=["seed", "deliberation", "network"],
)
def test_a_changed_configuration_is_told_from_the_run_that_its_ledger_is_of(change, message, asked_once, tmp_path):
    server, result = asked_once
    own = {"ledger": "replay", "ledger_path": str(result.run_dir / "decisions.sqlite")}
    with pytest.raises(RunError, match=message):
        run(asking(server, WORLD | change, **own), out=tmp_path)


@pytest.mark.slow
def test_another_temperature_is_one_error_before_the_run(asked_once, tmp_path):
    server, result = asked_once
    own = {"ledger": "replay", "ledger_path": str(result.run_dir / "decisions.sqlite")}
    with pytest.raises(ConfigError, match="holds no answers of the LLM and options that are configured"):
        run(asking(server, WORLD | {"deliberation": {"temperature": 0.1}}, **own), out=tmp_path / "b")
    assert not (tmp_path / "b").exists()


# -- failures ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_llm_that_decides_but_hardly_writes_ends_a_run_as_failed_with_its_tables_kept(tmp_path):
    written = []

    def fault(number, body):
        if not is_text(body) or len(written) < 3:
            written.extend([number] * is_text(body))
            return None
        return "empty"

    with StandIn(slots=8, fault=fault) as server:
        result = run(asking(server, attempts=1), out=tmp_path)
    writing = result.summary["writing"]
    assert result.status == read_manifest(result.run_dir)["status"] == "failed"
    assert "texts were not written by the LLM" in result.summary["error"]
    assert "reasoner.max_fallback_share allows 5.0%" in result.summary["error"]
    assert writing["written"] <= 3 < writing["failed"]
    assert writing["reasons"].keys() == {"empty"}
    assert len(result.table("rounds")) == WORLD["rounds"]
    assert "error" in set(result.table("thoughts")["event"])
    assert result.table("posts").query("kind != 'post'")["comment"].notna().sum() <= 3


@pytest.mark.parametrize("agents", [{}, {"band": 0.0}], ids=["decides", "only writes"])
def test_an_llm_whose_first_twenty_texts_are_useless_ends_the_run_and_says_what_to_change(tmp_path, agents):
    def fault(number, body):
        return "empty" if is_text(body) else None

    with StandIn(fault=fault) as server:
        with pytest.raises(RunError, match=r"none of its first 20 answers is of any use; the last one: the answer is"):
            run(asking(server, agents=agents, max_concurrency=1), out=tmp_path)
        assert sum(map(is_text, server.requests)) == 20
    [folder] = tmp_path.iterdir()
    assert read_manifest(folder)["status"] == "failed"


def test_no_llm_named_is_an_error_that_says_what_to_set(tmp_path):
    with pytest.raises(
        ConfigError, match=r"content: llm needs an LLM, and reasoner\.kind=rule asks none; set reasoner"
    ):
        run(plain(WORLD | {"reasoner": {"kind": "rule"}}), out=tmp_path)


def test_where_auto_finds_no_llm_the_words_are_templates_the_run_says_so_and_can_be_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(factory, "embedded_fault", lambda gguf: "needs xllamacpp")
    nobody = {"kind": "auto", "host": "http://127.0.0.1:9"}
    result = run(plain(WORLD | {"reasoner": nobody}), out=tmp_path)
    posts = result.table("posts").query("kind == 'reply'")
    assert posts["text"].notna().all()
    assert result.summary["writing"] is None
    [note] = [note for note in result.summary["notes"] if note.startswith("content:")]
    assert "no LLM writes, so the words are templates (no Ollama: " in note
    assert replay(result.run_dir).equal
