"""Measures of cascades, the reshare trees under posts."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.kernels.trees import measure_trees
from prism_mesa.social.state.posts import RESHARE

type Ids = npt.NDArray[np.integer[Any]]


def cascades(parent: Ids, root: Ids, kind: Ids) -> pd.DataFrame:
    """Return the cascade of each post that is no reshare, one row each.

    Args:
        parent: Id of the post that each post reshares or answers; parents have smaller ids.
        root: Id of the first post of each post's cascade.
        kind: Codes of `domain.POST_KINDS`.

    Returns:
        Columns `root`; `size` (1 + reshares); `depth` (reshares from the root to the farthest one);
        `breadth` (most reshares at one depth, 1 for a lone post); `structural_virality` (mean distance
        between all pairs in the tree, 0 for a lone post; Goel, Anderson, Hofman, Watts 2016,
        doi:10.1287/mnsc.2015.2158).
    """
    joins = kind == RESHARE
    size, depth, breadth = (np.empty(len(parent), np.int32) for _ in range(3))
    parted = np.empty(len(parent), np.float64)
    above, top = (np.ascontiguousarray(ids, np.int32) for ids in (parent, root))
    measure_trees(above, top, joins, size, depth, breadth, parted)
    roots = np.flatnonzero(~joins).astype(np.int32)
    size = size[roots]
    pairs = size * (size - 1.0) / 2
    virality = np.divide(parted[roots], pairs, out=np.zeros(len(roots)), where=pairs > 0)
    columns = {"root": roots, "size": size, "depth": depth[roots], "breadth": breadth[roots]}
    return pd.DataFrame(columns | {"structural_virality": virality}, copy=False)
