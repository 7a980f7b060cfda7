"""Figures of surveys and of distilled models: artists against the tables."""

import numpy as np
import pandas as pd
import pytest

from prism_mesa.view.plots.answers import distilled_figure, drift_figure, survey_figure
from prism_mesa.view.plots.style import figure_caption

WIDTHS = pytest.mark.parametrize("width", [8.5, 17.0])


@WIDTHS
def test_a_survey_shows_means_before_and_after_and_the_change_in_points(width):
    rows = [("q", "yes", "before", 9, 0.4), ("q", "yes", "after", 8, 0.5), ("q", "yes", "change", 8, 0.1)]
    table = pd.DataFrame(rows, columns=["question", "option", "wave", "n", "mean"])
    table = table.assign(low=table["mean"] - 0.05, high=table["mean"] + 0.02)
    figure = survey_figure(table, {"q": "More than $1?"}, width=width)
    shares, changes = figure.axes
    assert [line.get_xdata().tolist() for line in shares.lines if line.get_marker() in "os"] == [[0.4], [0.5]]
    assert [line.get_xdata().tolist() for line in changes.lines if line.get_marker() == "D"] == [[0.1]]
    [bar] = [part for part in changes.collections if len(part.get_segments())]
    assert np.array(bar.get_segments())[0][:, 0] == pytest.approx([0.05, 0.12])
    assert shares.get_title(loc="left") == "More than $1?\nn = 9 before, 8 after"
    assert changes.get_xlabel() == "change, points"
    assert figure.get_figwidth() == pytest.approx(width / 2.54)
    assert "95 % intervals (Student's, over agents" in figure_caption(figure)


@WIDTHS
def test_a_distilled_model_is_shown_beside_the_rule_by_calibration_and_scores(width):
    curve = [{"said": 0.2, "true": 0.3}, {"said": 0.8, "true": 0.7}]
    scores = {"llm": {"log_loss": 0.3, "auc": 1.0}, "rule": {"log_loss": 0.6, "auc": 0.7}}
    judged = {"options": ["composing"], "rows": 1200, "calibration": {"rule": curve}, "scores": scores}
    figure = distilled_figure(judged, width=width)
    curves, losses, aucs = figure.axes
    assert np.column_stack(curves.lines[1].get_data()).tolist() == [[0.2, 0.3], [0.8, 0.7]]
    assert curves.get_xlabel() == "P(composing) as predicted"
    for axes, values in ((losses, [0.6, 0.3]), (aucs, [0.7, 1.0])):
        assert [bar.get_width() for bar in axes.patches] == values
        assert [label.get_text() for label in axes.get_yticklabels()] == ["rule", "llm"]
    assert figure_caption(figure).startswith("n = 1,200 decisions on held-out personas and posts")


@WIDTHS
def test_a_drift_has_means_over_seeds_and_bands_against_the_largest_share(width):
    rows = [
        *((0.5, 1, "likes", 8, 0.8), (0.5, 2, "likes", 6, 0.6), (1.0, 1, "likes", 10, 1.0), (1.0, 2, "likes", 10, 1.0)),
        *((0.5, 1, "share idle", 0.8, 1.0), (0.5, 2, "share idle", 0.6, 1.0)),
        *((1.0, 1, "share idle", 0.7, 1.0), (1.0, 2, "share idle", 0.6, 1.0)),
    ]
    drift = pd.DataFrame(rows, columns=["share", "seed", "outcome", "value", "relative"])
    figure = drift_figure(drift, width=width)
    outcomes, states = figure.axes
    assert np.column_stack(outcomes.lines[0].get_data()) == pytest.approx(np.array([[0.5, 0.7], [1, 1]]))
    assert np.column_stack(states.lines[0].get_data()) == pytest.approx(np.array([[0.5, 5.0], [1, 0]]))
    assert len(outcomes.collections) == len(states.collections) == 1
    assert outcomes.get_title(loc="left") == "Outcomes relative to those at 100 %"
    assert figure_caption(figure).startswith(
        "Means over n = 2 seeds; bands: 95 % intervals; by the share of open choices"
    )
    alone = drift_figure(drift[drift["seed"] == 1], width=width)
    assert not alone.axes[0].collections
    assert "bands" not in figure_caption(alone)
