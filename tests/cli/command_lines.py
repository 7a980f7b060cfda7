"""What tests of the command line share."""

from pathlib import Path

from worlds import PLAIN_FILE

SMALL = (
    PLAIN_FILE,
    "name=run",
    "rounds=2",
    "ticks_per_round=6",
    "agents.n=30",
    "agents.band=0.3",
    "network.mean_degree=5",
    "reasoner.backoff_s=0",
    "reasoner.kind=rule",
)


def folders(out="results"):
    return sorted(Path(out).iterdir()) if Path(out).exists() else []
