"""Two runs, or two sides of several seeds, compared."""

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from compared_sides import copied, nations, platform, with_cell, with_facts, without_row
from scipy import stats

from prism_mesa.api.comparison import compare
from prism_mesa.errors import ConfigError, DataError
from prism_mesa.runs.economy import run_economy
from prism_mesa.runs.run_files import read_table
from prism_mesa.studies.comparison.pairs import sides_by_settings
from prism_mesa.studies.comparison.values import measure_differences


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of two feeds with three seeds each: (feed, seed) -> folder."""
    out = tmp_path_factory.mktemp("runs")
    feeds = ("chronological", "random")
    return {(feed, seed): platform(out / feed, feed__mode=feed, seed=seed) for feed in feeds for seed in (1, 2, 3)}


@pytest.fixture
def base(runs, tmp_path):
    return shutil.copytree(runs["chronological", 1], tmp_path / "base")


def quick(one, other, **options):
    return compare(one, other, measures=["likes", "impressions"], **options)


def test_a_run_and_its_copy_are_equal(base):
    found = compare(base, copied(base, "other"))
    assert found.equal
    assert (found.first_divergence, found.reasons) == (None, None)
    assert found.settings.empty
    assert found.measures["equal"].all()
    assert len(found.measures) > 40
    assert (found.rounds["difference"] == 0).all()
    assert "nothing: equal in every table that both have" in str(found)
    assert "equal in every table" in repr(found)


def test_another_seed_differs_from_the_start_and_one_key_that_differs_is_named(runs):
    found = quick(runs["chronological", 1], runs["chronological", 2])
    assert (found.equal, found.settings.empty, found.first_divergence.round) == (False, True, 0)
    assert found.divergences[0].start.startswith("agent 0: ")
    assert "seeds differ (1 and 2)" in found.notes[0]
    found = quick(runs["chronological", 1], runs["random", 1])
    assert found.settings.to_dict("records") == [{"key": "feed.mode", "base": "chronological", "other": "random"}]
    assert (found.divergences[0].start, found.notes) == ("", ())
    assert found.first_divergence.table == "impressions"


def moment(row):
    return row["round"], row["tick"], row["agent"]


@pytest.mark.parametrize("place", [0, 57, -1])
def test_what_diverges_first_is_the_row_that_was_changed_or_is_gone(base, place):
    other, less = copied(base, "other"), copied(base, "less")
    row, gone = with_cell(other, "transitions", place, to_state="resting"), without_row(less, "transitions", place)
    first = quick(base, other, why=False).first_divergence
    assert (first.table, (first.round, first.tick, first.agent)) == ("transitions", moment(row))
    assert first.columns == ("to_state",)
    assert first.row_texts[1].startswith(f"{row['from_state']} -> resting, on '{row['trigger']}'")
    assert first.name == read_table(base, "agents")["name"][row["agent"]]
    first = quick(base, less, why=False).first_divergence
    assert (first.base, first.other, first.row_texts[1]) == (gone, None, "nothing")


def test_of_two_tables_the_earlier_row_counts(base):
    other = copied(base, "other")
    late = with_cell(other, "transitions", -1, to_state="resting")
    early = with_cell(other, "engagements", 0, action="reply")
    first = quick(base, other, why=False).first_divergence
    assert (early["round"], early["tick"]) < (late["round"], late["tick"])
    assert (first.table, first.agent, first.tick) == ("engagements", early["agent"], early["tick"])


def test_a_table_in_parts_is_read_across_them(base):
    other = copied(base, "other")
    row = with_cell(other, "transitions", -3, trigger="timeout")
    file = base / "transitions.parquet"
    whole = pq.read_table(file)
    file.unlink()
    file.mkdir()
    for place, start in enumerate(range(0, len(whole), 100)):
        pq.write_table(whole[start : start + 100], file / f"part-{place:05d}.parquet")
    first = quick(base, other, why=False).first_divergence
    assert (first.round, first.tick, first.agent, first.columns) == (*moment(row), ("trigger",))


def test_counters_of_whole_runs_diverge_at_no_time(base):
    other = copied(base, "other")
    likes = read_table(base, "posts")["likes"][3]
    with_cell(other, "posts", 3, likes=int(likes) + 1)
    found = quick(base, other)
    assert (found.first_divergence, found.equal) == (None, False)
    told = {one.table: one.difference for one in found.divergences[0].tables if one.equal is False}
    assert told == {"posts": f"row 3: likes {likes} | likes {likes + 1}"}


def test_why_tells_both_sides_of_an_agent(runs):
    found = quick(runs["chronological", 1], runs["random", 1])
    for told, side in (
        (found.reasons.base, found.first_divergence.base),
        (found.reasons.other, found.first_divergence.other),
    ):
        assert any(f"it reads post {side['post']} by " in line for line in told)


def test_why_is_not_told_of_a_run_that_does_not_do_what_it_recorded(base):
    other = copied(base, "other")
    with_cell(other, "transitions", 57, to_state="resting")
    told = quick(base, other).reasons
    assert "acts differently in round 0 than recorded" in told.other[0]
    assert "tick " in told.base[0]


def test_only_agents_that_both_recorded_are_compared(runs, tmp_path):
    few = platform(tmp_path, seed=1, records__transitions=0.5, records__impressions=0.5, feed__mode="chronological")
    found = quick(runs["chronological", 1], few)
    told = {one.table: one for one in found.divergences[0].tables}
    assert told["transitions"].equal
    recorded = int(read_table(few, "agents")["recorded_transitions"].sum())
    assert 0 < recorded < 40
    assert told["transitions"].note == f"has only {recorded} of 40 agents"


def test_a_pair_has_differences_and_no_interval(runs):
    left, right = runs["chronological", 1], runs["random", 1]
    found = quick(left, right, why=False)
    row = found.measures.set_index("measure").loc["likes"]
    totals = [read_table(run, "rounds")["likes"].sum() for run in (left, right)]
    assert (row["base"], row["other"], row["difference"]) == (*totals, totals[1] - totals[0])
    assert np.isnan([row["low"], row["high"], row["p"]]).all()
    assert found.as_json()["measures"]["likes"]["interval"] is None
    rounds = found.rounds[found.rounds["column"] == "likes"]
    tables = [read_table(run, "rounds")["likes"] for run in (left, right)]
    assert rounds["difference"].tolist() == (tables[1] - tables[0]).tolist()


def test_several_pairs_have_the_interval_of_the_paired_t_test(runs):
    folder, shuffled = runs["chronological", 1].parent, [runs["random", seed] for seed in (3, 1, 2)]
    found = quick(folder, shuffled, why=False)
    row = found.measures.set_index("measure").loc["impressions"]
    left, right = (
        [read_table(runs[feed, s], "rounds")["impressions"].sum() for s in (1, 2, 3)]
        for feed in ("chronological", "random")
    )
    expected = stats.ttest_rel(right, left)
    ends = expected.confidence_interval()
    assert row["n"] == 3
    assert [row["low"], row["high"], row["p"]] == pytest.approx([ends.low, ends.high, expected.pvalue])
    assert row["difference"] == pytest.approx(np.mean(right) - np.mean(left))


def test_runs_of_other_lengths_are_compared_as_far_as_both_go(runs, tmp_path):
    longer = platform(tmp_path, seed=1, rounds=5, feed__mode="chronological")
    found = compare(runs["chronological", 1], longer)
    assert found.rounds["round"].max() == 2
    assert (found.first_divergence, len(found.measures)) == (None, 0)
    assert "runs have 3 to 5 rounds: only the first 3 are compared, without measures" in found.notes


def test_a_run_that_was_broken_off_is_compared_as_far_as_it_came(base):
    other = with_facts(copied(base, "other"), status="running")
    facts = json.loads((other / "manifest.json").read_text("utf-8"))
    del facts["summary"]
    (other / "manifest.json").write_text(json.dumps(facts), "utf-8")
    file = other / "rounds.parquet"
    pq.write_table(pq.read_table(file)[:2], file)
    for table in ("agents", "cascades"):
        (other / f"{table}.parquet").unlink()
    found = compare(base, other)
    assert found.rounds["round"].max() == 1
    assert found.first_divergence is None
    assert "unfinished: other (running, 2 of 3)" in found.notes
    assert {one.table: one.difference for one in found.divergences[0].tables}["agents"] == "other has none"


def test_a_branch_says_where_it_parted_and_what_differs_before(base):
    other = with_facts(copied(base, "other"), branched_from={"run": str(base), "round": 2})
    with_cell(other, "transitions", 57, to_state="resting")
    found = quick(base, other, why=False)
    assert found.can_differ_from == 2
    assert found.branched["other"].run == "base"
    assert any("the runs branched in round 2, but differ before" in note for note in found.notes)


def test_nations_are_compared_by_quarter(tmp_path):
    left, right = nations(tmp_path, "taylor"), nations(tmp_path, "nothing")
    found = compare(left, right)
    assert (found.first_divergence.table, found.first_divergence.round, found.first_divergence.name) == (
        "decisions",
        0,
        "Canada",
    )
    assert found.reasons.other[0] == 'It wanted: "hold"'
    seen = [read_table(run, "indicators") for run in (left, right)]
    rates = [of.loc[of["nation"] == "Sweden", "policy_rate"].to_numpy() for of in seen]
    own = found.rounds[(found.rounds["nation"] == "Sweden") & (found.rounds["column"] == "policy_rate")]
    assert own["difference"].tolist() == pytest.approx((rates[1] - rates[0]).tolist())
    measures = found.measures.set_index("measure")["difference"]
    assert measures["policy_rate of Sweden"] == pytest.approx(rates[1].mean() - rates[0].mean())
    assert "loss" in measures


def test_sides_are_told_by_their_configurations(runs):
    mixed = [runs["random", 2], runs["chronological", 1], runs["random", 1], runs["chronological", 2]]
    assert sides_by_settings(mixed) == ([mixed[0], mixed[2]], [mixed[1], mixed[3]])


def test_what_cannot_be_compared_is_refused(runs, base, tmp_path):
    run, empty, damaged = runs["chronological", 1], copied(base, "empty"), copied(base, "damaged")
    (empty / "rounds.parquet").unlink()
    with_cell(damaged, "rounds", 1, round=10**9)
    broken = copied(base, "broken")
    (broken / "transitions.parquet").write_bytes(b"dear diary")
    for left, right, fault in (
        (run, run, "occurs twice"),
        (run, "nowhere", "nowhere: no run there"),
        ([run, runs["chronological", 2]], runs["random", 3], "no seed is on both sides"),
        ([run, base], runs["random", 1], r"seed 1: .* on one side"),
        (run, nations(tmp_path, "nothing"), r"is a run of a platform, .* of nations"),
        (run, empty, r"empty: no round to compare .*\(status done\)"),
        (run, damaged, "table 'rounds' is damaged: round 1,000,000,000"),
        (run, broken, r"transitions\.parquet cannot be read"),
    ):
        with pytest.raises(DataError, match=fault):
            compare(left, right, measures=["likes"])
    with pytest.raises(DataError, match="3 runs of 3 configurations"):
        sides_by_settings([run, runs["random", 1], with_facts(base, config={"rounds": 3})])
    with pytest.raises(ConfigError, match=r"no such measure.* Did you mean 'likes'"):
        compare(run, runs["random", 1], measures=["likess"], why=False)


def test_networks_that_move_are_compared_by_what_begins_and_ends_in_each_round(tmp_path, base):
    rates = {f"network__rates__{name}": rate for name, rate in {"follow": 0.2, "unfollow": 0.2, "mute": 0.02}.items()}
    live = {"network": {}, "network__mean_degree": 6, "network__dynamics": "live", **rates}
    one = platform(tmp_path / "one", **live)
    other = platform(tmp_path / "other", **live | {"network__rates__follow": 0.05})
    found = compare(one, other, measures=["new_follows", "unfollows"], why=False)
    table = {run: read_table(run, "follows", ["round", "event"]) for run in (one, other)}
    counts = found.rounds.set_index(["column", "round"])
    for column, event in {"new_follows": "follow", "unfollows": "unfollow", "mutes": "mute", "blocks": "block"}.items():
        for round_ in range(3):
            row = counts.loc[column, round_]
            expected = [((rows["round"] == round_) & (rows["event"] == event)).sum() for rows in table.values()]
            assert [row["base"], row["other"]] == expected
    measured = found.measures.set_index("measure")
    assert measured.loc["new_follows", "base"] > measured.loc["new_follows", "other"] > 0
    assert measured.loc["unfollows", "base"] == (table[one]["event"] == "unfollow").sum()
    with_fixed = compare(base, one, measures=["likes"], why=False)
    assert "new_follows" not in set(with_fixed.rounds["column"])


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
        assert (told["cascades"].equal, told["cascades"].difference) == (
            None,
            "is written for whole runs, and the runs have different rounds",
        )
        assert "stopped within a round, so measures are left out: broken" in found.notes


def test_input_files_and_code_that_differ_are_settings_that_do(base):
    other = with_facts(copied(base, "other"), code="c")
    facts = json.loads((base / "manifest.json").read_text("utf-8"))
    found = compare(base, other, measures="likes")
    assert found.settings.to_dict("records") == [
        {"key": "code of PRISM", "base": facts["code"], "other": "c"},
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
    few = platform(tmp_path, seed=1, records__transitions=0.5, feed__mode="chronological")
    for run in (base, few):
        (run / "agents.parquet").unlink()
    told = {one.table: one for one in compare(base, few, measures="likes").divergences[0].tables}
    assert (told["transitions"].equal, told["transitions"].divergence) == (None, None)
    assert told["transitions"].difference == "has only some agents, and the run does not say which"
    assert told["impressions"].equal


def test_runs_without_a_seed_are_no_pair_beside_others(base):
    sides = [[with_facts(copied(base, f"{side}{seed}"), seed=seed) for seed in (1, None)] for side in "ab"]
    found = compare(*sides, measures="likes")
    assert found.pairs.seeds == (1,)
    assert any("aNone, bNone" in note for note in found.notes)
    with pytest.raises(DataError, match="no seed is on both sides"):
        compare([sides[0][1], copied(base, "c")], sides[1][1])


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
    assert (first.table, first.round, first.name) == ("decisions", 0, "Canada")
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
