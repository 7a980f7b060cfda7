"""Configurations of small runs, and the bytes of their tables."""

from pathlib import Path

from worlds import plain

from prism_mesa.params import nest_keys

TABLES = ("rounds", "ticks", "transitions", "impressions", "posts", "engagements", "cascades", "agents")
"""Of a run in which no LLM writes."""
SMALL = {"agents": {"n": 40, "activity": 0.8}, "network": {"mean_degree": 6}, "rounds": 3, "ticks_per_round": 8}


def small(**more):
    return nest_keys(plain(SMALL | more))


def table_bytes(folder):
    return {file.name: file.read_bytes() for file in sorted(Path(folder).glob("*.parquet"))}
