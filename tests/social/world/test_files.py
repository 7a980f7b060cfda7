"""Users' files: read by position, as what they say, and refused in one line before they cost anything."""

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import small

from prism_mesa.errors import ConfigError, DataError, PrismWarning
from prism_mesa.social.params import FilesParams
from prism_mesa.social.world.corpus import load_corpus
from prism_mesa.social.world.follows import load_network
from prism_mesa.social.world.readers import read_table

EDGES = [("ann", "bo"), ("ann", "cy"), ("cy", "bo"), ("bo", "ann")]


def written(path, content):
    if isinstance(content, bytes):
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        content.to_parquet(path)
    return str(path)


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
def test_posts_are_read_by_position_whatever_pandas_calls_their_rows(tmp_path_factory, data):
    rounds = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=8))
    table = pd.DataFrame({"text": [f"text {i}" for i in range(len(rounds))], "round": rounds})
    table["created_at"] = pd.to_datetime(["2026-01-01"] * len(rounds))
    table.index = data.draw(indices(len(rounds)))
    corpus = load_corpus(written(tmp_path_factory.mktemp("posts") / "p.parquet", table))
    expected = sorted(range(len(rounds)), key=lambda i: (rounds[i], i))
    assert corpus.texts == [f"text {i}" for i in expected]
    assert corpus.rounds.tolist() == [rounds[i] for i in expected]
    assert corpus.dropped == ()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_edges_are_read_by_position_whatever_pandas_calls_their_rows(tmp_path_factory, data):
    table = pd.DataFrame(EDGES, columns=["src", "dst"])
    table.index = data.draw(indices(len(EDGES)))
    network, ids = load_network(written(tmp_path_factory.mktemp("edges") / "e.parquet", table))
    assert follows(network, ids) == set(EDGES)
    assert network.dropped == ()


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_profiles_are_read_by_position_whatever_pandas_calls_their_rows(tmp_path_factory, data):
    table = pd.DataFrame({"agent": [3, 1, 2], "activity": [0.3, 0.1, 0.2], "name": ["c", "a", "b"]})
    table.index = data.draw(indices(3))
    model = small(agents_profiles=written(tmp_path_factory.mktemp("profiles") / "p.parquet", table))
    assert [(model.agent(i).activity, model.agent(i).name) for i in (1, 2, 3)] == [(0.1, "a"), (0.2, "b"), (0.3, "c")]


def test_an_index_that_bears_the_name_of_a_column_is_that_column(tmp_path):
    table = pd.DataFrame({"text": ["one", "two"], "author": ["ann", "bo"]}).set_index("author")
    assert load_corpus(written(tmp_path / "p.parquet", table)).authors == ["ann", "bo"]
    edges = pd.DataFrame(EDGES, columns=["src", "dst"]).set_index(["src", "dst"])
    assert follows(*load_network(written(tmp_path / "e.parquet", edges))) == set(EDGES)


# -- ids are what the file says ----------------------------------------------------------------------


def test_zeros_in_front_belong_to_an_id(tmp_path):
    network, ids = load_network(written(tmp_path / "e.csv", "src,dst\n0001,0002\n0002,1\n"))
    assert ids == ["0001", "0002", "1"]
    assert follows(network, ids) == {("0001", "0002"), ("0002", "1")}
    posts = written(tmp_path / "p.csv", "text,author\nhello,0001\nyou,0002\n")
    assert load_corpus(posts).authors == ["0001", "0002"]


@pytest.mark.parametrize("odd", ["0001", "+1", "1.0", "-0", "1e3", "0x10", "1_0", "9" * 30, "NA", "null", "True"])
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
        ("0001,0002\n", "1", r"'1' is not '0001': write them alike"),
        ("Ann,Bo\n", "ann", r"'ann' is not 'Ann': write them alike"),
        ("1,2\n", "1.0", r"'1\.0' is not '1': write them alike"),
        ("ann,bo\n", "cy", r"Authors are 'cy'; ids of the network are 'ann', 'bo': they name others"),
        (
            None,
            "cy",
            r"ids of the network are '0', '1', '2', \.\.\.: without network\.edges agents are called by their",
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
        PrismWarning, match="taken for other agents; network.edges: 'NA' is taken for the id of an agent"
    ):
        notes = "; ".join(small(network_edges=edges).notes)
    assert "2 ids are other ids written otherwise ('01' and '1'); they are taken for other agents" in notes
    assert "network.edges: 'NA' is taken for the id of an agent: leave a cell empty where there is none" in notes
    assert not [
        note for note in small(network_edges=written(tmp_path / "f.csv", "src,dst\n1,2\n")).notes if "id" in note
    ]


