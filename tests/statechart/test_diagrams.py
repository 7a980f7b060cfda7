"""Pictures of a chart: Mermaid text and the figure say everything that the chart says."""

import re
from io import BytesIO
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from prism_mesa.social.behavior import social_chart
from prism_mesa.statechart import NEEDS_ORACLE, AgentState, F, Statechart, Transition, draw_chart, mermaid

IDLE, SCROLLING, EVALUATING, COMPOSING = list(AgentState)[:4]
LIKE, REPLY, RESHARE, RESTING = list(AgentState)[4:]
ARROW = re.compile(r"    (\S+) --> (\w+)(?:: (.+))?")


@pytest.fixture(scope="module")
def social():
    """The eight states: an open choice in `decides`, guards that exclude each other in `compose_done`."""
    transitions = [
        Transition("feed_ready", IDLE, SCROLLING),
        Transition("sees_post", SCROLLING, EVALUATING),
        Transition("ignores", EVALUATING, SCROLLING),
        Transition("decides", EVALUATING, COMPOSING, F.post.relevance > F.agent.high_threshold),
        Transition("decides", EVALUATING, SCROLLING, F.post.relevance < F.agent.low_threshold),
        Transition("decides", EVALUATING, None),
        Transition("timeout", EVALUATING, SCROLLING),
        Transition("timeout", COMPOSING, SCROLLING),
        Transition("timeout", SCROLLING, RESTING),
        Transition("timeout", RESTING, SCROLLING),
    ]
    for name, state in (("like", LIKE), ("reply", REPLY), ("reshare", RESHARE)):
        transitions.append(Transition("compose_done", COMPOSING, state, F.agent.pending_action == name))
        transitions += [Transition("action_done", state, RESTING), Transition("timeout", state, RESTING)]
    transitions += [Transition("round_ends", state, IDLE) for state in AgentState if state is not IDLE]
    return Statechart(AgentState, transitions, IDLE, timeouts={RESTING: 2})


@pytest.fixture(scope="module")
def figure(social):
    """Return the figure of the eight states, to be read only: where its arrows go is searched for."""
    return draw_chart(social)


def a_chart(*transitions, **settings):
    """Return a chart of transitions (target, guard) from EVALUATING on "decides", with three states."""
    transitions = [Transition("decides", EVALUATING, *parts) for parts in transitions]
    return Statechart([EVALUATING, COMPOSING, RESTING], transitions, EVALUATING, **settings)


def arrows_of(chart):
    return [match.groups() for match in map(ARROW.fullmatch, mermaid(chart).splitlines()) if match]


def texts_of(figure):
    """Return what is written in the figure, each text on one line."""
    texts = (text.get_text() for text in figure.findobj(Text))
    return [" ".join(text.split()) for text in texts if text]


def diamonds_of(figure):
    return texts_of(figure).count("?")


# Mermaid


def test_mermaid_has_one_arrow_for_each_transition_between_two_states(social):
    expected = sorted((t.source.value, t.target.value) for t in social.transitions if t.target is not None)
    states = {state.value for state in AgentState}
    drawn = sorted((source, target) for source, target, _ in arrows_of(social) if {source, target} <= states)
    assert drawn == expected


def test_mermaid_labels_an_arrow_with_its_trigger_and_its_guard(social):
    found = arrows_of(social)
    assert ("idle", "scrolling", "feed_ready") in found
    assert ("composing", "engaging_like", "compose_done [agent.pending_action == 'like']") in found
    assert ("evaluating", "composing", "decides [post.relevance #gt; agent.high_threshold]") in found


def test_mermaid_shows_the_open_choice_with_all_its_options(social):
    assert "    state oracle_1 <<choice>>\n" in mermaid(social)
    assert ("evaluating", "oracle_1", "decides [else] / oracle (LLM) is asked") in arrows_of(social)
    assert [target for source, target, _ in arrows_of(social) if source == "oracle_1"] == ["composing", "scrolling"]


