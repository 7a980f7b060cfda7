"""A run that was stopped goes on, and no byte of its tables tells."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from killed_runs import all_bytes, image, images
from small_runs import small

from prism_mesa import Reasoner, SocialAgent, run_economy
from prism_mesa.api.runs import resume, run
from prism_mesa.errors import ConfigError, DataError
from prism_mesa.params import nest_keys
from prism_mesa.runs.checkpoints.file import checkpoint_files, read_checkpoint, write_checkpoint
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.records import folder as folders
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.runs.trust import sign

ROUNDS = 8
MOMENTS = (1, 2, 3, 5, 7)
QUIET = {"pictures": False}


@pytest.fixture(scope="module")
def parts():
    """Three rounds are a part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "PART_ROUNDS", 3)
        yield


@pytest.fixture(scope="module")
def killed(tmp_path_factory, parts):
    """A whole run, and the folders of runs that were killed after some rounds, with a checkpoint every other round."""
    out, to = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("to")
    config = small(rounds=ROUNDS, checkpoint_every=2, content="template")
    whole = run(config, out=out, on_round=images(out, to, MOMENTS), **QUIET)
    return whole, to


@pytest.fixture
def copy(killed, tmp_path):
    """Return a copy of the folder of a run that was killed as so many rounds were done."""
    return lambda done: Path(shutil.copytree(killed[1] / f"killed-{done}", tmp_path / f"copy-{done}"))


@pytest.mark.parametrize("done", MOMENTS)
def test_a_run_that_was_killed_goes_on_and_its_tables_are_those_of_one_that_was_not(killed, copy, done):
    whole, folder, shown = killed[0], copy(done), []
    result = resume(folder, on_round=shown.append, **QUIET)
    before = (done - 1) // 2 * 2  # the last checkpoint that was made
    assert shown == list(range(before + 1, ROUNDS + 1))
    assert (result.status, result.run_dir) == ("done", folder)
    assert all_bytes(folder) == all_bytes(whole)
    timed = {name for name in whole.summary if name.endswith(("cpu_s", "wall_s", "mb")) or name == "run_dir"}
    assert {k: v for k, v in result.summary.items() if k not in timed} == {
        k: v for k, v in whole.summary.items() if k not in timed
    }


def test_when_checkpoints_are_made_leaves_no_trace_in_any_table(killed, parts, tmp_path):
    for every in (0, 1, 3):
        other = run(small(rounds=ROUNDS, checkpoint_every=every, content="template"), out=tmp_path, **QUIET)
        assert all_bytes(other) == all_bytes(killed[0])


def test_a_run_that_has_come_to_its_end_is_left_as_it_is(killed):
    folder = killed[0].run_dir
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    result = resume(folder)
    assert (result.status, result.summary["rounds"]) == ("done", ROUNDS)
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*")} == before


def test_an_interrupted_run_goes_on_with_the_round_after_the_last(killed, parts, tmp_path):
    def stop(done):
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"'prism resume .*' continues it from round 2\)$"):
        run(small(rounds=ROUNDS, checkpoint_every=2, content="template"), out=tmp_path, on_round=stop, **QUIET)
    [folder] = tmp_path.iterdir()
    assert (folder / "agents.parquet").exists()
    assert all_bytes(resume(folder, **QUIET)) == all_bytes(killed[0])
    assert not [key for key in ("error",) if key in read_manifest(folder)]


def test_from_the_start_forgets_what_there_is(killed, copy):
    folder, shown = copy(7), []
    assert all_bytes(resume(folder, from_start=True, on_round=shown.append, **QUIET)) == all_bytes(killed[0])
    assert shown == list(range(1, ROUNDS + 1))


# -- what was given in Python ------------------------------------------------------------------------


class Counting(SocialAgent):
    """Reshares every other post that it sees."""

    def __init__(self, model, **fields):
        super().__init__(model, **fields)
        self.seen = 0

    def step(self):
        while (post := self.read()) is not None:
            self.seen += 1
            if self.seen % 2:
                self.reshare(post)


def add_counting(model):
    Counting(model, follows=range(30), followers=range(30))


class Hoarding(Counting):
    """Keeps what no snapshot holds."""

    def __init__(self, model):
        super().__init__(model, follows=range(30), followers=range(30))
        self.held = {object()}


class Owning(Hoarding):
    """Says itself what its state is."""

    def snapshot(self):
        return {"seen": self.seen}

    def restore(self, kept):
        self.seen = kept["seen"]


