"""Levels of factors: what makes two the same, and how one is written."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from prism_mesa.streams import Ints

type LevelKey = tuple[str, Any]


def level_key(value: Any) -> LevelKey:
    """Return what two levels have in common if they are the same, as YAML reads them.

    >>> level_key(1) == level_key(1.0), level_key(True) == level_key(1), level_key("1") == level_key(1)
    (True, False, False)
    """
    if isinstance(value, bool | np.bool_):
        return ("truth", bool(value))
    if value is None or (isinstance(value, float) and value != value):
        return ("nothing", None)
    if isinstance(value, int | float | np.integer | np.floating):
        return ("number", float(value))
    return ("text", level_text(value))


def level_text(value: Any) -> str:
    """Return a level as one would write it in YAML.

    >>> level_text(True), level_text(0.5), level_text(20.0), level_text("x_algo"), level_text(None)
    ('true', '0.5', '20', 'x_algo', 'null')
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if value is None or (isinstance(value, float) and value != value):
        return "null"
    if isinstance(value, float | np.floating):
        return repr(float(value)).removesuffix(".0")
    if isinstance(value, list | tuple | np.ndarray):
        return f"[{', '.join(level_text(one) for one in value)}]"
    return str(value)


def places_of(values: Iterable[Any], first: Iterable[Any] = ()) -> tuple[Ints, tuple[Any, ...]]:
    """Return for each value the place of its level, and the levels: numbers ascending, others as they come.

    Args:
        values: One for each run.
        first: Levels that come before all others, whether or not a value is one of them.
    """
    levels = list(first)
    places = {level_key(level): place for place, level in enumerate(levels)}
    found = []
    for value in values:
        key = level_key(value)
        if key not in places:
            places[key] = len(levels)
            levels.append(value)
        found.append(places[key])
    codes = np.array(found, np.int64)
    kinds = {level_key(level)[0] for level in levels}
    if kinds <= {"number"} or kinds <= {"truth"}:
        order = sorted(range(len(levels)), key=lambda place: float(levels[place]))
        return np.argsort(order)[codes], tuple(levels[place] for place in order)
    return codes, tuple(levels)
