"""Where compiled kernels are kept."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from prism_mesa.kernels import compiling
from prism_mesa.kernels.feeds.ranking import rank
from prism_mesa.kernels.walking.walk import walk
from prism_mesa.social.model import SocialModel


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


def test_another_process_waits_for_a_kernel_that_is_compiled(tmp_path):
    file = tmp_path / "slow.py"
    file.write_text(
        "import numba, time\n"
        "from prism_mesa.kernels import compiling\n"
        "save = compiling._LockedCache.save_overload\n"
        "compiling._LockedCache.save_overload = lambda *of: (time.sleep(0.5), save(*of))\n"
        "@compiling.kernel\n"
        "def twice(x):\n    return 2 * x\n"
        "twice(4)\n"
        "print(sum(twice.stats.cache_misses.values()))\n"
    )
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(file)]
    both = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sorted(process.communicate()[0].strip() for process in both) == ["0", "1"]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_shows_the_kernel_that_is_compiled(monkeypatch, capsys, is_terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    compiling._show("rank")
    assert ("rank" in capsys.readouterr().err) == is_terminal
    compiling._show()


def test_annotations_of_the_largest_kernels_give_the_types_of_their_arguments():
    SocialModel(agents_n=50, rounds=10).run_model()
    for kernel in (walk, rank):
        assert kernel.signatures == [compiling.argument_types(kernel.py_func)]


def test_kept_kernels_are_counted(tmp_path):
    assert compiling.count_compiled(str(tmp_path)) == compiling.count_compiled("") == 0
    for name in ("one.nbc", "one.nbi", "two.nbc"):
        (tmp_path / name).touch()
    assert compiling.count_compiled(str(tmp_path)) == 2
