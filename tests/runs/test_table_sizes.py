"""Tables that are small as files and large in memory are refused by what their ends say; nothing is unpacked."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prism_mesa.errors import DataError
from prism_mesa.runs import run_files
from prism_mesa.runs.run_files import MANIFEST, read_batches, read_table

MOST = 1_000_000


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder of a run, on a machine with little memory."""
    monkeypatch.setattr(run_files, "memory_bytes", lambda: 2 * MOST)
    (tmp_path / MANIFEST).write_text(json.dumps({"status": "done"}))
    return tmp_path


def table_of(n):
    """Return a file of a few kB with n rows of two whole numbers."""
    raw = io.BytesIO()
    column = np.zeros(n, np.int32)
    pq.write_table(pa.table({"round": column, "likes": column}), raw, compression="zstd")
    return raw.getvalue()


def reads(folder):
    return [lambda: read_table(folder, "rounds", ["round"]), lambda: list(read_batches(folder, "rounds", ["round"]))]


def test_a_table_of_more_rows_than_half_of_the_memory_holds_is_refused(folder):
    (folder / "rounds.parquet").write_bytes(table_of(MOST))
    assert (folder / "rounds.parquet").stat().st_size < 10_000
    before = pa.total_allocated_bytes()
    for read in reads(folder):
        with pytest.raises(DataError, match=r"rounds\.parquet: it unpacks to more than 1,000,000 bytes, half of this"):
            read()
    assert pa.total_allocated_bytes() - before < MOST
    (folder / "rounds.parquet").write_bytes(table_of(MOST // 4))  # one of the two columns just fits
    assert len(read_table(folder, "rounds", ["round"])) == MOST // 4
    with pytest.raises(DataError, match="half of this machine's memory"):
        read_table(folder, "rounds")


def test_a_text_that_a_table_repeats_by_a_number_is_counted_in_full(folder):
    texts = pa.DictionaryArray.from_arrays(np.zeros(10_000, np.int32), ["x" * 2_000]).cast(pa.large_string())
    pq.write_table(pa.table({"text": texts}), folder / "posts.parquet", compression="zstd")
    del texts
    before = pa.total_allocated_bytes()
    with pytest.raises(DataError, match=r"posts\.parquet: it unpacks to more than 1,000,000 bytes"):
        read_table(folder, "posts", ["text"])
    assert pa.total_allocated_bytes() - before < MOST