def test_texts_and_names_of_digits_keep_their_zeros(tmp_path):
    assert load_corpus(written(tmp_path / "p.csv", "text\n007\n1.50\nNA\n")).texts == ["007", "1.50", "NA"]
    model = small(agents_profiles=written(tmp_path / "a.csv", "agent,name,activity\n0,042,NA\n"))
    assert model.agent(0).name == "042"
    assert model.agent(0).activity == small().agent(0).activity


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


def test_repeated_posts_are_said_as_repeated_follows_are(tmp_path):
    posts = written(tmp_path / "p.csv", "text,author,round\nhi,1,0\nhi,1,0\n")
    edges = written(tmp_path / "e.csv", "src,dst\n1,2\n1,2\n2,1\n")
    with pytest.warns(PrismWarning, match="1 repeated follows left out; posts.file: 1 repeated posts left out"):
        notes = small(posts_file=posts, network_edges=edges).notes
    assert "posts.file: 1 repeated posts left out" in notes
    assert "network.edges: 1 repeated follows left out" in notes


def test_what_an_author_says_twice_in_the_order_of_rows_is_posted_twice_and_said(tmp_path):
    corpus = load_corpus(written(tmp_path / "p.csv", "text,author\nhi,a\nyou,a\nhi,a\n"))
    assert corpus.texts == ["hi", "you", "hi"]
    assert corpus.notes == ("posts.file: 1 rows repeat another; without round or created_at they are posted too",)


# -- what stands between, and in which letters ---------------------------------------------------------


@pytest.mark.parametrize(("delimiter", "said"), [(";", "';'"), ("\t", "tabs"), ("|", "'|'")])
def test_a_file_is_separated_by_what_stands_there_and_that_is_said(tmp_path, delimiter, said):
    edges = written(tmp_path / "e.csv", f"src{delimiter}dst\n1{delimiter}2\n2{delimiter}3\n")
    posts = written(tmp_path / "p.csv", f'text{delimiter}author\n"a, b{delimiter} c"{delimiter}1\n')
    profiles = written(tmp_path / "a.csv", f"agent{delimiter}activity\n1{delimiter}0.25\n")
    model = small(network_edges=edges, posts_file=posts, agents_profiles=profiles)
    assert list(model.population.ids) == ["1", "2", "3"]
    assert model.posts.texts[0] == f"a, b{delimiter} c"
    assert model.agent(0).activity == 0.25
    for key in ("network.edges", "posts.file", "agents.profiles"):
        assert f"{key}: is separated by {said}, and read so" in model.notes


def test_other_columns_separated_by_something_else_are_refused_by_name(tmp_path):
    with pytest.raises(DataError, match=r"no column 'src' \(it is separated by ';' and has: from, to\)"):
        load_network(written(tmp_path / "e.csv", "from;to\n1;2\n"))
    with pytest.raises(
        DataError, match=r"no column 'src' \(it is separated by tabs and has: Src, dst\)\. Did you mean"
    ):
        load_network(written(tmp_path / "f.csv", "Src\tdst\n1\t2\n"))
    with pytest.raises(DataError, match="2 columns are called 'dst': leave one of them"):
        load_network(written(tmp_path / "g.csv", "src,dst,dst\n1,2,3\n"))


def test_blanks_around_names_and_ids_are_none_of_them(tmp_path):
    _, ids = load_network(written(tmp_path / "e.csv", "src, dst\n1, 2\n 2,3 \n ,4\n"))
    assert list(ids) == ["1", "2", "3"]


