"""Where compiled kernels are kept."""

import runpy
import sys
from pathlib import Path

import pytest

from prism_mesa.cli.console import say_compiling
from prism_mesa.kernels import compiling


@pytest.fixture(autouse=True)
def no_folder_given(monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)


def test_the_folder_is_made_with_those_above_it_and_named_by_the_sources(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not" / "there"))
    folder = compiling._cache_folder()
    assert folder == compiling._cache_folder()
    assert (tmp_path / "not" / "there" / "prism-mesa" / f"kernels-{compiling._digest()}").is_dir()
    assert folder.startswith(str(tmp_path))


def test_what_numba_was_told_comes_before_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "told"))
    assert compiling._cache_folder().startswith(str(tmp_path / "told"))
    assert not (tmp_path / "users").exists()


def test_where_nothing_can_be_written_nothing_is_kept(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compiling._cache_folder() == ""


SOURCE = """
from prism_mesa.kernels.compiling import kernel

@kernel
def twice(x):
    return 2 * x
"""


def test_equal_kernels_in_another_place_are_not_compiled_again(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling, "FOLDER", str(tmp_path / "cache"))

    def counts(place, kernels):
        file = tmp_path / place / "kernels" / "walking" / "own.py"
        file.parent.mkdir(parents=True)
        file.write_text(SOURCE)
        monkeypatch.setattr(compiling, "__file__", str(tmp_path / kernels / "kernels" / "compiling.py"))
        twice = runpy.run_path(str(file))["twice"]
        assert twice(4) == 8
        return sum(twice.stats.cache_hits.values()), sum(twice.stats.cache_misses.values())

    assert [counts("here", "here"), counts("there", "there")] == [(0, 1), (1, 0)]
    assert counts("somebody else's", "here") == (0, 1)
    assert len(list(Path(tmp_path, "cache").rglob("*.nbc"))) == 2


@pytest.mark.parametrize(("is_terminal", "kept", "says"), [(True, 0, True), (True, 9, False), (False, 0, False)])
def test_whoever_waits_for_the_first_round_is_told_why(monkeypatch, capsys, is_terminal, kept, says):
    monkeypatch.setattr(compiling, "n_kept", lambda: kept)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    say_compiling()
    assert ("compiling what a round needs" in capsys.readouterr().err) == says


def test_kept_kernels_are_counted(tmp_path):
    assert compiling.n_kept(str(tmp_path)) == compiling.n_kept("") == 0
    for name in ("one.nbc", "one.nbi", "two.nbc"):
        (tmp_path / name).touch()
    assert compiling.n_kept(str(tmp_path)) == 2
