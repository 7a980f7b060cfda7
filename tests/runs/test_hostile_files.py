"""Whatever a file holds that PRISM reads, it is read or refused in one line, and nothing happens outside of its folder.

`benchmarks/fuzz.py` reads many more of each kind, and says what they cost.
"""

import socket
import subprocess

import pytest
from hostile_files import KINDS, Kind
from hostile_jail import Jail
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prism_mesa.errors import BadInputError

FEW = settings(max_examples=6, suppress_health_check=list(HealthCheck), database=None)
NAMES = [kind.name for kind in KINDS]


@pytest.fixture
def jail(tmp_path):
    return Jail(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_a_good_file_is_read_and_a_damaged_one_is_read_or_refused_in_one_line(kind, jail):
    seeds = kind.seeds()
    for raw in seeds[:2]:
        reading = jail.read(kind, raw)
        assert (reading.accepted, reading.defect) == (True, "")

    @FEW
    @given(draws=st.randoms(use_true_random=False))
    def damaged(draws):
        assert jail.read(kind, kind.damaged(draws.choice(seeds), draws)).defect == ""

    damaged()


@pytest.mark.parametrize("name", ["questions", "edges, CSV", "manifest", "table of a run: posts"])
def test_a_small_file_that_would_be_large_or_endless_is_refused(name, jail):
    [kind] = [kind for kind in KINDS if kind.name == name]
    for raw in kind.bombs():
        if len(raw) < 1_000_000:
            assert jail.read(kind, raw).defect == ""


# What the jail notices


def outside(file):
    (file.parent / ".." / "other.txt").write_text("x")


def starts(file):
    subprocess.run(["true"], check=False)


def reaches_out(file):
    with socket.socket() as client:
        client.connect(("127.0.0.1", 9))


def two_lines(file):
    class TwoLinesError(BadInputError):
        def __str__(self):
            return "one\ntwo"

    raise TwoLinesError


@pytest.mark.parametrize(
    ("read", "defect"),
    [
        (outside, "outside: open "),
        (starts, "outside: subprocess.Popen"),
        (reaches_out, "ConnectionRefusedError"),
        (two_lines, "more than a line"),
        (lambda file: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_reader_that_does_what_it_should_not_is_noticed(jail, read, defect):
    kind = Kind("x", "a.txt", lambda: [b"x"], read, lambda raw, draws: raw)
    assert jail.read(kind, b"x").defect.startswith(defect)