def test_letters_that_are_not_utf_8_are_placed_and_latin_1_is_tried(tmp_path):
    head = b"text,author\n" + b"hello,a\n" * 200_000
    for name in ("p.csv", "p.csv.gz"):
        file = written(tmp_path / name, head + b"caf\xe9,b\n")
        with pytest.raises(
            DataError, match=r"can't decode byte 0xe9 in position 1600015 \(line 200002\).*latin-1"
        ) as caught:
            load_corpus(file)
        assert str(caught.value).startswith(f"posts.file: {tmp_path / name}: cannot be read: ")
        assert "\n" not in str(caught.value)
        assert "café" in load_corpus(file, FilesParams(encoding="latin-1")).texts


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_a_file_is_read_in_the_encoding_that_is_given(tmp_path, encoding):
    file = written(tmp_path / "e.csv", "src,dst\nañn,bö\n".encode(encoding))
    assert list(load_network(file, files=FilesParams(encoding=encoding))[1]) == ["añn", "bö"]


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    for text in ("src,dst\nx,y\n", "src,dst\n1,2\n"):
        assert len(load_network(written(tmp_path / "e.csv", text.encode("utf-8-sig")))[1]) == 2


def test_a_byte_that_its_encoding_does_not_have_is_placed(tmp_path):
    file = written(tmp_path / "e.csv", b"src,dst\nx,\x81\n")
    with pytest.raises(DataError, match=r"byte 0x81 in position 10 \(line 2\): it is not in cp1252: give the encoding"):
        load_network(file, files=FilesParams(encoding="cp1252"))


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (gzip.compress(b"src,dst\n1,2\n"), r"it is packed with gzip: let its name end in \.csv\.gz"),
        ("src,dst\n1,2\n".encode("utf-16"), r"give files\.encoding=utf-16"),
        (b"PK\x03\x04\x14\x00\xff", "it is a zip file, perhaps of a spreadsheet: save the table as CSV"),
    ],
    ids=["gzip", "utf-16", "zip"],
)
def test_a_file_that_is_something_else_is_called_so(tmp_path, content, hint):
    with pytest.raises(DataError, match=hint):
        load_network(written(tmp_path / "e.csv", content))


def test_a_file_that_is_packed_twice_is_called_so(tmp_path):
    with pytest.raises(DataError, match="it is packed with gzip twice: unpack it once"):
        load_network(written(tmp_path / "e.csv.gz", gzip.compress(b"src,dst\n1,2\n")))


def test_truth_values_in_parquet_are_read(tmp_path):
    pq.write_table(pa.table({"text": ["a", "b"], "media_type": [None, True]}), tmp_path / "p.parquet")
    assert load_corpus(str(tmp_path / "p.parquet")).media_types == ["", "True"]


@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz"])
def test_a_file_that_is_utf_8_and_read_in_another_encoding_is_said(tmp_path, name):
    def notes(content, encoding):
        return load_network(written(tmp_path / name, content), files=FilesParams(encoding=encoding))[0].notes

    said = "network.edges: is UTF-8 by all its letters, but read as files.encoding=latin-1 says"
    text = "src,dst\nzoë,bo\n"
    assert notes(text.encode("utf-8"), "latin-1") == (said,)
    assert notes(text.encode("utf-8"), "utf8") == notes(text.encode("latin-1"), "latin-1") == ()
    assert notes(text.encode("utf-16"), "utf-16") == notes(b"src,dst\nzoe,bo\n", "latin-1") == ()


@pytest.mark.parametrize("name", ["utf-9", "base64", "rot13", "", "hex", "zlib"])
def test_an_encoding_that_is_none_of_text_is_a_config_error(name):
    with pytest.raises(ConfigError, match=r"files\.encoding: .*no encoding of text \(utf-8, latin-1"):
        small(files_encoding=name)


# -- nothing costs more than it may ----------------------------------------------------------------------

LIMITED = FilesParams(max_bytes=1_000_000)


def refused(read, match):
    """Check that a file is refused in one line and next to no memory."""
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    try:
        with pytest.raises(DataError, match=match) as caught:
            read()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000
    assert pa.total_allocated_bytes() - before < 50_000_000
    assert len(str(caught.value)) <= 600
    assert "\n" not in str(caught.value)


