"""The messages of common mistakes, as golden texts in messages.txt."""

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest
from worlds import plain

from prism_mesa import run
from prism_mesa.params import nest_keys
from prism_mesa.runs.run_files import read_manifest

GOLDEN = Path(__file__).with_name("messages.txt")
STUDY = "question: Which feed?\nbase: {agents: {n: 20}, reasoner: {kind: rule}}\nseeds: 2\nmeasures: [likes]\n"
ARMS = "arms: {plain: {}, ranked: {feed.mode: x_algo}}\n"
FILES = {
    "graph.csv": "src,dst\n1,2\n2,3\n3,1\n",
    "empty.csv": "",
    "header.csv": "src,dst\n",
    "column.csv": "src,target\n1,2\n",
    "blank.csv": "src,dst\n1,\n,2\n",
    "self.csv": "src,dst\n1,1\n2,2\n",
    "graph.doc": "src,dst\n1,2\n",
    "txt.csv": "txt,author\nhello,1\n",
    "no_text.csv": "text,author\n,1\n  ,2\n",
    "strangers.csv": "text,author\nhello,99\n",
    "profiles.csv": "agent,activity\n1,0.5\n77,0.5\n",
    "range.csv": "agent,engagement_threshold\n1,1.5\n",
    "empty.yaml": "",
    "list.yaml": "- 1\n- 2\n",
    "broken.yaml": "agents: [1\nseed: 2\n",
    "twice.yaml": "agents: {n: 30}\nseed: 1\nagents: {band: 0.1}\n",
    "unknown.yaml": "feed:\n  x_algo:\n    wieght_like: 1\n",
    "questions.yaml": "questions: [{id: a, ask: How are you, options: [well, ill]}]\n",
    "study.yaml": STUDY + ARMS,
    "expects.yaml": f"{STUDY}{ARMS}expect: ['likes: plain > rankt']\n",
    "misspelt.yaml": f"{STUDY}{ARMS}mesures: [likes]\n",
    "both.yaml": (
        "base: {agents: {n: 40}}\nparameters: {agents.activity: [0.1, 0.9]}\nruns: 8\n"
        "fit: {impressions: {target: 400, tolerance: 40, data: one}}\n"
        "holdout: {likes: {target: 30, tolerance: 10, data: One}}\n"
    ),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder with a run that is done, one that died, one from elsewhere, one with a link, and a damaged one."""
    out = tmp_path_factory.mktemp("runs")
    world = nest_keys(plain({"agents.n": 20, "network.mean_degree": 4, "rounds": 2, "ticks_per_round": 4}))

    def look(done):
        shutil.copytree(next(out.glob("done-*")), out / "died", dirs_exist_ok=True)

    done = run(world | {"name": "done"}, out=out, on_round=look, pictures=False).run_dir
    done.rename(out / "done")
    manifest = read_manifest(out / "done")
    for name in ("another", "linked", "damaged"):
        shutil.copytree(out / "done", out / name)
    shutil.copytree(out / "died", out / "foreign")
    for name in ("foreign", "linked"):
        unsigned = manifest | {"status": "running" if name == "foreign" else "done"}
        (out / name / "manifest.json").write_text(json.dumps(unsigned))
    (out / "linked" / "posts.parquet").unlink()
    (out / "linked" / "posts.parquet").symlink_to(out / "done" / "posts.parquet")
    (out / "damaged" / "posts.parquet").write_bytes(b"PAR1")
    return out


@pytest.fixture
def here(folders, prism):
    """The working directory of a command, with good and bad files."""
    shutil.copytree(folders, ".", symlinks=True, dirs_exist_ok=True)
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("latin.yaml").write_bytes(b"name: caf\xe9\n")
    return Path.cwd()


def golden():
    """Return the commands of messages.txt with their messages."""
    lines = GOLDEN.read_text("utf-8").splitlines()
    pairs = zip(lines, [*lines[1:], ""], strict=True)
    return [(line[2:], "" if after.startswith("$") else after) for line, after in pairs if line.startswith("$ ")]


@pytest.mark.slow
def test_each_mistake_has_its_message_and_leaves_nothing(prism, here, folders):
    messages, faults = [], []
    for command, expected in golden():
        before = sorted(path for path in here.rglob("*") if "__pycache__" not in path.parts)
        code, out, err = prism(*shlex.split(command)[1:])
        message = err.splitlines()[-1].replace(str(here), "HERE").replace(str(folders), "RUNS") if err else ""
        messages += [f"$ {command}", message]
        left = sorted(path for path in here.rglob("*") if "__pycache__" not in path.parts)
        if (code, out, err.count("prism: "), message, left) != (2, "", 1, expected, before):
            faults.append((command, code, out, err, message == expected, sorted(set(left) - set(before))))
    if os.environ.get("PRISM_MESSAGES") == "write":
        comments = [line for line in GOLDEN.read_text("utf-8").splitlines() if line.startswith("#")]
        GOLDEN.write_text("\n".join([*comments, "", *messages, ""]), "utf-8")
    assert faults == []
