"""An action of a chart, which is a user's code: what it did to its agent is undone if it raises."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Final

import numpy.typing as npt

from prism_mesa.social.platform import Platform
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.population import Population

_COLUMNS: Final = (*(f.name for f in fields(Population) if f.name not in ("ids", "names", "numbers")), *AGENT_FIELDS)


@contextmanager
def undone_if_raised(platform: Platform, row: int) -> Iterator[None]:
    """If the block raises, bring back an agent's own fields, and let go of what was noted for the commit meanwhile.

    What an action did to other agents, or to objects of its author's, stays.
    """
    population, history, events = platform.population, platform.history, platform.events
    held = [_value(getattr(population, column), row) for column in _COLUMNS]
    name, count, ring = population.names[row], history.count.item(row), history.ring[row].copy()
    limit = history.limit(row)
    was_beside = row in platform.engagements.beside
    noted: list[tuple[Any, int]] = [(kept, len(kept)) for kept in vars(events).values() if hasattr(kept, "__len__")]
    try:
        yield
    except BaseException:
        for column, value in zip(_COLUMNS, held, strict=True):
            getattr(population, column)[row] = value
        if population.names[row] != name:  # whoever is set one holds it for good
            population.names[row] = name
        if history.limit(row) != limit:
            history.limits[row] = limit
        history.count[row], history.ring[row] = count, ring
        if not was_beside:
            platform.engagements.beside.discard(row)
        for kept, n in noted:
            while len(kept) > n:  # lists and dicts only grow in a round
                kept.popitem() if isinstance(kept, dict) else kept.pop()
        raise


def _value(column: npt.NDArray[Any], row: int) -> Any:
    """Return what stands in a row, so that nothing changes it."""
    return column.item(row) if column.ndim == 1 else column[row].copy()
