"""The follow network: generated kinds, and edge lists as users have them."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.errors import ConfigError, DataError
from prism_mesa.social.network import from_edges, generate_network, load_network
from prism_mesa.social.params import NetworkParams
from prism_mesa.streams import Streams

KINDS = ["erdos_renyi", "barabasi_albert", "watts_strogatz", "stochastic_block", "configuration"]


def generated(kind, n=400, seed=1, **params):
    return generate_network(NetworkParams(kind=kind, **params), n, Streams(seed))


def follows(network):
    return {(int(dst), int(src)) for src, dst in zip(*network.edges(), strict=True)}


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_edges_become_follows_once_each_and_the_rest_is_counted(world):
    n, edges = world
    src, dst = (np.array([edge[k] for edge in edges], np.int64) for k in (0, 1))
    network = from_edges(src, dst, n)
    wanted = {(b, a) for a, b in edges if a != b}
    assert follows(network) == wanted
    assert (network.n_agents, network.n_edges) == (n, len(wanted))
    for agent in range(n):
        assert network.followees(agent).tolist() == sorted(b for a, b in wanted if a == agent)
    assert network.n_followees.tolist() == [sum(a == i for a, _ in wanted) for i in range(n)]
    assert network.n_followers.tolist() == [sum(b == i for _, b in wanted) for i in range(n)]
    dropped = dict(network.dropped)
    loops = sum(a == b for a, b in edges)
    assert dropped.get("self-follows", 0) == loops
    assert dropped.get("repeated follows", 0) == len(edges) - loops - len(wanted)


def test_with_agent_adds_the_last_one_and_leaves_the_others_alone():
    network = from_edges(np.array([0, 1]), np.array([1, 2]), 3)
    assert follows(network.with_agent([0, 2], [1])) == {(1, 0), (2, 1), (3, 0), (3, 2), (1, 3)}
    assert follows(network.with_agent([], [])) == {(1, 0), (2, 1)}
    assert network.with_agent([], []).n_agents == 4


# generated


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_meets_its_mean_degree_and_has_no_self_follows(kind):
    network = generated(kind, n=1000, mean_degree=12)
    assert network.n_edges / 1000 == pytest.approx(12, rel=0.08)
    assert all(a != b for a, b in follows(network))
    assert network.dropped == ()


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_reproducible_and_differs_between_seeds(kind):
    assert follows(generated(kind)) == follows(generated(kind))
    assert follows(generated(kind)) != follows(generated(kind, seed=2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "degree"), [(2, 1), (3, 2), (6, 5), (8, 7), (9, 0.5)])
def test_small_worlds_are_possible(kind, n, degree):
    network = generated(kind, n=n, mean_degree=degree, blocks=1)
    assert network.n_agents == n
    assert network.n_edges <= n * (n - 1)


@pytest.mark.parametrize("kind", KINDS)
def test_more_follows_than_others_is_a_config_error(kind):
    with pytest.raises(ConfigError, match=r"network\.mean_degree: 20.* is more than the 9 others"):
        generated(kind, n=10, mean_degree=20)


def test_barabasi_albert_has_hubs_and_returns_the_given_share_of_follows():
    network = generated("barabasi_albert", n=2000, reciprocity=0.33)
    assert network.n_followers.max() > 10 * network.n_followers.mean()
    edges = follows(network)
    newcomers = [(a, b) for a, b in edges if a > b]
    assert len(newcomers) / (len(newcomers) + sum((b, a) in edges for a, b in newcomers)) == pytest.approx(
        0.75, abs=0.02
    )


def test_watts_strogatz_is_a_ring_that_is_rewired():
    ring = generated("watts_strogatz", n=50, mean_degree=4, rewire=0.0)
    assert follows(ring) == {(i, (i + d) % 50) for i in range(50) for d in (-2, -1, 1, 2)}
    assert follows(generated("watts_strogatz", n=50, mean_degree=4, rewire=0.5)) != follows(ring)


def test_blocks_keep_the_given_share_of_follows_inside():
    edges = follows(generated("stochastic_block", n=1000, mean_degree=20, blocks=4, within=0.8))
    assert sum(a // 250 == b // 250 for a, b in edges) / len(edges) == pytest.approx(0.8, abs=0.02)


def test_blocks_too_small_for_their_follows_are_a_config_error_not_a_thinner_network():
    with pytest.raises(ConfigError, match=r"network\.within: 0\.8 of 20.* 10 agents.*9 others"):
        generated("stochastic_block", n=40, mean_degree=20, blocks=4, within=0.8)
    with pytest.raises(ConfigError, match=r"network\.within: .*outside"):
        generated("stochastic_block", n=40, mean_degree=25, blocks=2, within=0.0)
    with pytest.raises(ConfigError, match=r"network\.blocks: 50 is more than the 40 agents"):
        generated("stochastic_block", n=40, mean_degree=2, blocks=50)


def test_followers_of_the_configuration_model_are_lognormal():
    narrow = generated("configuration", n=4000, follower_sigma=0.0, mean_degree=30)
    wide = generated("configuration", n=4000, follower_sigma=1.5, mean_degree=150)
    assert narrow.n_followers.std() == pytest.approx(30**0.5, rel=0.1)  # as many as chance gives
    low, median, high = np.quantile(wide.n_followers, [0.25, 0.5, 0.9])
    assert high / median == pytest.approx(np.exp(1.2816 * 1.5), rel=0.15)
    assert median / low == pytest.approx(np.exp(0.6745 * 1.5), rel=0.2)
    assert narrow.n_followees.mean() == pytest.approx(30, rel=0.02)
    assert narrow.n_followees.std() == pytest.approx(30**0.5, rel=0.1)


def test_kind_edges_needs_a_file_and_a_file_implies_the_kind():
    with pytest.raises(ValueError, match=r"kind is 'edges' and network\.edges names no file"):
        NetworkParams(kind="edges")
    assert NetworkParams(edges="x.csv").kind == "edges"
    assert NetworkParams(edges="x.csv", kind="erdos_renyi").kind == "edges"


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


@pytest.mark.parametrize("name", ["e.csv", "e.parquet"])
def test_numeric_ids_are_sorted_as_numbers(tmp_path, name):
    network, ids = load_network(written(tmp_path / name, [(10, 9), (100, 9), (-1, 10)]))
    assert ids == ["-1", "9", "10", "100"]
    assert follows(network) == {(1, 2), (1, 3), (2, 0)}


def test_numbers_written_as_strings_are_numbers_and_zeros_in_front_are_kept(tmp_path):
    assert load_network(written(tmp_path / "a.parquet", [("10", "9")]))[1] == ["9", "10"]
    assert load_network(written(tmp_path / "b.parquet", [("010", "9"), ("10", "9")]))[1] == ["010", "10", "9"]
    assert load_network(written(tmp_path / "c.csv", [("007", "x"), ("y", "007")]))[1] == ["007", "x", "y"]


def test_long_ids_stay_apart_even_beside_a_blank_cell(tmp_path):
    long, near = "1234567890123456789", "1234567890123456788"
    network, ids = load_network(text_file(tmp_path / "e.csv", f"src,dst\n{long},{near}\n,{near}\n{near},{long}\n"))
    assert sorted(ids) == [near, long]
    assert network.n_edges == 2
    assert network.dropped == (("rows without src or dst", 1),)


def test_what_cannot_be_used_is_left_out_and_counted(tmp_path):
    file = text_file(tmp_path / "e.csv", "src,dst,since\n1,2,a\n1,2,b\n3,3,c\n,2,d\n4,,e\n2,1,f\n")
    network, ids = load_network(file)
    assert ids == ["1", "2", "3"]
    assert follows(network) == {(0, 1), (1, 0)}
    assert dict(network.dropped) == {"self-follows": 1, "repeated follows": 1, "rows without src or dst": 2}


def test_commas_at_the_ends_of_rows_shift_no_column(tmp_path):
    network, ids = load_network(text_file(tmp_path / "e.csv", "src,dst\n1,2,\n3,4,\n"))
    assert ids == ["1", "2", "3", "4"]
    assert follows(network) == {(1, 0), (3, 2)}


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
        ("e.csv", "", "the file is empty; it needs the columns src, dst"),
        ("e.csv", "src,dst\n", "no rows below the header"),
        ("e.csv", "src,dest\n1,2\n", r"no column 'dst' \(it has: src, dest\)\. Did you mean 'dest'\?"),
        ("e.csv", "src,dst\n1,\n,2\n", "no row has both src and dst"),
        ("e.csv", "src,dst\n1,1\n", "every row is an agent that follows itself"),
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
