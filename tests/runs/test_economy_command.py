"""The command for runs of nations, and their pictures."""

import json
import re

import pandas as pd
import pytest
from advisors import served
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
    assert re.search(r"decided by +Taylor's rule \(1993\) \(no LLM is at hand", out)
    assert re.search(r"loss +[\d.]+; with Taylor's rule [\d.]+, without any policy [\d.]+ \(", out)
    assert "{" not in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["economy.policy=anarchy"], "prism: override: economy.policy: Input should be 'llm', 'taylor'"),
        (["nowhere.yaml"], "prism: nowhere.yaml: no such config file"),
        (["agents.n=5"], "prism: override: agents: no such key"),
    ],
)
def test_bad_input_ends_with_one_line_and_2(prism, tmp_path, arguments, says):
    code, _, err = prism("economy", *arguments)
    assert code == 2
    assert err.startswith(says)
    assert err.count("\n") == 1
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_a_server_that_is_not_there_is_bad_input_and_makes_no_run(prism, tmp_path):
    with StandIn(served, ("llama3.2",), latency=0.0) as server:
        reasoner = ("reasoner.kind=ollama", f"reasoner.host={server.url}", "reasoner.backoff_s=0.01")
        assert prism("economy", CANADA, "rounds=2", *reasoner)[0] == 0
    code, _, err = prism("economy", CANADA, "rounds=2", *reasoner, "--out", "other")
    assert code == 2
    assert "reasoner.host" in err
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_an_llm_that_talks_nonsense_ends_the_command_with_1_and_a_kept_folder(prism, tmp_path):
    with StandIn(lambda body: "What a lovely day!", ("llama3.2",), latency=0.0) as server:
        code, _, err = prism("economy", CANADA, "reasoner.kind=ollama", f"reasoner.host={server.url}", "rounds=2")
    assert code == 1
    assert "2009Q4: the LLM gave the agent no usable answer (unparsable, attempts: 2)" in err
    [folder] = (tmp_path / "results").iterdir()
    assert read_manifest(folder)["status"] == "failed"
    assert prism("why", folder, "Canada")[0] == 2


@pytest.mark.slow
def test_what_is_made_for_platforms_says_so(prism, tmp_path):
    code, out, _ = prism("economy", CANADA, "economy.policy=taylor", "rounds=1", "--json")
    folder = json.loads(out)["run_dir"]
    code, _, err = prism("distill", folder)
    assert (code, "is a run of nations" in err, err.count("\n")) == (2, True, 1)
    assert prism("ledger", "stats", folder)[0] == 0


# -- pictures --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("coarse_pictures")
def test_pictures_are_drawn_of_one_nation_and_of_one_quarter(tmp_path):
    result = run_economy({"rounds": 1} | SWEDEN, out=tmp_path)
    assert [path.name for path in draw_economy(result.run_dir)] == ["indicators.png", "policies.png", "responses.png"]


@pytest.mark.slow
def test_a_batch_of_runs_has_a_folder_each(tmp_path):
    found = [run_economy({"rounds": 2, "seed": seed} | SWEDEN, out=tmp_path) for seed in range(3)]
    gaps = pd.concat([result.table("indicators").assign(seed=i) for i, result in enumerate(found)])
    assert gaps.groupby("seed")["output_gap"].mean().nunique() == 3
    assert len(list(tmp_path.iterdir())) == 3
