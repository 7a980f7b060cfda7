"""The folder of a run: tables in one file or in parts, whole or not there, and errors that say what there is."""

import json

import numpy as np
import pandas as pd
import pytest

from prism_mesa.errors import DataError
from prism_mesa.runs.records import folder as store
from prism_mesa.runs.records.arrow_rows import category_column
from prism_mesa.runs.records.folder import RunFolder, make_folder
from prism_mesa.runs.records.reopened import ReopenedFolder, check_parts
from prism_mesa.runs.run_files import read_manifest, read_table
from prism_mesa.tables import Column, TableSchema

TABLES = {
    "rounds": "round:int",
    "agents": "agent:int",
    "transitions": "agent:int kind:category",
    "posts": "text:category parent:int likes:int",
    "engagements": "agent:int like:bool share:float64",
}


def schemas(**tables):
    """Return schemas of tables, each as its columns' names and types."""
    made = {name: [Column(*column.split(":"), "what it says") for column in of.split()] for name, of in tables.items()}
    return {name: TableSchema(name, "a row", tuple(columns)) for name, columns in made.items()}


def folder_for(out, name="trial", **tables):
    return RunFolder(out, name, schemas(**TABLES | tables))


@pytest.fixture
def folder(tmp_path):
    return folder_for(tmp_path / "out")


def names(path):
    return sorted(file.name for file in path.iterdir())


def test_a_table_is_readable_with_one_line_of_pandas_file_or_folder(folder):
    for round_ in range(51):
        folder.write("rounds", {"round": np.array([round_])})
        folder.round_done()
    folder.write("agents", {"agent": np.arange(3)})
    folder.close()
    assert names(folder.path / "rounds.parquet") == ["part-00000.parquet", "part-00001.parquet"]
    assert (folder.path / "agents.parquet").is_file()
    assert pd.read_parquet(folder.path / "rounds.parquet")["round"].tolist() == list(range(51))
    assert pd.read_parquet(folder.path / "agents.parquet")["agent"].tolist() == [0, 1, 2]


def test_parts_hold_equally_many_rows_however_they_came(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PART_ROWS", 10)
    made = []
    for cuts in ([25], [3, 9, 13], [1] * 25):
        folder, start = folder_for(tmp_path, "cut", transitions="agent:int open:bool kind:category"), 0
        for size in cuts:
            rows = np.arange(start, start + size)
            kind = pd.Categorical.from_codes(rows % 2, ["a", "b"])
            folder.write("transitions", {"agent": rows, "open": rows % 3 == 0, "kind": kind})
            start += size
        folder.close()
        parts = sorted((folder.path / "transitions.parquet").iterdir())
        assert [len(pd.read_parquet(part)) for part in parts] == [10, 10, 5]
        made.append([part.read_bytes() for part in parts])
    assert made[0] == made[1] == made[2]


def test_a_table_made_in_blocks_is_a_folder_and_blanks_and_texts_of_its_blocks_are_kept(folder):
    def blocks():
        for words in (["a", "b"], ["c", "a"]):
            place = np.array([1, -1, 0], np.int32)
            parent = pd.Series([None, 4, 5], dtype="Int32")
            yield {"text": category_column(place, words), "parent": parent, "likes": np.arange(3)}

    for _ in range(2):  # the second time in place of the first
        folder.replace_table("posts", blocks())
        assert names(folder.path / "posts.parquet") == ["part-00000.parquet", "part-00001.parquet"]
        assert names(folder.path) == ["posts.parquet"]
    table = read_table(folder.path, "posts")
    assert table["text"].astype(object).where(table["text"].notna(), None).tolist() == ["b", None, "a", "a", None, "c"]
    assert table["parent"].isna().tolist() == [True, False, False] * 2
    assert table["likes"].dtype == np.int32


def test_a_whole_table_replaces_what_it_held_and_closing_twice_adds_nothing(folder):
    folder.write("rounds", {"round": np.array([0])})
    for last in (1, 2):
        folder.replace_table("agents", {"agent": np.arange(last)})
        folder.close()
    assert len(read_table(folder.path, "agents")) == 2
    assert len(read_table(folder.path, "rounds")) == 1


def test_an_interrupt_while_a_part_is_begun_does_not_stop_the_table_from_being_closed(folder):
    folder.write("rounds", {"round": np.array([0])})
    (folder.path / "rounds.parquet").mkdir()  # as far as it got
    folder.close()
    assert read_table(folder.path, "rounds")["round"].tolist() == [0]


def test_an_out_that_is_a_file_cannot_hold_runs(tmp_path):
    file = tmp_path / "taken"
    file.write_text("mine")
    with pytest.raises(DataError, match=r"^--out: \S*taken: cannot make that folder: File exists$"):
        folder_for(file, "run")
    with pytest.raises(DataError, match=r"cannot make that folder: Not a directory"):
        make_folder(file / "below")
    with pytest.raises(DataError, match=r"^--out: \S+: cannot make a folder there: File name too long$"):
        folder_for(tmp_path, "☃" * 90)
    assert file.read_text() == "mine"


def test_the_manifest_is_replaced_in_one_piece(folder):
    folder.write_manifest({"status": "running"})
    folder.write_manifest({"status": "done", "path": folder.path, "name": "ünï"})
    assert names(folder.path) == ["manifest.json"]
    assert read_manifest(folder.path) == {"status": "done", "path": str(folder.path), "name": "ünï"}
    assert json.loads((folder.path / "manifest.json").read_text())["status"] == "done"


def test_reading_what_is_not_there_says_what_there_is(folder):
    with pytest.raises(
        DataError,
        match=r"'round' is not a table of a run \(rounds, .*notes, .*churn, opinions, .*\)\. Did you mean 'rounds'\?",
    ):
        read_table(folder.path, "round")
    with pytest.raises(DataError, match=r"no table 'posts' there \(it has: none\)"):
        read_table(folder.path, "posts")
    folder.replace_table("agents", {"agent": np.arange(3)})
    with pytest.raises(DataError, match=r"no table 'posts' there \(it has: agents\)"):
        read_table(folder.path, "posts")
    with pytest.raises(DataError, match=r"nowhere: no run there: there is no such folder"):
        read_manifest(folder.path / "nowhere")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"likes": [1], "round": [0]}, "table 'rounds' has the columns likes, round, not round, likes, share"),
        ({"round": [0], "likes": [1], "share": [1]}, "table 'rounds': column 'share' is int32, not float64"),
        ({"round": [0], "likes": ["many"], "share": [0.5]}, "table 'rounds': column 'likes' is string, not int"),
        ({"round": [0.0], "likes": [1], "share": [0.5]}, "table 'rounds': column 'round' is double, not int"),
    ],
)
def test_what_is_not_as_its_schema_says_is_not_written(tmp_path, columns, said):
    folder = folder_for(tmp_path, rounds="round:int likes:int share:float64")
    cells = {name: np.array(values) for name, values in columns.items()}
    for write in (folder.write, folder.replace_table):
        with pytest.raises(TypeError, match=f"^{said}$"):
            write("rounds", cells)


