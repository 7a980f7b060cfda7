"""`prism archive`, as a user types it."""

import json
import zipfile

import pytest
from command_lines import folders
from worlds import plain

from prism_mesa import run
from prism_mesa.errors import RunError
from prism_mesa.params import nest_keys

SMALL = plain({"agents.n": 20, "network.mean_degree": 4, "rounds": 1, "ticks_per_round": 4})


@pytest.fixture
def made(prism):  # in the empty folder that the command is called in
    return run(nest_keys(SMALL), pictures=False).run_dir


def test_a_run_is_packed_checked_and_unpacked(prism, made):
    code, out, err = prism("archive", made)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith(f"packed: {made.absolute()}.zip (")
    file = folders()[-1]
    code, out, err = prism("archive", file, "--check")
    assert (code, err) == (0, "")
    assert out.startswith(f"whole: run {made.name}, ")
    code, out, err = prism("archive", file, "--unpack", "there", "--json")
    told = json.loads(out)
    assert (code, err, told["whole"], told["unpacked"], told["faults"]) == (0, "", True, "there", [])
    assert "manifest.json" in [path.name for path in folders("there")]


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, "interrupted"), (ValueError, "failed")])
def test_of_a_run_without_an_end_its_status_is_told_and_that_nothing_is_to_be_repeated(prism, error, status):
    def stop(done):
        raise error

    with pytest.raises((RunError, KeyboardInterrupt), match="what was recorded is kept there"):
        run(nest_keys(SMALL | {"rounds": 2}), pictures=False, on_round=stop)
    [folder] = folders()
    code, out, err = prism("archive", folder)
    told = f"the end of the run: its status is {status}, so it cannot be repeated"
    assert (code, err, out.splitlines()[1]) == (0, "", f"left out: {told}")
    with zipfile.ZipFile(folders()[-1]) as packed:
        readme = packed.read("README.md").decode()
    assert readme.endswith(f"so `prism replay` cannot repeat it.\n\nNot included:\n\n- {told}\n")
    assert prism("archive", "--check", folders()[-1])[1].startswith(f"left out when packed: {told}\n")


def test_a_fault_is_a_line_and_the_command_fails(prism, made, tmp_path):
    prism("archive", made, "--out", "a.zip")
    with zipfile.ZipFile("a.zip", "a") as packed:
        packed.writestr("more.txt", "?")
    code, out, err = prism("archive", "--check", "a.zip", "--unpack", "there")
    assert (code, out.splitlines()) == (
        1,
        ["more.txt: was added (not in manifest-sha256.txt)"],
    )
    assert err == "prism: a.zip is not whole: 1 fault; nothing was unpacked\n"
    assert not (tmp_path / "there").exists()
