"""The follow network: generated kinds, and edge lists as users have them."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import small

from prism_mesa.errors import ConfigError, DataError, PrismWarning
from prism_mesa.kernels.network import draw_rows, toss_rows
from prism_mesa.runs.social import run
from prism_mesa.social.params import NetworkParams
from prism_mesa.social.state.network import from_edges
from prism_mesa.social.world.follows import load_network
from prism_mesa.social.world.random_networks import generate_network
from prism_mesa.streams import Streams
from prism_mesa.view.summaries import run_lines

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


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 5)] * 2)), st.lists(st.integers(0, 5)), st.lists(st.integers(0, 5)))
def test_a_network_with_one_more_agent_is_that_of_all_edges(edges, followees, followers):
    more = edges + [(a, 6) for a in followees] + [(6, a) for a in followers]
    before, after = (from_edges(*np.array(e, np.int64).reshape(-1, 2).T, n) for e, n in ((edges, 6), (more, 7)))
    grown = before.with_agent(followees, followers)
    assert (grown.indptr.tolist(), grown.indices.tolist()) == (after.indptr.tolist(), after.indices.tolist())
    assert (grown.indptr.dtype, grown.indices.dtype) == (after.indptr.dtype, after.indices.dtype)


def test_long_rows_are_sorted_and_told_from_repetitions_as_short_ones_are():
    src = np.random.default_rng(0).integers(0, 3000, 5000)
    network = from_edges(np.append(src, src[:100]), np.zeros(5100, np.int64), 3000)
    assert network.followees(0).tolist() == sorted(set(src.tolist()) - {0})


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


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.integers(2, 70), st.floats(0.01, 1), st.floats(0, 4), st.integers(0, 99))
def test_nobody_follows_twice_or_itself_and_rows_ascend(kind, n, share, sigma, seed):
    network = generated(kind, n, seed, mean_degree=share * (n - 1), blocks=1, follower_sigma=sigma, rewire=sigma / 4)
    assert (network.indptr.dtype, network.indices.dtype) == (np.int64, np.int32)
    assert network.indptr[-1] == len(network.indices)
    for agent in range(n):
        followees = network.followees(agent).tolist()
        assert followees == sorted(set(followees) - {agent})
        assert all(0 <= other < n for other in followees)


def drawn_in_parts(cuts, chances=(0.5, 0.25, 0.15, 0.1), wanted=2, n=3000):
    """Return rows of `wanted` of four numbers, drawn from one cut to the next."""
    cumulative = np.cumsum(chances)
    guide = np.searchsorted(cumulative, np.arange(len(chances)) / len(chances), side="right").astype(np.int32)
    indptr, found = np.arange(n + 1) * wanted, np.zeros(n, np.int32)
    indices = np.zeros(n * wanted, np.int32)
    for first, last in zip([0, *cuts], [*cuts, n], strict=True):
        draw_rows(first, last, Streams(1).key("follow"), cumulative, guide, 500, indptr, indices, found)
    assert (found == wanted).all()
    return indices.reshape(n, wanted)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 3000), max_size=5))
def test_rows_are_the_same_however_the_work_is_cut(cuts):
    assert drawn_in_parts(sorted(cuts)).tolist() == drawn_in_parts([]).tolist()
    key, bounds, whole = Streams(1).key("follow"), np.array([0, 100, 180, 3000]), np.zeros(3001, np.int64)
    parts, none = whole.copy(), np.zeros(0, np.int32)
    toss_rows(0, 3000, key, bounds, -0.1, -0.01, whole, none)
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), 3000], strict=True):
        toss_rows(first, last, key, bounds, -0.1, -0.01, parts, none)
    assert parts.tolist() == whole.tolist()


def test_numbers_are_drawn_in_proportion_to_their_chances_without_replacement():
    chances, n = (0.5, 0.25, 0.15, 0.1), 20_000
    rows = drawn_in_parts([], chances, 2, n)[4:]  # rows 0 .. 3 may not hold themselves
    for a in range(4):
        for b in range(a + 1, 4):
            p = chances[a] * chances[b] / (1 - chances[a]) + chances[b] * chances[a] / (1 - chances[b])
            count = ((rows[:, 0] == a) & (rows[:, 1] == b)).sum()
            assert abs(count - n * p) < 4.5 * (n * p * (1 - p)) ** 0.5


def test_how_many_an_agent_follows_is_poisson_however_popularity_is_spread():
    even, uneven = (generated("configuration", n=5000, follower_sigma=s, mean_degree=20) for s in (0.0, 4.0))
    assert even.n_followees.tolist() == uneven.n_followees.tolist()  # repetitions cost nothing
    assert abs(even.n_followees.mean() - 20) < 4 * (20 / 5000) ** 0.5
    assert even.n_followees.var() == pytest.approx(20, rel=4 * (2 / 5000) ** 0.5)


def test_what_draws_do_not_find_is_drawn_without_replacement():
    network = generated("configuration", n=60, follower_sigma=4.0, mean_degree=55)
    wanted = generated("configuration", n=60, follower_sigma=0.0, mean_degree=55).n_followees
    assert network.n_followees.tolist() == wanted.tolist()
    assert wanted.max() == 59


@pytest.mark.parametrize(("kind", "blocks"), [("erdos_renyi", 1), ("stochastic_block", 1), ("stochastic_block", 7)])
def test_how_many_agents_follow_and_are_followed_by_is_binomial(kind, blocks):
    network = generated(kind, n=4003, mean_degree=12, blocks=blocks)
    for degrees in (network.n_followees, network.n_followers):
        assert abs(degrees.mean() - 12) < 5 * (12 / 4003) ** 0.5
        assert degrees.var() == pytest.approx(12 * (1 - 12 / 4002), rel=0.12)


def test_everybody_follows_everybody_where_the_mean_degree_says_so():
    for kind in ("erdos_renyi", "stochastic_block", "watts_strogatz"):
        network = generated(kind, n=9, mean_degree=8, blocks=1)
        assert follows(network) == {(a, b) for a in range(9) for b in range(9) if a != b}


@pytest.mark.parametrize("rewire", [0.3, 1.0])
def test_rewiring_keeps_the_number_of_pairs_and_follows_stay_mutual(rewire):
    edges = follows(generated("watts_strogatz", n=500, mean_degree=6, rewire=rewire))
    assert len(edges) == 500 * 6
    assert {(b, a) for a, b in edges} == edges
    kept = sum(min((a - b) % 500, (b - a) % 500) <= 3 for a, b in edges) / len(edges)
    assert kept == pytest.approx(1 - rewire + rewire * 6 / 499, abs=0.05)


def test_newcomers_of_barabasi_albert_follow_the_given_number_of_older_agents():
    network = generated("barabasi_albert", n=600, mean_degree=4, reciprocity=0.0)
    assert network.n_followees.tolist() == [0] + [1] * 4 + [4] * 595
    assert all(a > b for a, b in follows(network))
    popular = np.bincount(network.n_followers[:50]).nonzero()[0].max()
    assert popular > 5 * network.n_followers[300:].max()


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
def test_an_edge_list_is_turned_where_src_follows_dst(tmp_path, name):
    file = written(tmp_path / name)
    network, ids = load_network(file, "src_follows_dst")
    assert follows(network) == {(b, a) for a, b in follows(load_network(file)[0])}
    model = small(network_edges=file, network_direction="src_follows_dst")
    assert follows(model.network) == follows(network)
    assert list(model.population.ids) == list(ids)


@pytest.mark.parametrize("direction", ["dst_follows_src", "src_follows_dst"])
def test_the_summary_tells_who_is_followed_by_most_and_who_follows_most(tmp_path, direction):
    star = written(tmp_path / "e.csv", [("star", fan) for fan in ("a", "b", "c")] + [("b", "a")])
    network = {"edges": star, "direction": direction}
    summary = run({"network": network, "rounds": 1}, out=tmp_path).summary
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


def test_a_direction_is_told_of_an_edge_list_only(tmp_path):
    summary = run({"agents": {"n": 30}, "rounds": 1}, out=tmp_path).summary
    assert summary["direction"] is None
    assert "direction" not in dict(run_lines(summary))["network"]


@pytest.mark.parametrize("name", ["e.csv", "e.parquet"])
def test_numeric_ids_are_sorted_as_numbers(tmp_path, name):
    network, ids = load_network(written(tmp_path / name, [(10, 9), (100, 9), (-1, 10)]))
    assert ids == ["-1", "9", "10", "100"]
    assert follows(network) == {(1, 2), (1, 3), (2, 0)}


def test_numbers_written_as_strings_are_numbers_and_zeros_in_front_are_kept(tmp_path):
    assert load_network(written(tmp_path / "a.parquet", [("10", "9")]))[1] == ["9", "10"]
    assert load_network(written(tmp_path / "b.parquet", [("010", "9"), ("10", "9")]))[1] == ["010", "10", "9"]
    assert load_network(written(tmp_path / "c.csv", [("007", "x"), ("y", "007")]))[1] == ["007", "x", "y"]


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


def test_lists_are_no_ids(tmp_path):
    pq.write_table(pa.table({"src": [[1]], "dst": [[2]]}), tmp_path / "e.parquet")
    with pytest.raises(DataError, match=r"network\.edges: .*: column 'src' holds list<.*>, not ids"):
        load_network(str(tmp_path / "e.parquet"))


def test_a_file_of_numbers_that_ends_in_words_keeps_the_numbers_as_written(tmp_path):
    rows = "007,08\n" * 300_000  # more than what pandas takes for one kind at a time
    network, ids = load_network(text_file(tmp_path / "e.csv", f"src,dst\n{rows}x,y\n"))
    assert ids == ["007", "08", "x", "y"]
    assert network.dropped == (("repeated follows", 299_999),)


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


def test_more_than_there_can_be_is_said_as_it_makes_no_difference(tmp_path):
    posts = tmp_path / "p.csv"
    posts.write_text("text\none\ntwo\n")
    with pytest.warns(
        PrismWarning, match=r"mean_degree: 50 is more than the 29 others .*circulating: 9 is more than the 2"
    ):
        model = small(network_mean_degree=50, posts_file=str(posts), posts_circulating=9)
    assert "network.mean_degree: 50 is more than the 29 others that there are" in model.notes
    assert "posts.circulating: 9 is more than the 2 texts that there are" in model.notes
    small(network_mean_degree=29, posts_file=str(posts), posts_circulating=2)
