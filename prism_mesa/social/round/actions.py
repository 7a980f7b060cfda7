"""An action of a chart, which is a user's code: what it did to its agent is undone if it raises."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np

from prism_mesa.social.platform import Platform


@contextmanager
def undone_if_raised(platform: Platform, row: int) -> Iterator[None]:
    """If the block raises, bring back an agent's own fields, and let go of what was noted for the commit meanwhile.

    What an action did to other agents, or to objects of its author's, stays.
    """
    population, events = platform.population, platform.events
    columns = {f.name: getattr(population, f.name) for f in fields(population)}
    held = {name: column[row].copy() for name, column in columns.items() if isinstance(column, np.ndarray)}
    name, count, ring = population.names[row], platform.history.count[row], platform.history.ring[row].copy()
    was_beside = row in platform.engagements.beside
    noted: list[tuple[Any, int]] = [(kept, len(kept)) for kept in vars(events).values() if hasattr(kept, "__len__")]
    try:
        yield
    except BaseException:
        for column, value in held.items():
            getattr(population, column)[row] = value
        if population.names[row] != name:  # whoever is set one holds it for good
            population.names[row] = name
        platform.history.count[row], platform.history.ring[row] = count, ring
        if not was_beside:
            platform.engagements.beside.discard(row)
        for kept, n in noted:
            while len(kept) > n:  # lists and dicts only grow in a round
                kept.popitem() if isinstance(kept, dict) else kept.pop()
        raise
