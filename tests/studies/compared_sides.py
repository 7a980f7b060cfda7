"""Small runs to compare, and ways to change one row of a copy."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
from worlds import plain

from prism_mesa.params import nest_keys
from prism_mesa.runs.economy import run_economy
from prism_mesa.runs.social import run

WORLD = {"agents": {"n": 40, "activity": 0.8}, "network": {"mean_degree": 6}, "rounds": 3, "ticks_per_round": 8}


def platform(out, **keys):
    return run(
        nest_keys(plain(WORLD | {key.replace("__", "."): value for key, value in keys.items()})), out=out
    ).run_dir


def nations(out, policy, **keys):
    world = {"rounds": 4, "economy": {"policy": policy, "nations": ["Canada", "Sweden"]}}
    return run_economy(world | keys, out=out).run_dir


def copied(run_dir, name):
    return shutil.copytree(run_dir, run_dir.parent / name)


def with_cell(run_dir, table, place, **cells):
    """Change cells of one row of a table in its place; the file keeps its types."""
    file = run_dir / f"{table}.parquet"
    read = pq.read_table(file)
    rows = read.to_pylist()
    rows[place] |= cells
    pq.write_table(pa.Table.from_pylist(rows, read.schema), file)
    return rows[place]


def without_row(run_dir, table, place):
    """Take one row out of a table, and return it."""
    file = run_dir / f"{table}.parquet"
    read = pq.read_table(file)
    rows = read.to_pylist()
    gone = rows.pop(place)
    pq.write_table(pa.Table.from_pylist(rows, read.schema), file)
    return gone


def with_facts(run_dir, **facts):
    """Change what a manifest says."""
    file = run_dir / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | facts), "utf-8")
    return run_dir