def test_a_file_that_unpacks_to_more_than_allowed_is_refused(tmp_path):
    rows = b"src,dst\n" + b"1,2\n" * 25_000_000
    packed = written(tmp_path / "e.csv.gz", rows)
    refused(
        lambda: load_network(packed, files=LIMITED),
        r"unpacks to more than 1,000,000 bytes, and files\.max_bytes=1000000",
    )
    plain = written(tmp_path / "p.csv", b"text\n" + b"hello\n" * 200_000)
    refused(
        lambda: load_corpus(plain, LIMITED), r"unpacks to 1,200,005 bytes, and files\.max_bytes=1000000 is the most"
    )
    with pytest.raises(DataError, match=r"network\.edges: .*files\.max_bytes=5 is the most"):
        small(network_edges=plain, files_max_bytes=5)


def test_a_parquet_file_is_refused_by_what_it_says_it_unpacks_to(tmp_path):
    n = 1_000_000
    pq.write_table(pa.table({"src": np.zeros(n, np.int64), "dst": np.ones(n, np.int64)}), tmp_path / "e.parquet")
    assert (tmp_path / "e.parquet").stat().st_size < 10_000
    refused(lambda: load_network(str(tmp_path / "e.parquet"), files=LIMITED), r"unpacks to 16,000,000 bytes")


def test_a_text_that_a_parquet_file_repeats_by_a_number_is_counted_in_full(tmp_path):
    many = pa.DictionaryArray.from_arrays(np.zeros(100_000, np.int32), ["x" * 500_000])
    file = tmp_path / "p.parquet"
    pq.write_table(pa.table({"text": many}), file)
    assert file.stat().st_size < 1_000_000
    refused(lambda: load_corpus(str(file)), r"unpacks to more than 8,000,000,000 bytes")


def test_a_header_of_a_million_columns_is_refused(tmp_path):
    wide = written(tmp_path / "wide.csv", "a," * 1_000_000 + "src,dst\n1,2\n")
    refused(lambda: load_network(wide), "its first line is longer than 1,000,000 bytes")
    wide = written(tmp_path / "less.csv", "a," * 20_000 + "src,dst\n1,2\n")
    refused(lambda: load_network(wide), "its first line names 20,002 columns, and 10,000 are the most")
    long = written(tmp_path / "long.csv", "x" * 500_000 + "\n1\n")
    refused(lambda: load_network(long), "its first line is no header of a table: field larger than")
    endless = written(tmp_path / "p.csv", b"\0" * 30_000_000)
    refused(lambda: load_corpus(endless), "its first line is longer than 1,000,000 bytes")
    file = tmp_path / "wide.parquet"
    pq.write_table(pa.table({f"c{i}": [1] for i in range(10_001)}), file)
    refused(lambda: load_corpus(str(file)), "it has 10,001 columns, and 10,000 are the most")
    file.write_bytes(b"PAR1" + b"\0" * 100 + (100_000_000).to_bytes(4, "little") + b"PAR1")
    refused(lambda: load_corpus(str(file)), "what it says of its columns is longer than 64,000,000 bytes")


def test_many_names_of_columns_make_no_long_message(tmp_path):
    file = written(tmp_path / "p.csv", ",".join(f"column{i}" for i in range(9000)) + "\n1\n")
    refused(lambda: load_corpus(file), r"no column 'text' \(it has: column0, .*, and 8,980 more\)")
    refused(
        lambda: small(agents_profiles=written(tmp_path / "a.csv", f"agent,{'x' * 5000}\n1,2\n")), "unknown column 'xxx"
    )
    refused(lambda: load_corpus("x" * 5000 + ".csv"), r"posts\.file: \.\.\.x{296}\.csv: ")


# -- whatever stands in a file ---------------------------------------------------------------------------

HUGE = "9" * 400


@pytest.mark.parametrize("column", ["round", "created_at"])
@pytest.mark.parametrize("value", [HUGE, f"-{HUGE}", "1e999", "99999-01-01", "now", "today", "\0", "é"])
def test_a_number_or_a_time_out_of_range_is_left_out_and_counted(tmp_path, column, value):
    fine = {"round": "1", "created_at": "2026-01-01"}[column]
    corpus = load_corpus(written(tmp_path / "p.csv", f"text,{column}\ngood,{fine}\nbad,{value}\n"))
    assert corpus.texts == ["good"]
    assert sum(count for _, count in corpus.dropped) == 1


