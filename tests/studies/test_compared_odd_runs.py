"""Runs compared that were broken off, are of other nations, hold other agents, or read other files."""

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from compared_sides import copied, nations, platform, with_facts

from prism_mesa.api.comparison import compare
from prism_mesa.errors import ConfigError, DataError
from prism_mesa.runs.economy import run_economy
from prism_mesa.runs.run_files import read_table
from prism_mesa.studies.comparison.values import measure_differences


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return platform(tmp_path_factory.mktemp("runs"), seed=1)


@pytest.fixture
def base(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "base")


def without_rounds(run_dir, n, posts):
    """Leave of tables the first `n` rounds, of posts those that were written in the first so many."""
    for table in TIMED:
        rows = pq.read_table(run_dir / f"{table}.parquet")
        held = rows["round"].to_numpy() < n if table != "posts" else rows["written"].to_numpy() < posts
        pq.write_table(rows.filter(held), run_dir / f"{table}.parquet")
    return run_dir


TIMED = ("rounds", "ticks", "impressions", "transitions", "engagements", "posts")


def test_what_was_posted_in_a_round_that_was_broken_off_is_no_difference(base):
    """The second round of both was the last that was done; one has posts of the third."""
    broken = without_rounds(with_facts(copied(base, "broken"), status="failed"), 2, posts=3)
    ended = without_rounds(copied(base, "ended"), 2, posts=2)
    posts = [read_table(run, "posts")["written"].max() for run in (broken, ended)]
    assert posts == [2, 1]
    for pair in ((broken, ended), (ended, broken)):
        found = compare(*pair)
        told = {one.table: one for one in found.divergences[0].tables}
        assert (found.first_divergence, told["posts"].equal, len(found.measures)) == (None, True, 0)
        assert (told["cascades"].equal, told["cascades"].told) == (
            None,
            "is of whole runs, and one has other rounds, or a part of one",
        )
        assert "broken off within a round, so that no whole runs are compared: broken" in found.notes


def test_input_files_and_code_that_differ_are_settings_that_do(base):
    other = with_facts(copied(base, "other"), code="c", inputs="i")
    facts = json.loads((base / "manifest.json").read_text("utf-8"))
    found = compare(base, other, measures="likes")
    assert found.settings.to_dict("records") == [
        {"key": "code of PRISM", "base": facts["code"], "other": "c"},
        {"key": "content of input files, or code of one's own", "base": facts["inputs"], "other": "i"},
    ]
    mine, theirs = (
        with_facts(copied(base, name), inputs=name, inputs_one_by_one={"posts.file": "p", "code of my_feeds": name})
        for name in ("mine", "theirs")
    )
    [told] = compare(mine, theirs, measures="likes").settings.to_dict("records")
    assert told == {"key": "code of my_feeds", "base": "mine", "other": "theirs"}
    elsewhere = with_facts(copied(base, "elsewhere"), inputs="e", inputs_one_by_one={"posts.file": "q"})
    [told] = compare(mine, elsewhere, measures="likes").settings.to_dict("records")
    assert told == {"key": "content of posts.file", "base": "p", "other": "q"}


def test_a_sample_is_not_compared_with_another_one_where_it_is_not_known_who_is_in_them(base, tmp_path):
    few = platform(tmp_path, seed=1, records__transitions=0.5)
    for run in (base, few):
        (run / "agents.parquet").unlink()
    told = {one.table: one for one in compare(base, few, measures="likes").divergences[0].tables}
    assert (told["transitions"].equal, told["transitions"].divergence) == (None, None)
    assert told["transitions"].told == "holds some agents only, and it is not known which"
    assert told["impressions"].equal


def test_runs_that_do_not_say_their_seeds_are_no_pair_beside_others(base):
    sides = []
    for side in "ab":
        named = [with_facts(copied(base, f"{side}{seed}"), seed=seed) for seed in (1, None)]
        sides.append(named)
    found = compare(*sides, measures="likes")
    assert found.pairs.seeds == (1,)
    assert "left out, their seeds being on one side only: a1, b1" not in found.notes
    assert any("aNone, bNone" in note for note in found.notes)
    with pytest.raises(DataError, match="no seed is on both sides"):
        compare([sides[0][1], copied(base, "c")], sides[1][1])


def test_a_measure_that_is_defined_on_one_side_only_is_said_to_be_left_out(base, monkeypatch):
    from prism_mesa.studies.comparison import comparison

    def measured(run, names, rounds, *, trust):
        gone = run.folder.name == "other"
        return {"likes": 3.0, "attention_gini": np.nan if gone else 0.5, "post_gini": np.nan}, {}

    monkeypatch.setattr(comparison, "run_measures", measured)
    found = compare(base, copied(base, "other"))
    assert found.measures["measure"].tolist() == ["likes"]
    assert found.notes == ("1 measure left out, as defined for one side only (attention_gini)",)


@pytest.fixture(scope="module")
def countries(tmp_path_factory):
    out = tmp_path_factory.mktemp("nations")
    two = {"rounds": 4, "economy": {"policy": "taylor", "nations": ["Australia", "United States"]}}
    return nations(out, "taylor"), run_economy(two, out=out).run_dir


def test_measures_of_nations_are_named_and_runs_without_a_common_nation_are_refused(countries, tmp_path):
    other = shutil.copytree(countries[0], tmp_path / "other")
    with pytest.raises(ConfigError, match=r"'inflation of Swede': .* Did you mean 'inflation of"):
        compare(countries[0], other, measures="inflation of Swede")
    found = compare(countries[0], other, measures=["inflation of Sweden"])
    assert found.measures["measure"].tolist() == ["inflation of Sweden"]
    with pytest.raises(DataError, match=r"no nation in common \(Australia, Canada, Sweden, United States\)$"):
        compare(*countries)


def test_what_diverges_first_is_of_a_nation_that_both_have_on_both_sides(countries, tmp_path):
    others = {"rounds": 4, "economy": {"policy": "nothing", "nations": ["Australia", "Canada"]}}
    other = run_economy(others, out=tmp_path).run_dir
    found = compare(countries[0], other)
    assert "nations that not all runs have are left out: Australia, Sweden" in found.notes
    assert set(found.rounds["nation"]) == {"Canada"}
    first = found.first_divergence
    assert (first.table, first.round, first.who) == ("decisions", 0, "Canada")
    assert [row["nation"] for row in (first.base, first.other)] == ["Canada", "Canada"]
    told = {one.table: one for one in found.divergences[0].tables}
    assert told["decisions"].note == "is compared for the nations that both have: Canada"
    assert not told["indicators"].equal


def test_an_interval_is_of_the_pairs_that_are_there_and_the_others_are_counted():
    base = np.array([[1.0], [2.0], [4.0], [np.nan]])
    other = np.array([[2.0], [4.0], [np.nan], [5.0]])
    [row] = measure_differences(["likes"], base, other).to_dict("records")
    assert (row["n"], row["missing"], row["difference"], row["base"], row["other"]) == (2, 2, 1.5, 1.5, 3.0)
    half = 12.706204736432095 * 0.5  # Student's t of one degree of freedom times the standard error
    assert (row["low"], row["high"]) == pytest.approx((1.5 - half, 1.5 + half))
    assert not row["equal"]
    assert pd.isna(measure_differences(["likes"], base[:1], other[:1])["low"]).all()
