"""The command `prism` as a user meets it: what it prints where, its exit codes, and every bad input in one line."""

import json
import os
import re
import signal
import threading
import time
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from command_lines import SMALL, folders, small
from ollama_server import drop, late, models, serving

from prism_mesa.runs.process import stopping
from prism_mesa.runs.run_files import read_manifest

KEYS = {
    "run_dir",
    "status",
    "seed",
    "agents",
    "rounds",
    "state_shares",
    "engagement",
    "cascades",
    "decisions",
    "cpu_s",
    "round_cpu_s",
}


# -- what it prints ----------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), ("--help",), ("run", "--help"), ("chart", "--help"), ("app", "--help")])
def test_help_is_on_stdout(prism, arguments):
    code, out, err = prism(*arguments)
    assert (code, err) == (0, "")
    assert out.startswith("Usage: prism")
    assert out.count("\n") > 5


def test_the_version_is_that_of_the_package(prism):
    assert prism("--version") == (0, f"prism {version('prism-mesa')}\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "why"),
    [
        (["agents.post_rate=0"], "no post appeared (agents.post_rate, posts.*)"),
        (["agents.activity=0", "agents.posting=always"], "no agent came online (agents.activity, agents.hours)"),
        (
            ["network.kind=erdos_renyi", "network.mean_degree=0.0001"],
            "no agent follows another (network.*), and feed.mode=",
        ),
    ],
)
def test_a_run_in_which_nothing_happens_says_so_and_why(prism, keys, why):
    code, out, _ = prism("run", *small(*keys))
    assert code == 0
    assert f"note        nothing happened: no post was seen in 2 rounds, as {why}" in out


@pytest.mark.slow
@pytest.mark.usefixtures("coarse_pictures")
def test_a_run_says_what_happened_and_who_decided_it(prism):
    code, out, err = prism("run", *SMALL)
    [folder] = folders()
    assert code == 0
    said = {line[:12].strip(): line[12:] for line in out.splitlines()}
    assert said["run"] == f"{folder} (done, seed 42)"
    assert said["platform"].startswith("30 agents, ")
    assert said["platform"].endswith(" follows, 2 rounds")
    assert "scrolling " in said["states"]
    assert "likes" in said["engagement"]
    assert "open choices (" in said["decisions"]
    assert (said["decided by"], said["fallbacks"]) == ("rule-based reasoner", "0")
    assert "2/2" in err
    assert {f.name for f in folder.glob("*.png")} == {"states.png", "cascades.png", "engagement.png"}


@pytest.mark.slow
def test_json_is_one_object_on_stdout_and_nothing_else_there(prism):
    code, out, err = prism("run", "--json", *SMALL, "--out", "a folder/ünï ☃")
    assert (code, out.count("\n")) == (0, 1)
    said = json.loads(out)
    assert said.keys() >= KEYS
    assert (said["status"], said["seed"], said["agents"], said["rounds"]) == ("done", 42, 30, 2)
    assert said["engagement"].keys() == {"likes", "replies", "reshares", "posts"}
    assert said["decisions"].keys() >= {"open", "by_source"}
    assert len(said["state_shares"]) == 8
    assert sum(said["state_shares"].values()) == pytest.approx(1)
    assert Path(said["run_dir"]).parent == Path("a folder/ünï ☃")
    assert read_manifest(said["run_dir"])["status"] == "done"
    assert err.count("\n") == 1
    assert "2/2" in err


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
def test_a_run_that_ends_as_failed_prints_its_summary_and_ends_with_1(prism, caplog):
    with serving(always=drop) as server:
        code, out, err = prism("run", *SMALL[:-1], "reasoner.kind=ollama", f"reasoner.host={server.url}", "--json")
    said = json.loads(out)
    assert (code, said["status"]) == (1, "failed")
    last = err.splitlines()[-1]
    assert last.startswith(f"prism: {said['run_dir']}: the run failed: 100.0% of ")
    assert "reasoner.max_fallback_share allows 5.0%" in last
    # of many warnings of a kind only the first is shown
    assert said["decisions"]["by_source"]["fallback"] > 1
    assert err.count("fallback 'first' (") == 1


