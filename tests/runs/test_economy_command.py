"""The command for runs of nations, and their pictures."""

import json
import re

import pytest
from stand_in import StandIn

from prism_mesa.runs.economy import run_economy
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.view.plots.economy import draw_economy

CANADA = "economy.nations=Canada"
SWEDEN = {"economy": {"nations": ["Sweden"]}}

# -- the command line ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_runs_draws_replays_and_explains(prism, tmp_path):
    code, out, _ = prism("economy", CANADA, "economy.policy=taylor", "rounds=3", "--json")
    assert (code, out.count("\n")) == (0, 1)
    folder = tmp_path / json.loads(out)["run_dir"]
    assert folder.parent == tmp_path / "results"
    assert {file.name for file in folder.glob("*.png")} == {"indicators.png", "policies.png", "responses.png"}
    code, out, _ = prism("replay", folder, "--json")
    assert (code, json.loads(out)["equal"]) == (0, True)
    code, out, _ = prism("why", folder, "Canada", "2010Q2")
    assert code == 0
    assert "Taylor's rule gives" in out


@pytest.mark.slow
def test_without_an_llm_the_command_says_plainly_that_taylors_rule_decides(prism):
    code, out, _ = prism("economy", CANADA, "rounds=2", "reasoner.kind=rule")
    assert code == 0
    assert re.search(r"decided by +Taylor's rule \(1993\) \(there is no LLM", out)
    assert re.search(r"loss +[\d.]+; with Taylor's rule [\d.]+, without any policy [\d.]+ \(", out)
    assert "{" not in out


@pytest.mark.slow
def test_an_llm_that_talks_nonsense_ends_the_command_with_1_and_a_kept_folder(prism, tmp_path):
    with StandIn(lambda body: "What a lovely day!", ("llama3.2",), latency=0.0) as server:
        code, _, err = prism("economy", CANADA, "reasoner.kind=ollama", f"reasoner.host={server.url}", "rounds=2")
    assert code == 1
    assert "2009Q4: the LLM gave the agent no usable answer (unparsable, attempts: 2)" in err
    [folder] = (tmp_path / "results").iterdir()
    assert read_manifest(folder)["status"] == "failed"
    assert prism("why", folder, "Canada")[0] == 2


# -- pictures --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("coarse_pictures")
def test_pictures_are_drawn_of_one_nation_and_of_one_quarter(tmp_path):
    result = run_economy({"rounds": 1} | SWEDEN, out=tmp_path)
    assert [path.name for path in draw_economy(result.run_dir)] == ["indicators.png", "policies.png", "responses.png"]