@pytest.mark.parametrize("prepare", [add_counting, Owning])
def test_agents_with_scripts_go_on_from_python(prepare, tmp_path):
    out = tmp_path / "out"
    config = small(rounds=6, checkpoint_every=2)
    whole = run(config, out=out, prepare=prepare, on_round=images(out, tmp_path, [5]), **QUIET)
    folder, shown = tmp_path / "killed-5", []
    with pytest.raises(
        ConfigError, match=rf"^{folder}: was given prepare in Python, .*resume\('{folder}', prepare=...\)"
    ):
        resume(folder)
    with pytest.raises(ConfigError, match=r"reasoner: the run had none"):
        resume(folder, prepare=prepare, reasoner=Reasoner(lambda prompt: "x"))
    result = resume(folder, prepare=prepare, on_round=shown.append, **QUIET)
    assert shown == [5, 6]
    assert all_bytes(result) == all_bytes(whole)


def test_agents_whose_state_nobody_knows_are_said_to_be_and_the_run_starts_again(tmp_path):
    out = tmp_path / "out"
    config = small(rounds=4, checkpoint_every=1)
    with pytest.warns(match=r"^no checkpoint can be made of this run: Hoarding: .*add snapshot\(\)"):
        whole = run(config, out=out, prepare=Hoarding, on_round=images(out, tmp_path, [3]), **QUIET)
    assert any("no checkpoint can be made" in note for note in whole.summary["notes"])
    folder, shown = tmp_path / "killed-3", []
    with pytest.warns(match=r"^no checkpoint can be made"):
        result = resume(folder, prepare=Hoarding, on_round=shown.append, **QUIET)
    assert shown == [1, 2, 3, 4]
    assert all_bytes(result) == all_bytes(whole)


def test_other_agents_than_the_run_had_are_refused_and_nothing_is_changed(tmp_path):
    out = tmp_path / "out"
    config = small(rounds=4, checkpoint_every=1)
    run(config, out=out, prepare=add_counting, on_round=images(out, tmp_path, [3]), **QUIET)
    folder = tmp_path / "killed-3"
    before = sorted(os.listdir(folder))
    with pytest.raises(DataError, match=r"the checkpoint of round 2: agent 40 was a .*Counting, .*--from-start"):
        resume(folder, prepare=lambda model: None)
    assert sorted(os.listdir(folder)) == before


# -- nations -----------------------------------------------------------------------------------------


def test_nations_start_again_in_their_folder(tmp_path):
    out, once = tmp_path / "out", []

    def look(done):
        if done == 2:
            once.append(image(out, tmp_path / "killed"))

    config = nest_keys({"economy.policy": "taylor", "rounds": 4})
    whole = run_economy(config, out=out, on_round=look, pictures=False)
    assert all_bytes(resume(once[0], **QUIET)) == all_bytes(whole)
    assert read_manifest(once[0])["status"] == "done"


# -- from elsewhere ----------------------------------------------------------------------------------


def changed(folder, **values):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | values))


def test_a_run_from_elsewhere_goes_on_only_with_trust_and_is_ones_own_from_then_on(killed, copy):
    folder = copy(5)
    changed(folder, note="hello")
    before = tables_and_points(folder)
    with pytest.raises(DataError, match=r"was not made here.*--trust"):
        resume(folder, **QUIET)
    assert tables_and_points(folder) == before
    assert all_bytes(resume(folder, trust=True, **QUIET)) == all_bytes(killed[0])
    assert read_run(folder).origin == "own"


def test_a_checkpoint_that_another_key_signed_is_not_used_in_a_run_of_ones_own(killed, copy, tmp_path, monkeypatch):
    folder = copy(5)
    with monkeypatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path / "somebody"))
        sign({})
        write_checkpoint(checkpoint_files(folder)[0], read_checkpoint(checkpoint_files(folder)[0], trust=True))
    before = tables_and_points(folder)
    with pytest.raises(DataError, match=r"was not written here, or was changed: .*--trust.*--from-start"):
        resume(folder, **QUIET)
    assert tables_and_points(folder) == before
    assert all_bytes(resume(folder, trust=True, **QUIET)) == all_bytes(killed[0])


SUFFIXES = (".parquet", ".npz", ".json")


def tables_and_points(folder):
    """Return all that is written in a folder as a run goes on."""
    return {file: file.read_bytes() for file in folder.rglob("*.*") if file.is_file() and file.suffix in SUFFIXES}


def test_a_link_in_the_folder_is_not_written_through(copy, tmp_path):
    folder = copy(5)
    shutil.rmtree(folder / "rounds.parquet")
    (tmp_path / "precious").mkdir()
    (folder / "rounds.parquet").symlink_to(tmp_path / "precious")
    said = rf"^{re.escape(str(folder))}/rounds\.parquet is a link; a run is resumed in its folder only"
    with pytest.raises(DataError, match=said):
        resume(folder)
    assert list((tmp_path / "precious").iterdir()) == []


# -- while another process does ----------------------------------------------------------------------
