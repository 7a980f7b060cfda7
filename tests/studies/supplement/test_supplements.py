"""Runs and studies packed for the supplement of a paper, unpacked in another folder, and repeated there."""

import json
import re
import shutil
import sqlite3
import sys
import zipfile
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest
import yaml
from ollama_server import chat_answer, serving
from worlds import plain

from prism_mesa import replay, run, run_economy
from prism_mesa.api.archives import archive, check_archive
from prism_mesa.api.studies import Study
from prism_mesa.errors import DataError
from prism_mesa.params import nest_keys
from prism_mesa.social.behavior import social_chart

LONG = "a folder whose paths are shortened where they are told"
SECRET = "s3cr3t-of-a-test-4711"
SMALL = plain({"agents.n": 24, "agents.activity": 0.9, "network.mean_degree": 5, "rounds": 2, "ticks_per_round": 6})


def llm(handler):
    """Answer by the question, so that swapped questions would show."""
    prompt = handler.body["messages"][-1]["content"]
    states = handler.body["format"]["properties"]["next_state"]["enum"]
    chat_answer(json.dumps({"next_state": states[sha256(prompt.encode()).digest()[0] % len(states)]}))(handler)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """A folder of its own to work in, and a key in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOME_API_KEY", SECRET)


@pytest.fixture
def with_data(tmp_path):
    """A run whose configuration names a file by its absolute path."""
    edges = tmp_path / LONG / "at home" / "edges.csv"
    edges.parent.mkdir(parents=True)
    edges.write_text("src,dst\n" + "".join(f"a{i},a{(i + k) % 20}\n" for i in range(20) for k in (1, 2, 3)))
    values = plain(
        {"network.edges": str(edges), "network.direction": "dst_follows_src", "rounds": 2, "ticks_per_round": 6}
    )
    return run(nest_keys(values), out=tmp_path / "runs", pictures=False)


def texts(file):
    """All that an archive holds, as one text for each file; names too."""
    with zipfile.ZipFile(file) as packed:
        return {name: f"{name}\n{packed.read(name).decode('utf-8', 'replace')}" for name in packed.namelist()}


def holding(file, needle):
    return [name for name, text in texts(file).items() if needle in text]


def test_a_run_by_rule_is_repeated_elsewhere_from_its_archive_with_its_own_data(with_data, tmp_path):
    packed = archive(with_data)
    assert packed.file == with_data.run_dir.with_name(f"{with_data.run_dir.name}.zip")
    assert packed.left_out == ()
    elsewhere = tmp_path / "elsewhere" / "unpacked"
    checked = check_archive(packed.file, unpack_to=elsewhere)
    assert (checked.faults, checked.kind, checked.files) == ((), "run", packed.files)
    (tmp_path / LONG / "at home" / "edges.csv").unlink()
    again = replay(elsewhere)  # without trust: all that it names lies in its folder
    assert again.equal
    assert set(again.rows) >= {"rounds", "posts", "transitions"}
    assert check_archive(elsewhere).faults == ()  # the replay left nothing behind


def test_the_same_run_has_the_same_bytes_whenever_it_is_packed(with_data, tmp_path):
    first, second = (archive(with_data, out=tmp_path / name).file for name in ("first.zip", "second.zip"))
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as packed:
        entries = packed.infolist()
    assert [one.filename for one in entries] == sorted(one.filename for one in entries)
    assert {one.date_time for one in entries} == {(1980, 1, 1, 0, 0, 0)}


def test_neither_paths_of_the_machine_nor_keys_are_in_an_archive(with_data, tmp_path):
    manifest = with_data.run_dir / "manifest.json"
    values = json.loads(manifest.read_text())
    values["notes"] = [
        f"no answer with {SECRET}",
        "read from /opt/shared/models/a.gguf",
        "Bearer sk-1234567890abcdefgh",
    ]
    manifest.write_text(json.dumps(values))
    packed = archive(with_data, data=False)  # it was changed, so it is nobody's, and what it names is not read
    for needle in (str(tmp_path), "at home", SECRET, "/opt/shared", "sk-1234567890abcdefgh"):
        assert holding(packed.file, needle) == [], needle
    notes = json.loads(texts(packed.file)["manifest.json"].partition("\n")[2])["notes"]
    assert notes == ["no answer with [removed]", "read from [removed]/a.gguf", "Bearer [removed]"]
    assert [line.split(":")[0] for line in packed.left_out] == ["network.edges"]
    assert "network.edges" in texts(packed.file)["README.md"]


def test_data_that_were_left_out_are_named_and_a_replay_says_what_is_missing(with_data, tmp_path):
    packed = archive(with_data, data=False)
    assert packed.left_out == (
        "network.edges: edges.csv: left out on request; a replay needs it as inputs/network-edges.csv",
    )
    checked = check_archive(packed.file, unpack_to=tmp_path / "there")
    assert (checked.faults, checked.left_out) == ((), packed.left_out)
    with pytest.raises(DataError, match=r"inputs/network-edges\.csv"):
        replay(tmp_path / "there")


def test_what_a_folder_from_elsewhere_names_outside_of_itself_is_not_packed(with_data, tmp_path):
    manifest = with_data.run_dir / "manifest.json"
    values = json.loads(manifest.read_text())
    (tmp_path / "private.csv").write_text("src,dst\nmine,yours\n")
    values["config"]["network"]["edges"] = str(tmp_path / "private.csv")
    manifest.write_text(json.dumps(values))
    packed = archive(with_data)
    assert holding(packed.file, "mine,yours") == []
    assert packed.left_out[0].startswith("network.edges: private.csv: the run was not made here")


def test_data_that_were_changed_after_the_run_are_not_packed_as_its_own(with_data, tmp_path):
    (tmp_path / LONG / "at home" / "edges.csv").write_text("src,dst\na,b\n")
    with pytest.raises(DataError, match="has changed: restore it"):
        archive(with_data)


@pytest.mark.slow
def test_a_run_with_a_ledger_is_repeated_elsewhere_without_its_llm_and_not_packed_with_a_key(tmp_path):
    with serving(always=llm) as server:
        values = SMALL | {"agents.band": 0.4, "reasoner.kind": "ollama", "reasoner.host": server.url}
        made = run(nest_keys(values), out="runs", pictures=False)
    assert made.summary["decisions"]["by_source"]["llm"] > 0
    packed = archive(made)
    assert holding(packed.file, server.url) == []
    there = tmp_path / "there"
    check_archive(packed.file, unpack_to=there)
    again = replay(there)
    assert (again.equal, again.calls) == (True, 0)
    assert again.answered == made.summary["decisions"]["open"]
    packed.file.unlink()
    with closing(sqlite3.connect(made.run_dir / "decisions.sqlite")) as db, db:
        db.execute("update answers set raw = raw || ?", (SECRET,))
    with pytest.raises(DataError, match=r"decisions\.sqlite: an answer contains a key or password"):
        archive(made)
    assert not packed.file.exists()


def test_a_ledger_that_was_left_open_is_packed_with_what_stands_in_its_log(with_data, tmp_path):
    file = with_data.run_dir / "decisions.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("pragma journal_mode = wal")
        db.execute("insert into asked values (0, 0, 0, 'k', 'rule', '', 0, 'marked', 0, 0)")
        db.execute("select * from asked").fetchall()
        kept = [one.name for one in with_data.run_dir.glob("*.sqlite-*")]
        check_archive(archive(with_data).file, unpack_to=tmp_path / "there")
        assert [one.name for one in with_data.run_dir.glob("*.sqlite-*")] == kept != []
    with closing(sqlite3.connect(tmp_path / "there" / "decisions.sqlite")) as db:
        assert db.execute("select count(*) from asked where run = 'marked'").fetchone() == (1,)


@pytest.mark.slow
def test_a_run_of_nations_is_repeated_elsewhere(tmp_path):
    made = run_economy({"rounds": 2, "economy": {"nations": ["Sweden"]}}, out="runs", pictures=False)
    packed = archive(made)
    check_archive(packed.file, unpack_to=tmp_path / "there")
    assert replay(tmp_path / "there").equal
    assert packed.left_out == ("odd.md: only platforms have an ODD protocol",)


@pytest.mark.slow
def test_a_study_is_packed_with_its_runs_measures_and_report(jobs, tmp_path):
    study = Study(
        question="Does it?",
        base=nest_keys(SMALL),
        arms={"chronological": {"feed.mode": "chronological"}, "random": {"feed.mode": "random"}},
        seeds=2,
        measures=["reshares", "gini_impressions"],
        name="two",
    )
    study.run(report=False)
    (study.study_dir / "report.md").write_text(f"# Does it? ({tmp_path}/base.yaml)\n")
    packed = archive(study.study_dir, license="CC-BY-4.0", author="A. Author")
    there = tmp_path / "there"
    assert check_archive(packed.file, unpack_to=there).faults == ()
    assert holding(packed.file, str(tmp_path)) == []
    measured = pd.read_parquet(there / "runs.parquet")
    assert measured.equals(pd.read_parquet(study.study_dir / "runs.parquet"))
    runs = sorted((there / "runs").iterdir())
    assert [folder.name for folder in runs] == sorted(measured["run"])
    assert replay(runs[0]).equal
    odd = (there / "odd.md").read_text()
    assert "This study asks: Does it?" in odd
    assert "feed.mode" in odd
    crate = json.loads((there / "ro-crate-metadata.json").read_text())
    root = next(one for one in crate["@graph"] if one["@id"] == "./")
    assert (root["license"], root["conformsTo"]["@id"]) == ("CC-BY-4.0", "https://w3id.org/ro/wfrun/process/0.5")
    actions = [one for one in crate["@graph"] if one["@type"] == "CreateAction"]
    assert [one["@id"] for one in actions] == ["#study", *(f"#run-{folder.name}" for folder in runs)]
    assert {"@id": f"runs/{runs[0].name}/config.yaml"} in actions[1]["object"]


@pytest.mark.slow
def test_runs_of_a_study_with_a_feed_of_ones_own_are_repeated_elsewhere_as_its_readme_says(jobs, tmp_path, monkeypatch):
    (tmp_path / "own_feed_of_a_test.py").write_text("from prism_mesa import F\n\nnewest = 0 - F.post.age\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = {"feed.mode": "own_feed_of_a_test:newest"}
    study = Study(
        question="Does it?", base=nest_keys(SMALL), arms={"own": own}, seeds=1, measures=["reshares"], name="own"
    )
    study.run(report=False)
    there = tmp_path / "there"
    check_archive(archive(study.study_dir).file, unpack_to=there)
    readme = (there / "README.md").read_text()
    assert "`PYTHONPATH=modules prism replay --trust runs/<run>` in this folder" in readme
    anew = re.search(r"`PYTHONPATH=modules prism study run (.*) --out (.*)` in this folder\.", readme)
    (tmp_path / "own_feed_of_a_test.py").unlink()
    monkeypatch.delitem(sys.modules, "own_feed_of_a_test")
    monkeypatch.syspath_prepend(there / "modules")
    [run_dir] = (there / "runs").iterdir()
    with pytest.raises(DataError, match="a module, which would be imported and run"):
        replay(run_dir)
    assert replay(run_dir, trust=True).equal
    assert Path(sys.modules["own_feed_of_a_test"].__file__).parent == there / "modules"
    monkeypatch.chdir(there)
    again = Study(anew[1], out=anew[2])
    again.run(report=False)
    assert len(jobs) == 2
    assert pd.read_parquet(again.study_dir / "runs.parquet").equals(pd.read_parquet("runs.parquet"))
    shutil.rmtree("modules/__pycache__", ignore_errors=True)
    assert check_archive(there).faults == ()


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["tables", "measures"])
def test_two_files_of_one_name_stay_two_and_no_folder_is_told(jobs, tmp_path, keep):
    outside = tmp_path / "My Data"
    arms = {}
    for name, step in (("a", 1), ("b", 3)):
        (outside / name).mkdir(parents=True)
        pairs = {(i, (i * step + k) % 20) for i in range(20) for k in (1, 2, 3)}
        file = outside / name / "edges.csv"
        file.write_text("src,dst\n" + "".join(f"a{i},a{k}\n" for i, k in sorted(pairs) if i != k))
        arms[name] = {"network.edges": str(file)}
    (tmp_path / "here").mkdir()
    base = nest_keys({key: value for key, value in SMALL.items() if key not in ("agents.n", "network.mean_degree")})
    study = Study(question="?", base=base, arms=arms, seeds=1, measures=["reshares"], name="two", keep=keep)
    study.run(report=False)
    packed, there = archive(study.study_dir), tmp_path / "there"
    check_archive(packed.file, unpack_to=there)
    assert holding(packed.file, "My Data") == []
    asked = yaml.safe_load((there / "study.yaml").read_text())["arms"]
    assert asked == {
        "a": {"network.edges": "inputs/network-edges.csv"},
        "b": {"network.edges": "inputs/network-2-edges.csv"},
    }
    if keep == "tables":
        assert packed.left_out == ()
        assert [replay(folder, trust=True).equal for folder in (there / "runs").iterdir()] == [True, True]
    else:
        assert [line.split(": a run needs it as ")[0] for line in packed.left_out] == [
            f"network.edges: edges.csv: is not packed; a run needs it as inputs/network-{number}edges.csv"
            for number in ("", "2-")
        ]
        again = pd.read_parquet(there / "facts.parquet")["again"]
        assert sorted(text.partition("network.edges=")[2].split()[0].strip("'") for text in again) == [
            "inputs/network-2-edges.csv",
            "inputs/network-edges.csv",
        ]


def test_what_was_given_in_python_is_told_and_no_replay_is_promised(tmp_path):
    made = run(nest_keys(SMALL), out=tmp_path / "runs", pictures=False, chart=social_chart)
    packed = archive(made)
    assert packed.left_out[0].startswith("a chart, agents or a reasoner passed in Python")
    assert "prism replay ." not in texts(packed.file)["README.md"]


def test_a_word_of_a_configuration_that_had_to_go_is_told(with_data, tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "dst_follows_src")
    assert archive(with_data).left_out == (
        "network.direction: text like a path or a key was removed; a replay needs it",
    )


def test_what_is_no_run_and_no_study_or_has_no_end_is_refused_in_one_line(with_data, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty: is neither a run \(manifest\.json\) nor a study"):
        archive(tmp_path / "empty")
    (tmp_path / "mine.zip").write_text("not yours")
    with pytest.raises(DataError, match=r"mine\.zip: exists and is not an archive of PRISM"):
        archive(with_data, out=tmp_path / "mine.zip")
    with pytest.raises(DataError, match="is in the folder of a run"):
        archive(with_data, out=with_data.run_dir / "inside.zip")
    manifest = with_data.run_dir / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"status": "running"}))
    with pytest.raises(DataError, match="did not finish"):
        archive(with_data)
