"""Runs whose folders come from elsewhere."""

import json
import shutil

from worlds import plain

from prism_mesa.runs.run_files import read_manifest

WORLD = plain(
    {"agents": {"n": 30, "activity": 0.9, "band": 0.4}, "network": {"mean_degree": 6}, "rounds": 2, "seed": 7}
)


def from_elsewhere(run_dir, to, **changed):
    """Return a copy of a run whose manifest was changed under dotted keys, and is not signed."""
    shutil.copytree(run_dir, to)
    manifest = read_manifest(to)
    for key, value in changed.items():
        *groups, last = key.split("__")
        place = manifest
        for group in groups:
            place = place[group]
        place[last] = value
    (to / "manifest.json").write_text(json.dumps(manifest))
    return to
