import dataclasses
import re

import pytest
from matplotlib.figure import Figure
from read_reports import WHEN
from study_results import HOSTILE, factorial, sobol, two_arms

from prism_mesa.studies.statistics.analysis import analyse
from prism_mesa.view.plots.files import to_png, to_svg
from prism_mesa.view.plots.style import PALETTE
from prism_mesa.view.study.blocks import all_pictures
from prism_mesa.view.study.comparisons import comparisons_section
from prism_mesa.view.study.figures import (
    difference_figure,
    difference_rows,
    distribution_picture,
    figures_section,
    interaction_figure,
    interaction_terms,
    morris_figure,
    share_figure,
)
from prism_mesa.view.study.report import write_report


def test_each_run_is_a_point_and_paired_runs_are_joined(tmp_path):
    result = two_arms(tmp_path)
    [axes] = distribution_picture(result, "reshares").draw().axes
    [joined, first, second] = axes.collections
    runs = result.table.runs
    for drawn, arm in ((first, "chronological"), (second, "ranked")):
        assert sorted(drawn.get_offsets()[:, 0]) == sorted(runs.loc[runs["arm"] == arm, "reshares"])
    pairs = runs.pivot(index="seed", columns="arm", values="reshares")
    ends = [tuple(points[:, 0]) for points in joined.get_segments()]
    assert sorted(ends) == sorted(zip(pairs["chronological"], pairs["ranked"], strict=True))
    assert [text.get_text() for text in axes.get_yticklabels()] == ["chronological", "ranked"]
    assert "Thin lines join runs with the same seed." in distribution_picture(result, "reshares").caption[1]
    result = dataclasses.replace(result, table=dataclasses.replace(result.table, paired=False))
    assert len(distribution_picture(result, "reshares").draw().axes[0].collections) == 2
    assert "Thin lines" not in distribution_picture(result, "reshares").caption[1]


def test_means_are_drawn_with_the_intervals_of_the_analysis(tmp_path):
    result = two_arms(tmp_path)
    [axes] = distribution_picture(result, "reshares").draw().axes
    expected = result.analysis.answers[result.analysis.answers["measure"] == "reshares"]
    bars, means = axes.lines[::2], axes.lines[1::2]
    assert [tuple(bar.get_xdata()) for bar in bars] == list(zip(expected["low"], expected["high"], strict=True))
    assert [mean.get_xdata()[0] for mean in means] == list(expected["mean"])


def test_conditions_are_grouped_by_what_they_share_and_failed_runs_are_no_points(tmp_path):
    result = factorial(tmp_path)
    [axes] = distribution_picture(result, "cascade_mean").draw().axes
    labels = [(text.get_text(), text.get_fontweight()) for text in axes.get_yticklabels()]
    levels = [("media_share 0.1", "normal"), ("media_share 0.6", "normal")]
    assert labels == [("mode chronological", "bold"), *levels, ("mode x_algo", "bold"), *levels]
    points = [drawn for drawn in axes.collections if len(drawn.get_offsets()) > 1]
    assert sum(len(drawn.get_offsets()) for drawn in points) == 95
    assert "(n = 95 runs)" in distribution_picture(result, "cascade_mean").caption[1]


def test_an_interaction_has_a_line_for_each_level_with_the_means_of_the_analysis(tmp_path):
    result = factorial(tmp_path)
    axis, lines = interaction_terms(result.table)
    assert (axis, lines) == ("feed.mode", "posts.media_share")
    assert interaction_terms(two_arms(tmp_path).table) == interaction_terms(sobol(tmp_path).table) == ()
    figure = interaction_figure(result, ["cascade_mean"], (axis, lines))
    answers = result.analysis.answers.query("measure == 'cascade_mean'")
    for drawn, share in zip(figure.axes[0].containers, (0.1, 0.6), strict=True):
        assert list(drawn[0].get_ydata()) == list(answers.loc[answers["posts.media_share"] == share, "mean"])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["0.1", "0.6"]


def test_sobol_indices_are_bars_with_intervals_in_the_order_of_the_factors(tmp_path):
    result = sobol(tmp_path)
    [axes] = share_figure(result, ["reshares"]).axes
    widths = [[bar.get_width() for bar in bars] for bars in axes.containers if hasattr(bars, "patches")]
    assert widths == [[0.31, 0.36, 0.11], [0.44, 0.49, 0.12]]
    assert [text.get_text() for text in axes.get_yticklabels()] == list(result.table.factors)


