"""The command `prism` as a user meets it: what it prints where, its exit codes, and every bad input in one line."""

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import pandas as pd
import pytest
from ollama_server import drop, late, models, serving

from prism_mesa.llm.stand_in import StandIn
from prism_mesa.runs.run_files import read_manifest, read_table

SMALL = (
    "rounds=2",
    "ticks_per_round=6",
    "agents.n=30",
    "agents.band=0.3",
    "network.mean_degree=5",
    "reasoner.backoff_s=0",
    "reasoner.kind=rule",
)
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


def folders(out="results"):
    return sorted(Path(out).iterdir()) if Path(out).exists() else []


# -- what it prints ----------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), ("--help",), ("run", "--help"), ("chart", "--help"), ("app", "--help")])
def test_help_is_on_stdout(prism, arguments):
    code, out, err = prism(*arguments)
    assert (code, err) == (0, "")
    assert out.startswith("Usage: prism")
    assert out.count("\n") > 5


@pytest.mark.slow
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
def test_an_out_folder_may_hold_other_things_and_odd_names_are_shown_as_they_are(prism):
    odd = Path("out [/b] [red]x  y")
    odd.mkdir(parents=True)
    (odd / "mine.txt").write_text("kept")
    code, out, _ = prism("run", *SMALL, "--out", odd)
    assert code == 0
    assert out.splitlines()[0].startswith(f"run         {odd}/run-")
    assert (odd / "mine.txt").read_text() == "kept"


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
@pytest.mark.parametrize(
    "extreme",
    [
        ("rounds=1", "agents.n=2", "network.mean_degree=1"),
        ("rounds=1", "agents.n=10", "network.mean_degree=20"),
        ("ticks_per_round=1", "feed.size=1", "feed.window=1"),
        ("agents.post_rate=0",),
        ("agents.activity=0", "statechart.max_history_depth=0", "statechart.default_timeout_ticks=1"),
        ("statechart.oracle_enabled=false", "seed=9223372036854775807"),
    ],
    ids=" ".join,
)
def test_the_smallest_and_the_largest_values_run(prism, extreme):
    code, out, err = prism("run", *SMALL, *extreme, "--json")
    assert (code, json.loads(out)["status"]) == (0, "done")
    assert err.count("\n") == 1


@pytest.mark.slow
def test_a_chart_of_ones_own_is_found_in_the_working_directory(prism):
    Path("chart_in_this_folder.py").write_text(
        "from prism_mesa.social.behavior import build_chart\nmine = build_chart(name='my/own one')\n"
    )
    assert prism("chart", "statechart.chart=chart_in_this_folder:mine", "--out", "drawn")[0] == 0
    assert {file.name for file in folders("drawn")} == {"my-own-one-chart.png", "my-own-one-chart.mmd"}


@pytest.mark.slow
def test_what_the_system_refuses_is_one_line_and_ends_with_1(prism):
    Path("results/social-chart.mmd").mkdir(parents=True)
    code, out, err = prism("chart")
    assert (code, out) == (1, "")
    assert err.startswith("prism: [Errno 21] Is a directory: ")
    assert err.count("\n") == 1


@pytest.mark.slow
def test_the_chart_is_checked_and_drawn(prism):
    code, out, err = prism("chart", "--json")
    said = json.loads(out)
    assert (code, err, said["chart"]) == (0, "", "social")
    assert not [finding for finding in said["findings"] if finding["level"] == "error"]
    assert Path(said["picture"]).read_bytes().startswith(b"\x89PNG")
    assert Path(said["mermaid"]).read_text().startswith("stateDiagram-v2")


# -- Ctrl-C ------------------------------------------------------------------------------------------


