"""A run that goes on takes its world from its folder, if that was kept there, and draws it again if not."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prism_mesa.errors import PrismWarning
from prism_mesa.runs.checkpoints.file import read_checkpoint, write_checkpoint
from prism_mesa.runs.checkpoints.names import FOLDER, WORLD
from prism_mesa.runs.resume import resume
from prism_mesa.runs.social import run
from prism_mesa.social.world import build, kept

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
    monkeypatch.setattr(kept, "DEAR", 1)

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


def outside(world: dict[str, Any]) -> None:
    """Let somebody follow an agent that is not there."""
    world["network"]["indices"] = np.full_like(world["network"]["indices"], 2**30)


def other_close_ties(world: dict[str, Any]) -> None:
    """Let close ties be others."""
    world["network"]["close_indices"] = np.zeros_like(world["network"]["close_indices"])


def short(world: dict[str, Any]) -> None:
    """Let a column end too early."""
    world["agents"]["traits"] = world["agents"]["traits"][:5]


def narrow(world: dict[str, Any]) -> None:
    """Let interests be in fewer topics."""
    world["agents"]["interests"] = world["agents"]["interests"][:, :2]


def other_type(world: dict[str, Any]) -> None:
    """Let rates be whole numbers."""
    world["agents"]["activity"] = world["agents"]["activity"].astype(np.int64)


def no_network(world: dict[str, Any]) -> None:
    """Let the network be missing."""
    world["network"] = None


@pytest.mark.parametrize("damage", [outside, other_close_ties, short, narrow, other_type, no_network])
def test_a_kept_world_that_cannot_be_is_drawn_again_with_a_warning(runs: tuple[Path, Path], damage: Any) -> None:
    whole, stopped = runs
    file = stopped / FOLDER / WORLD
    world = read_checkpoint(file)
    damage(world)
    write_checkpoint(file, world)
    with pytest.warns(PrismWarning, match=r"world.npz: .*: the world is made again"):
        resume(stopped)
    assert tables(stopped) == tables(whole)


def test_a_world_that_cannot_be_read_is_drawn_again_with_a_warning(runs: tuple[Path, Path]) -> None:
    whole, stopped = runs
    (stopped / FOLDER / WORLD).write_bytes(b"none")
    with pytest.warns(PrismWarning, match=r"is damaged: .*: the world is made again"):
        resume(stopped)
    assert tables(stopped) == tables(whole)


def test_a_world_that_is_soon_drawn_is_not_kept(tmp_path: Path) -> None:
    kept_then = []
    run(CONFIG, out=tmp_path, on_round=lambda done: kept_then.extend(tmp_path.rglob(WORLD)))
    assert kept_then == []
