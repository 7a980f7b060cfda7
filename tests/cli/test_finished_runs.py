"""Commands that look at a finished run."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from command_lines import SMALL
from stand_in import StandIn

from prism_mesa.runs.run_files import read_manifest


def asked_run(prism, server):
    world = (*SMALL[:-1], "reasoner.kind=ollama", f"reasoner.host={server.url}")
    code, out, _ = prism("run", *world, "--json")
    assert code == 0
    return json.loads(out)


@pytest.mark.slow
def test_replay_proves_every_table_equal_and_asks_nobody(prism):
    with StandIn() as server:
        said = asked_run(prism, server)
        asked = server.n_requests
        code, out, _ = prism("replay", said["run_dir"])
        assert server.n_requests == asked
        assert code == 0
        assert [line.split()[-1] for line in out.splitlines()[:-1]] == ["equal"] * 8
        assert out.splitlines()[-1].endswith("decisions answered from the ledger, 0 calls of an LLM")
        code, out, _ = prism("replay", said["run_dir"], "--json", "--out", "again")
    found = json.loads(out)
    assert (code, found["equal"], found["calls"]) == (0, True, 0)
    assert read_manifest(found["run_dir"])["status"] == "done"


@pytest.mark.slow
def test_replay_of_a_changed_run_ends_with_1_and_says_where(prism):
    with StandIn() as server:
        said = asked_run(prism, server)
    file = Path(said["run_dir"]) / "posts.parquet"
    posts = pd.read_parquet(file)
    posts.loc[3, "likes"] += 1
    posts.to_parquet(file)
    code, _, err = prism("replay", said["run_dir"])
    assert code == 1
    assert re.search(r"repeated, 1 tables differ; posts: row 3, likes: \d+ in the run, \d+ when repeated", err)


@pytest.mark.slow
def test_a_ledger_is_counted_and_exported_beside_its_run(prism):
    with StandIn() as server:
        said = asked_run(prism, server)
    code, out, _ = prism("ledger", "stats", said["run_dir"], "--json")
    assert (code, json.loads(out)["sources"]) == (0, said["decisions"]["by_source"])
    code, out, _ = prism("ledger", "stats", said["run_dir"])
    assert "fallbacks   0" in out.splitlines()
    code, out, _ = prism("ledger", "export", said["run_dir"])
    assert code == 0
    assert len(pd.read_parquet(Path(said["run_dir"]) / "asked.parquet")) == said["decisions"]["open"]
