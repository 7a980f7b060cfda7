"""Expressions that are written as text."""

from types import SimpleNamespace

import pytest

from prism_mesa.statechart import F, parse_expression


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("agent.x > 1", F.agent.x > 1),
        ("agent.x > -1.5 and agent.y == 'left'", (F.agent.x > -1.5) & (F.agent.y == "left")),
        ("(agent.x > 1) & ~(agent.y < 2) | true", (F.agent.x > 1) & ~(F.agent.y < 2) | True),
        ("not agent.x or agent.y or agent.z", ~F.agent.x | F.agent.y | F.agent.z),
        ("post.likes / (1 + post.impressions) * 2 - 1 >= agent.x", None),
        ("1 < agent.x <= 3", (F.agent.x > 1) & (F.agent.x <= 3)),
        ("agent.scripted == False", F.agent.scripted == False),  # noqa: E712
    ],
)
def test_a_text_is_the_expression_that_it_writes(text, expression):
    found = parse_expression(text)
    if expression is not None:
        agents = [SimpleNamespace(x=x, y=y, z=False, scripted=x > 1) for x in (-2, 0, 2, 3, 4) for y in (0, "left")]
        values = [[_value(one, agent) for agent in agents] for one in (found, expression)]
        assert values[0] == values[1]
    assert found.fields


def _value(expression, agent):
    try:
        return bool(expression(agent))
    except TypeError:
        return "no order"


@pytest.mark.parametrize(
    "text",
    [
        *("", "agent", "agent.x.y", "agent._x", "model.x > 1", "agent.x()", "x > 1", "lambda: 1", "1e999", "\0"),
        *("agent.x > 1; 2", "[agent.x]", "agent.x is 1", "agent.x in (1, 2)", "agent.x ** 9", "-agent.x", "None"),
        *("agent.x > 1 & agent.y < 2", " or ".join(["agent.x"] * 99), "~" * 200 + "agent.x", "agent.x" + " + 1" * 400),
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="expression") as error:
        parse_expression(text)
    assert "\n" not in str(error.value)
