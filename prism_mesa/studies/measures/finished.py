"""Finished runs from their folders: what measures see of a run that is on disk."""

import os
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from prism_mesa.errors import DataError
from prism_mesa.runs.config import Config
from prism_mesa.runs.lifecycle import RunResult
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.recorded import as_config, manifest_values, recorded_config
from prism_mesa.runs.run_files import folder_of, has_table, read_manifest, read_table
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.relations import pair_keys
from prism_mesa.social.world.build import make_network
from prism_mesa.streams import Streams
from prism_mesa.studies.measures.measure import FinishedRun, joined_in


def finished_run(run: RunResult | str | os.PathLike[str], *, trust: bool = False) -> FinishedRun:
    """Return a run of a platform as measures see it.

    Its tables are read when a measure asks for them. Who follows whom at the end stands in none: the network is made
    again from the run's configuration, or read from the file of edges that it names, and where it moved, the table
    `follows` says how, and `churn` who has joined.

    Args:
        run: A result, or the run's folder, which is only read.
        trust: Whether a file that only the folder names may be read (see `runs.trust`).

    Raises:
        DataError: If there is no such run, it is one of nations, or it has not come to an end.
    """
    run_dir = folder_of(run)
    found = read_run(run_dir)
    manifest = found.manifest
    if manifest.of_nations:
        raise DataError(f"{run_dir}: is a run of nations, and measures are of a platform")
    summary = read_manifest(run_dir).get("summary")
    if not isinstance(summary, dict):
        raise DataError(
            f"{run_dir}: its manifest.json has no summary (status {found.state}): nothing to measure{found.way_on}"
        )
    config = as_config(Config, manifest_values(run_dir, manifest), run_dir)
    return FinishedRun(config, summary, partial(read_table, run_dir), partial(_follows, run_dir, trust=trust))


def _follows(run_dir: "os.PathLike[str]", *, trust: bool) -> pd.DataFrame:
    src, dst = start_and_end_networks(folder_of(run_dir), trust=trust)[1].edges()
    return pd.DataFrame({"src": src, "dst": dst}, copy=False)


def start_and_end_networks(run_dir: Path, *, trust: bool = False) -> tuple[FollowNetwork, FollowNetwork]:
    """Return who followed whom at the beginning of a run, and at its end; one network where it did not move.

    Where agents join in the run, the beginning has the drawn follows of all who have joined by its end.

    Raises:
        DataError: If it is not trusted, or lacks what they are made of.
    """
    config = recorded_config(run_dir, trust=trust)
    network, _ = make_network(config, Streams(config.seed))
    if config.has_churn:
        network = network.among(joined_in(config, partial(read_table, run_dir)))
    if not has_table(run_dir, "follows"):
        return network, network
    return network, _after(network, read_table(run_dir, "follows"))


def _after(network: FollowNetwork, table: pd.DataFrame) -> FollowNetwork:
    """Return a network as it is after the follows of a table have begun and ended; of each pair its last row counts."""
    rows = table[table["event"].isin(["follow", "unfollow"])]
    pair = rows[["agent", "other"]]
    rows = rows[(pair.min(axis=1) >= 0) & (pair.max(axis=1) < network.n_agents)]  # who came later is not in it
    last = rows.drop_duplicates(["agent", "other"], keep="last")
    begins = (last["event"] == "follow").to_numpy()
    pairs = pair_keys(last["agent"].to_numpy(), last["other"].to_numpy())
    return network.changed(np.sort(pairs[begins]), np.sort(pairs[~begins]))
