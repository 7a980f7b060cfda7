"""Whatever a file holds that PRISM reads, it is read or refused in one line, and nothing happens outside of its folder.

`benchmarks/fuzz.py` reads many more of each kind, and says what they cost.
"""

import os
import random
import subprocess
from pathlib import Path

import pytest
from hostile_files import KINDS, Kind
from hostile_jail import Jail
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prism_mesa.errors import BadInputError, ConfigError, NotedWarning

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


def kind_that(read):
    return Kind("x", "a.txt", lambda: [b"x"], read, lambda raw, draws: raw)


def outside(file):
    (file.parent / ".." / "other.txt").write_text("x")


def away(file):
    (file.parent.parent.parent / "secret.csv").unlink()


def starts(file):
    subprocess.run(["true"], check=False)


def reaches_out(file):
    import socket

    with socket.socket() as one:
        one.connect(("127.0.0.1", 9))


def two_lines(file):
    class TwoLinesError(BadInputError):
        def __str__(self):
            return "one\ntwo"

    raise TwoLinesError


def warns(file):
    import warnings

    warnings.warn("odd", stacklevel=1)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (outside, "outside: open "),
        (away, "outside: os.remove "),
        (starts, "outside: subprocess.Popen"),
        (reaches_out, "ConnectionRefusedError"),
        (two_lines, "more than a line"),
        (warns, "UserWarning: 'odd'"),
        (lambda file: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_reader_that_does_what_it_should_not_is_noticed(jail, read, said):
    assert jail.read(kind_that(read), b"x").defect.startswith(said)


def test_a_reader_may_write_beside_its_file_refuse_it_and_say_what_has_no_effect(jail):
    def writes(file):
        import warnings

        (file.parent / "made").mkdir()
        (file.parent / "made" / "table").write_text("x")
        os.rename(file, file.parent / "moved")
        warnings.warn("no effect", NotedWarning, stacklevel=1)

    def refuses(file):
        raise ConfigError(f"{file.name}: no")

    assert jail.read(kind_that(writes), b"x").accepted
    assert list(jail.path.iterdir()) != []
    reading = jail.read(kind_that(refuses), b"x")
    assert (reading.accepted, reading.defect) == (False, "")
    assert Path.cwd() != jail.path


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_damage_is_the_same_for_the_same_numbers_and_changes_most_files(kind):
    good = kind.seeds()[0]
    damaged = [kind.damaged(good, random.Random(i)) for i in range(6)]
    assert damaged[:2] == [kind.damaged(good, random.Random(i)) for i in range(2)]
    assert sum(raw != good for raw in damaged) >= 3
