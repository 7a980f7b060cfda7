"""What the README of a study's archive says of making it again."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml
from worlds import plain

from prism_mesa.api.archives import archive, check_archive
from prism_mesa.api.studies import Study
from prism_mesa.params import nest_keys

pytestmark = pytest.mark.slow
SMALL = plain({"agents.n": 24, "agents.activity": 0.9, "network.mean_degree": 5, "rounds": 2, "ticks_per_round": 6})


@pytest.fixture
def study(jobs, tmp_path, monkeypatch):
    """A study with two runs, whose base is a file; it was run in a folder of its own, which is that one is in."""
    monkeypatch.chdir(tmp_path)
    Path("worlds").mkdir()
    Path("worlds/small.yaml").write_text(yaml.safe_dump(nest_keys(SMALL)))
    asked = {"question": "?", "base": "worlds/small.yaml", "seeds": 1, "measures": ["reshares"], "name": "small"}
    asked["arms"] = {"a": {"feed.mode": "random"}, "b": {"feed.mode": "chronological"}}
    Path("small.yaml").write_text(yaml.safe_dump(asked))
    made = Study("small.yaml")
    made.run(report=False)
    return made


def unpacked(study, there):
    assert check_archive(archive(study.study_dir).file, unpack_to=there).faults == ()
    return (there / "README.md").read_text()


def test_a_study_whose_base_is_a_file_is_made_anew_from_the_base_in_its_archive(study, tmp_path, monkeypatch):
    there = tmp_path / "elsewhere" / "there"
    readme = unpacked(study, there)
    assert "`prism study run ../again.yaml --out ../again` in this folder, where `../again.yaml` is" in readme
    monkeypatch.chdir(there)
    asked = yaml.safe_load(Path("study.yaml").read_text()) | {"base": "base.yaml"}
    Path("../again.yaml").write_text(yaml.safe_dump(asked))
    again = Study("../again.yaml", out="../again")
    again.run(report=False)
    assert pd.read_parquet(again.study_dir / "runs.parquet").equals(pd.read_parquet("runs.parquet"))
    assert check_archive(there).faults == ()


@pytest.mark.parametrize("keep", ["tables", "measures"])
def test_a_study_whose_base_names_a_file_is_made_anew_with_that_file(jobs, tmp_path, monkeypatch, keep):
    monkeypatch.chdir(tmp_path)
    Path("texts.csv").write_text("text\nA bridge opens\nA tram comes\n")
    base = {**nest_keys(SMALL), "posts": {"file": "texts.csv"}}
    asked = {"question": "?", "base": base, "seeds": 1, "measures": ["reshares"], "name": "own", "keep": keep}
    Path("own.yaml").write_text(yaml.safe_dump(asked | {"arms": {"a": {}, "b": {"feed.mode": "random"}}}))
    made = Study("own.yaml")
    made.run(report=False)
    there = tmp_path / "elsewhere" / "there"
    readme = unpacked(made, there)
    promise = "`prism study run study.yaml --out ../again` in this folder"
    assert f"{promise}{' after adding the files that are not included' if keep == 'measures' else ''}." in readme
    monkeypatch.chdir(there)
    packed = there / "inputs" / "posts-texts.csv"
    assert packed.is_file() == (keep == "tables")
    packed.parent.mkdir(exist_ok=True)
    packed.write_text((tmp_path / "texts.csv").read_text())
    again = Study("study.yaml", out="../again")
    again.run(report=False)
    assert pd.read_parquet(again.study_dir / "runs.parquet").equals(pd.read_parquet("runs.parquet"))


def test_of_runs_that_failed_half_way_no_replay_is_promised(study, tmp_path):
    first, second = sorted((study.study_dir / "runs").iterdir())
    told = {}
    for run_dir, name in ((first, "one"), (second, "both")):
        manifest = json.loads((run_dir / "manifest.json").read_text())
        manifest |= {"status": "failed", "summary": manifest["summary"] | {"rounds": 1}}
        (run_dir / "manifest.json").write_text(json.dumps(manifest))
        told[name] = unpacked(study, tmp_path / name)
    assert f"cannot be repeated: `{first.name}` (failed).\n\n" in told["one"]
    assert "`prism replay runs/<run>`" in told["one"]
    assert f"cannot be repeated: `{first.name}` (failed), `{second.name}` (failed).\n" in told["both"]
    assert "prism replay" not in told["both"]
