"""Networks read from files: edge lists, adjacency, ids, and what cannot be used."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_follows import follows
from worlds import plain, small

from prism_mesa.errors import DataError, PrismWarning
from prism_mesa.runs.social import run
from prism_mesa.social.world.follows import load_network
from prism_mesa.view.summaries import run_lines

# edge lists


EDGES = [("ann", "bo"), ("ann", "cy"), ("cy", "bo"), ("bo", "ann")]
"""bo and cy follow ann, bo follows cy, ann follows bo."""


def written(path, edges=EDGES, columns=("src", "dst")):
    table = pd.DataFrame(edges, columns=columns)
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False)
    return str(path)


def text_file(path, text):
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz", "e.parquet"])
def test_dst_follows_src_whatever_the_kind_of_file(tmp_path, name):
    network, ids = load_network(written(tmp_path / name))
    assert ids == ["ann", "bo", "cy"]
    assert follows(network) == {(1, 0), (2, 0), (1, 2), (0, 1)}


@pytest.mark.parametrize("direction", ["dst_follows_src", "src_follows_dst"])
def test_the_summary_tells_who_is_followed_by_most_and_who_follows_most(tmp_path, direction):
    star = written(tmp_path / "e.csv", [("star", fan) for fan in ("a", "b", "c")] + [("b", "a")])
    network = {"edges": star, "direction": direction}
    summary = run(plain({"network": network, "rounds": 1}), out=tmp_path).summary
    star_first = {"agent": 3, "id": "star"}, {"agent": 0, "id": "a"}
    most, eager = star_first if direction == "dst_follows_src" else reversed(star_first)
    n_most, n_eager = (3, 2) if direction == "dst_follows_src" else (2, 3)
    assert summary["most_followers"] == most | {"followers": n_most}
    assert summary["follows_most"] == eager | {"follows": n_eager}
    line = dict(run_lines(summary))["network"]
    assert line == (
        f"most followers: {most['id']} with {n_most}; follows most: {eager['id']} with {n_eager} "
        f"(network.direction={direction})"
    )


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(-3, 9)] * 2), min_size=1, max_size=30).filter(lambda e: any(a != b for a, b in e)),
    st.sampled_from([1, 10**7, 10**16]),
    st.sampled_from(["", "u"]),
)
def test_all_kinds_of_files_give_the_same_network(tmp_path_factory, edges, spread, letter):
    folder = tmp_path_factory.mktemp("edges")
    ids = sorted({agent for edge in edges for agent in edge}, key=lambda a: f"u{a * spread}" if letter else a)
    named = [tuple(f"{letter}{a * spread}" if letter else a * spread for a in edge) for edge in edges]
    expected = {(ids.index(b), ids.index(a)) for a, b in edges if a != b}
    for name in ("e.csv", "e.csv.gz", "e.parquet"):
        network, found = load_network(written(folder / name, named))
        assert found == [f"{letter}{a * spread}" for a in ids]
        assert follows(network) == expected
        dropped, loops = dict(network.dropped), sum(a == b for a, b in edges)
        assert dropped.get("self-follows", 0) == loops
        assert dropped.get("repeated follows", 0) == len(edges) - loops - len(expected)


@pytest.mark.parametrize(
    ("columns", "ids", "edges"),
    [
        (
            {"src": pa.array([5, None, 7], pa.int32()), "dst": pa.array([7, 5, 5], pa.int8())},
            ["5", "7"],
            {(1, 0), (0, 1)},
        ),
        ({"src": pa.array([2**62, None]), "dst": pa.array([2**62 + 1, 1])}, [str(2**62), str(2**62 + 1)], {(1, 0)}),
        (
            {"src": pa.array([2**63 + 1], pa.uint64()), "dst": pa.array([7], pa.uint64())},
            ["7", str(2**63 + 1)],
            {(0, 1)},
        ),
        ({"src": pa.array([1.0, float("nan")]), "dst": pa.array([2.0, 3.0])}, ["1", "2"], {(1, 0)}),
        ({"src": pa.array([1.5]), "dst": pa.array([2.0])}, ["1.5", "2.0"], {(1, 0)}),
        (
            {"src": pa.array(["b", "a"]).dictionary_encode(), "dst": pa.array(["a", "c"])},
            ["a", "b", "c"],
            {(0, 1), (2, 0)},
        ),
        ({"src": pa.array([1, 2]), "dst": pa.array(["x", "1"])}, ["1", "2", "x"], {(2, 0), (0, 1)}),
        ({"src": pa.array([" a", "a "]), "dst": pa.array(["", "a"])}, ["", "a"], {(0, 1)}),
    ],
)
def test_columns_of_any_type_hold_ids(tmp_path, columns, ids, edges):
    pq.write_table(pa.table(columns), tmp_path / "e.parquet")
    network, found = load_network(str(tmp_path / "e.parquet"))
    assert sorted(found) == sorted(ids)
    assert found == ids
    assert follows(network) == edges


def test_many_ids_far_apart_are_told_apart(tmp_path):
    ids = np.unique(np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 50_000))
    src, dst = ids, np.roll(ids, 1)
    pq.write_table(pa.table({"src": src, "dst": dst}), tmp_path / "e.parquet", row_group_size=7000)
    network, found = load_network(str(tmp_path / "e.parquet"))
    assert found == ids.astype(str).tolist()
    assert network.indices.tolist() == [*range(1, len(ids)), 0]


def test_what_cannot_be_used_is_left_out_and_counted(tmp_path):
    file = text_file(tmp_path / "e.csv", "src,dst,since\n1,2,a\n1,2,b\n3,3,c\n,2,d\n4,,e\n2,1,f\n")
    network, ids = load_network(file)
    assert ids == ["1", "2", "3"]
    assert follows(network) == {(0, 1), (1, 0)}
    assert dict(network.dropped) == {"self-follows": 1, "repeated follows": 1, "rows without src or dst": 2}


@settings(max_examples=15, deadline=None)
@given(st.permutations(EDGES))
def test_the_order_of_rows_does_not_matter(tmp_path_factory, edges):
    folder = tmp_path_factory.mktemp("edges")
    one, other = (load_network(written(folder / f"{k}.csv", e)) for k, e in enumerate((EDGES, edges)))
    assert one[1] == other[1]
    assert follows(one[0]) == follows(other[0])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.csv", "", "the file is empty"),
        ("e.csv", "src,dst\n", "no rows below the header"),
        ("e.csv", "src,dest\n1,2\n", r"no column 'dst' \(it has: src, dest\)\. Did you mean 'dest'\?"),
        ("e.csv", "src,dst\n1,\n,2\n", "no row has both src and dst"),
        ("e.csv", "src,dst\n1,1\n", "in every row an agent follows itself"),
        ("e.csv", "src,dst\n1,2\n1,2,3,4\n", "cannot be read"),
        ("e.csv.gz", "src,dst\n1,2\n", "cannot be read"),
        ("e.parquet", "src,dst\n1,2\n", "cannot be read"),
        ("e.xlsx", "src,dst\n1,2\n", r"not a kind of file PRISM reads \(\.csv"),
    ],
)
def test_a_bad_file_is_one_line_that_names_key_and_file(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message) as caught:
        load_network(text_file(tmp_path / name, text))
    assert str(caught.value).startswith(f"network.edges: {tmp_path / name}: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_missing_or_a_folder_or_cut_short_is_said_to_be_so(tmp_path):
    with pytest.raises(DataError, match=r"network\.edges: nowhere\.csv: no such file \(looked in /"):
        load_network("nowhere.csv")
    with pytest.raises(DataError, match="is a folder, not a file"):
        load_network(str(tmp_path))
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(b"src,dst\n" + b"1,2\n" * 10_000)[:-20])
    with pytest.raises(DataError, match="cannot be read"):
        load_network(str(cut))
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"src,dst\n\xff\xfe,2\n")
    with pytest.raises(DataError, match="cannot be read: 'utf-8' codec"):
        load_network(str(binary))


def test_more_than_there_can_be_is_said_as_it_makes_no_difference(tmp_path):
    posts = tmp_path / "p.csv"
    posts.write_text("text\none\ntwo\n")
    with pytest.warns(
        PrismWarning, match=r"mean_degree: 50 is more than the 29 other agents.*circulating: 9 is more than the 2"
    ):
        model = small(network_mean_degree=50, posts_file=str(posts), posts_circulating=9)
    assert "network.mean_degree: 50 is more than the 29 other agents" in model.notes
    assert "posts.circulating: 9 is more than the 2 texts of the corpus" in model.notes
    small(network_mean_degree=29, posts_file=str(posts), posts_circulating=2)


# undirected graphs


def test_an_undirected_edge_is_two_follows_and_duplicates_are_merged(tmp_path):
    file = written(tmp_path / "e.csv", [*EDGES, ("ann", "bo"), ("cy", "cy")])
    network, ids = load_network(file, "both")
    assert ids == ["ann", "bo", "cy"]
    assert follows(network) == {(a, b) for a in range(3) for b in range(3) if a != b}
    assert dict(network.dropped) == {"self-follows": 1, "repeated follows": 2}
    own = {"edges": written(tmp_path / "f.csv", [("ann", "bo"), ("bo", "cy")]), "direction": "both"}
    summary = run(plain({"network": own, "rounds": 1}), out=tmp_path).summary
    assert (summary["direction"], summary["follows"]) == ("both", 4)


@pytest.mark.parametrize(("edges", "is_noted"), [(99, False), (100, True)])
def test_a_graph_of_some_size_without_a_mutual_pair_is_noted(tmp_path, edges, is_noted):
    rows = [(f"a{number}", f"a{number + 1}") for number in range(edges)]
    notes = small(network_edges=written(tmp_path / "e.csv", rows)).notes
    assert any("network.direction=both" in note for note in notes) == is_noted
    for direction, more in (("both", []), ("src_follows_dst", [("a1", "a0")])):
        mutual = written(tmp_path / "mutual.csv", rows + more)
        assert not [n for n in small(network_edges=mutual, network_direction=direction).notes if "direction" in n]
