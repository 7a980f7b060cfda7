"""The figure of a comparison of runs."""

import numpy as np
import pandas as pd
import pytest

from prism_mesa.api.comparison import compare
from prism_mesa.runs.economy import run_economy
from prism_mesa.view.comparison.report import figure_caption


@pytest.mark.slow
def test_nations_are_drawn_by_quarter_with_bands_and_the_place_where_they_part(tmp_path):
    sides = []
    for policy in ("taylor", "nothing"):
        world = {"rounds": 4, "economy": {"policy": policy, "nations": ["Canada", "Sweden"]}}
        sides.append([run_economy(world | {"seed": seed}, out=tmp_path).run_dir for seed in (1, 2, 3)])
    comparison = compare(*sides)
    axes = comparison.draw().axes
    assert len(axes) == 2 * 4 * 2  # curves and differences of four indicators of two nations
    titles = [part.get_title(loc="left") for part in axes[::2]]
    assert titles[:2] == ["Canada: output gap, %", "Sweden: output gap, %"]
    rates: pd.DataFrame = comparison.rounds[
        (comparison.rounds["column"] == "output_gap") & (comparison.rounds["nation"] == "Canada")
    ]
    lower = axes[2 * titles.index("Canada: output gap, %") + 1]
    drawn = next(line for line in lower.lines if len(line.get_xdata()) == 4)
    assert np.array_equal(drawn.get_ydata(), rates["difference"])
    assert len(lower.collections) == 1  # the band
    assert len(axes[0].lines) == 3  # both sides, and where they part
    caption = figure_caption(comparison)
    assert "n = 3 pairs of runs with the same seed" in caption
    assert "they diverge in quarter 0" in caption
