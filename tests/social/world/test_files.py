"""Users' files: which row is which, what an id is, and rows that repeat."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from user_files import written
from worlds import small

from prism_mesa.errors import DataError, PrismWarning
from prism_mesa.social.world.corpus import load_corpus
from prism_mesa.social.world.follows import load_network

EDGES = [("ann", "bo"), ("ann", "cy"), ("cy", "bo"), ("bo", "ann")]


def follows(network, ids):
    src, dst = network.edges()
    return {(ids[a], ids[b]) for a, b in zip(src.tolist(), dst.tolist(), strict=True)}


# -- the index of a pandas table is not its order ------------------------------------------------------


def indices(n):
    """Any index of a table of `n` rows: with repetitions, names, several levels, of numbers, texts or times."""
    levels = st.one_of(
        st.lists(st.integers(-2, 3), min_size=n, max_size=n),
        st.lists(st.sampled_from(["a", "b", "text"]), min_size=n, max_size=n),
        st.lists(st.sampled_from(pd.to_datetime(["2026-01-01", "2026-01-02"]).tolist()), min_size=n, max_size=n),
    )
    names = st.sampled_from([None, "row", "when", "index"])
    one = st.builds(lambda values, name: pd.Index(values, name=name), levels, names)
    pair = st.tuples(levels, levels, st.sampled_from([(None, None), ("row", None), ("row", "when")]))
    return st.one_of(one, pair.map(lambda p: pd.MultiIndex.from_arrays(p[:2], names=p[2])))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_edges_are_read_by_position_whatever_pandas_calls_their_rows(tmp_path_factory, data):
    table = pd.DataFrame(EDGES, columns=["src", "dst"])
    table.index = data.draw(indices(len(EDGES)))
    network, ids = load_network(written(tmp_path_factory.mktemp("edges") / "e.parquet", table))
    assert follows(network, ids) == set(EDGES)
    assert network.dropped == ()


# -- ids are what the file says ----------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["0001", "1.0", "1e3", "9" * 30, "NA"])
def test_an_id_in_csv_is_what_stands_there_alone_or_beside_others(tmp_path, odd):
    for name, text in (
        ("one", f"src,dst\n{odd},7\n"),
        ("more", f"src,dst\n7,8\n{odd},7\n"),
        ("text", f"src,dst\n{odd},x\n"),
    ):
        _, ids = load_network(written(tmp_path / f"{name}.csv", text))
        assert odd in ids
        assert len(ids) == len(set(text.replace("\n", ",").split(",")) - {"src", "dst", ""})
    assert load_corpus(written(tmp_path / "p.csv", f"text,author\nhi,{odd}\n")).authors == [odd]


agents = st.one_of(st.integers(-20, 20).map(str), st.sampled_from(["0001", "+1", "1.0", "x", "NA", "é"]))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(agents, agents), min_size=1, max_size=8).filter(lambda e: any(a != b for a, b in e)))
def test_the_same_id_in_two_files_is_the_same_agent(tmp_path_factory, edges):
    folder = tmp_path_factory.mktemp("ids")
    network, ids = load_network(written(folder / "e.csv", "src,dst\n" + "".join(f"{a},{b}\n" for a, b in edges)))
    _, parquet = load_network(written(folder / "e.parquet", pd.DataFrame(edges, columns=["src", "dst"], dtype=object)))
    assert list(ids) == list(parquet)
    assert set(ids) == {agent for edge in edges for agent in edge}
    assert follows(network, ids) == {(a, b) for a, b in edges if a != b}
    posts = written(folder / "p.csv", "text,author\n" + "".join(f"{i},{b}\n" for i, (_, b) in enumerate(edges)))
    rows = ids.rows_of(load_corpus(posts).authors).tolist()
    assert [ids[row] for row in rows] == [b for _, b in edges]


def test_whole_numbers_of_any_kind_are_the_agents_of_their_digits(tmp_path):
    edges = written(tmp_path / "e.csv", "src,dst\n1,2\n2,30\n")
    for author in (
        pa.array([1, 30]),
        pa.array([1.0, 30.0]),
        pa.array([1, 30], pa.uint64()),
        pa.array(["1", "30"]).dictionary_encode(),
        pa.array([b"1", b"30"]),
        pa.array([1, 30]).cast(pa.decimal128(22, 2)),
    ):
        pq.write_table(pa.table({"text": ["a", "b"], "author": author}), tmp_path / "p.parquet")
        assert load_corpus(str(tmp_path / "p.parquet")).authors == ["1", "30"]
        model = small(network_edges=edges, posts_file=str(tmp_path / "p.parquet"))
        assert not [note for note in model.notes if "author" in note]


def test_floats_that_no_longer_tell_ids_apart_are_refused(tmp_path):
    table = pd.DataFrame({"src": [1234567890123456789.0, None], "dst": [1234567890123456788.0, 5.0]})
    with pytest.raises(DataError, match=r"column 'src' holds ids as floats that are too large .*: write them as text$"):
        load_network(written(tmp_path / "e.parquet", table))


@pytest.mark.parametrize(
    ("edges", "author", "why"),
    [
        ("1,2\n", "0001", r"'0001' is not '1': write them alike in both files"),
        ("Ann,Bo\n", "ann", r"'ann' is not 'Ann': write them alike"),
        ("ann,bo\n", "cy", r"Authors are 'cy'; ids of the network are 'ann', 'bo'"),
        (
            None,
            "cy",
            r"ids of the network are '0', '1', '2', \.\.\.: without network\.edges ids are row numbers",
        ),
    ],
)
def test_authors_of_whom_none_is_an_agent_are_told_why(tmp_path, edges, author, why):
    posts = written(tmp_path / "p.csv", f"text,author\nhello,{author}\n")
    given_edges = {} if edges is None else {"network_edges": written(tmp_path / "e.csv", f"src,dst\n{edges}")}
    with pytest.raises(DataError, match=why):
        small(posts_file=posts, **given_edges)


def test_ids_that_may_not_have_been_meant_so_are_said(tmp_path):
    edges = written(tmp_path / "e.csv", "src,dst\n1,2\n01,2\n1.0,NA\n")
    with pytest.warns(
        PrismWarning, match="read as different agents; network.edges: 'NA' is read as the id of an agent"
    ):
        notes = "; ".join(small(network_edges=edges).notes)
    assert "2 ids spelt almost like another ('01' and '1')" in notes
    assert "network.edges: 'NA' is read as the id of an agent: leave the cell empty if it means none" in notes
    assert not [
        note for note in small(network_edges=written(tmp_path / "f.csv", "src,dst\n1,2\n")).notes if "id" in note
    ]


# -- rows that repeat ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kept", "repeats"),
    [
        ("text,author,round\nhi,a,0\nhi,a,0\nhi,a,1\nhi,b,0\n hi ,a,0\n", 3, 2),
        ("text,author,created_at\nhi,a,2026-01-01\nhi,a,2026-01-01T00:00:00Z\nhi,a,2026-01-02\n", 2, 1),
        ("text\nhi\nyou\nhi\n", 2, 1),
        ("text,topic,likes\nhi,art,1\nhi,music,2\nhi,art,3\n", 2, 1),
    ],
)
def test_rows_equal_in_all_that_is_used_are_posted_once_and_counted(tmp_path, text, kept, repeats):
    corpus = load_corpus(written(tmp_path / "p.csv", text))
    assert len(corpus.texts) == kept
    assert dict(corpus.dropped) == {"repeated posts": repeats}


def test_what_an_author_says_twice_in_the_order_of_rows_is_posted_twice_and_said(tmp_path):
    corpus = load_corpus(written(tmp_path / "p.csv", "text,author\nhi,a\nyou,a\nhi,a\n"))
    assert corpus.texts == ["hi", "you", "hi"]
    assert corpus.notes == ("posts.file: 1 repeated rows are posted too (no column round or created_at)",)


# -- what other programs do to files -------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["1.23457E+17", "1,23457E+17"])
def test_ids_that_a_spreadsheet_has_rounded_are_noted(tmp_path, odd):
    edges = written(tmp_path / "e.csv", f'src,dst\n"{odd}",7\n7,8\n')
    posts = written(tmp_path / "p.csv", f'text,author\nhello,"{odd}"\nyou,7\n')
    with pytest.warns(PrismWarning, match="Excel"):
        notes = small(network_edges=edges, posts_file=posts).notes
    for key in ("network.edges", "posts.file"):
        assert [note for note in notes if note.startswith(f"{key}: 1 id such as '{odd}'")]


def test_ids_that_differ_by_an_at_sign_or_capitals_are_noted(tmp_path):
    edges = written(tmp_path / "e.csv", "src,dst\n@Alice,bo\nAlice,alice\n")
    with pytest.warns(PrismWarning, match=r"2 ids spelt almost like another \('@Alice' and 'Alice'\)"):
        small(network_edges=edges)
    posts = written(tmp_path / "p.csv", "text,author\nhello,bo\nyou,@bo\n")
    with pytest.warns(PrismWarning, match=r"1 post whose author is not an agent \('@bo' is not 'bo'\) left out"):
        small(network_edges=written(tmp_path / "f.csv", "src,dst\nbo,cy\n"), posts_file=posts)
    posts = written(tmp_path / "q.csv", "text,author\nhello,bo\nyou,Bo\n")
    with pytest.warns(PrismWarning, match=r"posts\.file: 1 id spelt almost like another \('bo' and 'Bo'\)"):
        small(posts_file=posts, posts_authors="rank")


@pytest.mark.parametrize("ids", ["ann,bo\ncy,bo", "1,2\n3,2"])
def test_headers_of_files_put_end_to_end_are_left_out_and_noted(tmp_path, ids):
    edges = written(tmp_path / "e.csv", f"src,dst,weight\n{ids},1\nsrc,dst,weight\n{ids},1\nsrc,dst,weight\n")
    network, found = load_network(edges)
    assert len(found) == 3
    assert "network.edges: repeated header left out (2 lines)" in network.notes
    corpus = load_corpus(written(tmp_path / "p.csv", "text,author\nsrc,a\ntext,author\ntext,b\n"))
    assert corpus.texts == ["src", "text"]
    assert "posts.file: repeated header left out (1 line)" in corpus.notes
    signed = load_corpus(written(tmp_path / "s.csv", '\ufefftext,author\nsrc,a\n\ufeff"text",author\ntext,b\n'))
    assert signed.texts == ["src", "text"]
    profiles = written(tmp_path / "a.csv", "agent,activity\n1,0.25\nagent,activity\n2,0.75\n")
    model = small(agents_profiles=profiles)
    assert (model.agent(1).activity, model.agent(2).activity) == (0.25, 0.75)


def test_quotation_marks_behind_a_backslash_are_refused_with_the_line(tmp_path):
    spark = 'text,author\nhello,a\n"he said \\"hi, you\\"",b\n"""quoted""",c\n'
    with pytest.raises(DataError, match=r"line 3: a quotation mark is escaped by a backslash"):
        load_corpus(written(tmp_path / "p.csv", spark))
    for row in ('"a \\", b",1,', '"a \\"",1,x\n"b",2,x'):
        with pytest.raises(DataError, match=r"a quotation mark is escaped by a backslash"):
            load_corpus(written(tmp_path / "q.csv", f"text,author,x\n{row}\n"))
    edges = 'src,dst,why\n1,2,"a \\"b\\", c"\n'
    with pytest.raises(DataError, match=r"line 2: a quotation mark is escaped by a backslash"):
        load_network(written(tmp_path / "e.csv", edges))


def test_a_backslash_that_escapes_nothing_is_part_of_a_text(tmp_path):
    rows = 'text,author\n"C:\\dir\\",a\n"{""x"": ""a\\\\""b\\\\""""}",b\nC:\\new \\"x\\",c\n'
    assert load_corpus(written(tmp_path / "p.csv", rows)).texts == [
        "C:\\dir\\",
        '{"x": "a\\\\"b\\\\""}',
        'C:\\new \\"x\\"',
    ]


def test_a_header_broken_over_two_lines_is_refused(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text('src,"dst\nx",w\n0,1,3\n')
    with pytest.raises(DataError, match="names 2 columns, its rows have 3"):
        small(network_edges=str(file))
