"""`prism study` and `prism sweep`, as a user types them; runs are made in the process of the test."""

import json
import re
import sys

import pandas as pd
import pytest
import yaml
from worlds import PLAIN_FILE, plain

from prism_mesa.studies.measures.catalogue import MEASURES

VALUES = {
    "question": "Does a ranked feed bring more reshares?",
    "base": plain({"agents.n": 30, "rounds": 3, "network.mean_degree": 5}),
    "arms": {"plain": {"feed.mode": "chronological"}, "ranked": {"feed.mode": "x_algo"}},
    "seeds": 3,
    "measures": ["reshares", "impressions"],
    "expect": ["impressions: ranked > plain", "reshares: plain = ranked within 5"],
    "keep": "measures",
}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("prism_mesa.view.plots.files.DPI", 20)  # pictures are looked at elsewhere


@pytest.fixture
def written(tmp_path):
    def write(**values):
        file = tmp_path / "mine.yaml"
        file.write_text(yaml.safe_dump({**VALUES, **values}, sort_keys=False))
        return file

    return write


@pytest.mark.usefixtures("coarse_pictures")
def test_a_study_prints_its_answer_and_leaves_its_report(prism, jobs, written, tmp_path):
    code, out, err = prism("study", "run", written(), "--json")
    assert code == 0, err
    told = json.loads(out)
    folder = tmp_path / "results" / "mine"
    assert told["study_dir"] == "results/mine"
    assert told["status"] == "done"
    assert told["runs"] == {"done": 6, "failed": 0, "missing": 0}
    assert [one["text"] for one in told["expectations"]] == VALUES["expect"]
    assert {one["verdict"] for one in told["expectations"]} <= {"holds", "fails", "open"}
    runs = pd.read_parquet(folder / "runs.parquet")
    by_arm = runs.pivot(index="seed", columns="arm", values="impressions")
    assert told["expectations"][0]["difference"] == pytest.approx((by_arm["ranked"] - by_arm["plain"]).mean())
    assert told["expectations"][0]["means"] == pytest.approx([by_arm["ranked"].mean(), by_arm["plain"].mean()])
    low, high = told["expectations"][0]["interval"]
    assert low <= told["expectations"][0]["difference"] <= high
    assert VALUES["question"] in (folder / "report.html").read_text()
    assert (folder / "report.md").is_file()
    code, out, _ = prism("study", "run", written(), "--no-report")
    assert (code, len(jobs)) == (0, 6)
    assert "6 done" in out


def test_a_plan_runs_two_seeds_and_tells_what_all_will_take(prism, jobs, written):
    code, out, err = prism("study", "plan", written(seeds=30), "--json")
    assert code == 0, err
    told = json.loads(out)
    assert (told["runs"], told["pilot"], len(jobs)) == (60, 4, 4)
    assert told["cpu_hours"] > 0
    assert told["calls"] == 0
    assert {row["measure"] for row in told["widths"]} == set(VALUES["measures"])
    code, out, _ = prism("study", "plan", written(seeds=30))
    assert code == 0
    assert "60 runs" in out
    prism("study", "run", written(seeds=3), "--no-report")
    assert len(jobs) == 6


def test_the_status_of_a_study_runs_nothing(prism, jobs, written, tmp_path):
    code, out, _ = prism("study", "status", written(), "--json")
    told = json.loads(out)
    assert (code, told["planned"], told["missing"], told["status"]) == (0, 6, 6, "incomplete")
    assert not (tmp_path / "results").exists()
    prism("study", "run", written(), "--no-report")
    code, out, _ = prism("study", "status", written(seeds=4))
    assert code == 0
    assert "6 done, 0 failed, 2 missing" in out
    assert len(jobs) == 6


def test_every_measure_is_listed_with_what_it_is_under_what_it_is_about(prism):
    code, out, err = prism("study", "measures")
    lines = out.splitlines()
    listed = dict(re.split(r" {2,}", line.strip(), maxsplit=1) for line in lines if line.startswith("  "))
    assert (code, err) == (0, "")
    assert {name for name in listed if "@" not in name} == set(MEASURES)
    assert listed["cascade_mean"] == "mean size of cascades (1 + reshares)"
    assert listed["opinion_mean@NAME"].startswith("mean of `NAME`")
    assert lines[0] == "Engagement:"
    assert len({line.index(listed[line.split()[0]], 3) for line in lines if line.startswith("  ")}) == 1


