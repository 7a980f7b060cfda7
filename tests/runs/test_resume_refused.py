"""Checkpoints that are whole, and hold a state that the run cannot take: the one before it is taken, and it is said."""

import shutil
from pathlib import Path

import pytest
from killed_runs import all_bytes, images
from small_runs import small

from prism_mesa.api.runs import resume, run
from prism_mesa.errors import PrismWarning
from prism_mesa.runs.checkpoints.file import files, read_checkpoint, write_checkpoint

QUIET = {"pictures": False}
CONFIG = small(rounds=6, checkpoint_every=2)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The tables of a whole run, and the folder of the same as it was killed after five rounds."""
    out, to = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("to")
    whole = run(CONFIG, out=out, on_round=images(out, to, (5,)), **QUIET)
    return all_bytes(whole), to / "killed-5"


@pytest.fixture
def folder(killed, tmp_path):
    return Path(shutil.copytree(killed[1], tmp_path / "copy"))


def damage(file, change):
    data = read_checkpoint(file)
    change(data)
    write_checkpoint(file, data)


def no_platform(data):
    del data["model"]["platform"]


def other_network(data):
    data["model"]["platform"]["first_network"] = 1


CHANGES = [no_platform, other_network]


@pytest.mark.parametrize("change", CHANGES)
def test_of_a_state_that_cannot_be_taken_the_one_before_is_and_it_is_said(change, killed, folder):
    damage(files(folder)[0], change)
    said, shown = rf"^{folder}: the checkpoint of round 4: .*: it goes on from round 2, and nothing is asked twice$", []
    with pytest.warns(PrismWarning, match=said) as told:
        result = resume(folder, on_round=shown.append, **QUIET)
    assert (shown, all_bytes(result)) == ([3, 4, 5, 6], killed[0])
    assert len(told) == 1


def test_where_no_state_can_be_taken_the_run_starts_again_and_it_is_said(killed, folder):
    for file, change in zip(files(folder), (no_platform, other_network), strict=True):
        damage(file, change)
    shown = []
    with (
        pytest.warns(PrismWarning, match=r"the checkpoint of round 4: .*: it goes on from round 2, and nothing"),
        pytest.warns(PrismWarning, match=r"the checkpoint of round 2: the network is not .*: the run starts again"),
    ):
        result = resume(folder, on_round=shown.append, **QUIET)
    assert (shown, all_bytes(result)) == (list(range(1, 7)), killed[0])
