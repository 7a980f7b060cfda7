"""Fixtures that several files share."""

import sys

import hypothesis
import pytest

from prism_mesa import cli

# how long an example takes is the machine's affair; tests that need many examples say so themselves
hypothesis.settings.register_profile("prism", deadline=None, max_examples=50)
hypothesis.settings.load_profile("prism")


@pytest.fixture
def prism(monkeypatch, capfd, tmp_path):
    """Call the command in an empty folder; returns exit code, stdout, stderr, caught below Python's own streams."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr("prism_mesa.plots.DPI", 20)  # pictures are looked at elsewhere
    monkeypatch.setattr("prism_mesa.plots_economy.DPI", 20)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["prism", *map(str, arguments)])
        try:
            cli.main()
        except SystemExit as end:
            return end.code, *capfd.readouterr()
        raise AssertionError("main() did not exit")

    return call
