"""A run that goes on takes its world from its folder, if that was kept there, and draws it again if not."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from prism_mesa.errors import PrismWarning
from prism_mesa.runs.checkpoints.file import FOLDER, WORLD
from prism_mesa.runs.resume import resume
from prism_mesa.runs.social import run
from prism_mesa.social.world import build

CONFIG = {
    "agents": {"n": 60},
    "network": {"mean_degree": 6.0},
    "reasoner": {"kind": "rule"},
    "rounds": 4,
    "checkpoint_every": 1,
}


def tables(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all tables."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.parquet"))}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return a whole run, and one that was stopped after two rounds and has kept its world."""
    monkeypatch.setattr(build, "MIN_FOLLOWS_TO_KEEP", 1)

    def look(done: int) -> None:
        if done == 3:
            [folder] = [entry for entry in (tmp_path / "whole").iterdir() if entry.is_dir()]
            shutil.copytree(folder, tmp_path / "stopped")

    return run(CONFIG, out=tmp_path / "whole", on_round=look).run_dir, tmp_path / "stopped"


def test_a_kept_world_is_not_drawn_again_and_the_tables_are_the_same(
    runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, stopped = runs

    def drawn(*_: Any) -> None:
        raise AssertionError("the network was drawn again")

    monkeypatch.setattr(build, "generate_network", drawn)
    resume(stopped)
    assert tables(stopped) == tables(whole)


def test_a_world_that_cannot_be_read_is_drawn_again_with_a_warning(runs: tuple[Path, Path]) -> None:
    whole, stopped = runs
    (stopped / FOLDER / WORLD).write_bytes(b"none")
    with pytest.warns(PrismWarning, match=r"world\.npz is damaged: .*: the world is drawn again"):
        resume(stopped)
    assert tables(stopped) == tables(whole)


def test_a_world_that_is_soon_drawn_is_not_kept(tmp_path: Path) -> None:
    kept_then = []
    run(CONFIG, out=tmp_path, on_round=lambda done: kept_then.extend(tmp_path.rglob(WORLD)))
    assert kept_then == []
