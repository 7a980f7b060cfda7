"""Runs: what they leave, and what breaks."""

from importlib.metadata import version

import pandas as pd
import pytest
from small_runs import TABLES, small, table_bytes
from worlds import plain

from prism_mesa.analysis.survey.survey import survey
from prism_mesa.errors import ConfigError, DataError, PrismWarning, RunError
from prism_mesa.runs import lifecycle
from prism_mesa.runs.economy import run_economy
from prism_mesa.runs.run_files import read_manifest, read_table
from prism_mesa.runs.social import run


def only_folder(out):
    [folder] = out.iterdir()
    return folder


# -- what a run leaves -------------------------------------------------------------------------------


def test_a_run_leaves_its_manifest_eight_tables_and_its_ledger(tmp_path):
    result = run(small(seed=7), out=tmp_path / "made" / "for it")
    assert result.run_dir.parent == tmp_path / "made" / "for it"
    files = {file.name for file in result.run_dir.iterdir()}
    assert files == {"manifest.json", "decisions.sqlite", *(f"{table}.parquet" for table in TABLES)}
    manifest = read_manifest(result.run_dir)
    assert (manifest["status"], manifest["seed"], manifest["llm"]) == ("done", 7, None)
    assert manifest["decided_by"] == "rule-based reasoner"
    assert manifest["packages"]["mesa"] == version("mesa")
    assert {"git", "python", "machine", "notes"} <= set(manifest)
    assert manifest["started"] <= manifest["ended"]
    assert manifest["summary"] == result.summary


def test_the_manifest_holds_the_full_config_and_it_makes_the_same_run_again(tmp_path):
    first = run(small(), out=tmp_path)
    config = read_manifest(first.run_dir)["config"]
    assert config["agents"]["n"] == 40
    assert config["feed"]["x_algo"]["weight_reply"] == 27.0  # a default is written down too
    assert table_bytes(run(config, out=tmp_path).run_dir) == table_bytes(first.run_dir)


def test_the_tables_agree_with_each_other_and_with_the_summary(tmp_path):
    result = run(small(), out=tmp_path)
    tables = {name: result.table(name) for name in TABLES}
    rounds, ticks, posts = tables["rounds"], tables["ticks"], tables["posts"]
    counts = tables["engagements"]["action"].value_counts()
    said = result.summary["engagement"]
    assert rounds["round"].tolist() == [0, 1, 2]
    assert len(ticks) == 3 * 8
    assert (ticks.drop(columns=["round", "tick"]).sum(axis=1) == 40).all()
    assert len(tables["agents"]) == result.summary["agents"] == 40
    assert said["likes"] == counts["like"] == rounds["likes"].sum() == posts["likes"].sum()
    assert said["reshares"] == counts["reshare"] == (posts["kind"] == "reshare").sum()
    assert said["replies"] == counts["reply"] == (posts["kind"] == "reply").sum()
    assert said["posts"] == rounds["posts"].sum() == (posts["kind"] == "post").sum()
    assert tables["cascades"]["size"].sum() == len(posts)
    assert result.summary["decisions"]["open"] == rounds["open"].sum() == tables["transitions"]["open"].sum() > 0
    shares = ticks.drop(columns=["round", "tick"]).sum() / (3 * 8 * 40)
    assert result.summary["state_shares"] == pytest.approx(shares.to_dict())


def test_the_same_config_and_seed_make_the_same_bytes_and_another_seed_does_not(tmp_path):
    first, again = (table_bytes(run(small(seed=3), out=tmp_path).run_dir) for _ in range(2))
    other = table_bytes(run(small(seed=4), out=tmp_path).run_dir)
    assert first == again
    assert all(first[name] != other[name] for name in first)


def test_a_platform_on_which_nothing_happens_still_has_all_its_tables(tmp_path):
    result = run(small(agents={"n": 40, "activity": 0, "post_rate": 0}), out=tmp_path)
    lengths = {name: len(result.table(name)) for name in TABLES}
    assert lengths == {**dict.fromkeys(TABLES, 0), "rounds": 3, "ticks": 24, "agents": 40}
    assert "from_state" in result.table("transitions").columns
    assert result.summary["cascades"] == {"n": 0}


def test_a_run_says_what_memory_and_time_it_took(tmp_path):
    summary = run(small(), out=tmp_path).summary
    assert 50 < summary["peak_memory_mb"] < 100_000
    assert 0 < summary["records_cpu_s"] < summary["cpu_s"]


def test_what_does_not_fit_in_a_users_files_is_counted_and_said(tmp_path):
    graph, posts = tmp_path / "graph.csv", tmp_path / "posts.parquet"
    graph.write_text("src,dst\na,b\nb,c\na,b\nc,c\n,a\n")
    pd.DataFrame({"text": ["one", "two", "", "three"], "author": ["a", "b", "a", "nobody"]}).to_parquet(posts)
    given = plain({"network": {"edges": str(graph)}, "posts": {"file": str(posts)}, "rounds": 1})
    with pytest.warns(
        PrismWarning, match=r"^SocialModel: network.edges: 1 self-follow left out; .*: 1 row without"
    ) as said:
        result = run(given, out=tmp_path)
    assert [warning.filename for warning in said] == [__file__]
    notes = sorted(note for note in result.summary["notes"] if not note.startswith("nothing happened: "))
    assert sorted(str(said[0].message).removeprefix("SocialModel: ").split("; ")) == notes
    assert notes == [
        "network.edges: 1 repeated follow left out",
        "network.edges: 1 row without src or dst left out",
        "network.edges: 1 self-follow left out",
        "posts.file: 1 post whose author is not an agent left out",
        "posts.file: 1 row without text left out",
    ]
    assert (result.summary["agents"], result.summary["follows"]) == (3, 2)
    assert result.table("agents")["id"].tolist() == ["a", "b", "c"]