def test_rows_that_follow_good_ones_are_checked_too(tmp_path):
    folder = folder_for(tmp_path, rounds="round:int likes:int")
    folder.write("rounds", {"round": np.array([0]), "likes": np.array([5])})
    with pytest.raises(TypeError, match="table 'rounds': column 'likes' is double, not int"):
        folder.write("rounds", {"round": np.array([1]), "likes": np.array([5.5])})
    folder.write("rounds", {"round": np.array([2]), "likes": np.array([2**40])})
    folder.close()
    assert read_table(folder.path, "rounds").to_dict("list") == {"round": [0, 2], "likes": [5, 2**40]}


def test_a_folder_without_a_date_has_its_name_and_moves_aside_what_was_there(tmp_path):
    paths = []
    for attempt in range(3):
        folder = RunFolder(tmp_path, "abc[1]", schemas(**TABLES), has_date=False)
        (folder.path / "attempt").write_text(f"{attempt}")
        paths.append((folder.path.name, folder.notes))
    told = "an earlier attempt at this run is in abc[1].broken-"
    assert paths == [("abc[1]", []), ("abc[1]", [f"{told}1"]), ("abc[1]", [f"{told}2"])]
    kept = {file.parent.name: file.read_text() for file in tmp_path.glob("*/attempt")}
    assert kept == {"abc[1]": "2", "abc[1].broken-1": "0", "abc[1].broken-2": "1"}
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"--out: .*file: cannot make"):
        RunFolder(tmp_path / "file", "abc", schemas(**TABLES), has_date=False)


def test_a_table_without_rows_has_the_types_of_its_columns(tmp_path):
    folder = folder_for(tmp_path, rounds="round:int", decisions="action:text confidence:float64")
    folder.replace_table("decisions", {"action": np.array([], object), "confidence": []})
    folder.replace_table("rounds", {"round": np.array([], object)})
    assert read_table(folder.path, "decisions").to_dict("list") == {"action": [], "confidence": []}
    assert read_table(folder.path, "rounds")["round"].dtype == np.int32


def test_how_rows_came_in_leaves_no_trace_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PART_ROWS", 50_000)
    texts = pd.Categorical.from_codes(np.arange(120_000) % 3, ["a", "b", "c"])
    numbers = np.random.default_rng(1).integers(0, 9, 120_000).astype(np.int32)
    made = []
    for name, steps in (("once", 120_000), ("often", 7_000), ("seldom", 31_000)):
        folder = folder_for(tmp_path, name)
        for at in range(0, 120_000, steps):
            rows = slice(at, at + steps)
            folder.write("posts", {"text": texts[rows], "parent": numbers[rows], "likes": numbers[rows]})
            if name == "often":
                folder.snapshot()
        folder.close()
        made.append([part.read_bytes() for part in sorted((folder.path / "posts.parquet").iterdir())])
    assert made[0] == made[1] == made[2]


def test_a_folder_that_is_opened_again_is_written_further_from_where_it_stood(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PART_ROUNDS", 2)

    def write(folder, rounds):
        for round_ in rounds:
            folder.write("rounds", {"round": np.array([round_])})
            folder.write("agents", {"agent": np.array([round_])})
            folder.round_done()

    folder, whole = folder_for(tmp_path, "stopped"), folder_for(tmp_path, "whole")
    write(whole, range(8))
    whole.close()
    write(folder, range(5))
    kept = folder.snapshot()
    write(folder, range(5, 8))  # which is forgotten
    folder.replace_table("posts", {"text": pd.Categorical(["x"]), "parent": [1], "likes": [2]})
    folder.close()
    (folder.path / ".agents.parquet").write_text("half")
    check_parts(folder.path, kept)
    again = ReopenedFolder(folder.path, schemas(**TABLES), kept)
    again.remove_later_tables()
    assert names(again.path) == ["agents.parquet", "rounds.parquet"]
    assert names(again.path / "rounds.parquet") == ["part-00000.parquet", "part-00001.parquet"]
    write(again, range(5, 8))
    again.close()
    for table in ("rounds", "agents"):
        parts = [
            [part.read_bytes() for part in sorted((one.path / f"{table}.parquet").iterdir())] for one in (again, whole)
        ]
        assert parts[0] == parts[1]
