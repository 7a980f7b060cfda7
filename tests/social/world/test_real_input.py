"""A run on the real follow graph and the real posts of ../shared/data, checked against the files themselves."""

from pathlib import Path

import pandas as pd
import pytest

from prism_mesa import load_config
from prism_mesa.runs.social import run

ROOT = Path(__file__).parents[3]
DATA = ROOT.parent / "shared" / "data"
GRAPH = DATA / "follow_graph" / "verizoncareers_edges.csv.gz"
POSTS = DATA / "posts_hn" / "posts.csv.gz"
ROUNDS = 3

pytestmark = pytest.mark.skipif(
    not (GRAPH.is_file() and POSTS.is_file()), reason=f"the real data are not there: {GRAPH} and {POSTS} are needed"
)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)  # the paths in configs/real.yaml are relative to the project
        yield run(load_config("configs/real.yaml", [f"rounds={ROUNDS}"]), out=tmp_path_factory.mktemp("real"))


@pytest.fixture(scope="module")
def stories():
    return pd.read_csv(POSTS)


@pytest.mark.slow
def test_every_account_of_the_graph_is_an_agent(real):
    edges = pd.read_csv(GRAPH)
    agents = real.table("agents")
    followers = edges.drop_duplicates().query("src != dst").groupby("src").size()
    assert real.status == "done"
    assert len(agents) == real.summary["agents"] == edges[["src", "dst"]].stack().nunique() == 9226
    assert real.summary["follows"] == followers.sum()
    given = agents.set_index("id")["followers"]
    assert given[given > 0].sort_index().to_dict() == {str(k): v for k, v in followers.items()}


def test_every_story_is_posted_once_by_the_author_of_its_rank(real, stories):
    posts = real.table("posts").query("kind == 'post'")
    counts = stories["author"].value_counts()
    kept = counts.iloc[:9226].sum()  # ties do not matter: tied authors have equally many
    assert len(posts) == kept == real.summary["engagement"]["posts"]
    most_followed = real.table("agents").sort_values("followers", ascending=False).iloc[0]
    assert (posts["author"] == most_followed["agent"]).sum() == counts.iloc[0]
    if kept < len(stories):
        assert f"posts.file: {len(stories) - kept} posts whose author is not an agent left out" in real.summary["notes"]


def test_stories_enter_over_the_rounds_in_their_real_order(real, stories):
    times = (
        pd.to_datetime(stories["created_at"], format="%m/%d/%Y %H:%M")
        .groupby(stories["text"].str.strip())
        .agg(["min", "max"])
    )
    posts = real.table("posts").query("kind == 'post'")
    sizes = posts["round"].value_counts()
    assert sorted(sizes.index) == list(range(ROUNDS))
    assert sizes.max() - sizes.min() <= 1
    by_round = posts.assign(
        first=posts["text"].astype(str).map(times["min"]), last=posts["text"].astype(str).map(times["max"])
    )
    first, last = by_round.groupby("round")["first"].max(), by_round.groupby("round")["last"].min()
    assert all(first[r] <= last[r + 1] for r in range(ROUNDS - 1))