# -- what breaks -------------------------------------------------------------------------------------


def test_bad_input_makes_no_folder(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(ConfigError, match=r"config: agents.n: .* not -1"):
        run({"agents": {"n": -1}}, out=out)
    with pytest.raises(DataError, match=r"posts.file: nowhere.csv: no such file"):
        run(small(posts={"file": "nowhere.csv"}), out=out)
    assert not out.exists()


def test_a_guard_that_raises_ends_a_strict_run_as_failed_with_what_was_recorded(tmp_path):
    chart = {"chart": "own_charts:breaking", "strict": True}
    with pytest.raises(RunError, match=r"round 1: LookupError: .*no opinion about round 1.*kept there"):
        run(small(statechart=chart), out=tmp_path)
    folder = only_folder(tmp_path)
    manifest = read_manifest(folder)
    assert manifest["status"] == "failed"
    assert manifest["error"].startswith("round 1: LookupError: ")
    assert manifest["summary"]["rounds"] == 1
    assert read_table(folder, "rounds")["round"].tolist() == [0]
    assert {f"{t}.parquet" for t in TABLES} <= {file.name for file in folder.iterdir()}


def test_a_guard_that_raises_is_counted_where_the_run_is_not_strict(tmp_path):
    with pytest.warns(PrismWarning, match=r"_breaks_from_round_1\(\)\] raised \d+ times"):
        result = run(small(statechart={"chart": "own_charts:breaking"}), out=tmp_path)
    [(fault, count)] = result.summary["guard_errors"].items()
    assert result.status == "done"
    assert "LookupError" in fault
    assert count > 0
    assert len(result.summary["guards_by_row"]) == 1


def test_an_interrupt_within_a_round_ends_the_run_as_interrupted(tmp_path):
    with pytest.raises(KeyboardInterrupt, match=r"round 1: interrupted \(what was recorded is kept there; 'prism"):
        run(small(statechart={"chart": "own_charts:interrupted"}), out=tmp_path)
    manifest = read_manifest(only_folder(tmp_path))
    assert (manifest["status"], manifest["error"]) == ("interrupted", "round 1: interrupted")
    assert len(read_table(only_folder(tmp_path), "rounds")) == 1


def test_an_interrupt_between_rounds_keeps_the_rounds_that_were_done(tmp_path):
    def impatient(done):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="interrupted"):
        run(small(), out=tmp_path, on_round=impatient)
    folder = only_folder(tmp_path)
    assert read_manifest(folder)["status"] == "interrupted"
    assert read_table(folder, "rounds")["round"].tolist() == [0, 1]
    assert read_table(folder, "posts")["likes"].sum() == (read_table(folder, "engagements")["action"] == "like").sum()


@pytest.mark.parametrize("also_in_the_way", [False, True])
def test_rows_that_cannot_be_written_do_not_stop_the_last_tables_and_each_loss_is_said(
    tmp_path, monkeypatch, also_in_the_way
):
    def in_the_way(done):
        (only_folder(tmp_path) / ".rounds.parquet").mkdir(exist_ok=True)
        if also_in_the_way:
            (only_folder(tmp_path) / "agents.parquet").mkdir(exist_ok=True)

    monkeypatch.chdir(tmp_path)  # short paths: a long message is cut
    rows = r"; its last rows could not be written \(IsADirectoryError: .*"
    tables = r"; its last tables could not be .*agents\.parquet'\) \(what was recorded is kept there; 'prism resume "
    with pytest.raises(RunError, match=rows + (tables if also_in_the_way else r"\.rounds\.parquet")) as broken:
        run(small(), out=".", on_round=in_the_way)
    folder = only_folder(tmp_path)
    assert read_manifest(folder)["status"] == "failed"
    assert (len(read_table(folder, "posts")), len(read_table(folder, "cascades"))) > (0, 0)
    if also_in_the_way:
        assert broken.value.result is None
    else:
        assert "; its last rows could not be written" in read_manifest(folder)["error"]
        assert len(read_table(folder, "agents")) == broken.value.result.summary["agents"]


def test_an_interrupt_before_the_manifest_is_known_leaves_no_folder(tmp_path, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    done = run(small(), out=tmp_path / "done")
    monkeypatch.setattr(lifecycle, "provenance", interrupted)
    asks = {"questions": [{"id": "drink", "ask": "What do you drink?", "options": ["tea", "coffee"]}]}
    for begin in (
        lambda: run(small(), out=tmp_path / "out"),
        lambda: run_economy({"rounds": 1}, out=tmp_path / "out"),
        lambda: survey(done, asks, out=tmp_path / "out", llm=lambda prompt: "A"),
    ):
        with pytest.raises(KeyboardInterrupt):
            begin()
        assert list(tmp_path.glob("out/*")) == []


def test_a_script_may_record_a_table_of_its_own(tmp_path):
    models = []
    result = run(
        small(rounds=2),
        out=tmp_path,
        prepare=models.append,
        on_round=lambda done: models[0].recorder.write("mine", {"round": [done - 1], "mood": ["good"]}),
    )
    assert pd.read_parquet(result.run_dir / "mine.parquet").to_dict("list") == {"round": [0, 1], "mood": ["good"] * 2}