def test_a_time_that_pandas_gives_up_on_costs_no_other_its_place(tmp_path):
    rows = "last,9999-12-31T23:59:59-12:00\nsecond,2026-01-02\nfirst,01/01/2026 10:00\nnone,someday\n"
    corpus = load_corpus(written(tmp_path / "p.csv", "text,created_at\n" + rows))
    assert corpus.texts == ["first", "second", "last"]
    assert dict(corpus.dropped) == {"rows whose created_at is no time": 1}


def test_times_may_be_numbers(tmp_path):
    corpus = load_corpus(written(tmp_path / "p.csv", "text,created_at\nlast,1700000100\nfirst,999999999\nnever,\n"))
    assert corpus.texts == ["first", "last"]
    for times in ([3, 1], [3.5, 1.5], pd.to_datetime(["2026-01-03", "2026-01-01"]), ["2300-01-01", "1600-01-01"]):
        file = written(tmp_path / "p.parquet", pd.DataFrame({"text": ["last", "first"], "created_at": times}))
        assert load_corpus(file).texts == ["first", "last"]


@pytest.mark.parametrize("value", [HUGE, f"-{HUGE}", "1e999", "inf"], ids=["long", "below", "e999", "inf"])
def test_a_number_of_a_profile_out_of_range_is_one_short_line(tmp_path, value):
    file = written(tmp_path / "a.csv", f"agent,activity\n1,{value}\n")
    refused(lambda: small(agents_profiles=file), r"activity: line 2: .* is not a number in 0 \.\. 1$")
    file = written(tmp_path / "b.csv", f"agent,timeout_threshold\n{HUGE},1\n")
    refused(lambda: small(agents_profiles=file), r"agent '9{40}\.\.\.' is not in the network \(30 agents\)")


@pytest.mark.parametrize("name", ["text", "author", "round", "created_at", "topic"])
@pytest.mark.parametrize("cells", [[["a"], ["b"]], [{"x": 1}, {"x": 2}], [b"\xff", b"\xfe"]])
def test_cells_that_hold_more_than_a_value_are_refused(tmp_path, name, cells):
    columns = {"text": ["one", "two"], name: cells}
    pq.write_table(pa.table(columns), tmp_path / "p.parquet")
    refused(lambda: load_corpus(str(tmp_path / "p.parquet")), f"column '{name}' holds .*, not ")


def test_texts_of_a_parquet_file_that_are_not_utf_8_are_refused(tmp_path):
    broken = pa.array([b"caf\xe9", b"ok"]).view(pa.string())
    for name, read in (("text", load_corpus), ("src", load_network)):
        pq.write_table(pa.table({name: broken, "dst": ["x", "y"]}), tmp_path / "p.parquet")
        refused(lambda read=read: read(str(tmp_path / "p.parquet")), "cannot be read: .*UTF8")


def sources(folder):
    """A file of each kind, as bytes."""
    table = pd.DataFrame({"text": ["one", "two, three", "vier"], "author": ["1", "2", "3"], "round": [0, 1, 2]})
    table["src"], table["dst"], table["created_at"] = [1, 2, 3], [2, 3, 1], pd.to_datetime(["2026-01-01"] * 3)
    plain = table.to_csv(index=False).encode()
    table.to_parquet(folder / "t.parquet")
    return {".csv": plain, ".csv.gz": gzip.compress(plain, mtime=0), ".parquet": (folder / "t.parquet").read_bytes()}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    suffix = data.draw(st.sampled_from([".csv", ".csv.gz", ".parquet"]))
    content = bytearray(sources(folder)[suffix])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        new = data.draw(
            st.one_of(st.binary(max_size=4), st.sampled_from([HUGE.encode(), b'"', b"\n", b",", b"\xff", b"\0"]))
        )
        content[place : place + data.draw(st.integers(0, 4))] = new
    file = Path(written(folder / f"d{suffix}", ""))
    file.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    for read in (load_corpus, load_network, lambda path: read_table(path, "k", ("text",), ("author",), others=False)):
        said = fault_of(read, str(file))
        assert "\n" not in said
        assert len(said) <= 600


def fault_of(read, file):
    """Return what a DataError says, an empty text if there was none."""
    try:
        read(file)
    except DataError as error:
        return str(error)
    return ""
