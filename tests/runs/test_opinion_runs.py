"""Runs whose opinions move: their tables and picture, what is told of them, and that they repeat, go on and branch."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from killed_runs import all_bytes, images
from small_runs import small, table_bytes

from prism_mesa import open_run, replay
from prism_mesa.analysis.explain.report import report_lines
from prism_mesa.analysis.explain.why import why
from prism_mesa.api.runs import branch, resume, run
from prism_mesa.runs.config import make_config
from prism_mesa.social.user_objects import find_user_objects
from prism_mesa.studies.measures.catalogue import compute_measures
from prism_mesa.studies.measures.finished import finished_run
from prism_mesa.view.plots.drawing import draw_run
from prism_mesa.view.plots.states import opinions_figure
from prism_mesa.view.summaries import run_lines

QUIET = {"pictures": False}
MOVES = {"of": "leaning", "rule": "assimilation_repulsion", "rate": 0.2}
DECLARED = {"leaning": {"of": "agent", "range": [-1, 1]}}
ROUNDS = 6


def moving(**more):
    return small(**{"rounds": ROUNDS, "attributes": DECLARED, "opinions": MOVES, **more})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A whole run, and the folder of the same as it was killed after five rounds."""
    out, to = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("to")
    whole = run(moving(checkpoint_every=2), out=out, on_round=images(out, to, (5,)), **QUIET)
    return whole, to / "killed-5"


def test_tables_summary_and_measures_say_the_same(made):
    found = open_run(made[0])
    opinions, stances, agents = (found.table(name) for name in ("opinions", "stances", "agents"))
    assert opinions["round"].tolist() == [-1, *range(ROUNDS)]
    assert (stances.groupby("round")["agents"].sum() == len(agents)).all()
    summary = made[0].summary["opinions"]
    for when, row in (("before", 0), ("after", -1)):
        assert summary[when] == {name: opinions[name].iloc[row] for name in ("mean", "sd", "bimodality")}
    assert {name: summary[name] for name in ("drawn_on", "pushed_away")} == {
        name: opinions[name].sum() for name in ("drawn_on", "pushed_away")
    }
    assert min(summary["drawn_on"], summary["pushed_away"]) > 10
    leaning = agents["leaning"]
    names = [f"opinion_{name}@leaning" for name in ("mean", "variance", "bimodality")]
    assert list(compute_measures(finished_run(made[0]), names).values()) == pytest.approx(
        [leaning.mean(), leaning.var(ddof=0), summary["after"]["bimodality"]]
    )
    [told] = [text for what, text in run_lines(made[0].summary) if what == "opinions"]
    assert told.startswith(f"leaning: mean {summary['before']['mean']:.3f}, sd ")
    assert told.endswith(f"; {summary['drawn_on']:,} posts attracted a reader, {summary['pushed_away']:,} repelled one")


def test_it_repeats_goes_on_and_branches_with_the_same_bytes(made, tmp_path):
    whole, killed = made
    assert replay(whole.run_dir).equal
    assert all_bytes(resume(killed, **QUIET).run_dir) == all_bytes(whole.run_dir)
    assert all_bytes(branch(whole, 3, out=tmp_path, **QUIET).run_dir) == all_bytes(whole.run_dir)


def test_it_has_the_same_bytes_with_any_number_of_threads(made, tmp_path):
    two = run(moving(threads=2), out=tmp_path, **QUIET)
    assert table_bytes(two.run_dir) == table_bytes(made[0].run_dir)


def test_why_tells_what_moved_an_agent(made):
    found = open_run(made[0])
    influences, agents = found.table("influences"), found.table("agents")
    agent = int(influences["agent"].value_counts().idxmax())
    own = influences[influences["agent"] == agent]
    text = "\n".join(report_lines(why(made[0].run_dir, str(agent))))
    now = agents["leaning"][agent]
    assert (
        f"Its leaning went from {own['before'].iloc[0]:.3f} to {now:.3f}, by {len(own)} posts; most of all by:" in text
    )
    farthest = own.loc[(own["after"] - own["before"]).abs().idxmax()]
    posts = found.table("posts")
    author = posts["author"][posts["root"][farthest["post"]]]
    line = next(line for line in text.split("\n") if f"{farthest['before']:.3f} -> {farthest['after']:.3f}" in line)
    assert line.startswith(f"  round {farthest['round']:.0f}: ")
    assert f'post {farthest["post"]:.0f} ("' in line
    assert line.endswith(f"(agent {author})")
    still = next(iter(set(agents["agent"]) - set(influences["agent"])))
    told = "\n".join(report_lines(why(made[0].run_dir, str(still))))
    assert f"Its leaning is {agents['leaning'][still]:.3f}, and no post has moved it." in told


def test_the_picture_shows_the_share_of_each_part_and_the_mean(made, tmp_path):
    found = open_run(made[0])
    opinions, stances = found.table("opinions"), found.table("stances")
    copy = Path(shutil.copytree(made[0].run_dir, tmp_path / "copy"))
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["config"]["interventions"] = [{"at": 2, "until": None, "set": {"opinions.rate": 0.0}}]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    figure = opinions_figure(copy)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    shares = axes.collections[0].get_array()
    assert shares.shape == (50, ROUNDS + 1)
    assert shares.sum(axis=0).tolist() == pytest.approx([1] * (ROUNDS + 1))
    last = stances[stances["round"] == ROUNDS - 1]["agents"]
    assert shares[:, -1].tolist() == pytest.approx((last / last.sum()).tolist())
    assert axes.lines[0].get_ydata().tolist() == opinions["mean"].tolist()
    assert (axes.get_ylim(), axes.get_ylabel()) == ((-1, 1), "leaning")
    assert [text.get_text() for text in axes.texts] == ["opinions.rate=0.0"]


def test_only_a_run_whose_opinions_move_has_tables_and_a_picture_of_them(made, tmp_path):
    other = run(small(rounds=1, attributes=DECLARED), out=tmp_path, **QUIET)
    assert not list(Path(other.run_dir).glob("opinions*"))
    assert not list(Path(other.run_dir).glob("stances*"))
    assert "opinions" not in other.summary
    folder = Path(made[0].run_dir)
    assert folder / "opinions.png" in draw_run(folder, skip_missing=True)
    assert (folder / "opinions.png").read_bytes().startswith(b"\x89PNG")
    assert "opinions.png" not in [file.name for file in draw_run(other.run_dir, skip_missing=True)]
    assert pd.read_parquet(folder / "stances.parquet").shape == (50 * (ROUNDS + 1), 3)


def test_a_rule_of_somebody_elses_is_named_before_it_is_imported():
    own = make_config({"attributes": DECLARED, "opinions": MOVES | {"rule": "theirs:rule"}})
    assert find_user_objects(own) == {"opinions.rule": "theirs:rule"}
    idle = make_config({"opinions.rule": "theirs:rule"})
    assert find_user_objects(idle) == {}
