"""Figures of runs of nations: artists against the tables."""

import json

import numpy as np
import pandas as pd
import pytest
from drawn_runs import kept_run
from matplotlib.colors import to_hex

from prism_mesa.view.plots.economy import indicators_figure, policies_figure, responses_figure
from prism_mesa.view.plots.style import PALETTE, figure_caption

QUARTERS = ["2009Q4", "2010Q1", "2010Q2"]
INDICATORS = ["output_gap", "inflation", "unemployment", "policy_rate"]


def measures(*levers):
    return json.dumps({"measures": [{"lever": lever, "how": how, "size": size} for lever, how, size in levers]})


DECISIONS = [
    (0, "Ann", "accepted", measures(("policy_rate", "by", 0.5), ("debt", "by", -1.0))),
    (1, "Ann", "rejected", measures(("taxes", "by", 50.0))),
    (2, "Ann", "no_change", measures()),
    (0, "B$b$", "not_understood", measures()),
    (1, "B$b$", "accepted", measures(("tariff", "to", 5.0), ("sanction", "to", 0.0))),
]


def over_time(nations, shift, **more):
    rows = [(r, q, name) for r, q in enumerate(QUARTERS) for name in nations]
    table = pd.DataFrame(rows, columns=["round", "quarter", "nation"]).assign(**more)
    for place, indicator in enumerate(INDICATORS):
        table[indicator] = table["round"] + 10.0 * place + shift
    return table


def nations_run(folder, nations=("Ann", "B$b$")):
    aims = pd.DataFrame({"name": nations, "inflation_target": 2.0, "natural_unemployment": 5.0})
    others = pd.concat(over_time(nations, shift, policy=name) for shift, name in ((0.25, "taylor"), (0.5, "nothing")))
    decisions = pd.DataFrame(DECISIONS, columns=["round", "nation", "outcome", "measures"])
    decisions["quarter"] = [QUARTERS[quarter] for quarter in decisions["round"]]
    after = [over_time(nations, shift, follows=name) for shift, name in ((0.0, "held"), (1.0, "taylor"))]
    responses = pd.concat(after).assign(quarter=lambda table: table["round"])
    tables = {"indicators": over_time(nations, 0.0), "baselines": others, "decisions": decisions}
    run = kept_run(folder, nations=aims, responses=responses, **tables)
    manifest = json.loads((run / "manifest.json").read_text()) | {"system": "economy"}
    (run / "manifest.json").write_text(json.dumps(manifest))
    return run


def test_each_instrument_has_its_line_and_each_direction_its_mark(tmp_path):
    figure = policies_figure(nations_run(tmp_path / "run"), width=8.5)
    [axes] = figure.axes
    drawn = {
        (float(line.get_xdata()[0]), line.get_marker(), to_hex(line.get_color())): round(float(line.get_ydata()[0]), 2)
        for line in axes.lines
    }
    assert drawn == {
        (0.0, "^", PALETTE[0]): 0.35,
        (0.0, "v", PALETTE[3]): -0.07,
        (1.0, "x", "#8a8a8a"): 0.0,
        (0.0, "x", "#8a8a8a"): -1.0,
        (1.0, "o", PALETTE[4]): -1.21,
        (1.0, "_", PALETTE[5]): -1.35,
    }
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Ann", "B$b$"]
    caption = (
        "Decisions of all nations, by quarter (n = 5: 2 carried out, 1 changed nothing, 1 rejected, 1 not understood)"
    )
    assert figure_caption(figure).startswith(caption)


@pytest.mark.parametrize(("width", "shown"), [(8.5, 2), (17.0, 3)])
def test_indicators_have_a_column_for_each_nation_and_a_line_for_each_policy(tmp_path, width, shown):
    figure = indicators_figure(nations_run(tmp_path / "run", ("Ann", "B$b$", "Cleo")), width=width)
    assert len(figure.axes) == 4 * shown
    assert figure.get_figwidth() == pytest.approx(width / 2.54)
    inflation = figure.axes[shown]
    level, panel, taylor, nothing = (np.asarray(line.get_ydata()).tolist() for line in inflation.lines)
    assert (level, panel) == ([2.0, 2.0], [10.0, 11.0, 12.0])
    assert (taylor, nothing) == ([10.25, 11.25, 12.25], [10.5, 11.5, 12.5])
    assert figure_caption(figure).startswith("Indicators at the end of each of n = 3 quarters, ")
    assert ("the first 2 of 3 nations" in figure_caption(figure)) is (shown == 2)


@pytest.mark.parametrize(("width", "columns"), [(8.5, 2), (17.0, 4)])
def test_responses_have_a_panel_for_each_indicator_of_the_nation_whose_rate_rises(tmp_path, width, columns):
    figure = responses_figure(nations_run(tmp_path / "run"), width=width)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        *("output gap, %", "inflation, points", "unemployment, points", "policy rate, points"),
    ]
    assert figure.axes[0].get_gridspec().ncols == columns
    _, held, taylor = figure.axes[1].lines
    assert (held.get_ydata().tolist(), taylor.get_ydata().tolist()) == ([10.0, 11.0, 12.0], [11.0, 12.0, 13.0])
    assert figure_caption(figure).startswith("Ann: effects of a policy rate that is one point higher for a year")
