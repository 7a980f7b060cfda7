"""Texts that say all the same have no topics that could be named."""

import pytest
from worlds import plain

from prism_mesa import measure
from prism_mesa.runs.social import run


def test_posts_about_nothing_that_could_be_named_have_no_topic(tmp_path):
    texts = tmp_path / "texts.csv"
    texts.write_text("text\n" + "\n".join(f"About the weather number {i}." for i in range(30)))
    done = run(plain({"agents.n": 30, "rounds": 2, "posts.file": str(texts)}), out=tmp_path)
    assert done.status == "done"
    posts = done.table("posts")
    assert len(posts)
    assert posts["topic"].isna().all()
    assert measure(done, "impressions")["impressions"] > 0


@pytest.mark.parametrize("position", ["any", "bridge"])
def test_posts_can_be_placed_where_nobody_has_an_interest_that_could_be_named(tmp_path, position):
    texts = tmp_path / "texts.csv"
    texts.write_text("text\n" + "\n".join(f"About the weather number {i}." for i in range(30)))
    seeded = {"count": 2, "size": "large", "position": position}
    done = run(plain({"agents.n": 30, "rounds": 3, "posts": {"file": str(texts), "seeded": seeded}}), out=tmp_path)
    assert [one["round"] for one in done.summary["seeded"]] == [0, 1]
    found = measure(done)
    assert found["seeded_followers"] > 0


@pytest.mark.slow
def test_one_text_makes_a_run(tmp_path):
    texts = tmp_path / "texts.csv"
    texts.write_text("text\nhello there\n")
    assert run(plain({"agents.n": 20, "rounds": 2, "posts.file": str(texts)}), out=tmp_path).status == "done"
