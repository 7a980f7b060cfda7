"""Columns of users' files: other names, near names, columns that nothing reads, and files that Python converts."""

import gzip
import re

import networkx as nx
import pandas as pd
import pytest
from user_files import written
from worlds import small

from prism_mesa.errors import DataError
from prism_mesa.social.params import FilesParams
from prism_mesa.social.world.corpus import load_corpus
from prism_mesa.social.world.follows import load_network


def follows(network, ids):
    """Return who follows whom, by id."""
    src, dst = network.edges()
    return {(ids[follower], ids[followed]) for followed, follower in zip(src.tolist(), dst.tolist(), strict=True)}


def named(**columns):
    return FilesParams(columns=columns)


# near names


@pytest.mark.parametrize(
    ("column", "near"),
    [
        ("author", "User ID"),
        ("author", "screen_name"),
        ("author", "autor"),
        ("author", "author.username"),
        ("topic", "topics"),
    ],
)
def test_an_optional_column_under_a_near_name_is_asked_after_as_one_that_is_needed(tmp_path, column, near):
    posts = written(tmp_path / "p.csv", f"text,{near}\nhello,1\n")
    with pytest.raises(DataError, match=rf"no column '{column}' .*Did you mean '{near}'\? .*files\.columns"):
        load_corpus(posts)
    read, unread = load_corpus(posts, named(**{column: near})), load_corpus(posts, named(**{column: None}))
    assert (read.authors == ["1"]) == (column == "author")
    assert not [note for note in read.notes if "unused" in note]
    assert [note for note in unread.notes if "unused" in note and near in note]


@pytest.mark.parametrize("near", ["Date"])
def test_a_near_name_of_times_is_asked_after_only_where_times_have_an_effect(tmp_path, near):
    with pytest.raises(DataError, match=rf"no column 'created_at' .*Did you mean '{near}'"):
        load_corpus(written(tmp_path / "p.csv", f"text,author,{near}\nhello,1,2020\n"))
    corpus = load_corpus(written(tmp_path / "q.csv", f"text,{near}\nhello,2020\n"))
    assert corpus.notes == (f"posts.file: unused columns: {near}",)


def test_a_needed_column_is_asked_after_by_its_other_names_too(tmp_path):
    with pytest.raises(DataError, match=r"no column 'text' .*Did you mean 'body'\? .*files\.columns=\{text: body\}"):
        load_corpus(written(tmp_path / "p.csv", "body,author\nhi,1\n"))
    with pytest.raises(DataError, match=r"no column 'agent' .*Did you mean 'user'\?"):
        small(agents_profiles=written(tmp_path / "a.csv", "user,activity\n0,1\n"))


# columns that nothing reads


@pytest.mark.parametrize("name", ["e.csv", "e.parquet"])
def test_columns_that_nothing_reads_are_named_once(tmp_path, name):
    table = pd.DataFrame({"src": [1, 2], "dst": [2, 1], "weight": [0.5, 1.0], "Type": ["Directed"] * 2})
    table.to_csv(tmp_path / name, index=False) if name == "e.csv" else table.to_parquet(tmp_path / name)
    notes = small(network_edges=str(tmp_path / name)).notes
    assert [note for note in notes if "weight" in note] == ["network.edges: unused columns: weight, Type"]


def test_times_without_effect_are_noted(tmp_path):
    def notes(columns):
        names, cells = ",".join(columns), ",".join(columns.values())
        return [
            note
            for note in load_corpus(written(tmp_path / "p.csv", f"{names}\n{cells}\n")).notes
            if "created_at" in note
        ]

    text, time, who = {"text": "hi"}, {"created_at": "2026-01-01"}, {"author": "1"}
    assert notes(text) == notes(text | who) == []
    assert len(notes(text | time)) == 1
    assert "no effect without a column author" in notes(text | time)[0]
    assert "order of posts of a round" in notes(text | who | time | {"round": "0"})[0]
    assert "spread evenly" in notes(text | who | time)[0]


# what a file calls its columns


def test_a_users_names_are_read_in_all_files(tmp_path):
    edges = written(tmp_path / "e.csv", "Source;Target;src\n1;2;x\n2;3;y\n")
    posts = written(tmp_path / "p.csv", "body,who,mood\nhello,1,0.5\n")
    profiles = written(tmp_path / "a.csv", "who,act,lean\n1,0.25,-1\n")
    model = small(
        network_edges=edges,
        posts_file=posts,
        agents_profiles=profiles,
        files_columns={
            "src": "Source",
            "dst": "Target",
            "text": "body",
            "author": "who",
            "agent": "who",
            "activity": "act",
        },
        attributes={
            "mood": {"of": "post", "range": [0, 1], "column": "mood"},
            "lean": {"of": "agent", "range": [-1, 1], "column": "lean"},
        },
        rounds=3,
    )
    assert follows(model.network, list(model.population.ids)) == {("2", "1"), ("3", "2")}
    assert [model.posts.texts[text] for text in model.schedule.text_id] == ["hello"]
    assert (model.agent(0).activity, model.agent(0).lean) == (0.25, -1)
    assert "network.edges: unused columns: src" in model.notes


def test_names_for_a_file_that_is_not_read_are_noted(tmp_path):
    edges = written(tmp_path / "e.csv", "a,dst\n1,2\n2,1\n")
    with pytest.warns(match=r"files\.columns: text: no effect: posts\.file is not set"):
        small(network_edges=edges, files_columns={"src": "a", "text": "b"})


# who follows whom


