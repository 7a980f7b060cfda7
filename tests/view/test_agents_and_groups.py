"""Figures of one agent, of groups of agents, of feeds compared and of the oracle: artists against the tables."""

import json

import numpy as np
import pandas as pd
import pytest
from drawn_runs import kept_run, posts_table, rounds_table
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy import stats
from worlds import plain

from prism_mesa.errors import ConfigError, DataError
from prism_mesa.llm import Ledger
from prism_mesa.llm.ledger import AskedRow, StoredAnswer
from prism_mesa.runs.social import run
from prism_mesa.statechart import STATE_COLORS, AgentState
from prism_mesa.view.plots.answers import oracle_figure
from prism_mesa.view.plots.chart import timeline_figure
from prism_mesa.view.plots.network import homophily_figure, mixing, network_by_attribute_figure, ratios
from prism_mesa.view.plots.outcomes import feeds_figure
from prism_mesa.view.plots.sources import single_run
from prism_mesa.view.plots.style import figure_caption

MOVES = [
    (0, 1, "idle", "scrolling", False),
    (0, 2, "scrolling", "evaluating", False),
    (1, 0, "evaluating", "composing", True),
]


@pytest.fixture
def agent_run(tmp_path):
    """Two rounds of 3 ticks, in which agent 1 of two makes the transitions of `MOVES`."""
    moves = pd.DataFrame(MOVES, columns=["round", "tick", "from_state", "to_state", "open"]).assign(agent=1)
    agents = pd.DataFrame({"agent": [0, 1], "id": ["a", "b"], "name": ["Ann", "Ben $x$"], "recorded_transitions": True})
    ticks = pd.DataFrame({"round": [0, 0, 0, 1, 1, 1], "tick": [1, 2, 3] * 2})
    return kept_run(tmp_path / "run", transitions=moves, agents=agents, ticks=ticks, rounds=rounds_table(2))


@pytest.mark.parametrize("agent", [1, "b", "Ben $x$"])
def test_a_timeline_has_a_bar_for_each_stay_in_a_state_and_a_mark_at_each_open_choice(agent_run, agent):
    figure = timeline_figure(agent_run, agent, width=8.5)
    [axes] = figure.axes
    bars = {}
    for part in axes.collections:
        if isinstance(part, PolyCollection) and part.get_paths():
            bars[to_hex(part.get_facecolor()[0])] = [tuple(path.get_extents().intervalx) for path in part.get_paths()]
    expected = {"idle": (0, 0.25), "scrolling": (0.25, 0.5), "evaluating": (0.5, 1), "composing": (1, 2)}
    assert bars == {STATE_COLORS[AgentState(name)]: [span] for name, span in expected.items()}
    [asked] = [line for line in axes.lines if line.get_label() == "open choice, decided by the oracle"]
    assert asked.get_xdata().tolist() == [1.0]
    assert axes.get_yticklabels()[int(asked.get_ydata()[0])].get_text() == "composing"
    caption = "States of one agent in rounds 0 to 1, each of 3 ticks: n = 3 transitions, 1 of them an open choice, "
    assert f"{caption}decided by the oracle." in figure_caption(figure)
    assert axes.get_title(loc="left") == "Ben $x$, agent 1"


def test_a_timeline_of_nobody_says_who_there_is(agent_run):
    with pytest.raises(DataError, match=r"no agent 'Bob': give a row from 0 to 1, an id or a name"):
        timeline_figure(agent_run, "Bob")
    with pytest.raises(DataError, match="agent 0 did nothing in these rounds"):
        timeline_figure(agent_run, "Ann")


def test_feeds_are_compared_seed_by_seed_with_the_interval_of_the_paired_differences(tmp_path):
    first_round = rounds_table(1).assign(replies=0, reshares=0)
    likes = {"plain": [10, 20, 40], "ranked": [13, 25, 44]}
    groups = {
        label: [
            kept_run(tmp_path / f"{label}{seed}", seed=seed, rounds=first_round.assign(likes=n))
            for seed, n in enumerate(numbers)
        ]
        for label, numbers in likes.items()
    }
    figure = Figure()
    drawn = feeds_figure(groups, outcome="engagements per impression", ax=figure.add_subplot())
    marks = [line for line in drawn.axes[0].lines if line.get_marker() == "s"]
    beyond = np.array([0.03, 0.05, 0.04])
    assert marks[0].get_xdata() == pytest.approx(beyond)
    ends = stats.ttest_1samp(beyond, 0).confidence_interval()
    assert any(len(line.get_xdata()) == 2 and line.get_xdata() == pytest.approx(ends) for line in drawn.axes[0].lines)
    assert "n = 3 pairs of runs with the same seed" in figure_caption(drawn.axes[0])
    whole = feeds_figure(groups, width=8.5)  # without cascades and posts: two outcomes, each with its differences
    assert len(whole.axes) == 4
    with pytest.raises(DataError, match="at least two groups"):
        feeds_figure(groups["plain"])
    with pytest.raises(ConfigError, match="outcome='likes': must be one of impressions per agent and round, "):
        feeds_figure(groups, outcome="likes")


