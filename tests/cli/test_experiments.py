"""`prism experiments` from the command line to its report, on a tiny experiment run in the test's process."""

import json
from pathlib import Path

import pytest
import yaml
from worlds import PLAIN_FILE

from prism_mesa.view.plots import files

STUDY = {
    "question": "Does a filter change likes?",
    "base": str(PLAIN_FILE),
    "set": {"agents.n": 40, "rounds": 4, "network.mean_degree": 6, "reasoner.kind": "rule"},
    "arms": {
        "nobody": {"interventions": []},
        "half": {"interventions": [{"name": "cut", "at": 1, "filter": {"posts": "post.likes >= 0"}, "share": 0.5}]},
    },
    "seeds": 2,
    "keep": "measures",
}
OUTCOMES = {
    "experiments": {
        "first": {
            "title": "A filter",
            "study": "study.yaml",
            "small": {"agents.n": 20},
            "arm": "half",
            "against": "nobody",
            "outcomes": {
                "likes": {
                    "what": "likes",
                    "role": "predicted",
                    "published": "lower",
                    "measure": "likes",
                    "compare": "percent",
                },
                "people": {"what": "agents", "role": "given", "published": 40, "measure": "agents"},
                "next": {"what": "posts", "role": "predicted", "measure": "posts", "compare": "difference"},
            },
        },
        "second": {
            "title": "The same study",
            "study": "study.yaml",
            "arm": "half",
            "outcomes": {"replies": {"what": "replies", "role": "extra", "measure": "replies"}},
        },
    },
    "figures": {
        "two": {"title": "Two outcomes", "x": ["likes", "posts"], "series": {"all": ["first.likes", "first.next"]}}
    },
}


@pytest.fixture(autouse=True)
def quick(monkeypatch, prism):
    monkeypatch.setattr(files, "DPI", 20)
    Path("study.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
    write(OUTCOMES)


def write(values):
    Path("outcomes.yaml").write_text(yaml.safe_dump(values, sort_keys=False))


def test_experiments_print_their_outcomes_and_leave_a_report(prism, jobs):
    code, out, _ = prism("experiments", "--file", "outcomes.yaml", "--json")
    rows = {row["outcome"]: row for row in json.loads(out)}
    assert code == 0
    assert list(rows) == ["likes", "people", "next", "replies"]
    assert rows["likes"]["simulated"] < 0
    assert (rows["people"]["simulated"], rows["people"]["verdict"]) == (40, "inside")
    assert (rows["next"]["published"], rows["next"]["verdict"]) == (None, "not published")
    folder = Path("results/experiments")
    assert "A filter" in (folder / "report.md").read_text()
    assert (folder / "figures" / "two.png").is_file()
    assert len(jobs) == 4  # both experiments share the runs of their study
    code, table, _ = prism("experiments", "first", "--file", "outcomes.yaml")
    assert (code, len(jobs)) == (0, 4)  # nothing is run twice
    assert "The same study" not in table


def test_a_failed_run_is_reported_with_its_reason(prism):
    Path("my_faults.py").write_text("def breaks(run):\n    raise ValueError('a broken measure')\n")
    broken = {"what": "posts", "role": "extra", "measure": "my_faults:breaks"}
    write({"experiments": {"first": {**OUTCOMES["experiments"]["first"], "outcomes": {"broken": broken}}}})
    code, _, err = prism("experiments", "--file", "outcomes.yaml")
    assert code != 0
    assert "study.yaml" in err
    assert "a broken measure" in err


def test_small_worlds_and_seeds_have_their_own_runs(prism, jobs):
    code, out, _ = prism("experiments", "first", "--file", "outcomes.yaml", "--scale", "small", "--seeds", 1, "--json")
    people = json.loads(out)[1]
    assert (code, people["simulated"], people["low"], len(jobs)) == (0, 20, None, 2)


def test_matched_outcomes_compare_the_runs_of_a_seed(prism):
    """The filter starts in round 1, so the same posts by agents appear in both runs."""
    Path("my_pairs.py").write_text(
        "def shared(run, against):\n"
        "    own, other = (r.table('posts').query(\"kind == 'post'\") for r in (run, against))\n"
        "    return len(own.merge(other, on=['author', 'written'])) / len(other)\n"
    )
    matched = {"what": "posts", "role": "extra", "measure": "my_pairs:shared", "compare": "matched"}
    first = {**OUTCOMES["experiments"]["first"], "outcomes": {"shared": matched}}
    write({"experiments": {"first": first}})
    code, _, err = prism("experiments", "--file", "outcomes.yaml")
    assert (code, "keep" in err) == (2, True)
    Path("study.yaml").write_text(yaml.safe_dump({**STUDY, "keep": "tables"}, sort_keys=False))
    code, out, _ = prism("experiments", "--file", "outcomes.yaml", "--json")
    assert (code, json.loads(out)[0]["simulated"]) == (0, 1)


@pytest.mark.parametrize(
    ("change", "names", "message"),
    [
        ({}, ["fist"], "first"),
        ({"arm": "hlaf"}, [], "hlaf"),
        ({"study": "none.yaml"}, [], "none.yaml"),
        ({"outcomes": {"likes": {"what": "likes", "role": "predicted", "measure": "lieks"}}}, [], "lieks"),
        ({"colour": "red"}, [], "colour"),
    ],
)
def test_a_wrong_name_or_key_is_one_clear_line(prism, change, names, message):
    write({"experiments": {"first": {**OUTCOMES["experiments"]["first"], **change}}})
    code, _, err = prism("experiments", *names, "--file", "outcomes.yaml")
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_figures_name_outcomes_of_the_file(prism):
    figure = {"title": "None", "x": ["a"], "series": {"all": ["first.lieks"]}}
    write({**OUTCOMES, "figures": {"none": figure}})
    code, _, err = prism("experiments", "--file", "outcomes.yaml")
    assert (code, "first.likes" in err) == (2, True)
