"""The points of a design: all combinations of values, sampled points, or the rows of a file."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Final, get_args

import pandas as pd

from prism_mesa.errors import ConfigError, did_you_mean
from prism_mesa.params import Params, flatten, list_leaves
from prism_mesa.runs.config import Config
from prism_mesa.studies.params import SAMPLED, SampledDesign, StudyParams, parse_value

_MAX_POINTS: Final = 1_000_000


@dataclass(frozen=True)
class Points:
    """The points of a design; `values` holds the values of each point, in the order of `factors`.

    `sampling` has the arguments of `sampling.repeat_points`, or None if the points are not sampled.
    """

    kind: str
    factors: tuple[str, ...]
    values: list[tuple[Any, ...]]
    sampling: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()


def make_points(params: StudyParams, where: str) -> Points:
    """Return the points of a study. If nothing varies, there is one point without values."""
    check_keys(params.vary, f"{where}: vary")
    if params.design is None:
        n = prod(map(len, params.vary.values()))
        if n > _MAX_POINTS:
            raise ConfigError(f"{where}: vary: has {n:,} points, at most {_MAX_POINTS:,} are allowed: sample (design)")
        return Points("factorial", tuple(params.vary), list(product(*params.vary.values())))
    if isinstance(params.design, str):
        return _read_points(params, params.design, where)
    return _sample_points(params, params.design, where)


_DECLARED: Final = ("attributes.", "files.columns.")
"""Prefixes of keys whose names each configuration chooses."""


def check_keys(values: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError if a key does not exist or is a group of keys."""
    known = dict(list_leaves(Config))
    for key in values:
        if key not in known and not key.startswith(_DECLARED):
            members = [name for name in known if name.startswith(f"{key}.")]
            reason = f"no such key of the configuration.{did_you_mean(key, (*known, 'optional'))}"
            if members:
                reason = f"is a group of keys: name one of {', '.join(members[:5])}, ..."
            raise ConfigError(f"{where}: {key}: {reason}")


def _sample_points(params: StudyParams, design: Mapping[str, Any], where: str) -> Points:
    from prism_mesa.studies.design.sampling import sample_points  # SALib and scipy take a second to load

    kinds = [kind for kind in SAMPLED if kind in design]
    unknown = [key for key in design if key not in (*SAMPLED, "seed")]
    if len(kinds) != 1 or unknown:
        raise ConfigError(f"{where}: design: give {{sobol: N}}, {{lhs: N}}, {{morris: N}}, or a CSV file, not {design}")
    kind: SampledDesign = kinds[0]
    n, seed = design[kind], design.get("seed", 0)
    for name, value, minimum in ((kind, n, 2), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ConfigError(f"{where}: design: {name}: must be a whole number of at least {minimum}, not {value!r}")
    if not params.vary:
        raise ConfigError(f"{where}: design: {kind} needs 'vary': keys with lowest and highest values")
    ranges = {key: _parse_range(key, values, f"{where}: vary") for key, values in params.vary.items()}
    integers = [key for key in ranges if takes_integers(key)]
    try:
        frame, sampling = sample_points(kind, n, ranges, seed, integer_keys=integers)
    except ConfigError as error:
        raise ConfigError(f"{where}: design: {error}") from None
    notes = (f"{', '.join(integers)}: only whole numbers are drawn",) if integers else ()
    values = list(zip(*(frame[key].tolist() for key in ranges), strict=True))
    return Points(kind, tuple(ranges), values, sampling, notes)


def _parse_range(key: str, values: list[Any], where: str) -> tuple[float, float]:
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(values) != 2 or len(numbers) != 2 or not numbers[0] < numbers[1]:
        raise ConfigError(f"{where}: {key}: a sampled design needs [lowest, highest], two numbers, not {values}")
    return float(numbers[0]), float(numbers[1])


def takes_integers(key: str) -> bool:
    """Return whether a configuration key takes only integers."""
    kind: Any = Config
    for name in key.split("."):
        kind = kind.model_fields[name].annotation if issubclass(kind, Params) else kind
    return kind is int or (int in get_args(kind) and float not in get_args(kind))


def find_file(path: str, where: str | Path, working_dir: str | Path = "") -> Path:
    """Return the path of a file that a study names: in the working directory, or else next to the study file."""
    file = Path(os.path.expanduser(path))
    sibling = Path(where).parent / file
    return sibling if sibling.exists() and not (working_dir / file).exists() else working_dir / file


def _read_points(params: StudyParams, file: str, where: str) -> Points:
    """Return the points of a CSV file: dotted keys in the first row, then a row for each point."""
    if params.vary:
        raise ConfigError(f"{where}: vary: no effect with a file of points ({file}): leave out one of them")
    path, where = find_file(file, where), f"{where}: design: {file}"
    if not path.is_file():
        raise ConfigError(f"{where}: no such file (looked in {Path.cwd()} and next to the study file)")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, skipinitialspace=True)
    except (ValueError, OSError) as error:
        raise ConfigError(f"{where} cannot be read as CSV: {str(error).splitlines()[0]}") from None
    check_keys(dict.fromkeys(table.columns), where)
    if "seed" in table:
        raise ConfigError(f"{where}: seed: use the study's key 'seeds'")
    for group, values in params.groups.items():
        if repeated_keys := dict(flatten(values)).keys() & set(table.columns):
            raise ConfigError(f"{where}: {min(repeated_keys)}: is in {group}, too; leave it out of one of them")
    if table.empty:
        raise ConfigError(f"{where}: no points: write one per row, below the row of keys")
    for line, row in enumerate(table.to_dict("records"), start=2):
        for key, text in row.items():
            if not text.strip():
                raise ConfigError(f"{where}: line {line}: {key} is empty; write null for no value")
    points = [tuple(map(parse_value, row)) for row in table.itertuples(index=False, name=None)]
    return Points("csv", tuple(table.columns), points)
