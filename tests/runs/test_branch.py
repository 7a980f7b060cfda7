"""A branch of a run: the same before a round, another one from it on."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from killed_runs import all_bytes, images
from small_runs import small
from test_resume_ledger import Asked, reasoner

from prism_mesa import Ledger, open_run, replay
from prism_mesa.api.runs import branch, run
from prism_mesa.errors import BadInputError, ConfigError, DataError, NotedWarning, PrismWarning
from prism_mesa.llm import AnswerStore
from prism_mesa.runs.checkpoints.file import checkpoint_files, last_round, read_checkpoint, write_checkpoint
from prism_mesa.runs.identity import code_version
from prism_mesa.runs.run_files import LEDGER, MANIFEST, read_manifest

QUIET = {"pictures": False}
ROUNDS = 7
OTHER = {"feed.mode": "random"}


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    """A whole run, and the folder of the same as it was killed after five rounds, with a checkpoint of the fourth."""
    out, to = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("to")
    whole = run(small(rounds=ROUNDS, checkpoint_every=2), out=out, on_round=images(out, to, (5,)), **QUIET)
    return whole, to / "killed-5"


def checkpoint_round(run_dir):
    return open_run(run_dir).table("rounds").set_index("round")


def test_an_untouched_branch_has_the_tables_of_its_parent(parent, tmp_path):
    found = branch(parent[0], 3, out=tmp_path, **QUIET)
    assert all_bytes(found) == all_bytes(parent[0])
    assert read_manifest(found.run_dir)["branched_from"] == {
        "run": parent[0].run_dir.name,
        "round": 3,
        "code": code_version(),
    }


@pytest.mark.parametrize("at", [0, 3, ROUNDS - 1])
def test_rounds_before_it_are_the_same_and_those_from_it_on_are_not(parent, at, tmp_path):
    found = branch(parent[0], at, OTHER, out=tmp_path, **QUIET)
    whole, other = checkpoint_round(parent[0]), checkpoint_round(found)
    pd.testing.assert_frame_equal(whole.loc[: at - 1], other.loc[: at - 1])
    seen = [open_run(each).table("impressions").query("round >= @at") for each in (parent[0], found)]
    assert not seen[0].reset_index(drop=True).equals(seen[1].reset_index(drop=True))
    assert f"from round {at} on: feed.mode=random (interventions)" in found.summary["notes"]
    assert replay(found).equal


def test_it_goes_on_from_a_checkpoint_of_before_as_it_does_from_the_beginning(parent, tmp_path):
    """A branch of a run that was killed; the checkpoint of its fourth round is of use from the fourth round on."""
    whole, killed = parent
    assert last_round(killed) == 4
    for at, first in ((4, 5), (6, 5), (3, 3)):
        shown = []
        found = branch(killed, at, OTHER, out=tmp_path / str(at), on_round=shown.append, **QUIET)
        assert shown[0] == first
        expected = branch(whole, at, OTHER, out=tmp_path / f"{at}-whole", **QUIET)
        assert all_bytes(found) == all_bytes(expected)
        for notes in (found.summary["notes"], found.manifest["notes"]):
            assert notes.count(f"from round {at} on: feed.mode=random (interventions)") == 1
    assert last_round(killed) == 4  # it was only read
    assert open_run(killed).status == "died"


def everything_in(folder):
    return {file: (file.stat().st_mtime_ns, file.is_file() and file.read_bytes()) for file in sorted(folder.rglob("*"))}


@pytest.mark.parametrize("which", ["finished", "killed", "killed, without an index of its log"])
def test_a_branch_leaves_its_parent_as_it_is(which, parent, tmp_path):
    whole, killed = parent
    folder = Path(shutil.copytree(whole.run_dir if which == "finished" else killed, tmp_path / "parent"))
    if which.endswith("log"):
        (folder / f"{LEDGER}-shm").unlink()
    before = everything_in(folder)
    branch(folder, 3, out=tmp_path / "out", **QUIET)
    assert everything_in(folder) == before


@pytest.mark.parametrize("left", [b"", b"no database", None], ids=["empty", "something else", "missing"])
def test_a_run_whose_ledger_is_damaged_or_missing_is_not_branched(left, tmp_path):
    asked = run(
        small(rounds=2, agents={"n": 40, "activity": 0.8, "band": 0.3}),
        out=tmp_path,
        reasoner=reasoner(Asked()),
        **QUIET,
    )
    file = asked.run_dir / LEDGER
    file.unlink() if left is None else file.write_bytes(left)
    with pytest.raises(DataError, match=rf"{LEDGER}"):
        branch(asked, 1, out=tmp_path / "out", reasoner=reasoner(Asked()), **QUIET)
    assert not any((tmp_path / "out").glob("*"))


def test_a_branch_of_a_branch_keeps_what_had_changed_before(parent, tmp_path):
    first = branch(parent[0], 2, OTHER, out=tmp_path / "1", **QUIET)
    second = branch(first, 5, ["agents.band=0.3"], out=tmp_path / "2", **QUIET)
    changes = [(act["at"], act["set"]) for act in second.manifest["config"]["interventions"]]
    assert changes == [(2, {"feed.mode": "random"}), (5, {"agents.band": 0.3})]
    pd.testing.assert_frame_equal(checkpoint_round(first).loc[:4], checkpoint_round(second).loc[:4])


def test_nobody_is_asked_again_what_the_parent_was_answered(tmp_path):
    config, asked = small(rounds=4, **{"agents.band": 0.3, "agents.activity": 0.9}), Asked()
    whole = run(config, out=tmp_path / "1", reasoner=reasoner(asked), **QUIET)
    first = len(asked.prompts)
    untouched = branch(whole, 2, out=tmp_path / "2", reasoner=reasoner(asked), **QUIET)
    assert len(asked.prompts) == first > 0
    assert all_bytes(untouched) == all_bytes(whole)
    other = branch(whole, 2, {"agents.band": 0.6}, out=tmp_path / "3", reasoner=reasoner(asked), **QUIET)
    assert len(asked.prompts) > first
    assert len(set(asked.prompts)) == len(asked.prompts)
    assert other.summary["decisions"]["by_source"].keys() <= {"llm", "cache"}


def test_a_shared_ledger_keeps_what_the_parent_asked_and_has_the_branch_beside_it(tmp_path):
    config, asked = small(rounds=5, checkpoint_every=2, **{"agents.band": 0.3, "agents.activity": 0.9}), Asked()
    out, to, file = tmp_path / "out", tmp_path / "to", tmp_path / "shared.sqlite"

    def sharing():
        return reasoner(asked, store=AnswerStore("cache", Ledger(file)))

    whole = run(config, out=out, on_round=images(out, to, (3,)), reasoner=sharing(), **QUIET)

    def rows(of=file):
        with Ledger(of, read_only=True) as ledger:
            return {name: ledger.asked(name) for name in ledger.runs()}

    before = rows()
    assert [len(of) > 0 for of in before.values()] == [True]
    for at, parent_dir in ((2, whole.run_dir), (3, to / "killed-3")):  # from the beginning, and from a checkpoint
        found = branch(parent_dir, at, {"agents.band": 0.6}, out=tmp_path / str(at), reasoner=sharing(), **QUIET)
        after, own = rows(), rows(found.run_dir / LEDGER)
        assert before.items() <= after.items()
        assert len(own) == 1
        assert own.items() <= after.items()
        before = after
    assert len(before) == 3


@pytest.mark.parametrize(
    ("at", "overrides", "said"),
    [
        (ROUNDS, (), r"has no round 7: branch at a round from 0 to 6"),
        (-1, (), "at: must be at least 0"),
        ("2", (), "at: must be a whole number"),
        (2, {"agents.n": 9}, "agents.n cannot change during a run"),
        (2, ["feed.mode"], "an override is written key=value"),
        (2, {"feed.mode": "best"}, "interventions: 0: feed.mode: .*'best'"),
        (2, 7, "overrides: give values by dotted key"),
    ],
)
def test_what_cannot_be_is_refused_and_no_folder_is_made(parent, at, overrides, said, tmp_path):
    with pytest.raises(BadInputError, match=said) as told:
        branch(parent[0], at, overrides, out=tmp_path / "out", **QUIET)
    assert "\n" not in str(told.value)
    assert not (tmp_path / "out").exists()


def test_what_was_given_in_python_is_asked_for_and_nothing_is_left_behind(tmp_path):
    whole = run(small(rounds=2), out=tmp_path / "1", prepare=lambda model: None, **QUIET)
    with pytest.raises(ConfigError, match=r"was given prepare in Python") as told:
        branch(whole, 1, OTHER, out=tmp_path / "2", **QUIET)
    assert f"branch({str(whole.run_dir)!r}, ROUND, prepare=...)" in str(told.value)
    assert not (tmp_path / "2").exists()
    assert branch(whole, 1, OTHER, out=tmp_path / "2", prepare=lambda model: None, **QUIET).status == "done"


def test_a_checkpoint_of_another_version_is_refused_with_what_can_be_done(parent, tmp_path):
    old = Path(shutil.copytree(parent[1], tmp_path / "old"))
    for file in checkpoint_files(old):
        write_checkpoint(file, read_checkpoint(file) | {"code": "other"})
    with pytest.raises(BadInputError, match="first resume the run with 'prism resume', then branch it") as told:
        branch(old, 6, OTHER, out=tmp_path / "out", **QUIET)
    assert str(old) in str(told.value)
    assert str(tmp_path / "out") not in str(told.value)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("code", ["0123456789abcdef", None])
def test_a_branch_of_a_run_of_another_version_is_said_to_repeat_it_with_this_one(code, parent, tmp_path):
    old = Path(shutil.copytree(parent[0].run_dir, tmp_path / "old"))
    manifest = read_manifest(old)
    assert manifest.pop("code") == code_version()
    (old / MANIFEST).write_text(json.dumps(manifest | ({} if code is None else {"code": code})))
    with pytest.warns(PrismWarning, match=rf"^{old}: another version of PRISM made it: the rounds before the branch"):
        found = branch(old, 2, OTHER, out=tmp_path / "out", trust=True, **QUIET)
    assert found.manifest["branched_from"]["code"] == (code or "")
    assert found.manifest["code"] == code_version()  # this one has none but rounds of this version


def test_what_changes_nothing_is_said(parent, tmp_path):
    same = parent[0].manifest["config"]["feed"]["mode"]
    said = r"^interventions: 0 \(from round 2 on\): feed\.mode: no effect"
    with pytest.warns(NotedWarning, match=said):
        found = branch(parent[0], 2, {"feed.mode": same}, out=tmp_path, **QUIET)
    assert all_bytes(found) == all_bytes(parent[0])
    assert any("feed.mode: no effect" in note for note in found.summary["notes"])


def test_the_command_branches_a_run_and_tells_what_run_does(prism, parent, tmp_path):
    code, out, _ = prism("branch", parent[0].run_dir, "--at", "3", "feed.mode=random", "--out", tmp_path, "--json")
    told = json.loads(out)
    assert (code, told["status"], told["rounds"]) == (0, "done", ROUNDS)
    assert Path(told["run_dir"]).parent == tmp_path
