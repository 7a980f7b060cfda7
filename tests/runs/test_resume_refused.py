"""Checkpoints that are whole, and hold a state that the run cannot take: the one before it is taken, and it is said."""

import shutil
from pathlib import Path

import pytest
from killed_runs import all_bytes, images
from small_runs import small

from prism_mesa import SocialAgent
from prism_mesa.api.runs import resume, run
from prism_mesa.errors import DataError, PrismWarning
from prism_mesa.runs.checkpoints.file import files, read_checkpoint, write_checkpoint
from prism_mesa.runs.run_files import LEDGER

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


def contents(folder):
    """Return all that is in a folder, but for what only says that somebody looks."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in found if path.name not in (".lock", f"{LEDGER}-shm")}


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


class Posting(SocialAgent):
    """Has a script, and a state of its own."""

    def step(self):
        self.steps = getattr(self, "steps", 0) + 1


def add_one(model):
    Posting(model, follows=range(9), followers=range(9))


def test_of_a_run_with_agents_given_in_python_the_one_before_is_taken_too(tmp_path):
    out = tmp_path / "out"
    whole = run(CONFIG, out=out, prepare=add_one, on_round=images(out, tmp_path, (5,)), **QUIET)
    folder, shown = tmp_path / "killed-5", []
    damage(files(folder)[0], no_platform)
    with pytest.warns(PrismWarning, match=r"the checkpoint of round 4: .*: it goes on from round 2, and"):
        result = resume(folder, prepare=add_one, on_round=shown.append, **QUIET)
    assert (shown, all_bytes(result)) == ([3, 4, 5, 6], all_bytes(whole))


def test_agents_given_in_python_that_go_with_no_checkpoint_are_refused_and_nothing_is_changed(tmp_path):
    out = tmp_path / "out"
    run(CONFIG, out=out, prepare=add_one, on_round=images(out, tmp_path, (5,)), **QUIET)
    folder = tmp_path / "killed-5"
    before = contents(folder)
    said = (
        rf"^{folder}: the checkpoint of round 4: agent 40 was a .*Posting, .* \(start the run again with --from-start"
    )
    with pytest.raises(DataError, match=said):
        resume(folder, prepare=lambda model: None, **QUIET)
    assert contents(folder) == before
