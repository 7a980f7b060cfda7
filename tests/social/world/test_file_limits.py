"""Users' files that cost more than they may, or hold what nobody can use."""

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
from user_files import written
from worlds import small

from prism_mesa.errors import DataError
from prism_mesa.social.params import FilesParams
from prism_mesa.social.world.corpus import load_corpus
from prism_mesa.social.world.follows import load_network
from prism_mesa.social.world.readers import read_table

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
        r"files\.max_bytes=1000000",
    )
    plain = written(tmp_path / "p.csv", b"text\n" + b"hello\n" * 200_000)
    refused(lambda: load_corpus(plain, LIMITED), r"files\.max_bytes=1000000")
    with pytest.raises(DataError, match=r"network\.edges: .*files\.max_bytes=5"):
        small(network_edges=plain, files_max_bytes=5)


def test_a_parquet_file_is_refused_by_what_it_says_it_unpacks_to(tmp_path):
    n = 1_000_000
    pq.write_table(pa.table({"src": np.zeros(n, np.int64), "dst": np.ones(n, np.int64)}), tmp_path / "e.parquet")
    assert (tmp_path / "e.parquet").stat().st_size < 10_000
    refused(lambda: load_network(str(tmp_path / "e.parquet"), files=LIMITED), r"files\.max_bytes=1000000")


def test_a_text_that_a_parquet_file_repeats_by_a_number_is_counted_in_full(tmp_path):
    many = pa.DictionaryArray.from_arrays(np.zeros(100_000, np.int32), ["x" * 500_000])
    file = tmp_path / "p.parquet"
    pq.write_table(pa.table({"text": many}), file)
    assert file.stat().st_size < 1_000_000
    refused(lambda: load_corpus(str(file)), r"files\.max_bytes=8000000000")


# -- whatever stands in a file ---------------------------------------------------------------------------


HUGE = "9" * 400


@pytest.mark.parametrize("column", ["round", "created_at"])
@pytest.mark.parametrize("value", [HUGE, "1e999", "99999-01-01", "today"])
def test_a_number_or_a_time_out_of_range_is_left_out_and_counted(tmp_path, column, value):
    fine = {"round": "1", "created_at": "2026-01-01"}[column]
    corpus = load_corpus(written(tmp_path / "p.csv", f"text,{column}\ngood,{fine}\nbad,{value}\n"))
    assert corpus.texts == ["good"]
    assert sum(count for _, count in corpus.dropped) == 1


@pytest.mark.parametrize("name", ["text", "author", "round"])
@pytest.mark.parametrize("cells", [[["a"], ["b"]], [b"\xff", b"\xfe"]])
def test_cells_that_hold_more_than_a_value_are_refused(tmp_path, name, cells):
    columns = {"text": ["one", "two"], name: cells}
    pq.write_table(pa.table(columns), tmp_path / "p.parquet")
    refused(lambda: load_corpus(str(tmp_path / "p.parquet")), f"column '{name}' holds .*, not ")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A file of each kind, as bytes."""
    folder = tmp_path_factory.mktemp("sources")
    table = pd.DataFrame({"text": ["one", "two, three", "vier"], "author": ["1", "2", "3"], "round": [0, 1, 2]})
    table["src"], table["dst"], table["created_at"] = [1, 2, 3], [2, 3, 1], pd.to_datetime(["2026-01-01"] * 3)
    plain = table.to_csv(index=False).encode()
    table.to_parquet(folder / "t.parquet")
    return {".csv": plain, ".csv.gz": gzip.compress(plain, mtime=0), ".parquet": (folder / "t.parquet").read_bytes()}


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path_factory, sources, data):
    folder = tmp_path_factory.mktemp("damaged")
    suffix = data.draw(st.sampled_from([".csv", ".csv.gz", ".parquet"]))
    content = bytearray(sources[suffix])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        new = data.draw(
            st.one_of(st.binary(max_size=4), st.sampled_from([HUGE.encode(), b'"', b"\n", b",", b"\xff", b"\0"]))
        )
        content[place : place + data.draw(st.integers(0, 4))] = new
    file = Path(written(folder / f"d{suffix}", ""))
    file.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    for read in (
        load_corpus,
        load_network,
        lambda path: read_table(path, "k", ("text",), ("author",), allows_others=False),
    ):
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
