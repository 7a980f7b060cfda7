"""What `prism app` makes of its arguments: a config and keys, or one run or two."""

from pathlib import Path

import pytest

from prism_mesa.cli.page import parse_arguments

LONG = "attributes=" + "x" * 5000
"""No file can be called so."""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.yaml").write_text("seed: 1\n")
    Path("a=1").mkdir()
    Path("results").mkdir()


@pytest.mark.parametrize(
    ("arguments", "kind", "paths", "overrides"),
    [
        ([], "model", (), ()),
        (["seed=3"], "model", (), ("seed=3",)),
        ([LONG], "model", (), (LONG,)),
        (["own.yaml", "seed=3"], "model", ("own.yaml",), ("seed=3",)),
        (["gone.yaml"], "model", ("gone.yaml",), ()),
        (["results"], "runs", ("results",), ()),
        (["nowhere"], "runs", ("nowhere",), ()),
        (["x" * 5000], "runs", ("x" * 5000,), ()),
        (["results", "a=1"], "runs", ("results", "a=1"), ()),
    ],
)
def test_arguments_are_a_config_with_keys_or_runs(arguments, kind, paths, overrides):
    opened = parse_arguments(arguments)
    assert (opened.kind, tuple(map(str, opened.paths)), opened.overrides) == (kind, paths, overrides)
