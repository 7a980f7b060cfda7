"""Impressions of posts by round, where they are counted (`records.views`)."""

import pandas as pd
import pytest
from killed_runs import all_bytes, images
from small_runs import small, table_bytes

from prism_mesa import replay
from prism_mesa.api.runs import branch, resume, run
from prism_mesa.runs.run_files import has_table

QUIET = {"pictures": False}
ROUNDS = 6


def counting(views=1.0, **more):
    return small(**{"rounds": ROUNDS, "records": {"views": views}, **more})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A whole run in which half of the posts are drawn, and the folder of the same, killed after five rounds."""
    out, to = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("to")
    whole = run(counting(0.5, checkpoint_every=2), out=out, on_round=images(out, to, (5,)), **QUIET)
    return whole, to / "killed-5"


@pytest.mark.parametrize("more", [{}, {"scheduler": "mesa"}, {"threads": 2}, {"statechart.max_history_depth": 5}])
def test_of_all_posts_they_are_the_rows_of_impressions_counted(more, tmp_path):
    found = run(counting(**more), out=tmp_path, **QUIET)
    seen = found.table("impressions").groupby(["round", "root"]).size().rename("impressions").reset_index()
    pd.testing.assert_frame_equal(found.table("views"), seen, check_dtype=False)
    posts = found.table("posts")
    total = found.table("views").groupby("root")["impressions"].sum().reindex(posts.index, fill_value=0)
    assert total.tolist() == posts["impressions"].tolist()


def test_off_there_is_no_table_and_on_no_other_table_changes(made, tmp_path):
    off = run(small(rounds=ROUNDS, checkpoint_every=2), out=tmp_path, **QUIET)
    assert not has_table(off.run_dir, "views")
    on = table_bytes(made[0].run_dir)
    assert {name: data for name, data in on.items() if not name.startswith("views")} == table_bytes(off.run_dir)


def test_a_share_is_drawn_once_and_a_smaller_one_lies_within_a_larger(made, tmp_path):
    few, half, whole = (
        run(counting(0.2), out=tmp_path / "few", **QUIET).table("views"),
        made[0].table("views"),
        run(counting(), out=tmp_path, **QUIET).table("views"),
    )
    drawn = set(half["root"])
    assert 0.3 < len(drawn) / whole["root"].nunique() < 0.7
    assert set(few["root"]) < drawn
    pd.testing.assert_frame_equal(half, whole[whole["root"].isin(drawn)].reset_index(drop=True))


def test_it_repeats_goes_on_and_branches_with_the_same_bytes(made, tmp_path):
    whole, killed = made
    assert replay(whole.run_dir).equal
    assert all_bytes(resume(killed, **QUIET).run_dir) == all_bytes(whole.run_dir)
    assert all_bytes(branch(whole, 3, out=tmp_path, **QUIET).run_dir) == all_bytes(whole.run_dir)