def test_measures_as_json_have_their_range_and_are_wrapped_in_a_terminal_alone(prism, monkeypatch):
    told = json.loads(prism("study", "measures", "--json")[1])
    assert set(MEASURES) < set(told)
    keys = {"subject": "Inequality", "unit": "", "low": 0.0, "high": 1.0}
    assert {key: told["gini_impressions"][key] for key in keys} == keys
    assert told["impressions"]["high"] is None
    monkeypatch.setenv("COLUMNS", "70")
    longest = max(map(len, prism("study", "measures")[1].splitlines()))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert max(map(len, prism("study", "measures")[1].splitlines())) <= 70 < longest


def test_a_study_with_a_failed_run_ends_as_failed_and_names_it(prism, jobs, written, tmp_path):
    (tmp_path / "half.py").write_text(
        "def way(run):\n    if run.config.seed == 2:\n        raise ValueError('not this one')\n    return 1.0\n"
    )
    code, out, err = prism("study", "run", written(measures=["half:way"], expect=[]), "--json")
    told = json.loads(out)
    assert (code, told["status"], told["runs"]["failed"]) == (1, "failed", 2)
    assert {row["seed"] for row in told["failures"]} == {2}
    assert all("half:way" in row["reason"] and "not this one" in row["reason"] for row in told["failures"])
    assert "2 of 6 runs failed" in err
    code, _, err = prism("study", "report", written(measures=["half:way"], expect=[]))
    assert (code, err) == (0, "")


def test_a_measure_is_looked_for_beside_the_study_file_but_not_in_a_studys_folder(prism, jobs, tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "beside_it.py").write_text("def one(run):\n    return 1.0\n")
    (folder / "mine.yaml").write_text(yaml.safe_dump({**VALUES, "measures": ["beside_it:one"], "expect": []}))
    assert prism("study", "run", folder / "mine.yaml", "--no-report")[0] == 0
    made = tmp_path / "results" / "mine"
    (made / "inside_it.py").write_text("raise SystemExit('this is data')\n")
    (made / "study.yaml").write_text(yaml.safe_dump({**VALUES, "measures": ["inside_it:one"], "expect": []}))
    code, _, err = prism("study", "run", made / "study.yaml", "--no-report")
    assert code == 2
    assert "inside_it" in err
    assert "this is data" not in err


def test_a_sweep_is_a_study_without_arms(prism, jobs, tmp_path):
    given = (PLAIN_FILE, "agents.n=30", "rounds=3", "network.mean_degree=5", "reasoner.kind=rule")
    vary = ("--vary", "agents.band=0.02,0.1", "--vary", "feed.mode=random,chronological")
    code, out, err = prism("sweep", *given, *vary, "--seeds", 2, "--measure", "reshares", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["runs"]["done"] == len(jobs) == 8
    runs = pd.read_parquet(tmp_path / told["study_dir"] / "runs.parquet")
    assert set(runs["feed.mode"]) == {"random", "chronological"}
    assert set(runs["agents.band"]) == {0.02, 0.1}
    assert set(runs["arm"]) == {"all"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"expect": ["reshares: plain > rankt"]}, "rankt"),
        ({"expect": ["resharse: plain > ranked"]}, "resharse"),
        ({"expect": ["reshares plain ranked"]}, "expect"),
        ({"measures": ["nowhere:at_all"]}, "nowhere"),
        ({"arms": {"plain": {"feed.mode": "chronologic"}}}, "arms.plain: feed.mode"),
        ({"mesures": ["likes"]}, "mesures: no such key"),
    ],
)
def test_a_study_that_cannot_run_is_said_in_one_line_before_anything_runs(prism, jobs, written, tmp_path, values, said):
    code, out, err = prism("study", "run", written(**values))
    assert (code, out, jobs) == (2, "", [])
    assert "mine.yaml" in err
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "results").exists()
