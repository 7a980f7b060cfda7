"""What is said of a run that came to no good end, and what stands of one that did."""

import importlib
import re
import shutil
import sys
from pathlib import Path

import pytest
from killed_runs import all_bytes, images
from small_runs import small

from prism_mesa import Reasoner, open_run, replay
from prism_mesa.api.runs import resume, run
from prism_mesa.errors import DataError, PrismWarning, RunError
from prism_mesa.llm import factory
from prism_mesa.params import nest_keys
from prism_mesa.runs import lifecycle
from prism_mesa.runs.checkpoints.file import last_round
from prism_mesa.runs.manifest import read_run

QUIET = {"pictures": False}
AGAIN = "starts it again, and asks nothing twice"


def fails(done):
    raise OSError(28, "No space left on device")


def only(folder):
    [found] = folder.iterdir()
    return found


def test_a_run_that_failed_without_a_checkpoint_says_how_it_starts_again(tmp_path):
    out = tmp_path / "my results"
    with pytest.raises(RunError, match=r"\(what was recorded is kept there; '.*'") as error:
        run(small(), out=out, on_round=fails, **QUIET)
    advice = f"'prism resume \"{only(out)}\"' {AGAIN}"
    assert str(error.value).endswith(f"; {advice})")
    with pytest.raises(DataError, match=re.escape(advice)):
        replay(only(out))
    assert resume(only(out), **QUIET).status == "done"


def test_a_run_that_failed_with_all_its_rounds_says_that_it_is_only_started_again_if_that_is_asked_for(tmp_path):
    def useless(prompt):
        return "no idea"

    config = small(rounds=1, **{"agents.band": 0.3})
    failed = run(config, out=tmp_path, reasoner=Reasoner(useless, attempts=1, max_fallback_share=0.0), **QUIET)
    told = read_run(failed.run_dir)
    assert (failed.status, told.is_over) == ("failed", True)
    assert told.advice == f"; resume(..., from_start=True) in Python, with what it was given there, {AGAIN}"


def test_a_run_that_is_done_is_so_although_its_checkpoints_cannot_be_removed(tmp_path, monkeypatch):
    def refuse(run, after=-1):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(lifecycle, "remove_checkpoints", refuse)
    said = r"^.*: its checkpoints are no longer needed, but could not be removed: Permission denied$"
    with pytest.warns(PrismWarning, match=said):
        result = run(small(rounds=3, checkpoint_every=1), out=tmp_path, **QUIET)
    assert (result.status, open_run(result).status, last_round(result.run_dir)) == ("done", "done", 2)
    assert resume(result, **QUIET).status == "done"


def test_why_the_rule_decides_is_told_of_a_run_that_went_on_too(tmp_path, monkeypatch):
    monkeypatch.setattr(factory, "embedded_fault", lambda file: "is not installed")
    out = tmp_path / "out"
    config = nest_keys(
        {**small(rounds=4, checkpoint_every=1), "reasoner": {"kind": "auto", "host": "http://127.0.0.1:9"}}
    )
    whole = run(config, out=out, on_round=images(out, tmp_path, (3,)), **QUIET)
    assert "no Ollama" in whole.summary["decisions"]["note"]
    result = resume(tmp_path / "killed-3", **QUIET)
    assert result.summary["decisions"] == whole.summary["decisions"]
    assert all_bytes(result) == all_bytes(whole)


def test_a_path_that_a_shell_would_take_apart_is_in_quotes(tmp_path):
    odd = tmp_path / "a $b"
    shutil.copytree(only_killed(tmp_path), odd)
    assert read_run(odd).advice == f"; 'prism resume '{odd}'' {AGAIN}"


def only_killed(folder):
    run(small(rounds=2), out=folder / "out", on_round=images(folder / "out", folder, (1,)), **QUIET)
    return Path(folder / "killed-1")


FEED = """
def sometimes(columns):
    if columns["post.age"].max() > 1:
        raise ValueError("as it is written")
    return columns["post.likes"] * 1.0


def always(columns):
    return columns["post.likes"] * 1.0
"""


@pytest.fixture
def own_feed(tmp_path, monkeypatch):
    """The file of a module of one's own, which holds two feeds."""
    name = f"feeds_of_{tmp_path.name}"
    file = tmp_path / f"{name}.py"
    file.write_text(FEED)
    monkeypatch.syspath_prepend(tmp_path)
    yield file
    sys.modules.pop(name, None)


def test_a_run_that_failed_in_code_of_ones_own_says_that_the_code_is_to_be_corrected(own_feed, tmp_path):
    config = small(rounds=4, checkpoint_every=1, **{"feed.mode": f"{own_feed.stem}:sometimes", "feed.window": 4})
    advice = "; correct that code, and start a new run, because a resumed run would fail there again"
    with pytest.raises(RunError, match=rf"raised ValueError: as it is written .*is kept there{advice}\)$"):
        run(config, out=tmp_path / "out", **QUIET)
    failed = only(tmp_path / "out")
    assert read_run(failed).advice == advice
    with pytest.raises(DataError, match=f"{advice}$"):
        replay(failed)
    own_feed.write_text(FEED.replace("> 1", "> 100"))
    said = f"code of {own_feed.stem} ({own_feed}) has changed: restore it, or start a new run"
    with pytest.raises(DataError, match=re.escape(said)):
        resume(failed, **QUIET)


def test_replay_says_that_code_of_ones_own_is_not_that_of_the_run(own_feed, tmp_path):
    whole = run(small(rounds=2, **{"feed.mode": f"{own_feed.stem}:always"}), out=tmp_path / "out", **QUIET)
    found = replay(whole)
    assert (found.equal, found.notes) == (True, ())
    name = f"code of {own_feed.stem} ({own_feed})"
    own_feed.write_text(f"{FEED}# and more\n")
    other = f"{name} has changed since the run"
    assert (replay(whole).equal, replay(whole).notes) == (True, (other,))
    own_feed.write_text(FEED)
    assert replay(whole).notes == ()


def test_the_command_says_what_code_was_taken_before_what_differs(own_feed, tmp_path, prism):
    whole = run(
        small(rounds=3, **{"feed.mode": f"{own_feed.stem}:always", "feed.size": 2}), out=tmp_path / "out", **QUIET
    )
    own_feed.write_text(FEED.replace('columns["post.likes"] * 1.0', 'columns["post.post_id"] * 1.0'))
    del sys.modules[own_feed.stem]
    importlib.invalidate_caches()
    note = f"code of {own_feed.stem} ({own_feed}) has changed since the run"
    code, out, err = prism("replay", whole.run_dir)
    assert (code, out.splitlines()[0]) == (1, f"note        {note}")
    assert err.splitlines()[-1].endswith(f"; {note}")