@pytest.mark.parametrize(
    ("columns", "first"),  # whether the first column is the follower
    [
        ("follower,followee", True),
        ("Followed,Follower", False),
        ("friend_id,user_id", False),
        ("user_id,follower_id", False),
    ],
)
def test_columns_that_say_who_follows_whom_are_read_by_their_meaning(tmp_path, columns, first):
    rows = "ann,bo\ncy,bo\n" if first else "bo,ann\nbo,cy\n"
    same, other = ("src_follows_dst", "dst_follows_src")[:: 1 if first else -1]  # src is the first column
    for direction in (None, same):
        read = load_network(
            written(tmp_path / "e.csv", f"{columns},Weight\n{rows}".replace("\n", ",1\n")[:-3] + "\n"), direction
        )
        assert follows(*read) == {("ann", "bo"), ("cy", "bo")}
    with pytest.raises(DataError, match=r"leave network\.direction out"):
        load_network(str(tmp_path / "e.csv"), other)


@pytest.mark.parametrize("columns", ["Source,Target", "FromNodeId,ToNodeId"])
def test_columns_that_do_not_say_it_are_read_as_the_key_says_and_refused_without_it(tmp_path, columns):
    file = written(tmp_path / "e.csv", f"{columns}\nann,bo\ncy,bo\n")
    with pytest.raises(DataError, match=r"network\.direction=src_follows_dst .* follows .*dst_follows_src.*both"):
        load_network(file)
    assert follows(*load_network(file, "src_follows_dst")) == {("ann", "bo"), ("cy", "bo")}
    assert follows(*load_network(file, "dst_follows_src")) == {("bo", "ann"), ("bo", "cy")}
    assert len(follows(*load_network(file, "both"))) == 4
    one, other = columns.split(",")
    assert follows(*load_network(file, files=named(src=one, dst=other))) == {("bo", "ann"), ("bo", "cy")}


@pytest.mark.parametrize("kind", ["Undirected", "undirected ", "Directed"])
def test_edges_that_gephi_calls_undirected_ask_for_both_directions(tmp_path, kind):
    file = written(tmp_path / "e.csv", f"Source,Target,Type\nann,bo,{kind}\ncy,bo,Undirected\n")
    undirected = kind != "Directed"
    with pytest.raises(DataError, match=r"set network\.direction=" + ("both" if undirected else "src")):
        load_network(file)
    for direction in ("src_follows_dst", "dst_follows_src", "both"):
        notes = load_network(file, direction)[0].notes
        assert any("Undirected" in note for note in notes) == (undirected and direction != "both")


# files and first lines


@pytest.mark.parametrize("name", ["e.txt", "e.TSV.GZ"])
def test_text_files_are_read_whatever_their_names_end_in(tmp_path, name):
    content = b"src\tdst\n1\t2\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("GZ") else content)
    assert follows(*load_network(str(tmp_path / name))) == {("2", "1")}
    pd.DataFrame({"src": [1], "dst": [2]}).to_parquet(tmp_path / "e.PARQUET")
    assert follows(*load_network(str(tmp_path / "e.PARQUET"))) == {("2", "1")}


@pytest.mark.parametrize("line", ["sep=;\n", '"sep=;"\r\n'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_line_that_excel_writes_above_the_header_is_skipped(tmp_path, line, encoding):
    files = FilesParams(encoding=encoding.removesuffix("-sig"))
    edges = written(tmp_path / "e.csv", f"{line}src;dst\n1;2\n".encode(encoding))
    assert follows(*load_network(edges, files=files)) == {("2", "1")}
    posts = written(tmp_path / "p.csv", f"{line}text;author\nhello, you;1\n".encode(encoding))
    assert load_corpus(posts, files).texts == ["hello, you"]


def converted(file, tmp_path, monkeypatch):
    """Run the Python of the refusal of a file; return the edges of what it writes, read both ways."""
    monkeypatch.chdir("/")
    with pytest.raises(
        DataError, match=r"Two lines of Python convert it: `import .*` and `.*network\.direction"
    ) as caught:
        load_network(file)
    code = re.search(r"convert it: `(.*)` and `(.*)`", str(caught.value))
    exec("\n".join(code.groups()), {})
    [made] = tmp_path.glob("*.csv")  # beside the file
    return follows(*load_network(str(made), "both"))


BOTH_WAYS = {("ann", "bo"), ("bo", "ann"), ("bo", "cy"), ("cy", "bo")}


@pytest.mark.parametrize("suffix", ["graphml.gz", "gexf", "gml", "net", "edgelist"])
@pytest.mark.parametrize("kind", [nx.DiGraph])
def test_the_two_lines_for_a_graph_file_convert_it(tmp_path, monkeypatch, suffix, kind):
    graph, file = kind([("ann", "bo"), ("bo", "cy")]), str(tmp_path / f"g.{suffix}")
    nx.set_edge_attributes(graph, 0.5, "weight")
    writers = {"net": nx.write_pajek, "edgelist": nx.write_edgelist, "gexf": nx.write_gexf, "gml": nx.write_gml}
    writers.get(suffix.removesuffix(".gz"), nx.write_graphml)(graph, file)
    assert converted(file, tmp_path, monkeypatch) == BOTH_WAYS


@pytest.mark.parametrize(
    "text",
    [
        "# Directed graph: x.txt\n# Nodes: 3, Edges: 2\n# FromNodeId\tToNodeId\n1\t2\n2\t3\n",
        "1 2\n2 3\n",
        "1,2\n2,3\n",
        "1\t2\t1082040961\n2\t3\t1082155839\n",
        "% sym unweighted\n% 2 3 3\n1 2\n2 3\n",
    ],
)
@pytest.mark.parametrize("name", ["g.txt"])
def test_the_two_lines_convert_a_list_without_a_header(tmp_path, monkeypatch, text, name):
    file = written(tmp_path / name, text.encode())
    assert converted(file, tmp_path, monkeypatch) == {("1", "2"), ("2", "1"), ("2", "3"), ("3", "2")}
