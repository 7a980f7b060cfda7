"""The examples that the check of a chart gives have values that agents and posts can have."""

import re

import numpy as np
import pytest
from worlds import ran, small

from prism_mesa.social.behavior import FIRED_TRIGGERS, build_chart, configure_chart, social_chart, viral_chart
from prism_mesa.social.chart_checks import GUARD_FIELDS
from prism_mesa.social.round.columns import FIELDS
from prism_mesa.statechart import AgentState, F, Statechart, Transition
from prism_mesa.statechart.definition import StatechartParams

IDLE, SCROLLING, EVALUATING, COMPOSING = list(AgentState)[:4]
EXAMPLES = ("gap", "open", "overlap")
KINDS = ("post", "reply", "reshare")
SHARES = ("agent.engagement_threshold", "agent.activity", "agent.post_rate", "post.relevance")
TRAITS = ("openness", "conscientiousness", "extraversion", "agreeableness", "neuroticism")
COUNTS = (
    "agent.ticks_in_state",
    "agent.n_unread",
    "post.likes",
    "post.impressions",
    "post.velocity",
    "post.round",
    "post.author",
)


def examples(chart):
    """Return the examples of a chart's findings: for each, where and field -> text."""
    checked = configure_chart(StatechartParams(), asks_action=False, chart=chart).check(FIRED_TRIGGERS, GUARD_FIELDS)
    shown = [(f.where, f.message.partition("for example ")[2]) for f in checked if f.kind in EXAMPLES]
    return [(where, dict(re.findall(r"(\w+\.\w+) = ([^,]+)", text))) for where, text in shown if text]


@pytest.mark.parametrize("asks_action", [True, False])
@pytest.mark.parametrize("oracle_enabled", [True, False])
def test_the_charts_that_come_with_prism_have_no_errors(asks_action, oracle_enabled):
    """A platform takes them unchecked."""
    chart = configure_chart(StatechartParams(oracle_enabled=oracle_enabled), asks_action=asks_action)
    assert {finding.level for finding in chart.check(FIRED_TRIGGERS, GUARD_FIELDS)} <= {"note", "warning"}


def is_possible(name, text, where):
    """Return whether an agent or a post of a real world can have a value, by rules of the test's own."""
    if name == "agent.state":
        return text == where.split()[0]
    if name == "agent.pending_action":
        return text in ("like", "reply", "reshare", "None")
    if name == "post.kind":
        return text in KINDS
    if name in ("agent.scripted", "post.has_media"):
        return text in ("True", "False")
    if name in SHARES:
        return 0 <= float(text) <= 1
    if name.removeprefix("agent.") in TRAITS:
        return 1 <= float(text) <= 5
    if name in COUNTS:
        return text.isdecimal()
    if name == "post.utility":
        return -1 <= float(text) <= 2
    return name in ("agent.low_threshold", "agent.high_threshold", "agent.timeout_threshold")


def deciding(*guards):
    own = [
        Transition("decides", EVALUATING, target, guard=guard)
        for guard, target in zip(guards, (COMPOSING, SCROLLING, COMPOSING), strict=False)
    ]
    kept = [t for t in social_chart.transitions if t.trigger != "decides"]
    return Statechart(AgentState, [*kept, *own], IDLE, name="own")


@pytest.mark.parametrize(
    "guard",
    [
        F.agent.engagement_threshold > 3,
        F.agent.openness - F.agent.neuroticism > 2.5,
        F.post.likes / F.post.impressions > 0.9,
        F.post.kind != "reply",
        (F.agent.pending_action == "like") & (F.post.has_media == 1),
        F.agent.scripted,
        F.post.relevance > F.agent.low_threshold,
        F.post.author == F.agent.row,
    ],
    ids=str,
)
def test_examples_name_values_that_exist(guard):
    shown = examples(deciding(guard)) + examples(deciding(guard, ~guard)) + examples(deciding(guard, F.post.round > 3))
    assert shown
    for where, fields in shown:
        for name, text in fields.items():
            assert name == "agent.row" or is_possible(name, text, where), (where, name, text)


@pytest.mark.parametrize("chart", [social_chart, viral_chart, build_chart(asks_action=True)], ids=["", "viral", "asks"])
def test_the_charts_that_come_along_have_possible_examples_of_what_their_guards_read(chart):
    shown = examples(chart)
    assert any(where == "evaluating --decides-->" for where, _ in shown)
    for where, fields in shown:
        assert all(is_possible(name, text, where) for name, text in fields.items()), (where, fields)
        if "agent.low_threshold" in fields:
            assert float(fields["agent.low_threshold"]) <= float(fields["agent.high_threshold"])
        assert ("agent.low_threshold" in fields) == (where == "evaluating --decides-->")


def test_what_is_said_of_the_values_of_fields_holds_in_a_world():
    model = ran(small(agents_activity=0.9, agents_band=0.4, agents_post_rate=0.5), 3)
    seen = {}
    for agent in model.agents:
        posts = [model.post(int(i), agent.row) for i in range(0, len(model.posts), 7)]
        for root, things in (("agent", [agent]), ("post", posts)):
            for name in (name for name in FIELDS if name.startswith(root)):
                seen.setdefault(name, []).extend(getattr(thing, name.partition(".")[2]) for thing in things)
    assert set(seen) == FIELDS
    for name, found in seen.items():
        values = GUARD_FIELDS[name]
        for value in found:
            if values.names:
                assert value in values.names, name
            elif values.is_number:
                assert values.low <= value <= values.high, name
                assert not values.whole or float(value).is_integer(), name
            else:
                assert value is None or isinstance(value, str | int | np.integer), name
