"""Figures show the tables: their numbers, labels and scales are looked up in the drawn artists."""

import numpy as np
import pandas as pd
import pytest
from drawn_runs import STATES, kept_run, posts_table, rounds_table
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy import stats
from worlds import plain, small

from prism_mesa.api.runs import open_run
from prism_mesa.errors import ConfigError, DataError
from prism_mesa.runs.measures import gini
from prism_mesa.runs.social import run
from prism_mesa.view.plots.cascades import cascade_tree_figure, cascades_figure
from prism_mesa.view.plots.drawing import draw_run
from prism_mesa.view.plots.engagement import engagement_figure
from prism_mesa.view.plots.files import save
from prism_mesa.view.plots.network import network_figure
from prism_mesa.view.plots.outcomes import lorenz_figure
from prism_mesa.view.plots.states import states_figure
from prism_mesa.view.plots.style import NARROW, figure_caption


def drawn(figure):
    figure.set_layout_engine("none")  # where its axes lie takes half of drawing it
    figure.draw_without_rendering()
    return figure.axes[0]


def labelled_lines(axes):
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def sizes_table(sizes, kinds="post"):
    frame = pd.DataFrame({"size": np.array(sizes, np.int64), "kind": kinds, "structural_virality": 1.0})
    return frame.assign(root=np.arange(len(frame)))


@pytest.fixture
def two_seeds(tmp_path):
    """Two runs of a seed each, whose likes differ by 2 in every round."""
    table = rounds_table(4)
    more = table.assign(likes=table["likes"] + 2)
    return [kept_run(tmp_path / "1", seed=1, rounds=table), kept_run(tmp_path / "2", seed=2, rounds=more)]


def test_states_are_eight_layers_that_fill_the_height_with_idle_on_top(tmp_path):
    table = rounds_table(4)
    axes = drawn(states_figure(kept_run(tmp_path / "run", rounds=table)))
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


def test_states_of_several_seeds_are_a_panel_each_with_means_and_students_intervals(tmp_path):
    shares = [0.01, 0.02, 0.06]
    runs = [
        kept_run(tmp_path / str(seed), seed=seed, rounds=rounds_table(3).assign(share_composing=share))
        for seed, share in enumerate(shares)
    ]
    figure = states_figure(runs)
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    assert sorted(panels) == sorted(STATES)
    [line], [band] = panels["composing"].lines, panels["composing"].collections
    assert line.get_ydata() == pytest.approx([0.03] * 3)
    low, high = stats.t.interval(0.95, 2, 0.03, stats.sem(shares))
    box = band.get_paths()[0].get_extents()
    assert (box.y0, box.y1) == pytest.approx((low, high))
    assert "means of n = 3 seeds; bands: 95 % interval" in figure_caption(figure)
    panel = Figure().add_subplot()
    assert states_figure(runs, ax=panel) is panel.figure
    assert sorted(labelled_lines(panel)) == sorted(set(STATES) - {"idle"})


def test_states_of_groups_are_lines_in_panels_and_one_state_goes_into_axes_of_ones_own(tmp_path):
    table = rounds_table(3)
    runs = {name: kept_run(tmp_path / name, rounds=table) for name in ("a", "$b$")}
    assert [len(axes.lines) for axes in states_figure(runs).axes] == [2] * 8
    panel = Figure().add_subplot()
    states_figure(runs, state="resting", ax=panel)
    assert list(labelled_lines(panel)) == ["a", "$b$"]
    assert not any(text.get_parse_math() for text in panel.get_legend().get_texts())
    with pytest.raises(ConfigError, match=r"states: several groups .* name one \(state=\.\.\.\)"):
        states_figure(runs, ax=panel)
    with pytest.raises(ConfigError, match="states: state='sleeping': 'sleeping' is not a state"):
        states_figure(runs, state="sleeping")


def test_cascade_sizes_are_a_ccdf_of_posts_on_two_logarithmic_axes(tmp_path):
    table = sizes_table([1, 1, 1, 2, 5, 7], ["post"] * 5 + ["reply"])
    figure = cascades_figure(kept_run(tmp_path / "run", cascades=table))
    axes = drawn(figure)
    [line] = axes.lines
    assert line.get_xdata().tolist() == [1, 2, 5]
    assert line.get_ydata().tolist() == pytest.approx([1, 0.4, 0.2])
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert "size" in axes.get_xlabel()
    assert "share" in axes.get_ylabel()
    assert "n = 5 posts of 50 agents" in figure_caption(figure)


