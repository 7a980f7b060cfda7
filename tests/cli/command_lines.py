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


def small(*keys):
    """Return what makes a small world with some keys of one's own: none of them stands twice."""
    own = [key.partition("=")[0] for key in keys]
    return (*(one for one in SMALL if str(one).partition("=")[0] not in own), *keys)


def folders(out="results"):
    return sorted(Path(out).iterdir()) if Path(out).exists() else []