@pytest.fixture
def interruptible():
    """Ctrl-C raises KeyboardInterrupt, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_while_the_llm_is_asked_ends_at_once_with_130(prism):
    with serving(always=late) as server:

        def interrupt_once_asked():
            while not server.sent:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        user = threading.Thread(target=interrupt_once_asked)
        user.start()
        code, out, err = prism("run", *SMALL[:-1], "reasoner.kind=ollama", f"reasoner.host={server.url}")
        user.join()
    [folder] = folders()
    assert (code, out.splitlines()[0]) == (130, f"run         {folder} (interrupted, seed 42)")
    kept = rf"prism: {folder}: round \d: interrupted \(what was recorded is kept there\)"
    assert re.fullmatch(kept, err.splitlines()[-1])
    assert read_manifest(folder)["status"] == "interrupted"


def test_ctrl_c_before_anything_was_made_ends_with_130(prism, monkeypatch):
    Path("interrupting.py").write_text("raise KeyboardInterrupt")
    code, out, err = prism("chart", "statechart.chart=interrupting:mine")
    assert (code, out, err) == (130, "", "prism: interrupted\n")


# -- bad input ---------------------------------------------------------------------------------------


FILES = {
    "graph.csv": "src,dst\n1,2\n2,3\n3,1\n",
    "graph_empty.csv": "",
    "graph_header.csv": "src,dst\n",
    "graph_column.csv": "src,target\n1,2\n",
    "graph_blank.csv": "src,dst\n1,\n,2\n",
    "graph_self.csv": "src,dst\n1,1\n2,2\n",
    "graph.txt": "src,dst\n1,2\n",
    "posts_empty.csv": "",
    "posts_column.csv": "txt,author\nhello,1\n",
    "posts_blank.csv": "text,author\n,1\n  ,2\n",
    "posts_strangers.csv": "text,author\nhello,99\n",
    "profiles.csv": "agent,activity\n1,0.5\n77,0.5\n",
    "profiles_range.csv": "agent,engagement_threshold\n1,1.5\n",
    "profiles_negative.csv": "agent,post_rate\n1,-0.5\n",
    "empty.yaml": "",
    "comments.yaml": "# nothing yet\n",
    "list.yaml": "- 1\n- 2\n",
    "broken.yaml": "agents: [1\nseed: 2\n",
    "twice.yaml": "agents: {n: 30}\nseed: 1\nagents: {band: 0.1}\n",
    "unknown.yaml": "feed:\n  x_algo:\n    wieght_like: 1\n",
    "syntax_error.py": "def (",
}

BAD = [
    (["agnts.n=3"], r"override: agnts: no such key \(allowed here: seed, .*\)\. Did you mean 'agents'\?"),
    (["agents.m=3"], r"override: agents\.m: no such key \(allowed here: n, band, .*Did you mean 'agents.n'\?"),
    (["n_topics=3"], r"override: n_topics: no such key .*Did you mean 'posts.n_topics'\?"),
    (["unknown.yaml"], r"unknown\.yaml: feed\.x_algo\.wieght_like: no such key .*Did you mean 'weight_like'\?"),
    (["rounds=many"], r"override: rounds: .*integer.*'many'"),
    (["rounds=true"], r"override: rounds: .*number, not True"),
    (["agents=3"], r"override: agents: .*group of keys \(n, band, .*\), not 3"),
    (["agents.n=[1, 2]"], r"override: agents\.n: .*integer, not \[1, 2\]"),
    (["feed.mode=best"], r"override: feed\.mode: .*'chronological'.* not 'best'"),
    (["rounds=0"], r"override: rounds: .*greater than or equal to 1, not 0"),
    (["agents.post_rate=-0.1"], r"override: agents\.post_rate: .*greater than or equal to 0, not -0\.1"),
    (["agents.threshold_mean=1.5"], r"override: agents\.threshold_mean: .*less than or equal to 1, not 1\.5"),
    (["reasoner.timeout_s=.inf"], r"override: reasoner\.timeout_s: .*finite"),
    (["clock.round_minutes=1e300"], r"override: clock\.round_minutes: .*less than or equal to 525600"),
    (["network.kind=edges"], r"override: network: kind is 'edges' and network\.edges names no file"),
    (["name=../escaped"], r"override: name: .*not '\.\./escaped'"),
    (["seed"], r"seed: no such config file \(looked in .*\)"),
    (["graph.csv", "rounds"], r"graph\.csv: "),
    (["seed=1", "rounds"], r"'rounds': an override is written key=value"),
    (["nowhere.yaml"], r"nowhere\.yaml: no such config file"),
    (["."], r"\.: is a folder, not a config file"),
    (["empty.yaml"], r"empty\.yaml: is empty"),
    (["comments.yaml"], r"comments\.yaml: is empty"),
    (["list.yaml"], r"list\.yaml: holds a list, not keys and values"),
    (["broken.yaml"], r"broken\.yaml: line 2 is not YAML: "),
    (["twice.yaml"], r"twice\.yaml: line 3 is not YAML: 'agents' stands here twice"),
    (["network.edges=nowhere.csv"], r"network\.edges: nowhere\.csv: no such file"),
    (["network.edges=graph_empty.csv"], r"network\.edges: graph_empty\.csv: the file is empty.*src, dst"),
    (["network.edges=graph_header.csv"], r"network\.edges: graph_header\.csv: no rows"),
    (["network.edges=graph_column.csv"], r"network\.edges: graph_column\.csv: no column 'dst' \(it has: src, target\)"),
    (["network.edges=graph_blank.csv"], r"network\.edges: graph_blank\.csv: no row has both src and dst"),
    (["network.edges=graph_self.csv"], r"network\.edges: graph_self\.csv: every row .* follows itself"),
    (["network.edges=graph.txt"], r"network\.edges: graph\.txt: not a kind of file .*\.parquet"),
    (["posts.file=nowhere.csv"], r"posts\.file: nowhere\.csv: no such file"),
    (["posts.file=posts_empty.csv"], r"posts\.file: posts_empty\.csv: the file is empty.*text"),
    (["posts.file=posts_column.csv"], r"posts\.file: posts_column\.csv: no column 'text' .*Did you mean 'txt'\?"),
    (["posts.file=posts_blank.csv"], r"posts\.file: posts_blank\.csv: none of the 2 rows can be used"),
    (
        ["network.edges=graph.csv", "posts.file=posts_strangers.csv"],
        r"posts\.file: posts_strangers\.csv: none of its 1 authors is an agent.*posts\.authors=rank",
    ),
    (
        ["network.edges=graph.csv", "agents.profiles=profiles.csv"],
        r"agents\.profiles: profiles\.csv: agent '77' is not in the network",
    ),
    (
        ["network.edges=graph.csv", "agents.profiles=profiles_range.csv"],
        r"agents\.profiles: profiles_range\.csv: engagement_threshold: line 2: .*1\.5.* 0 \.\. 1",
    ),
    (
        ["network.edges=graph.csv", "agents.profiles=profiles_negative.csv"],
        r"agents\.profiles: profiles_negative\.csv: post_rate: line 2: .*-0\.5.* 0 \.\. 1",
    ),
    (["statechart.chart=nowhere:chart"], r"statechart\.chart: nowhere:chart: cannot import 'nowhere'"),
    (["statechart.chart=chart"], r"statechart\.chart: chart: write it as module:object"),
    (["statechart.chart=json:chart"], r"statechart\.chart: json:chart: 'chart' is no Statechart"),
    (["statechart.chart=syntax_error:chart"], r"statechart\.chart: syntax_error:chart: .*SyntaxError"),
    (["statechart.chart=own_charts:unreachable"], r"chart cut: .*composing.*('prism chart' shows all)"),
    (["reasoner.kind=auto", "reasoner.host=http://"], r"reasoner\.host: 'http://' is no address"),
    (["--out", "graph.csv"], r"--out: graph\.csv: cannot make that folder: File exists"),
    (["--out", "graph.csv/below"], r"--out: graph\.csv/below: cannot make that folder: Not a directory"),
    (["--rounds=3"], r"No such option: --rounds"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "line"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input_ends_with_2_and_one_line_that_says_where(prism, arguments, line):
    for name, text in FILES.items():
        Path(name).write_text(text)
    before = sorted(Path().rglob("*"))
    rule = ["reasoner.kind=rule"] if arguments[0].startswith("--") or "=" in arguments[0] else []
    code, out, err = prism("run", *rule, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert pytest.RaisesExc(Exception, match=f"^prism: {line}").matches(Exception(err)), err
    assert [path for path in sorted(Path().rglob("*")) if "__pycache__" not in path.parts] == before


def test_an_unknown_command_is_named_with_the_nearest(prism):
    code, out, err = prism("rnu")
    assert (code, out) == (2, "")
    assert err == "prism: No such command 'rnu'. Did you mean 'run'? (see prism --help)\n"


@pytest.mark.slow
def test_a_chart_with_an_unreachable_state_is_drawn_and_ends_with_2(prism):
    code, out, err = prism("chart", "statechart.chart=own_charts:unreachable", "--json")
    assert code == 2
    assert any(f["level"] == "error" and f["kind"] == "unreachable" for f in json.loads(out)["findings"])
    assert err.startswith("prism: chart cut: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["chart", "app"])
def test_the_other_commands_refuse_a_bad_config_in_the_same_words(prism, command):
    code, out, err = prism(command, "agents.m=3")
    assert (code, out) == (2, "")
    assert err.startswith("prism: override: agents.m: no such key ")
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


# -- looking at a run --------------------------------------------------------------------------------


def asked_run(prism, server):
    world = (*SMALL[:-1], "reasoner.kind=ollama", f"reasoner.host={server.url}")
    code, out, _ = prism("run", *world, "--json")
    assert code == 0
    return json.loads(out)


@pytest.mark.slow
def test_replay_proves_every_table_equal_and_asks_nobody(prism):
    with StandIn() as server:
        said = asked_run(prism, server)
        asked = server.n_requests
        code, out, _ = prism("replay", said["run_dir"])
        assert server.n_requests == asked
        assert code == 0
        assert [line.split()[-1] for line in out.splitlines()[:-1]] == ["equal"] * 8
        assert out.splitlines()[-1].endswith("decisions answered from the ledger, 0 calls of an LLM")
        code, out, _ = prism("replay", said["run_dir"], "--json", "--out", "again")
    found = json.loads(out)
    assert (code, found["equal"], found["calls"]) == (0, True, 0)
    assert read_manifest(found["run_dir"])["status"] == "done"


@pytest.mark.slow
def test_replay_of_a_changed_run_ends_with_1_and_says_where(prism):
    with StandIn() as server:
        said = asked_run(prism, server)
    file = Path(said["run_dir"]) / "posts.parquet"
    posts = pd.read_parquet(file)
    posts.loc[3, "likes"] += 1
    posts.to_parquet(file)
    code, _, err = prism("replay", said["run_dir"])
    assert code == 1
    assert re.search(r"repeated, 1 tables differ; posts: row 3, likes: \d+ in the run, \d+ when repeated", err)


@pytest.mark.slow
def test_why_tells_what_an_agent_did(prism):
    with StandIn() as server:
        said = asked_run(prism, server)
    code, out, _ = prism("why", said["run_dir"], "3", "1")
    name = read_table(said["run_dir"], "agents")["name"][3]
    assert code == 0
    assert out.splitlines()[0].startswith(f"{name} (agent 3) likes ")
    assert "Round 1: it " in out


@pytest.mark.slow
def test_a_ledger_is_counted_and_exported_beside_its_run(prism):
    with StandIn() as server:
        said = asked_run(prism, server)
    code, out, _ = prism("ledger", "stats", said["run_dir"], "--json")
    assert (code, json.loads(out)["sources"]) == (0, said["decisions"]["by_source"])
    code, out, _ = prism("ledger", "stats", said["run_dir"])
    assert "fallbacks   0" in out.splitlines()
    code, out, _ = prism("ledger", "export", said["run_dir"])
    assert code == 0
    assert len(pd.read_parquet(Path(said["run_dir"]) / "asked.parquet")) == said["decisions"]["open"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("replay", "nowhere"), "nowhere: no run there: manifest.json is missing"),
        (("why", "nowhere", "1"), "nowhere: no run there: manifest.json is missing"),
        (("ledger", "stats", "nowhere"), "nowhere: no ledger there"),
        (("ledger", "export", "nowhere"), "nowhere: no ledger there"),
    ],
)
def test_what_is_no_run_or_ledger_is_bad_input(arguments, complaint, prism):
    code, out, err = prism(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"prism: {complaint}")