def test_mermaid_tells_the_ticks_of_a_timeout(social):
    found = arrows_of(social)
    assert ("resting", "scrolling", "timeout after 2 ticks") in found
    assert ("composing", "scrolling", "timeout after agent.timeout_threshold") in found
    once = Statechart([IDLE, RESTING], [Transition("timeout", RESTING, IDLE)], IDLE, timeouts={RESTING: 1})
    assert ("resting", "idle", "timeout after 1 tick") in arrows_of(once)


@pytest.mark.parametrize(
    ("transitions", "says"),
    [
        ([(COMPOSING,), (RESTING,)], "oracle (LLM) is asked"),
        (
            [(COMPOSING, F.post.relevance > 0.2), (RESTING, F.post.relevance < 0.6)],
            "oracle (LLM) is asked where guards overlap",
        ),
        ([(COMPOSING, lambda agent, post: NEEDS_ORACLE), (RESTING,)], "oracle (LLM) may be asked, guards are code"),
    ],
)
def test_both_pictures_say_why_the_oracle_is_asked_where_every_transition_has_a_target(transitions, says):
    chart = a_chart(*transitions)
    assert ("evaluating", "oracle_1", f"decides / {says}") in arrows_of(chart)
    figure = draw_chart(chart)
    assert says in texts_of(figure)
    assert diamonds_of(figure) == 1


def test_guards_that_exclude_each_other_ask_no_oracle():
    chart = a_chart((COMPOSING, F.post.relevance > 0.6), (RESTING, F.post.relevance < 0.2))
    assert "oracle" not in mermaid(chart)
    assert diamonds_of(draw_chart(chart)) == 0


def test_without_an_oracle_the_open_choice_leads_to_its_first_option_only():
    chart = a_chart((COMPOSING, F.post.relevance > 0.6), (RESTING, F.post.relevance < 0.2), (None,))
    chart = chart.with_settings(oracle_enabled=False)
    assert [target for source, target, _ in arrows_of(chart) if source == "oracle_1"] == ["composing"]
    assert "oracle disabled, the first option is taken" in texts_of(draw_chart(chart))


# The figure


@pytest.mark.slow
def test_the_figure_names_every_state_trigger_and_guard(social, figure):
    written = texts_of(figure)
    assert {state.value for state in AgentState} <= set(written)
    for transition in social.transitions:
        assert any(transition.trigger in text and transition.guard_label in text for text in written), transition


def test_the_figure_shows_the_oracle_the_ticks_and_the_end_of_the_round(figure):
    written = texts_of(figure)
    assert diamonds_of(figure) == 1
    assert {"oracle (LLM) is asked", "initial state", "decides [else]", "timeout after 2 ticks"} <= set(written)
    assert [text for text in written if "round_ends" in text] == ["round_ends: any active state \u2192 idle"]


@pytest.mark.slow
def test_no_two_texts_overlap(figure):
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.findobj(Text) if text.get_text()]
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]


def test_an_arrow_from_a_state_to_itself_leaves_and_comes_back_at_two_places():
    chart = Statechart([EVALUATING], [Transition("ignores", EVALUATING, EVALUATING)], EVALUATING)
    _, loop = draw_chart(chart).axes[0].lines
    points = loop.get_xydata()
    assert np.hypot(*(points[-1] - points[0])) > 0.3  # inches


@pytest.mark.slow
def test_the_picture_on_the_front_page_is_the_default_chart():
    kept = Image.open(Path(__file__).parents[2] / "docs" / "pictures" / "social-chart.png").convert("RGBA")
    drawn = BytesIO()
    draw_chart(social_chart).savefig(drawn, dpi=150)
    small = Image.open(drawn).convert("RGBA").resize(kept.size, Image.Resampling.LANCZOS)
    differ = np.abs(np.asarray(small, float) - np.asarray(kept, float)).max(axis=2) > 60  # fewer colours are kept
    assert differ.mean() < 0.0001


def test_signs_that_end_a_label_in_mermaid_are_written_as_entities():
    chart = a_chart((COMPOSING, F.agent.pending_action == 'a:b;"%'))
    assert any(label == "decides [agent.pending_action == 'a#58;b#59;#quot;#37;']" for _, _, label in arrows_of(chart))