@pytest.mark.slow
def test_cascades_stand_beside_real_sizes_and_those_of_other_runs(tmp_path):
    runs = {
        "one": kept_run(tmp_path / "one", cascades=sizes_table([1, 2])),
        "two": [kept_run(tmp_path / str(seed), seed=seed, cascades=sizes_table([1, 1, 3 * seed])) for seed in (1, 2)],
    }
    lines = labelled_lines(drawn(cascades_figure(runs, real={"real": [1, 4, 4, 4]})))
    assert list(lines) == ["one (n = 2)", "two (n = 6)", "real"]
    mean = dict(zip(*lines["two (n = 6)"].get_data(), strict=True))
    assert (mean[1], mean[3], mean[6]) == pytest.approx((1, 1 / 3, 1 / 6))  # one seed has none of 6
    assert lines["real"].get_data()[1].tolist() == [1, 0.75]
    carried = labelled_lines(drawn(cascades_figure(runs["one"], real=True)))["VoterFraud2020 (real)"]
    assert carried.get_xdata()[0] == 1 == carried.get_ydata()[0]
    with pytest.raises(ConfigError, match=r"real: 'x': give sizes of cascades, each at least 1, .* not \[0\]"):
        cascades_figure(runs, real={"x": [0]})


def test_engagement_a_round_is_one_labelled_line_for_each_kind(tmp_path):
    table = rounds_table(5)
    axes = drawn(engagement_figure(kept_run(tmp_path / "run", rounds=table), per="round"))
    lines = labelled_lines(axes)
    assert list(lines) == ["likes", "replies", "reshares"]
    for name, line in lines.items():
        assert line.get_ydata().tolist() == table[name].tolist()
    assert len({line.get_marker() for line in lines.values()}) == 3  # to be told apart without colours
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(lines)
    assert axes.get_ylim()[0] == 0


def test_engagement_per_impression_has_bands_over_seeds_and_says_of_how_many(two_seeds):
    figure = engagement_figure(two_seeds)
    line = labelled_lines(drawn(figure))["likes"]
    assert line.get_ydata() == pytest.approx((rounds_table(4)["likes"] + 1) / 100)
    assert len(figure.axes[0].collections) >= 1
    assert "n = 800 impressions" in figure_caption(figure)
    panel = labelled_lines(engagement_figure({"left": two_seeds[0], "right": two_seeds[1]}).axes[0])
    assert panel["right"].get_ydata() == pytest.approx(
        (rounds_table(4)[["likes", "replies", "reshares"]].sum(axis=1) + 2) / 100
    )


def test_engagement_per_post_is_pooled_by_how_often_posts_were_seen(tmp_path):
    likes = [2] * 6 + [0] * 6 + [1] * 12 + [9]
    table = posts_table([4] * 12 + [15] * 12 + [0], likes=likes)
    figure = engagement_figure(kept_run(tmp_path / "run", posts=table), per="post", kind="likes")
    axes = drawn(figure)
    [line] = axes.lines
    assert line.get_xdata().tolist() == [4, 8]  # classes that double
    assert line.get_ydata() == pytest.approx([12 / 48, 12 / 180])
    half = stats.t.ppf(0.975, 11) * np.sqrt(12 * 12 / 11) / 48  # of twelve posts, each one like off the mean
    box = axes.collections[0].get_paths()[0].get_extents()
    assert (box.y0, box.y1) == pytest.approx((12 / 180, 12 / 48 + half))
    assert [text.get_text() for text in axes.texts] == ["n = 12", "12"]
    assert "n = 25 posts, of which 1 were never seen" in figure_caption(figure)


def test_lorenz_curves_begin_at_0_end_at_1_and_name_the_gini_coefficient(tmp_path):
    amounts = [0, 0, 1, 9]
    tables = {
        "agents": pd.DataFrame({"agent": range(4), "followers": amounts}),
        "posts": posts_table(amounts, likes=amounts),
    }
    folder = kept_run(tmp_path / "run", **tables)
    for what in ("impressions", "engagements", "followers"):
        lines = labelled_lines(drawn(lorenz_figure(folder, what=what)))
        curve = lines[f"Gini {gini(amounts):.2f}"]
        assert np.interp([0, 0.5, 0.75, 1], *curve.get_data()) == pytest.approx([0, 0, 0.1, 1])
        assert "all equal: Gini 0" in lines
    with pytest.raises(
        ConfigError, match="lorenz: what='money': must be one of impressions, engagements, followers, activity"
    ):
        lorenz_figure(folder, what="money")


def test_a_platform_without_posts_or_engagement_is_drawn_without_fractions_of_a_like(tmp_path):
    quiet = rounds_table(3).assign(likes=0, replies=0, reshares=0)
    folder = kept_run(tmp_path / "run", rounds=quiet, cascades=sizes_table([]))
    figure = cascades_figure(folder)
    axes = drawn(figure)
    assert [text.get_text() for text in axes.texts] == ["nobody posted"]
    assert (axes.get_xticks().tolist(), axes.get_yticks().tolist()) == ([], [])
    assert figure_caption(figure) == "There are no cascades: no post appeared. From run (seed 1)."
    assert drawn(engagement_figure(folder, per="round")).get_yticks().tolist() == [0, 1]


