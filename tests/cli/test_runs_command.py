"""`prism runs`, as a user types it."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from worlds import plain

from prism_mesa import run, run_economy

KEYS = "run_dir kind config seed status state round rounds started age_s size_bytes error".split()
SMALL = plain({"agents.n": 20, "network.mean_degree": 4, "ticks_per_round": 5})


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder with a run that is done, one that was interrupted, one that died, one that is damaged; and nations."""
    out = tmp_path_factory.mktemp("results")

    def stop(done):
        shutil.copytree(next(out.glob("stopped-*")), out / "gone")
        raise KeyboardInterrupt

    run(SMALL | {"rounds": 1, "name": "whole", "seed": 5}, out=out, pictures=False)
    with pytest.raises(KeyboardInterrupt):
        run(SMALL | {"rounds": 3, "name": "stopped"}, out=out, on_round=stop, pictures=False)
    run_economy({"rounds": 1, "name": "land", "economy": {"nations": ["Sweden"]}}, out=out, pictures=False)
    (out / "bad").mkdir()
    (out / "bad" / "manifest.json").write_text("{")
    return out


def test_runs_are_listed_with_what_can_be_done(results, prism):
    code, out, err = prism("runs", results)
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].split() == ["run", "what", "config", "seed", "status", "age", "size"]
    told = {line.split()[0].split("-")[0]: re.split(r"  +", line)[1:] for line in lines[1:-1]}
    assert told["whole"][:4] == ["platform", "whole", "5", "done"]
    assert told["land"][:4] == ["nations", "land", "42", "done"]
    assert told["stopped"][3] == "interrupted"
    assert told["gone"][3] == "died in round 1 of 3"
    assert told["bad"][0] == "unknown"
    assert told["bad"][1].startswith("damaged: manifest.json: cannot be read: ")
    assert re.fullmatch(
        rf"to continue a run that died or stopped: .*prism resume {results}/(gone|stopped-.*)", lines[-1]
    )


def test_as_json_there_is_one_list_with_these_keys(results, prism):
    code, out, err = prism("runs", results, "--json")
    told = json.loads(out)
    assert (code, err, len(out.splitlines())) == (0, "", 1)
    assert [list(one) for one in told] == [KEYS] * 5
    by_name = {Path(one["run_dir"]).name.split("-")[0]: one for one in told}
    assert by_name["gone"]["state"] == "died in round 1 of 3"
    assert (by_name["gone"]["status"], by_name["gone"]["round"], by_name["gone"]["rounds"]) == ("died", 1, 3)
    assert by_name["whole"]["size_bytes"] > 10_000
    assert by_name["bad"]["seed"] is None


def test_without_a_folder_results_are_listed(prism, results, tmp_path):
    code, out, err = prism("runs")
    assert (code, out, err) == (2, "", "prism: results: cannot be listed: No such file or directory\n")
    (tmp_path / "results").mkdir()
    assert prism("runs") == (0, "no runs in results\n", "")
    assert prism("runs", "--json") == (0, "[]\n", "")


@pytest.mark.slow
def test_many_runs_are_listed_without_loading_what_runs_them(tmp_path):
    for number in range(3000):
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
        (folder / "manifest.json").write_text('{"status": "done", "system": "social"}')
    code = "import sys; from prism_mesa.cli.app import main; sys.argv = ['prism', 'runs', sys.argv[1]]\ntry: main()\n"
    code += "except SystemExit: print({'numba', 'pandas', 'mesa', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[-1] == "set()"
    assert len(lines) == 3002
