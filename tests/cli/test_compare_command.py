"""`prism compare`: what it prints, what it keeps, and how it takes its runs."""

import json
from pathlib import Path

import pytest
from PIL import Image
from worlds import plain

from prism_mesa.cli.analysis import split_sides
from prism_mesa.params import nest_keys
from prism_mesa.runs.social import run
from prism_mesa.view.plots import files


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two runs that differ in their feed."""
    world = {"agents.n": 30, "network.mean_degree": 5, "rounds": 2, "ticks_per_round": 6}
    out = tmp_path_factory.mktemp("two")
    feeds = ("chronological", "random")
    return [str(run(nest_keys(plain(world | {"feed.mode": feed, "name": feed})), out=out).run_dir) for feed in feeds]


@pytest.mark.slow
@pytest.mark.usefixtures("coarse_pictures")
def test_two_runs_are_compared_in_words_and_kept(prism, two):
    code, out, _ = prism("compare", *two, "--measure", "impressions", "--out", "kept")
    assert code == 0
    lines = out.splitlines()
    assert "settings    feed.mode: chronological | random" in lines
    assert any(line.startswith("diverged    round ") for line in lines)
    assert "one pair: no intervals" in lines[-2]
    folder = Path("kept") / f"compare-{Path(two[0]).name}-{Path(two[1]).name}"
    assert lines[-1].startswith(f"kept: {folder} ")
    assert sorted(file.name for file in folder.iterdir()) == [
        "comparison.json",
        "report.md",
        "rounds.pdf",
        "rounds.png",
    ]
    page = (folder / "report.md").read_text("utf-8")
    assert "# feed.mode=chronological and feed.mode=random" in page
    assert "](rounds.png)" in page
    with Image.open(folder / "rounds.png") as picture:
        assert picture.width == int(17 / 2.54 * files.DPI)
    assert (folder / "rounds.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
def test_json_has_differences_and_what_diverged_first(prism, two):
    code, out, _ = prism("compare", *two, "--json", "--no-why")
    found = json.loads(out)
    assert code == 0
    assert found["settings"] == {"feed.mode": {"base": "chronological", "other": "random"}}
    assert {"difference", "interval", "base", "other", "n"} <= set(found["measures"]["impressions"])
    assert {"round", "tick", "agent", "table", "why"} <= set(found["first_divergence"])
    assert len(found["rounds"]["likes"]["difference"]) == found["n_rounds"]
    kept = Path(found["folder"])
    (kept / "report.md").write_text("old")
    assert prism("compare", *two, "--no-why")[0] == 0  # over what is there
    assert "# feed.mode=chronological and feed.mode=random" in (kept / "report.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "sides"),
    [
        (["a", "b"], (["a"], ["b"])),
        (["a", "--with", "b"], (["a"], ["b"])),
        (["a", "b", "--with", "c", "d"], (["a", "b"], ["c", "d"])),
    ],
)
def test_runs_stand_on_either_side_of_with(arguments, sides):
    assert split_sides(arguments) == sides


def test_a_folder_that_holds_something_else_is_left_alone(prism, two):
    folder = Path("kept") / f"compare-{Path(two[0]).name}-{Path(two[1]).name}"
    folder.mkdir(parents=True)
    (folder / "diary.txt").write_text("dear diary")
    code, _, err = prism("compare", *two, "--no-why", "--out", "kept")
    assert (code, sorted(file.name for file in folder.iterdir())) == (2, ["diary.txt"])
    assert "exists and holds no comparison" in err
    code, _, err = prism("compare", *two, "--no-why", "--out", two[0])
    assert code == 2
    assert "lies in the folder of a run" in err
