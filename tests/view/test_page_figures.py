"""The figures of the browser page: what each draws of a model."""

import numpy as np
import pytest
from matplotlib.collections import FillBetweenPolyCollection, PathCollection
from matplotlib.colors import to_hex
from worlds import small

from prism_mesa.social.params import SocialParams
from prism_mesa.statechart import STATE_COLORS, AgentState
from prism_mesa.view import dashboard as app


def collected(model):
    return model.datacollector.get_model_vars_dataframe()


def test_without_a_round_of_history_one_line_stands_for_the_network():
    model = small(statechart_max_history_depth=11, ticks_per_round=10)
    assert "max_history_depth is below ticks_per_round + 2" in app.draw_network(model)


def test_a_big_platform_is_shown_without_making_its_agents():
    model = app.PageModel(SocialParams.model_validate({"agents": {"n": 2000}, "rounds": 2}))
    for _ in range(2):
        model.step()
        assert "2000 agents" in app.caption(model)
        assert "is drawn for up to" in app.draw_network(model)
        for draw in (app.draw_states, app.draw_engagement):
            draw(model).draw_without_rendering()
    assert not model._adopted


def test_the_states_figure_stacks_the_collected_shares_in_each_states_colour():
    model = small()
    model.run_for(3)
    (axes,) = app.draw_states(model).axes
    layers = [c for c in axes.collections if isinstance(c, FillBetweenPolyCollection)]
    by_color = {to_hex(layer.get_facecolor()[0]): layer.get_paths()[0].vertices for layer in layers}
    assert list(by_color) == list(STATE_COLORS.values())[::-1]
    for state, color in STATE_COLORS.items():
        heights = [np.ptp(by_color[color][np.isclose(by_color[color][:, 0], x), 1]) for x in (0, 3)]
        shares = collected(model)[f"share_{state.value}"]
        assert heights == pytest.approx([shares.iloc[0], shares.iloc[-1]])


def test_the_engagement_figure_holds_the_collected_counts():
    model = small()
    model.run_for(3)
    (axes,) = app.draw_engagement(model).axes
    drawn = {to_hex(line.get_color()): line.get_ydata().tolist() for line in axes.lines}
    assert drawn == {
        STATE_COLORS[AgentState.ENGAGING_LIKE]: collected(model)["likes"].tolist(),
        STATE_COLORS[AgentState.ENGAGING_REPLY]: collected(model)["replies"].tolist(),
        STATE_COLORS[AgentState.ENGAGING_RESHARE]: collected(model)["reshares"].tolist(),
    }


def test_the_network_colours_agents_by_the_most_they_did_in_the_last_round():
    model = small()
    model.run_for(3)
    last = [row for row in model.recorder.tables["transitions"] if row["round"] == 2]
    order = list(STATE_COLORS)
    most = [AgentState.IDLE] * 30
    for row in last:
        most[row["agent"]] = max(most[row["agent"]], AgentState(row["to_state"]), key=order.index)
    assert len(set(most)) > 3
    (axes,) = app.draw_network(model).axes
    (dots,) = (c for c in axes.collections if isinstance(c, PathCollection))
    assert [to_hex(color) for color in dots.get_facecolors()] == [STATE_COLORS[state] for state in most]


def test_the_most_followed_agent_is_largest_and_in_the_middle_and_those_who_left_are_not_drawn():
    model = small()
    followers = model.network.n_followers
    (axes,) = app.draw_network(model).axes
    (dots,) = (c for c in axes.collections if isinstance(c, PathCollection))
    distance = np.hypot(*dots.get_offsets().T)
    assert np.argsort(distance).tolist() == np.argsort(-followers, kind="stable").tolist()
    assert np.argmax(dots.get_sizes()) == np.argmax(followers)
    model.agent(3).remove()
    model.step()
    (axes,) = app.draw_network(model).axes
    (dots,) = (c for c in axes.collections if isinstance(c, PathCollection))
    assert len(dots.get_offsets()) == 29
