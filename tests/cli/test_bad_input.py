"""Bad input on the command line: one line on stderr, and an exit code."""

import json
from pathlib import Path

import pytest
from command_lines import SMALL, folders
from ollama_server import models, serving

from prism_mesa.runs.run_files import read_manifest, read_table

FILES = {
    "graph.csv": "src,dst\n1,2\n2,3\n3,1\n",
    "graph_empty.csv": "",
    "graph_header.csv": "src,dst\n",
    "graph_column.csv": "src,target\n1,2\n",
    "graph_blank.csv": "src,dst\n1,\n,2\n",
    "graph_self.csv": "src,dst\n1,1\n2,2\n",
    "graph.doc": "src,dst\n1,2\n",
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
    (["network.edges=graph.doc"], r"network\.edges: graph\.doc: not a kind of file .*\.parquet"),
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
    (
        ["seed=1", "rounds=4", " seed=2"],
        r"override: 'seed' stands here twice \(seed=1,  seed=2\): give it once",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "line"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input_ends_with_2_and_one_line_that_says_where(prism, arguments, line):
    for name, text in FILES.items():
        Path(name).write_text(text)
    before = sorted(Path().rglob("*"))
    is_bare = arguments[0].startswith("--") or "=" in arguments[0]
    rule = ["reasoner.kind=rule"] if is_bare and not arguments[0].startswith("reasoner.kind=") else []
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
