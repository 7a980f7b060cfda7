"""Bad input on the command line: one line on stderr, and an exit code."""

import json

import pytest
from command_lines import SMALL, folders
from ollama_server import models, serving

from prism_mesa.runs.run_files import read_manifest, read_table


@pytest.mark.slow
def test_a_chart_with_an_unreachable_state_is_drawn_and_ends_with_2(prism):
    code, out, err = prism("chart", "statechart.chart=own_charts:unreachable", "--json")
    assert code == 2
    assert any(f["level"] == "error" and f["kind"] == "unreachable" for f in json.loads(out)["findings"])
    assert err.startswith("prism: chart cut: ")
    assert err.count("\n") == 1


def test_ollama_that_does_not_run_is_said_with_what_to_do(prism):
    with serving() as server:
        dead = server.url
    code, out, err = prism("run", *SMALL[:-1], "reasoner.kind=ollama", f"reasoner.host={dead}")
    assert (code, out, folders()) == (2, "", [])
    assert err == (
        f"prism: reasoner.host: {dead} does not answer (connection refused): "
        "start it with 'ollama serve', or set reasoner.kind=rule\n"
    )


def test_a_model_that_was_not_pulled_is_said_with_what_to_do(prism):
    with serving(tags=models("phi3:latest")) as server:
        code, out, err = prism("run", *SMALL[:-1], "reasoner.kind=ollama", f"reasoner.host={server.url}")
    assert (code, out, folders()) == (2, "", [])
    assert err == (
        "prism: reasoner.model: 'llama3.2' is not on the server (it has: phi3:latest): 'ollama pull llama3.2'\n"
    )


def test_a_run_that_breaks_in_mid_run_ends_with_1_one_line_and_a_failed_run(prism):
    code, out, err = prism(
        "run", *SMALL, "agents.activity=0.9", "statechart.chart=own_charts:breaking", "statechart.strict=true"
    )
    [folder] = folders()
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith(f"prism: {folder}: round 1: LookupError: ")
    assert "Traceback" not in err
    assert read_manifest(folder)["status"] == "failed"
    assert len(read_table(folder, "rounds")) == 1
    assert {file.name for file in folder.glob("*.png")} == {"states.png", "cascades.png", "engagement.png"}
