"""What the statistics of a study read: its runs as a table, and how they were designed."""

from dataclasses import dataclass
from typing import Literal

import pandas as pd


@dataclass(frozen=True)
class RunTable:
    """The runs of a study, and how they were designed.

    Attributes:
        runs: A row for each run that was planned: `run`, `arm`, `seed`, `status` (`done`, `failed`,
            `skipped`, `missing`), `reason`, the factors by dotted key, the measures (NaN if missing).
        arms: In the order of the study; ("all",) if it has none.
        factors: Dotted keys that vary.
        measures: Names.
        design: How conditions were chosen.
        paired: Whether all conditions have the same seeds.
        sampling: What a sampled design was made from, for the indices: SALib's problem, its seed and size (see
            `design.sampling.sample_points`); None otherwise.
    """

    runs: pd.DataFrame
    arms: tuple[str, ...]
    factors: tuple[str, ...]
    measures: tuple[str, ...]
    design: Literal["factorial", "sobol", "lhs", "morris", "csv"] = "factorial"
    paired: bool = True
    sampling: dict[str, object] | None = None