@pytest.mark.slow
def test_the_config_file_comes_first_then_overrides_and_the_command_line_asks_auto(prism):
    Path("my=config.yaml").write_text("rounds: 2\nagents: {n: 30}\nnetwork: {mean_degree: 5}\n")
    with serving(tags=models("phi3")) as server:
        code, out, _ = prism("run", "my=config.yaml", "seed=9", f"reasoner.host={server.url}", "--json")
    said = json.loads(out)
    assert (code, said["agents"], said["rounds"], said["seed"]) == (0, 30, 2, 9)
    assert read_manifest(said["run_dir"])["config"]["reasoner"]["kind"] == "auto"
    assert "'ollama pull llama3.2'" in said["decisions"]["note"]


def test_without_a_file_the_default_file_of_the_folder_is_taken(prism):
    Path("configs").mkdir()
    Path("configs/default.yaml").write_text("rounds: -1")
    for arguments in ([], ["seed=1"]):
        code, _, err = prism("run", *arguments)
        assert (code, err.split(": ")[:3]) == (2, ["prism", "configs/default.yaml", "rounds"])


@pytest.mark.slow
def test_a_chart_of_ones_own_is_found_in_the_working_directory(prism):
    Path("chart_in_this_folder.py").write_text(
        "from prism_mesa.social.behavior import build_chart\nmine = build_chart(name='my/own one')\n"
    )
    assert prism("chart", "statechart.chart=chart_in_this_folder:mine", "--out", "drawn")[0] == 0
    assert {file.name for file in folders("drawn")} == {"my-own-one-chart.png", "my-own-one-chart.mmd"}


@pytest.mark.slow
def test_each_kind_of_account_has_a_picture_of_its_own_chart(prism):
    kinds = '{name: a, n: 1, chart: "prism_mesa.social.behavior:social_chart"}, {name: b, n: 1}'
    kinds += ", {name: social, n: 1, engages: {like: post.likes > 2}}"
    code, out, _ = prism("chart", f"accounts=[{kinds}]", "statechart.oracle_enabled=false", "--json")
    charts = json.loads(out)["charts"]
    assert (code, [chart.get("account") for chart in charts]) == (0, [None, "a", "social"])
    assert len({chart["picture"] for chart in charts}) == 3
    assert charts[0]["findings"] == charts[1]["findings"]


@pytest.mark.slow
def test_of_a_study_file_the_chart_of_each_arm_is_shown_once(prism):
    Path("chart_of_an_arm.py").write_text(
        "from prism_mesa import F\nfrom prism_mesa.social.behavior import build_chart\n"
        "mine = build_chart(engages=(F.post.noted == False) & (F.post.utility > F.agent.high_threshold), name='mine')\n"
    )
    study = {
        "question": "Do labels help?",
        "set": {"attributes.noted": {"of": "post", "values": [True, False]}, "agents.n": 20, "reasoner.kind": "rule"},
        "arms": {"plain": {}, "longer": {"rounds": 9}, "heeding": {"statechart.chart": "chart_of_an_arm:mine"}},
        "measures": ["likes"],
    }
    Path("labels.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    code, out, err = prism("chart", "labels.yaml", "--json")
    charts = json.loads(out)["charts"]
    assert (code, err) == (0, "")
    assert [(chart["arms"], chart["chart"]) for chart in charts] == [("plain; longer", "social"), ("heeding", "mine")]
    assert all(Path(chart["picture"]).is_file() for chart in charts)
    code, out, err = prism("chart", "labels.yaml")
    assert [line.split(":")[0] for line in out.splitlines() if ": chart " in line] == ["plain; longer", "heeding"]
    assert prism("chart", "labels.yaml", "rounds=3")[0] == 2


# -- Ctrl-C ------------------------------------------------------------------------------------------


@pytest.fixture
def interruptible():
    """Ctrl-C raises KeyboardInterrupt, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_twice_while_the_llm_is_asked_ends_at_once_with_130(prism, monkeypatch):
    monkeypatch.setattr(stopping, "_REPEAT_S", 0.0)
    with serving(always=late) as server:

        def interrupt_once_asked():
            while not server.sent:
                time.sleep(0.01)
            first = signal.getsignal(signal.SIGINT).__self__
            os.kill(os.getpid(), signal.SIGINT)
            while first.received is None:  # two signals that a busy main thread has not seen yet are one
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        user = threading.Thread(target=interrupt_once_asked)
        user.start()
        code, out, err = prism("run", *SMALL[:-1], "reasoner.kind=ollama", f"reasoner.host={server.url}")
        user.join()
    [folder] = folders()
    assert (code, out) == (130, "")
    kept = rf"prism: {folder}: round \d: interrupted; ended at once, without its last tables \(what was"
    assert re.match(kept, err.splitlines()[-1])
    assert read_manifest(folder)["status"] == "interrupted"
