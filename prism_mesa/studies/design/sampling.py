"""Sample points with SALib: Sobol (Saltelli's scheme), Latin hypercube, Morris' trajectories."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from SALib.sample import latin, morris, sobol

from prism_mesa.errors import ConfigError
from prism_mesa.streams import digest64
from prism_mesa.studies.params import SampledDesign

LEVELS: Final = 4  # levels of a factor in Morris' trajectories (Morris 1991, doi:10.1080/00401706.1991.10484804)
MAX_POINTS: Final = 100_000  # points of a design


def sample_points(
    kind: SampledDesign,
    n: int,
    ranges: Mapping[str, tuple[float, float]],
    seed: int = 0,
    *,
    integer_keys: Collection[str] = (),
) -> tuple[pd.DataFrame, dict[str, object]]:
    """Return sampled points, and the sample's settings for `repeat_points`.

    With `sobol` and `morris` a larger `n` adds points, so a study can grow.

    Args:
        kind: `sobol`: Saltelli's scheme without second order (Saltelli et al. 2010, doi:10.1016/j.cpc.2009.09.018),
            n (k + 2) points of k factors; `lhs`: a Latin hypercube, n points; `morris`: n trajectories of k + 1 points.
        n: A power of two from 2 for `sobol`, at least 1 for `lhs`, at least 2 for `morris`.
        ranges: Dotted key -> lowest and highest value.
        seed: The seed of the sample.
        integer_keys: Keys with integer values. The ends of their ranges are as likely as the values between them.
    """
    _check_sampling(kind, n, ranges)
    margins = {key: 0.5 if key in integer_keys else 0.0 for key in ranges}
    bounds = [[float(low) - margins[key], float(high) + margins[key]] for key, (low, high) in ranges.items()]
    problem = {"num_vars": len(ranges), "names": list(ranges), "bounds": bounds}
    integer_keys = [key for key in ranges if key in integer_keys]
    sampling: dict[str, object] = {"kind": kind, "n": n, "seed": seed, "problem": problem, "whole": integer_keys}
    return repeat_points(sampling), sampling


def repeat_points(sampling: Mapping[str, Any]) -> pd.DataFrame:
    """Return the points of an earlier sample, from the settings that `sample_points` returned."""
    problem, n = dict(sampling["problem"]), int(sampling["n"])
    seed = 1 + digest64("studies/sample", str(sampling["seed"])) % 2**31
    if sampling["kind"] == "sobol":
        values = sobol.sample(problem, n, calc_second_order=False, seed=seed)
    elif sampling["kind"] == "lhs":
        values = latin.sample(problem, n, seed=seed)
    else:
        values = morris.sample(problem, n, num_levels=LEVELS, seed=seed)
    points = pd.DataFrame(np.asarray(values, np.float64), columns=list(sampling["problem"]["names"]))
    for key, (low, high) in zip(points.columns, problem["bounds"], strict=True):
        if key in sampling["whole"]:
            points[key] = np.clip(np.rint(points[key]), low + 0.5, high - 0.5).astype(np.int64)
    return points


def _check_sampling(kind: SampledDesign, n: int, ranges: Mapping[str, tuple[float, float]]) -> None:
    for key, (low, high) in ranges.items():
        if not (np.isfinite([low, high]).all() and low < high):
            raise ConfigError(f"{key}: the range {low} to {high} is empty; give the lower number first")
    if kind == "sobol" and n & (n - 1):
        raise ConfigError(f"sobol: {n} is not a power of two; {2 ** max(1, round(np.log2(n)))} is")
    if (points := n * {"sobol": len(ranges) + 2, "lhs": 1, "morris": len(ranges) + 1}[kind]) > MAX_POINTS:
        raise ConfigError(f"{kind}: {n} makes {points:,} points; at most {MAX_POINTS:,} are allowed")
