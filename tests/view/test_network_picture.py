"""The picture of a network that moves: agents stay where they are, follows are told apart, indices are of all."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex
from worlds import plain

from prism_mesa.errors import DataError
from prism_mesa.params import nest_keys
from prism_mesa.runs.social import run
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.view.plots.drawing import draw_run
from prism_mesa.view.plots.network import CHANGED, Groups, follow_figure, network_figure
from prism_mesa.view.plots.style import GREY, INK, figure_caption


def small(**more):
    group = {} if any(key.startswith("network.") for key in more) else {"network": {"mean_degree": 6}}
    return nest_keys(plain({"agents": {"n": 40, "activity": 0.8}, "ticks_per_round": 8, **group, **more}))


def follows(n, *pairs):
    agent, other = np.array(sorted(pairs)).T
    return FollowNetwork(np.searchsorted(agent, np.arange(n + 1)), other.astype(np.int32))


def drawn(axes):
    inside, between, _ = [part for part in axes.collections if isinstance(part, LineCollection)]
    [agents] = [part for part in axes.collections if isinstance(part, PathCollection)]
    return inside, between, agents


def test_both_panels_have_agents_at_the_same_places_and_tell_follows_inside_from_between():
    before = follows(5, (0, 1), (1, 0), (2, 3), (0, 3))
    after = before.with_changes(np.array([0 << 32 | 2, 4 << 32 | 0]), np.array([2 << 32 | 3]))
    figure = follow_figure(before, after, Groups(np.array([0, 0, 1, 1, -1]), ["left", "right"], "party"))
    panels = [drawn(axes) for axes in figure.axes]
    first, second = (agents.get_offsets() for *_, agents in panels)
    assert np.array_equal(first, second)
    ended, begun = ([part for part in axes.collections if isinstance(part, LineCollection)][2] for axes in figure.axes)
    assert (len(ended.get_segments()), len(begun.get_segments())) == (1, 2)
    assert {to_hex(color) for part in (ended, begun) for color in part.get_colors()} == {CHANGED}
    assert len({tuple(place) for place in first.tolist()}) == 5
    assert [(len(inside.get_segments()), len(between.get_segments())) for inside, between, _ in panels] == [
        (3, 1),
        (2, 3),
    ]
    assert [axes.get_title("left") for axes in figure.axes] == [
        "Before: E-I index -0.500, 4 follows",
        "After: E-I index 0.000, 5 follows",
    ]
    colors = [to_hex(color) for color in panels[0][2].get_facecolors()]
    assert colors[0] == colors[1] != colors[2] == colors[3]
    assert colors[4] == GREY
    assert {to_hex(color) for color in panels[0][1].get_colors()} == {INK}
    ends = {tuple(np.round(end, 9)) for end in panels[0][1].get_segments()[0]}
    assert ends == {tuple(np.round(first[row], 9)) for row in (0, 3)}
    sizes = panels[0][2].get_sizes()
    assert sizes[3] == sizes.max()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        *("left", "right", "others", "follow inside a group", "follow between groups", "ended, or new")
    ]


def test_of_many_agents_and_follows_some_are_drawn_and_the_caption_says_so():
    n = 1500
    pairs = [(row, (row + step) % n) for row in range(n) for step in range(1, 9)]
    figure = follow_figure(
        follows(n, *pairs), follows(n, *pairs[::2]), Groups(np.arange(n) % 9, list("abcdefghi"), "x")
    )
    inside, between, agents = drawn(figure.axes[0])
    assert len(agents.get_offsets()) == 1000
    assert 2200 < len(inside.get_segments()) + len(between.get_segments()) < 2800
    caption = figure_caption(figure)
    assert figure.legends[0].get_title().get_text() == "Who follows whom, by x"
    assert caption.startswith("1,000 of 1,500 agents, drawn evenly, and ")
    assert " % of the follows among them, and 7 % of those that ended or are new, the same in both" in caption
    assert [text.get_text() for text in figure.legends[0].get_texts()][:6] == ["a", "b", "c", "d", "e", "others"]
    assert "12,000 follows" in figure.axes[0].get_title("left")
    [kept] = [{line.tobytes() for line in np.array(part.get_segments())} for part in drawn(figure.axes[1])[:1]]
    first = {line.tobytes() for line in np.array(inside.get_segments())}
    assert kept <= first  # what is drawn after was drawn before, if it was there


def test_a_run_whose_network_moves_has_the_picture_and_another_one_has_not(tmp_path):
    party = {"attributes": {"party": {"of": "agent", "values": ["left", "right"]}}}
    live = {"network.dynamics": "live", "network.rates.follow": 0.2, "network.mean_degree": 6}
    folder = run(small(**{"rounds": 2, **live, **party}), out=tmp_path).run_dir
    figure = network_figure(folder)
    assert figure.legends[0].get_title().get_text() == "Who follows whom, by party"
    counts = [int(axes.get_title("left").split(", ")[1].removesuffix(" follows")) for axes in figure.axes]
    assert counts[1] > counts[0]
    for table in ("rounds", "cascades"):
        (folder / f"{table}.parquet").unlink()
    assert [file.name for file in draw_run(folder, skip_missing=True)] == ["network.png"]
    fixed = run(small(rounds=1), out=tmp_path).run_dir
    with pytest.raises(DataError, match="its network did not change"):
        network_figure(fixed)
