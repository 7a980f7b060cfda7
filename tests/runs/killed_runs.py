"""Runs as they are on disk when their process is killed at some moment."""

import shutil
from pathlib import Path

from prism_mesa.runs.process.lock import LOCK


def all_bytes(run_dir):
    """Return the bytes of all files of tables, parts included."""
    run_dir = Path(run_dir)
    return {str(file.relative_to(run_dir)): file.read_bytes() for file in run_dir.rglob("*.parquet") if file.is_file()}


def image(taken_in, to):
    """Copy the one run in a folder as it is now: what is there if its process is killed at this moment."""
    [folder] = taken_in.iterdir()
    copy = Path(shutil.copytree(folder, to))
    assert (copy / LOCK).exists()
    return copy


def images(out, to, moments):
    """Return what `run` takes as `on_round`: it keeps an image of a run in `out` as each of these rounds is done."""

    def on_round(done):
        if done in moments:
            image(out, to / f"killed-{done}")

    return on_round
