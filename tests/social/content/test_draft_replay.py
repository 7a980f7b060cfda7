"""Whole runs of which an LLM writes the texts: repeated, shared, and failed."""

import json
from pathlib import Path

import pytest
from minds import SPEAKS, THINKS, whim
from stand_in import StandIn, prompt_text
from worlds import plain
from writing_worlds import WORLD, asking

from prism_mesa.errors import RunError
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
    "limits": {"max_calls": 70, "max_calls_per_round": 30},
    "actions are asked for": {"asks_action": True},
    "probabilities": {"answer": "probabilities", "persona": "archetype", "archetypes": 2},
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
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 8}, "holds no answer for round 0, "),
        ({"deliberation": {"notes_told": 0, "result_chars": 90, "iterations": 3}}, "holds no answer for round 0, "),
    ],
    ids=["seed", "deliberation"],
)
def test_a_changed_configuration_is_told_from_the_run_that_its_ledger_is_of(change, message, asked_once, tmp_path):
    server, result = asked_once
    own = {"ledger": "replay", "ledger_path": str(result.run_dir / "decisions.sqlite")}
    with pytest.raises(RunError, match=message):
        run(asking(server, WORLD | change, **own), out=tmp_path)


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
        with pytest.raises(RunError, match=r"its first 20 answers are all useless; the last one: the answer is"):
            run(asking(server, agents=agents, max_concurrency=1), out=tmp_path)
        assert sum(map(is_text, server.requests)) == 20
    [folder] = tmp_path.iterdir()
    assert read_manifest(folder)["status"] == "failed"


def test_where_auto_finds_no_llm_the_words_are_templates_the_run_says_so_and_can_be_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(factory, "embedded_fault", lambda gguf: "needs xllamacpp")
    nobody = {"kind": "auto", "host": "http://127.0.0.1:9"}
    result = run(plain(WORLD | {"reasoner": nobody}), out=tmp_path)
    posts = result.table("posts").query("kind == 'reply'")
    assert posts["text"].notna().all()
    assert result.summary["writing"] is None
    [note] = [note for note in result.summary["notes"] if note.startswith("content:")]
    assert "there is no LLM, so texts come from templates (no Ollama: " in note
    assert replay(result.run_dir).equal