def test_shares_of_the_variance_are_bars_with_intervals_and_part_of_the_report(tmp_path):
    result = factorial(tmp_path)
    measure, shares = result.table.measures[0], result.analysis.sensitivity
    [axes] = share_figure(result, [measure]).axes
    shares = shares[shares["measure"] == measure]
    [widths] = [[bar.get_width() for bar in bars] for bars in axes.containers if hasattr(bars, "patches")]
    assert widths == shares["value"].tolist()
    sources = [text.get_text() for text in axes.get_yticklabels()]
    assert sources == shares["factor"].tolist() == [*result.table.factors, "interactions", "seed"]
    assert "variance" in [picture.name for picture in all_pictures((figures_section(result),))]
    assert "Where the variance comes from" in [part.title for part in comparisons_section(result).parts]


def test_morris_shows_each_factor_by_its_mean_effect_and_spread(tmp_path):
    result = sobol(tmp_path, index="mu_star")
    [axes] = morris_figure(result, ["reshares"]).axes
    points = {
        line.get_label(): tuple(line.get_xydata()[0]) for line in axes.lines if line.get_label() in result.table.factors
    }
    assert points == {"agents.band": (0.31, 0.44), "agents.activity": (0.36, 0.49), "feed.size": (0.11, 0.12)}


def test_the_measures_of_expectations_are_drawn_first_and_those_left_out_are_named(tmp_path):
    result = two_arms(tmp_path)
    names = tuple(f"more_{n}" for n in range(6))
    runs = result.table.runs.assign(**dict.fromkeys(names, 1.0))
    table = dataclasses.replace(result.table, runs=runs, measures=(*names, *result.table.measures))
    section = figures_section(dataclasses.replace(result, table=table))
    drawn = [picture.name for picture in all_pictures([section]) if picture.name.startswith("distribution")]
    assert drawn[:4] == [f"distribution-{name}" for name in ("gini_impressions", "cascade_mean", "reshares", "more_0")]
    left_out = [getattr(part, "text", part) for part in section.blocks[-1].words]
    assert left_out == ["Not drawn: ", "more_3", ", ", "more_4", ", ", "more_5", "."]


def test_a_figure_on_a_page_has_the_pages_colours_and_letters_and_no_markup_in_texts():
    figure = Figure()
    axes = figure.add_subplot()
    axes.set_title(HOSTILE, parse_math=False)
    axes.plot([0, 1], color=PALETTE[0])
    svg = to_svg(figure)
    assert svg.startswith("<svg ")
    assert "stroke: var(--c1)" in svg
    assert "<script" not in svg
    assert not re.search(r"#(000000|010101|ffffff|0072b2)|DejaVu", svg)
    assert (svg, to_png(figure)) == (to_svg(figure), to_png(figure))


# -- differences ---------------------------------------------------------------------------------------


def test_a_figure_shows_the_difference_of_each_expectation_with_its_interval_and_margin(tmp_path):
    result = two_arms(tmp_path)
    texts = ["gini_impressions: ranked = chronological within 0.05", "reshares: ranked > chronological"]
    result = dataclasses.replace(result, analysis=analyse(result.table, texts))
    figure = difference_figure({name: difference_rows(result, name) for name in ("gini_impressions", "reshares")})
    for axes, verdict in zip(figure.axes, result.analysis.expectations, strict=True):
        interval, mean, zero = axes.lines
        assert list(interval.get_xdata()) == list(verdict.interval)
        assert [*mean.get_xdata(), *zero.get_xdata()] == [verdict.difference, 0, 0]
        assert axes.get_yticklabels()[0].get_text() == f"{verdict.text.partition(': ')[2]} ({verdict.verdict})"
    assert [len(axes.collections) for axes in figure.axes] == [1, 0]  # the margin


def test_without_expectations_each_level_is_drawn_against_the_first(tmp_path):
    result = factorial(tmp_path)
    rows = difference_rows(result, "cascade_mean")
    differences = result.analysis.differences.query("measure == 'cascade_mean'")["difference"]
    assert [row[0] for row in rows] == ["media_share: 0.6 \u2212 0.1", "mode: x_algo \u2212 chronological"]
    assert [row[1] for row in rows] == differences.tolist()


@pytest.mark.slow
@pytest.mark.usefixtures("coarse_pictures")
def test_figures_are_written_in_another_format_too_and_those_of_an_older_report_are_gone(tmp_path):
    figures = tmp_path / "figures"
    figures.mkdir()
    (figures / "17-before.png").touch()
    write_report(two_arms(tmp_path), date=WHEN, figures="pdf")
    names = {file.stem for file in figures.glob("*.png")}
    assert {file.stem for file in figures.glob("*.pdf")} == names
    assert "01-differences" in names
    assert "17-before" not in names
