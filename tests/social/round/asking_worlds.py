"""Runs whose choices a stand-in answers."""

from hashlib import blake2b
from pathlib import Path

from stand_in import prompt_text
from worlds import plain

WORLD = {
    "agents": {"n": 40, "activity": 0.9, "band": 0.3},
    "network": {"mean_degree": 8},
    "rounds": 3,
    "seed": 7,
}


def asking(server, world=WORLD, **reasoner):
    own = {"kind": "ollama", "host": server.url, "timeout_s": 30, **reasoner}
    own |= {} if own.get("attempts") == 1 else {"backoff_s": own.get("backoff_s", 0.01)}
    return plain(world | {"reasoner": own})


def tables_of(run_dir):
    return {file.name: file.read_bytes() for file in sorted(Path(run_dir).glob("*.parquet"))}


def a_delay(seed, most_s):
    """Return a latency that is drawn from what is asked and a seed: 0 to `most_s` seconds."""

    def latency(number, body):
        digest = blake2b(f"{seed} {number} {prompt_text(body)}".encode(), digest_size=2).digest()
        return int.from_bytes(digest) / 65536 * most_s

    return latency
