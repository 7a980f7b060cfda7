"""Runs of five kinds that are killed at a random moment, and go on: what `benchmarks/kill.py` does fifty times each."""

from pathlib import Path

import pytest
from stand_in import StandIn

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
def test_a_run_of_each_kind_that_is_killed_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setenv("PYTHONPATH", "")  # benchmarks set it for their processes: so it is as before afterwards
    import kill

    with StandIn(slots=8, latency=0.001) as server:
        for place, kind in enumerate(kill.kinds(server.url, rounds=5, large=300)):
            out = tmp_path / str(place)
            out.mkdir()
            found = kill.kill_runs(kind, 1, out, server)
            assert (found.different, found.asked_twice) == ([], 0)
            assert found.kills == 2 - found.without_manifest
