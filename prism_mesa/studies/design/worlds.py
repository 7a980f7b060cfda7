"""The configurations of a study's runs, by the arms and levels that lead to them."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final

from prism_mesa.params import merged, nested, validated
from prism_mesa.runs.config import Config
from prism_mesa.studies.params import flat, settings
from prism_mesa.studies.statistics.levels import level_text

MOST_WORLDS: Final = 24

type Worlds = Mapping[tuple[str, ...], Config]
"""Configurations by what leads to them: an arm's name, then ``key=level`` for each factor."""


def worlds_of(base: Config, values: Mapping[str, Any], levels: Mapping[str, Sequence[Any]] | None = None) -> Worlds:
    """Return the configuration of each condition of a study.

    If there were more than `MOST_WORLDS`, factors keep the value of `base`, those with numbers first.

    Args:
        base: What all conditions start from.
        values: The values of the study file.
        levels: The levels of each factor; by default those in `values`, none for a sampled design.

    Raises:
        ConfigError: If a key or value is not allowed.
    """
    if levels is None:
        levels = {} if values.get("design") else values.get("vary") or {}
    terms = [{arm: settings(own) for arm, own in (values.get("arms") or {}).items()} or {"": {}}]
    n = len(terms[0])
    for key, several in sorted(levels.items(), key=lambda item: all(isinstance(v, int | float) for v in item[1])):
        if n * len(several) <= MOST_WORLDS:
            terms.append({f"{key}={level_text(value)}": {key: value} for value in several})
            n *= len(several)
    start = base.model_dump(mode="json", exclude_unset=True)
    worlds = {}
    for path in product(*(term.items() for term in terms)):
        changes = {key: value for _, settings in path for key, value in flat(settings)}
        name = tuple(step for step, _ in path if step)
        worlds[name] = validated(Config, merged(start, nested(changes)), ", ".join(name) or "study")
    return worlds
