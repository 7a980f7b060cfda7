"""Links in a folder from elsewhere are not followed."""

import os
import shutil

import pytest
from foreign_runs import from_elsewhere

from prism_mesa.errors import DataError
from prism_mesa.runs.ledgers import export_ledger, ledger_stats
from prism_mesa.runs.replay import replay
from prism_mesa.runs.run_files import read_manifest, read_table
from prism_mesa.view.plots.drawing import draw_run

# -- links -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["posts.parquet", "decisions.sqlite", "manifest.json"])
def test_a_link_out_of_a_folder_from_elsewhere_is_not_followed(name, asked, tmp_path):
    foreign = from_elsewhere(asked, tmp_path / "f")
    outside = tmp_path / name
    shutil.move(foreign / name, outside)
    (foreign / name).symlink_to(outside)
    with pytest.raises(DataError, match=rf"{name} is a link out of .*put the file itself"):
        {
            "posts.parquet": lambda: read_table(foreign, "posts"),
            "decisions.sqlite": lambda: ledger_stats(foreign),
            "manifest.json": lambda: read_manifest(foreign),
        }[name]()
    with pytest.raises(DataError, match="is a link out of"):
        replay(foreign)


def test_an_export_writes_through_no_link(asked, tmp_path):
    foreign = from_elsewhere(asked, tmp_path / "f")
    (tmp_path / "thesis").write_text("three years of work")
    (foreign / "asked.parquet").symlink_to(tmp_path / "thesis")
    with pytest.raises(DataError, match=r"asked\.parquet is a link"):
        export_ledger(foreign)
    assert (tmp_path / "thesis").read_text() == "three years of work"
    assert export_ledger(foreign, tmp_path / "out")["asked"][1] > 0


def test_a_picture_is_not_drawn_through_a_link(asked, tmp_path):
    foreign = from_elsewhere(asked, tmp_path / "f")
    (tmp_path / "thesis").write_text("three years of work")
    (foreign / "states.png").unlink(missing_ok=True)
    (foreign / "states.png").symlink_to(tmp_path / "thesis")
    assert draw_run(foreign)[0].read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "thesis").read_text() == "three years of work"


@pytest.mark.parametrize("log", ["-wal", "-journal"])
def test_a_log_beside_a_ledger_cannot_be_a_link_either(log, asked, tmp_path):
    foreign = from_elsewhere(asked, tmp_path / "f")
    (tmp_path / "log").write_bytes(b"of somebody else")
    (foreign / f"decisions.sqlite{log}").symlink_to(tmp_path / "log")
    for reading in (ledger_stats, replay):
        with pytest.raises(DataError, match=rf"decisions\.sqlite{log} is a link out of"):
            reading(foreign)


def test_links_in_a_run_that_was_made_here_are_followed(asked, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(asked, own)
    shutil.move(own / "posts.parquet", tmp_path / "big.parquet")
    (own / "posts.parquet").symlink_to(tmp_path / "big.parquet")
    assert len(read_table(own, "posts")) == len(read_table(asked, "posts"))


def test_a_pipe_in_a_folder_is_not_waited_for(asked, tmp_path):
    foreign = from_elsewhere(asked, tmp_path / "f")
    (foreign / "posts.parquet").unlink()
    os.mkfifo(foreign / "posts.parquet")
    with pytest.raises(DataError, match=r"posts\.parquet is not a regular file"):
        read_table(foreign, "posts")
