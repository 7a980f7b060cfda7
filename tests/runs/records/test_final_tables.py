"""The tables that a run ends with, as they are read with one line of pandas."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from worlds import plain

from prism_mesa.runs.archive import RecordedPosts
from prism_mesa.runs.social import run

CONFIG = plain(
    {"agents": {"n": 80, "activity": 0.9}, "network": {"mean_degree": 10}, "rounds": 4, "ticks_per_round": 12}
)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return run(CONFIG, out=tmp_path_factory.mktemp("runs"))


def test_a_parent_is_a_whole_number_and_none_is_minus_1(result):
    posts = pd.read_parquet(result.run_dir / "posts.parquet")
    assert posts["parent"].dtype == posts["root"].dtype == np.int32
    assert posts["root"].min() >= 0
    assert set(posts["kind"]) == {"post", "reply", "reshare"}
    own = posts["kind"] == "post"
    assert (posts.loc[own, "parent"] == -1).all()
    assert (posts.loc[~own, "parent"] >= 0).all()
    assert (posts.loc[~own, "parent"] < posts.loc[~own, "post"]).all()
    by_id = posts.set_index("post")
    assert (by_id.loc[posts.loc[~own, "parent"], "round"].to_numpy() < posts.loc[~own, "round"].to_numpy()).all()


def test_the_parents_of_a_run_in_which_none_was_a_blank_are_read_alike(result, tmp_path):
    table = pq.read_table(result.run_dir / "posts.parquet")
    parent = table["parent"].to_numpy()
    blank = table.set_column(table.column_names.index("parent"), "parent", pa.array(parent, mask=parent < 0))
    pq.write_table(blank, tmp_path / "posts.parquet")
    assert RecordedPosts(tmp_path).parent.tolist() == RecordedPosts(result.run_dir).parent.tolist() == parent.tolist()


def test_posts_have_the_topic_of_their_label_replies_and_reshares_that_of_what_they_answer_and_pass_on(tmp_path):
    rows = [f"{word} number {i},{word}" for i in range(5) for word in ("tea", "jazz", "rain")]
    (tmp_path / "p.csv").write_text("\n".join(["text,topic", *rows]), encoding="utf-8")
    values = {"posts.file": str(tmp_path / "p.csv"), "posts.label_weight": 1, "agents.post_rate": 0.4}
    posts = run(CONFIG | values, out=tmp_path).table("posts").set_index("post")
    own = posts[posts["kind"] == "post"]
    assert (own["topic"] == own["text"].str.split().str[0]).all()
    assert set(own["topic"]) == {"tea", "jazz", "rain"}
    others = posts[posts["kind"] != "post"]
    assert set(others["kind"]) == {"reply", "reshare"}
    assert (others["topic"].to_numpy() == posts.loc[others["parent"], "topic"].to_numpy()).all()
