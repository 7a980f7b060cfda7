"""The chart with what happened in it, and a cascade as a tree: what was counted, and where it stands."""

import re

import numpy as np
import pandas as pd
import pytest
from drawn_runs import kept_run, rounds_table
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from worlds import small

from prism_mesa.errors import DataError
from prism_mesa.runs.records.in_memory import RowsInMemory
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.view.plots.cascades import cascade_tree, cascade_tree_figure
from prism_mesa.view.plots.chart import OPEN, chart_figure
from prism_mesa.view.plots.style import GREY, figure_caption

MOVES = [
    *[("feed_ready", "idle", "scrolling", False)] * 4,
    *[("sees_post", "scrolling", "evaluating", False)] * 9,
    *[("decides", "evaluating", "composing", True)] * 2,
    *[("decides", "evaluating", "composing", False)] * 3,
    *[("round_ends", state, "idle", False) for state in ("scrolling", "evaluating", "composing", "resting")],
]


def moves_table(rows=MOVES):
    return pd.DataFrame(rows, columns=["trigger", "from_state", "to_state", "open"])


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_the_chart_says_how_often_each_transition_was_taken_and_how_often_it_was_open(tmp_path):
    figure = chart_figure(kept_run(tmp_path / "run", transitions=moves_table(), rounds=rounds_table(2)))
    [axes] = figure.axes
    words = texts(axes)
    assert {"4", "9", "5", "2 open"} <= set(words)
    assert "round_ends\nfrom 4 states: 4" in words  # no arrows for these
    share = 100 * rounds_table(2)["share_composing"].mean()
    assert f"composing\n{share:.2g} %" in words
    assert next(text for text in axes.texts if text.get_text() == "2 open").get_color() == OPEN
    assert "n = 22" in figure_caption(figure)


def test_arrows_are_thicker_the_more_often_they_were_taken_and_dotted_where_never(tmp_path):
    settings = {"statechart": {"chart": None}}
    folder = kept_run(tmp_path / "run", transitions=moves_table(), rounds=rounds_table(2), settings=settings)
    arrows = [patch for patch in chart_figure(folder).axes[0].patches if hasattr(patch, "get_connectionstyle")]
    taken = sorted(arrow.get_linewidth() for arrow in arrows if arrow.get_linestyle() != ":")
    assert taken[-1] == 4.0 > taken[-2] > taken[-3]
    assert sum(arrow.get_linestyle() == ":" for arrow in arrows) > 5  # of the default chart nobody went these ways
    assert to_rgb(GREY) in {arrow.get_edgecolor()[:3] for arrow in arrows}
    settings["statechart"]["chart"] = "somebodys:chart"
    other = kept_run(tmp_path / "own", transitions=moves_table(), rounds=rounds_table(2), settings=settings)
    assert "0" not in texts(chart_figure(other).axes[0])


def test_the_chart_of_several_seeds_has_means_and_into_axes_of_ones_own_it_goes_as_well(tmp_path):
    runs = [
        kept_run(tmp_path / "1", seed=1, transitions=moves_table(), rounds=rounds_table(2)),
        kept_run(tmp_path / "2", seed=2, transitions=moves_table(MOVES * 2), rounds=rounds_table(2)),
    ]
    panel = Figure().add_subplot()
    assert chart_figure(runs, ax=panel) is panel.figure
    assert {"6", "14", "8", "3 open"} <= set(texts(panel))  # 13.5 to the even one
    assert "means over n = 2 seeds" in figure_caption(panel)
    with pytest.raises(DataError, match="chart: 2 groups of runs given"):
        chart_figure({"a": runs[0], "b": runs[1]})


def test_the_chart_of_a_live_model_counts_what_its_recorder_or_its_histories_hold():
    model = small(recorder=RowsInMemory(SOCIAL_TABLES))
    model.run_for(2)
    first = model.recorder.table("transitions")
    sees = (first["from_state"].astype(str) == "idle").sum()
    assert f"{sees:,}" in texts(chart_figure(model).axes[0])
    model.recorder = None
    figure = chart_figure(model)
    held = int(np.minimum(model.history.count, model.history.depth).sum())
    assert f"(n = {held:,}), the last {model.history.depth} of each agent" in figure_caption(figure)
    with pytest.raises(DataError, match="no agent has moved"):
        chart_figure(small())


def posts(*rows):
    """Return a table `posts`; rows are round, kind, parent, root."""
    frame = pd.DataFrame(rows, columns=["round", "kind", "parent", "root"])
    return frame.assign(post=np.arange(len(frame)), author=np.arange(len(frame)) + 10)


TREE = (
    (0, "post", -1, 0),
    (0, "post", -1, 1),
    (1, "reshare", 0, 0),
    (1, "reply", 0, 3),  # begins a cascade of its own
    (2, "reshare", 2, 0),
    (4, "reshare", 2, 0),
    (3, "reshare", 0, 0),
    (3, "reshare", 1, 1),
)


def test_a_tree_has_each_reshare_below_what_it_passed_on_and_leaves_on_rows_of_their_own():
    tree = cascade_tree(posts(*TREE), 0).set_index("post")
    assert tree["depth"].to_dict() == {0: 0, 2: 1, 4: 2, 5: 2, 6: 1}
    assert tree["row"].to_dict() == {0: 1.25, 2: 0.5, 4: 0, 5: 1, 6: 2}
    chain = posts((0, "post", -1, 0), *((i + 1, "reshare", i, 0) for i in range(5000)))  # deeper than Python calls
    assert cascade_tree(chain, 0)["depth"].max() == 5000


def test_the_largest_cascade_is_drawn_over_rounds(tmp_path):
    agents = pd.DataFrame({"agent": [10, 11], "name": ["A $dollar$", "B"]})
    folder = kept_run(tmp_path / "run", posts=posts(*TREE), agents=agents)
    figure = cascade_tree_figure(folder)
    [axes] = figure.axes
    [lines] = [part for part in axes.collections if isinstance(part, LineCollection)]
    ends = sorted(tuple(path.vertices[-1]) for path in lines.get_paths())
    assert ends == [(1, 0.5), (2, 0), (3, 2), (4, 1)]
    dots = {part.get_label(): len(part.get_offsets()) for part in axes.collections if isinstance(part, PathCollection)}
    assert dots == {"the post": 1, "depth 1": 2, "depth 2": 2}
    assert axes.get_title(loc="left") == "The cascade of post 0, by A $dollar$"
    assert "n = 5 posts: one and 4 reshares, depth 2, breadth 2" in figure_caption(figure)
    assert "by agent 13" in cascade_tree_figure(folder, root=3).axes[0].get_title(loc="left")


def test_a_cascade_that_is_not_there_is_an_error(tmp_path):
    folder = kept_run(tmp_path / "run", posts=posts(*TREE))
    with pytest.raises(DataError, match=re.escape("root: 99: is not a post of run (0 to 7)")):
        cascade_tree_figure(folder, root=99)
    with pytest.raises(DataError, match="root: post 4 is a reshare: give the root of its cascade, 0"):
        cascade_tree_figure(folder, root=4)
    with pytest.raises(DataError, match="nobody posted: there is no cascade to draw"):
        cascade_tree_figure(kept_run(tmp_path / "none", posts=posts(*TREE)[:0]))
