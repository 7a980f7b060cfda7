"""Whose rows are recorded: a sample drawn once, the same in all rounds and tables, and told wherever a run is told."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runs import TABLES
from worlds import Memory, plain
from worlds import small as small_model

from prism_mesa.cli.runs import announce_building
from prism_mesa.runs.config import make_config
from prism_mesa.runs.records import final_tables as last_tables
from prism_mesa.runs.records import folder as store
from prism_mesa.runs.replay import replay
from prism_mesa.runs.run_files import read_manifest, table_files
from prism_mesa.runs.social import run
from prism_mesa.social.params import RecordsParams
from prism_mesa.social.state.population import pack_move
from prism_mesa.social.state.sampling import SAMPLED, RecordedAgents
from prism_mesa.streams import Streams
from prism_mesa.view.summaries import run_lines

SMALL = plain({"agents": {"n": 60, "activity": 0.8}, "network": {"mean_degree": 6}, "rounds": 3, "ticks_per_round": 8})


def small(**records):
    return SMALL | {"records": records}


def whose(share, n, table="transitions", seed=3):
    mask = RecordedAgents(RecordsParams(**{table: share}), n, Streams(seed))[table]
    return set(np.flatnonzero(mask)) if mask is not None else set(range(n))


# -- who is drawn ------------------------------------------------------------------------------------


def test_up_to_100_000_agents_all_are_recorded_and_of_more_about_10_000():
    all_of_them = RecordedAgents(RecordsParams(), 100_000, Streams(1))
    assert [all_of_them[table] for table in SAMPLED] == [None, None, None]
    for n in (100_001, 1_000_000):
        told = RecordedAgents(RecordsParams(), n, Streams(1)).to_facts()
        assert told["engagements"] == {"share": 1.0, "agents": n}
        assert told["transitions"] == told["impressions"]
        assert told["transitions"]["share"] == pytest.approx(10_000 / n)
        assert told["transitions"]["agents"] == pytest.approx(10_000, abs=400)  # 4 standard deviations


@settings(max_examples=30, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 1000), st.integers(2, 300), st.integers(0, 300))
def test_smaller_samples_lie_within_larger_ones_and_more_agents_change_nobody(low, high, seed, n, more):
    low, high = min(low, high), max(low, high)
    assert whose(low, n, seed=seed) <= whose(high, n, "impressions", seed=seed)
    grown = RecordedAgents(RecordsParams(transitions=low), n, Streams(seed))
    grown.grow(n + more)
    mask = grown["transitions"]
    assert mask is None or set(np.flatnonzero(mask)) == whose(low, n + more, seed=seed)
    assert {i for i in whose(low, n + more, seed=seed) if i < n} == whose(low, n, seed=seed)


# -- what is recorded of them ------------------------------------------------------------------------


def test_a_sample_is_what_a_whole_record_says_of_these_agents(tmp_path):
    whole, part = (
        run(small(), out=tmp_path),
        run(small(transitions=0.3, impressions=0.3, engagements=0.5), out=tmp_path),
    )
    agents = whose(0.3, 60, seed=42)
    for table, share in (("transitions", 0.3), ("impressions", 0.3), ("engagements", 0.5)):
        rows, of_all = part.table(table), whole.table(table)
        expected = of_all[of_all["agent"].isin(whose(share, 60, seed=42))].reset_index(drop=True)
        assert 0 < len(rows) < len(of_all)
        pd.testing.assert_frame_equal(rows, expected)
    assert set(part.table("transitions")["agent"]) <= agents
    people, all_people = part.table("agents"), whole.table("agents")
    for table, share in (("transitions", 0.3), ("impressions", 0.3), ("engagements", 0.5)):
        stand_there = people.pop(f"recorded_{table}"), all_people.pop(f"recorded_{table}")
        assert set(people["agent"][stand_there[0]]) == set(whose(share, 60, seed=42))
        assert stand_there[1].all()
    pd.testing.assert_frame_equal(people, all_people)
    for table in set(TABLES) - set(SAMPLED) - {"agents"}:
        file = f"{table}.parquet"
        assert (part.run_dir / file).read_bytes() == (whole.run_dir / file).read_bytes()
    told = {name: value for name, value in part.summary.items() if name in ("activity", "cascades", "impressions")}
    assert told == {name: whole.summary[name] for name in told}


def test_impressions_agree_with_the_posts_and_with_the_transitions(tmp_path):
    result = run(small(), out=tmp_path)
    seen, posts, moves = (result.table(name) for name in ("impressions", "posts", "transitions"))
    assert seen.columns.tolist() == ["round", "tick", "agent", "post", "root"]
    assert set(map(str, seen.dtypes)) == {"int32"}
    assert len(seen) == result.summary["impressions"] == posts["impressions"].sum()
    assert seen["root"].value_counts().reindex(posts["post"], fill_value=0).tolist() == posts["impressions"].tolist()
    assert (posts["root"].to_numpy()[seen["post"]] == seen["root"]).all()
    in_order = seen.sort_values(["round", "tick", "agent"], kind="stable")
    assert in_order.index.tolist() == list(range(len(seen)))
    reading = moves[moves["trigger"] == "sees_post"][["round", "tick", "agent", "post"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(seen.drop(columns="root"), reading)


# -- where it is told --------------------------------------------------------------------------------


def test_the_manifest_and_the_summary_say_whose_rows_there_are(tmp_path):
    result = run(small(transitions=0.3, impressions=0.1), out=tmp_path)
    told = read_manifest(result.run_dir)["recorded"]
    assert told == result.summary["recorded"]
    assert told == {
        "transitions": {"share": 0.3, "agents": len(whose(0.3, 60, seed=42))},
        "impressions": {"share": 0.1, "agents": len(whose(0.1, 60, seed=42))},
        "engagements": {"share": 1.0, "agents": 60},
    }
    printed = dict(run_lines(result.summary))
    assert f"transitions of {told['transitions']['agents']} agents" in printed["recorded"]
    assert "engagements" not in printed["recorded"]
    assert printed["memory"].endswith(" MB at its peak")
    assert "recorded" not in dict(run_lines(run(small(), out=tmp_path).summary))


def test_only_a_big_world_is_announced_before_it_is_built(capsys):
    announce_building(make_config({"agents": {"n": 99_999}}))
    assert capsys.readouterr().err == ""
    announce_building(make_config({"agents": {"n": 1_000_000}}))
    assert capsys.readouterr().err == "building 1,000,000 agents ...\n"


# -- many rows, few at a time ------------------------------------------------------------------------


def test_the_last_tables_are_the_same_in_blocks(tmp_path, monkeypatch):
    whole = run(small(), out=tmp_path)
    monkeypatch.setattr(last_tables, "PART_ROWS", 7)
    parts = run(small(), out=tmp_path)
    for table in ("posts", "cascades", "agents"):
        assert (parts.run_dir / f"{table}.parquet" / "part-00002.parquet").is_file()
        one, other = (pd.read_parquet(result.run_dir / f"{table}.parquet") for result in (whole, parts))
        texts = one.select_dtypes("category").columns  # the order of categories is that of the blocks
        pd.testing.assert_frame_equal(
            one.astype(dict.fromkeys(texts, object)), other.astype(dict.fromkeys(texts, object))
        )


def test_the_streamed_tables_are_the_same_in_parts_and_are_repeated_as_such(tmp_path, monkeypatch):
    whole = run(small(), out=tmp_path)
    monkeypatch.setattr(store, "PART_ROWS", 100)
    parts = run(small(), out=tmp_path)
    for table in SAMPLED:
        pd.testing.assert_frame_equal(parts.table(table), whole.table(table))
        lengths = [len(pd.read_parquet(f)) for f in table_files(parts.run_dir / f"{table}.parquet")]
        assert set(lengths[:-1]) <= {100}
        assert sum(lengths) == len(whole.table(table))
    assert replay(parts.run_dir).equal


def test_moves_that_come_in_any_order_are_written_by_tick_and_agent():
    model = small_model(agents_n=5, network_mean_degree=4)
    chunks = [([2, 2], [4, 1]), ([1, 1], [3, 0]), ([2], [1])]
    post = iter(range(10))
    for tick, agent in chunks:
        columns = np.array(tick), np.array(agent), np.full(len(tick), pack_move(0, 1, 0), np.uint16)
        posts = np.array([next(post) for _ in tick])
        model.events.moves.append((*columns, posts, np.zeros(len(tick), np.bool_)))
    model.recorder = Memory()
    from prism_mesa.social.round.collect import record_moves

    record_moves(model.platform)
    rows = [(r["tick"], r["agent"], r["post"]) for r in model.recorder.tables["transitions"]]
    assert rows == [(1, 0, 3), (1, 3, 2), (2, 1, 1), (2, 1, 4), (2, 4, 0)]  # what one agent did stays in its order