def test_mixing_is_counted_from_row_to_column_and_held_against_the_sums():
    counts = mixing(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 0]), 2)
    assert counts.tolist() == [[2, 1], [1, 2]]
    assert ratios(counts) == pytest.approx(np.array([[4 / 3, 2 / 3], [2 / 3, 4 / 3]]))
    assert np.isnan(ratios(np.array([[3, 0], [0, 0]]))[1]).all()


@pytest.mark.slow
def test_homophily_shows_each_pair_of_groups_as_a_multiple_of_chance(tmp_path):
    blocks = {"kind": "stochastic_block", "mean_degree": 8}
    made = run(plain({"agents": {"n": 40}, "rounds": 2, "network": blocks}), out=tmp_path)
    figure = homophily_figure(made, width=8.5)
    axes = figure.axes[0]
    [picture] = axes.images
    follows = made.summary["follows"]
    assert f"n = {follows:,}" in figure_caption(figure)
    shown = np.asarray(picture.get_array())
    assert np.diag(shown).min() > 0 > shown[~np.eye(len(shown), dtype=bool)].max()  # blocks keep to themselves
    assert float(axes.texts[0].get_text()) == pytest.approx(2 ** shown[0, 0], rel=0.05)
    network = network_by_attribute_figure(made, width=8.5)
    [dots] = [part for part in network.axes[0].collections if isinstance(part, PathCollection)]
    assert len(dots.get_offsets()) == 40
    followers = made.table("agents")["followers"]
    assert dots.get_sizes().argmax() == followers.argmax()
    assert f"all {follows:,} follows" in figure_caption(network)
    with pytest.raises(ConfigError, match="agents have no attribute 'party'"):
        network_by_attribute_figure(made, by="party")
    with pytest.raises(ConfigError, match="what='love': must be one of follows, impressions, engagements"):
        homophily_figure(made, what="love")


def test_the_oracle_is_held_against_what_agents_did_in_bins_with_wilsons_intervals(tmp_path):
    came = ["composing"] * 3 + ["scrolling"] + ["composing"]
    odds = [0.75, 0.75, 0.75, 0.75, 0.05]
    moves = pd.DataFrame({"round": 0, "tick": 1, "agent": range(5), "to_state": came, "open": True})
    folder = kept_run(tmp_path / "run", transitions=moves)
    options = json.dumps(["composing", "scrolling"])
    answers = [
        StoredAnswer(str(i), "", options, "l", "d", "{}", "", "", json.dumps([p, 1 - p])) for i, p in enumerate(odds)
    ]
    with Ledger(folder / "decisions.sqlite") as ledger:
        ledger.write(answers, [AskedRow(0, 1, i, str(i), "llm", run="r") for i in range(5)])
    figure = oracle_figure(folder, width=8.5)
    axes = figure.axes[0]
    [bars] = axes.containers
    assert bars.lines[0].get_xdata() == pytest.approx([0.05, 0.75])
    assert bars.lines[0].get_ydata() == pytest.approx([1.0, 0.75])
    assert [text.get_text() for text in axes.texts] == ["1", "4"]
    assert "n = 5 options" in figure_caption(figure)


def test_an_oracle_that_was_never_asked_for_probabilities_cannot_be_drawn(tmp_path):
    folder = kept_run(tmp_path / "run", posts=posts_table([1]))
    with pytest.raises(DataError, match=r"has no decisions.sqlite: the oracle's answers were not kept"):
        oracle_figure(folder)
    with Ledger(folder / "decisions.sqlite") as ledger:
        ledger.write([], [])
    with pytest.raises(DataError, match=r"no LLM gave probabilities \(reasoner.answer=probabilities\)"):
        oracle_figure(folder)


def test_a_run_on_a_network_from_a_file_has_the_agents_of_that_file(tmp_path):
    edges = tmp_path / "follows.csv"
    edges.write_text("src,dst\nada,ben\nben,cy\ncy,ada\n")
    result = run(plain({"network": {"edges": str(edges)}, "rounds": 2}), out=tmp_path)
    assert (single_run(result.run_dir).config["agents"]["n"], single_run(result.run_dir).n_agents) == (1000, 3)
