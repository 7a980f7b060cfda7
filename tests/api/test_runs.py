"""What users call: runs draw their own pictures, and say how they ended and what they took."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from advisors import LLM, failing_from
from worlds import PLAIN_FILE, plain

from prism_mesa import Config, Reasoner, RunResult, load_config, run, run_economy
from prism_mesa.errors import ConfigError, RunError
from prism_mesa.params import nest_keys
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.social.params import SocialParams
from prism_mesa.view.plots import files
from prism_mesa.view.summaries import run_lines

SMALL = plain({"agents": {"n": 30}, "network": {"mean_degree": 5}, "rounds": 3, "ticks_per_round": 6})
PLATFORM = {"states.png", "cascades.png", "engagement.png"}
TWO = {"economy": LLM["economy"] | {"nations": ["Canada", "Sweden"]}}
NATIONS = {"indicators.png", "policies.png", "responses.png"}


@pytest.fixture(autouse=True)
def _blank_pictures(monkeypatch):
    """Write nothing into pictures, which are made all the same; what is on them is looked at in tests/view."""
    monkeypatch.setattr(files, "to_png", lambda figure: b"\x89PNG")


def drawn(folder):
    return {file.name for file in Path(folder).glob("*.png")}


def only_folder(out):
    [folder] = out.iterdir()
    return folder


# -- pictures ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_draws_its_pictures_as_the_command_does(tmp_path):
    result = run(SMALL, out=tmp_path)
    assert isinstance(result, RunResult)
    assert {path.name for path in result.pictures} == drawn(result.run_dir) == PLATFORM
    assert result.summary["pictures"] == [str(path) for path in result.pictures]
    assert dict(run_lines(result.summary))["pictures"] == "states.png, cascades.png, engagement.png"


def test_pictures_can_be_switched_off(tmp_path):
    for result in (
        run(Config.model_validate(nest_keys(SMALL)), out=tmp_path / "a", pictures=False),
        run_economy({"rounds": 1, "economy": {"nations": ["Sweden"]}}, out=tmp_path / "b", pictures=False),
    ):
        assert (result.status, result.pictures, drawn(result.run_dir)) == ("done", (), set())


@pytest.mark.slow
def test_runs_that_draw_nothing_do_not_load_what_draws(tmp_path):
    code = (
        f"import sys; from prism_mesa import run; run({SMALL}, out={str(tmp_path)!r}, pictures=False); "
        "print('matplotlib.figure' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_run_takes_the_path_of_a_yaml_file(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump(SMALL | {"name": "mine"}))
    for path in (file, str(file)):
        result = run(path, out=tmp_path / "out", pictures=False)
        assert result.manifest["config"] == load_config(file).model_dump(mode="json")
        assert result.run_dir.name.startswith("mine")


@pytest.mark.parametrize("runs", [run, run_economy])
def test_what_is_no_configuration_is_one_clear_line(runs, tmp_path):
    for given in (3, [], b"x.yaml", [("seed", 3)], SocialParams()):
        with pytest.raises(ConfigError, match=r"^config: give nested values"):
            runs(given, out=tmp_path / "out")
    (tmp_path / "bad.yaml").write_text("sead: 3")
    for name, said in (("none.yaml", "no such config file"), ("bad.yaml", "sead: no such key"), (".", "is a folder")):
        with pytest.raises(ConfigError, match=rf"{re.escape(str(tmp_path / name))}: {said}"):
            runs(tmp_path / name, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_no_reasoner_is_one_clear_line(tmp_path):
    for given in (3, "rule", lambda prompt: "1", Reasoner):
        with pytest.raises(ConfigError, match=r"^reasoner: give a Reasoner .*\(Reasoner\(function\)\), .*, not "):
            run(SMALL, out=tmp_path / "out", reasoner=given)
    assert not (tmp_path / "out").exists()


def test_a_run_that_breaks_off_has_pictures_of_what_there_is(tmp_path):
    chart = {"chart": "own_charts:breaking", "strict": True}
    with pytest.raises(RunError, match="round 1: LookupError") as stop:
        run(SMALL | {"agents": {"n": 30, "activity": 0.9}, "statechart": chart}, out=tmp_path)
    assert stop.value.result.status == "failed"
    assert {path.name for path in stop.value.result.pictures} == drawn(only_folder(tmp_path)) == PLATFORM


def test_nations_whose_llm_fails_at_once_have_the_picture_that_needs_no_quarter(tmp_path):
    with pytest.raises(RunError, match="2009Q4"):
        run_economy({**TWO, "rounds": 6}, out=tmp_path, llm=failing_from("2009Q4"))
    assert drawn(only_folder(tmp_path)) == {"responses.png"}


# -- interrupts --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_interrupt_of_nations_keeps_quarters_pictures_and_summary(tmp_path):
    def impatient(done):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(
        KeyboardInterrupt, match=r"2010Q3: interrupted \(what was recorded is kept there; 'prism"
    ) as stop:
        run_economy({"rounds": 9, "economy": {"nations": ["Sweden"]}}, out=tmp_path, on_round=impatient)
    manifest = read_manifest(only_folder(tmp_path))
    assert (manifest["status"], manifest["summary"]["rounds"]) == ("interrupted", 3)
    assert stop.value.result.summary["status"] == "interrupted"
    assert drawn(only_folder(tmp_path)) == NATIONS


# -- clocks ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_command_says_what_it_took_in_all_and_the_run_in_it(tmp_path):
    begun = time.monotonic()
    command = [sys.executable, "-m", "prism_mesa.cli.app", "run", str(PLAIN_FILE), "rounds=1", "agents.n=10"]
    with (tmp_path / "said.json").open("w") as out:
        started = subprocess.Popen(
            [*command, "reasoner.kind=rule", "--json", "--out", str(tmp_path / "runs")], stdout=out
        )
        _, status, used = os.wait4(started.pid, 0)  # of this process alone: other tests' may end in the meantime
    took, started.returncode = time.monotonic() - begun, os.waitstatus_to_exitcode(status)
    assert started.returncode == 0
    said, kept = (
        json.loads((tmp_path / "said.json").read_text()),
        read_manifest(only_folder(tmp_path / "runs"))["summary"],
    )
    cpu = used.ru_utime + used.ru_stime
    assert 0.8 * cpu < said["cpu_s"] <= cpu
    assert 0.8 * took < said["wall_s"] <= took + 0.05
    assert kept["cpu_s"] == said["run_cpu_s"] < 0.9 * said["cpu_s"]
    assert kept["wall_s"] == said["run_wall_s"] < said["wall_s"]
    line = dict(run_lines(said))["time"]
    assert "in all, with imports and compiling; the run " in line
    assert f" wall s), {1000 * said['round_cpu_s']:.0f} CPU ms a round at the median, " in line
