"""Pictures show the tables: their numbers, labels and scales are looked up in the drawn artists."""

import numpy as np
import pandas as pd
import pytest
from worlds import plain

from prism_mesa.errors import DataError
from prism_mesa.runs.social import run
from prism_mesa.statechart import AgentState
from prism_mesa.view.plots import cascades_figure, draw_run, engagement_figure, states_figure

STATES = [state.value for state in AgentState]


def rounds_table(n):
    shares = np.linspace(0.02, 0.23, 8)
    shares /= shares.sum()
    columns = {f"share_{name}": np.roll(shares, i)[:1].repeat(n) for i, name in enumerate(STATES)}
    counts = {"likes": np.arange(n) * 3, "replies": np.arange(n), "reshares": np.full(n, 2)}
    return pd.DataFrame({"round": np.arange(n), **columns, **counts})


def drawn(figure):
    figure.draw_without_rendering()
    return figure.axes[0]


def test_states_are_eight_layers_that_fill_the_height_with_idle_on_top():
    table = rounds_table(4)
    axes = drawn(states_figure(table))
    layers = {layer.get_label(): layer.get_paths()[0].get_extents() for layer in axes.collections}
    assert sorted(layers) == sorted(STATES)
    for name, box in layers.items():
        assert box.height == pytest.approx(table[f"share_{name}"][0])
        assert (box.x0, box.x1) == (-0.5, 3.5)
    assert max(box.y1 for box in layers.values()) == pytest.approx(1) == layers["idle"].y1
    assert axes.get_ylim() == (0, 1)
    assert axes.get_legend().get_texts()[0].get_text() == "idle"  # in the order of the layers
    assert len({tuple(layer.get_facecolor()[0]) for layer in axes.collections}) == 8
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("round", "share of agent-ticks")


def test_cascade_sizes_are_a_ccdf_on_two_logarithmic_axes():
    axes = drawn(cascades_figure(pd.DataFrame({"size": [1, 1, 1, 2, 5]})))
    [line] = axes.lines
    assert line.get_xdata().tolist() == [1, 2, 5]
    assert line.get_ydata().tolist() == pytest.approx([1, 0.4, 0.2])
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert "size" in axes.get_xlabel()
    assert "share" in axes.get_ylabel()


def test_engagement_is_one_labelled_line_for_each_kind():
    table = rounds_table(5)
    axes = drawn(engagement_figure(table))
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines) == ["likes", "replies", "reshares"]
    for name, line in lines.items():
        assert line.get_ydata().tolist() == table[name].tolist()
    assert len({line.get_marker() for line in lines.values()}) == 3  # to be told apart without colours
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(lines)
    assert axes.get_ylim()[0] == 0


def test_a_run_of_one_round_has_whole_rounds_on_its_axes():
    for figure in (states_figure(rounds_table(1)), engagement_figure(rounds_table(1))):
        low, high = drawn(figure).get_xlim()
        shown = [tick for tick in drawn(figure).get_xticks() if low <= tick <= high]
        assert shown == [0]


def test_a_platform_without_posts_or_engagement_is_drawn_without_fractions_of_a_like():
    axes = drawn(cascades_figure(pd.DataFrame({"size": np.array([], np.int64)})))
    assert [text.get_text() for text in axes.texts] == ["nobody posted"]
    quiet = rounds_table(3).assign(likes=0, replies=0, reshares=0)
    assert drawn(engagement_figure(quiet)).get_yticks().tolist() == [0, 1]


@pytest.mark.slow
def test_a_run_is_drawn_into_three_png_files(tmp_path):
    small = plain({"agents": {"n": 20}, "network": {"mean_degree": 4}, "rounds": 2, "ticks_per_round": 4})
    folder = run(small, out=tmp_path).run_dir
    files = draw_run(folder)
    assert [file.name for file in files] == ["states.png", "cascades.png", "engagement.png"]
    for file in files:
        assert file.parent == folder
        assert file.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_a_folder_without_tables_cannot_be_drawn(tmp_path):
    with pytest.raises(DataError, match=r"no table '(rounds|cascades)' there \(it has: none\)"):
        draw_run(tmp_path)
