"""Tables of runs as a study leaves them, with numbers that the tests choose."""

from itertools import product

import numpy as np
import pandas as pd

from prism_mesa.streams import Streams
from prism_mesa.studies.statistics.analysis import RunTable


def noise(seed, *shape):
    """Return standard normal numbers, the same at all times."""
    return Streams(seed).normal("test/noise", np.arange(int(np.prod(shape)))).reshape(shape)


def study(measures, arms=("all",), factors=None, *, paired=True, design="factorial", sampling=None):
    """Return a study's runs.

    Args:
        measures: Name -> shape (conditions, seeds): conditions by arm, then by the factors' levels.
        arms: Names.
        factors: Key -> levels.
        paired: Whether all conditions have the same seeds.
        design: How conditions were chosen.
        sampling: What they were sampled from.
    """
    factors = factors or {}
    seeds = np.shape(next(iter(measures.values())))[1]
    rows = [
        {"arm": arm, "seed": seed, **dict(zip(factors, levels, strict=True))}
        for arm, *levels in product(arms, *factors.values())
        for seed in range(seeds)
    ]
    runs = pd.DataFrame(rows).assign(status="done", reason="", run=[f"r{place}" for place in range(len(rows))])
    if not paired:
        runs["seed"] = np.arange(len(runs)) * 7 + 3
    runs = pd.concat([runs, pd.DataFrame({name: np.ravel(values) for name, values in measures.items()})], axis=1)
    return RunTable(runs, tuple(arms), tuple(factors), tuple(measures), design, paired, sampling)


def failed(table, *places):
    """Let runs fail; their numbers stay, and must not count."""
    table.runs.loc[list(places), ["status", "reason"]] = ["failed", "raised"]
    return table


def row(frame, **where):
    """Return the only row of a table with these values."""
    found = frame
    for name, value in where.items():
        found = found[found[name] == value]
    assert len(found) == 1, found
    return found.iloc[0]
