"""Read finished runs from their folders."""

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
from prism_mesa.runs.run_files import has_table, read_manifest, read_table, run_folder
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.relations import pair_keys
from prism_mesa.social.world.build import make_network
from prism_mesa.streams import Streams
from prism_mesa.studies.measures.measure import FinishedRun, select_joined_agents


def finished_run(run: RunResult | str | os.PathLike[str], *, trust: bool = False) -> FinishedRun:
    """Return a finished run of a platform, as input for measures.

    Tables are read when a measure needs them. No table has the follows at the end of the run. So the network is rebuilt
    from the configuration or its file of edges, and updated from the tables `follows` and `churn`. Files that only the
    run's folder names are read only with `trust` (see `runs.trust`).
    """
    run_dir = run_folder(run)
    record = read_run(run_dir)
    if record.manifest.is_economy:
        raise DataError(f"{run_dir} is a run of nations: only runs of a platform have measures")
    summary = read_manifest(run_dir).get("summary")
    if not isinstance(summary, dict):
        raise DataError(f"{run_dir}: manifest.json: no summary to measure (status {record.state}){record.advice}")
    config = as_config(Config, manifest_values(run_dir, record.manifest), run_dir)

    def follows() -> pd.DataFrame:
        src, dst = start_and_end_networks(run_dir, trust=trust)[1].edges()
        return pd.DataFrame({"src": src, "dst": dst}, copy=False)

    return FinishedRun(config, summary, partial(read_table, run_dir), follows)


def start_and_end_networks(run_dir: Path, *, trust: bool = False) -> tuple[FollowNetwork, FollowNetwork]:
    """Return the networks of follows at the start and at the end of a run; the same object if nothing changed.

    If agents join during the run, the network at the start has the initial follows of all agents that ever joined.
    """
    config = recorded_config(run_dir, trust=trust)
    network = make_network(config, Streams(config.seed))
    if config.has_churn:
        network = network.subnetwork(select_joined_agents(config, partial(read_table, run_dir)))
    if not has_table(run_dir, "follows"):
        return network, network
    rows = read_table(run_dir, "follows")
    rows = rows[rows["event"].isin(["follow", "unfollow"])]
    pair = rows[["agent", "other"]]
    rows = rows[(pair.min(axis=1) >= 0) & (pair.max(axis=1) < network.n_agents)]  # other agents joined later
    last_events = rows.drop_duplicates(["agent", "other"], keep="last")
    is_follow = (last_events["event"] == "follow").to_numpy()
    pairs = pair_keys(last_events["agent"].to_numpy(), last_events["other"].to_numpy())
    return network, network.with_changes(np.sort(pairs[is_follow]), np.sort(pairs[~is_follow]))