def test_a_live_model_is_drawn_as_its_run_is(tmp_path):
    model = small()
    model.run_for(3)
    layers = states_figure(model).axes[0].collections
    shares = model.datacollector.get_model_vars_dataframe()
    assert layers[-1].get_paths()[0].get_extents().height == pytest.approx(shares["share_idle"].max(), abs=0.2)
    assert (
        labelled_lines(engagement_figure(model, per="round").axes[0])["likes"].get_ydata().tolist()
        == shares["likes"].tolist()
    )
    assert cascades_figure(model).axes[0].lines[0].get_ydata()[0] == 1
    assert lorenz_figure(model).axes[0].lines


def test_every_figure_of_a_run_names_the_run_and_its_seed(tmp_path):
    settings = plain({"agents": {"n": 30}, "network": {"mean_degree": 6, "dynamics": "live"}, "rounds": 4, "seed": 7})
    result = open_run(run(settings, out=tmp_path).run_dir)
    named = f"From {result.run_dir.name} (seed 7)."
    figures = {"chart", "cascade_tree", "cascades", "engagement", "homophily", "lorenz", "network", "states"}
    for name in figures:
        assert figure_caption(getattr(result.plot, name)()).endswith(named)
    assert figure_caption(network_figure(result.run_dir)).endswith(named)
    assert figure_caption(result.plot.timeline(result.table("transitions")["agent"].iloc[0])).endswith(named)
    assert "(seed 7)" in " ".join(result.plot.states()._supxlabel.get_text().split())


def test_a_folder_without_tables_cannot_be_drawn(tmp_path):
    with pytest.raises(DataError, match=r"no table '(rounds|cascades)' there \(it has: none\)"):
        draw_run(kept_run(tmp_path / "run"))
    with pytest.raises(DataError, match="no run there"):
        draw_run(tmp_path)


def test_tables_that_cannot_be_are_damaged_in_one_line(tmp_path):
    twice = rounds_table(3).assign(round=[0, 1, 1])
    with pytest.raises(DataError, match="a table has the same round twice: it is damaged"):
        engagement_figure(kept_run(tmp_path / "twice", rounds=twice))
    agents = pd.DataFrame({"agent": [0, 1], "followers": [1, 1]})
    folder = kept_run(tmp_path / "stranger", agents=agents, posts=posts_table([1, 2, 3]))
    with pytest.raises(DataError, match="stranger: a table names agents that table"):
        lorenz_figure(folder)


@pytest.mark.slow
@pytest.mark.usefixtures("coarse_pictures")
def test_a_figure_is_saved_as_its_name_ends_and_in_the_same_bytes(tmp_path):
    figures = [states_figure(kept_run(tmp_path / name / "run", rounds=rounds_table(2)), width=NARROW) for name in "ab"]
    for ending, begins in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
        first, second = (
            save(drawn_figure, tmp_path / f"{i}{ending}").read_bytes() for i, drawn_figure in enumerate(figures)
        )
        assert first == second
        assert first.startswith(begins)
    with pytest.raises(ConfigError, match=r"states.gif': the name of a figure ends in .png, .pdf, .svg"):
        save(figures[0], tmp_path / "states.gif")


@pytest.mark.slow
def test_nothing_lies_outside_of_a_figure_and_letters_have_at_least_6_points(tmp_path):
    """Texts of figures that are made for a page's width are neither cut off nor too small to be read."""
    posts = posts_table([20] * 40, likes=[1] * 40)
    tables = {"rounds": rounds_table(30), "cascades": sizes_table([1, 2, 9]), "posts": posts}
    tables["agents"] = pd.DataFrame({"agent": range(40), "followers": range(40), "name": "Maximiliane von Hohenlohe"})
    folder = kept_run(tmp_path / "run", **tables)
    label = "a label that is as long as those that people give to the arms of their studies"
    both = {label: folder, "short": folder}
    for figure in (
        *(draw(folder, width=NARROW) for draw in (states_figure, cascades_figure, engagement_figure, lorenz_figure)),
        *(draw(both, width=NARROW) for draw in (states_figure, cascades_figure, engagement_figure, lorenz_figure)),
        engagement_figure(folder, per="post", width=NARROW),
        cascade_tree_figure(folder, width=NARROW),
    ):
        figure.draw_without_rendering()
        texts = figure.findobj(lambda text: isinstance(text, Text) and text.get_visible() and text.get_text())
        beyond = _beyond_their_axes({text.axes for text in texts} - {None})
        for text in texts:
            assert text.get_fontsize() >= 6
            box = text.get_window_extent()
            if text.get_clip_on() or box.width == 0 or text in beyond:
                continue
            assert box.x0 >= -1, text
            assert box.y0 >= -1, text
            assert box.x1 <= figure.bbox.x1 + 1, text
            assert box.y1 <= figure.bbox.y1 + 1, text


def _beyond_their_axes(all_axes):
    """Return the labels of ticks that lie outside of their axis and are not shown."""
    beyond = set()
    for axes in all_axes:
        sides = ((axes.get_xticklabels, axes.get_xlim), (axes.get_yticklabels, axes.get_ylim))
        for place, (labels, limits) in enumerate(sides):
            low, high = sorted(limits())
            beyond |= {label for label in labels(which="both") if not low <= label.get_position()[place] <= high}
    return beyond
