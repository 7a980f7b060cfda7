"""Another chart for a model that has been made: all that is made from a chart follows it, or it is refused."""

import own_charts
import pytest
from random_worlds import _distilled
from worlds import differing, ran, small

from prism_mesa.errors import ChartError, ConfigError
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import social_chart, viral_chart
from prism_mesa.social.round import walk_tables
from prism_mesa.statechart import AgentState, F, Statechart, Transition

IDLE, SCROLLING, EVALUATING, COMPOSING = list(AgentState)[:4]
RESTING = AgentState.RESTING
LIVELY = {"agents_activity": 1.0, "agents_activity_sigma": 0.0, "agents_post_rate": 0.5}

eager = Statechart(
    AgentState,
    [
        Transition("decides", EVALUATING, COMPOSING, guard=F.post.relevance > 0.4),
        *(t for t in social_chart.transitions if t.trigger not in ("decides", "ignores")),
        Transition("decides", EVALUATING, SCROLLING),
    ],
    IDLE,
    timeouts={RESTING: 3, SCROLLING: 5},
    name="eager",
)
awake = Statechart(
    [s for s in AgentState if s is not IDLE],
    [t for t in social_chart.transitions if IDLE not in (t.source, t.target)],
    SCROLLING,
    name="awake",
)


class Inheriting(SocialAgent):
    """Has a script that does what every agent does."""

    def step(self):
        super().step()


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
@pytest.mark.parametrize("chart", [eager, viral_chart, awake], ids=lambda chart: chart.name)
def test_a_model_that_is_given_another_chart_is_as_if_made_with_it(scheduler, chart):
    params = {"scheduler": scheduler, "statechart_oracle_enabled": False, **LIVELY}
    made, given = small(chart=chart, **params), small(**params)
    given.chart = chart
    for model in (made, given):
        Inheriting(model, 7)
        ran(model, 3)
    assert differing(made, given) == []
    assert not given.chart.oracle_enabled
    assert given.chart.name == chart.name


def test_a_chart_cannot_be_set_when_agents_have_moved():
    stepped, fired = ran(small(), 1), small()
    fired.agent(3).fire("feed_ready")
    for model in (stepped, fired):
        before = model.chart
        with pytest.raises(ChartError, match=r"SocialModel.chart: agents have moved.*SocialModel\(chart=\.\.\.\)"):
            model.chart = eager
        assert model.chart is before


@pytest.mark.parametrize(
    ("chart", "message"),
    [
        (own_charts.unreachable, "composing: no path of transitions leads to this state"),
        (own_charts.misspelt, "no post has a field 'post.velocty'"),
        ("eager", "'eager' is not a Statechart"),
        (None, "None is not a Statechart"),
    ],
)
def test_a_chart_that_is_refused_leaves_the_one_before(chart, message):
    model = small()
    before, tables = model.chart, model.tables
    with pytest.raises(ChartError, match=message):
        model.chart = chart
    assert (model.chart, model.tables) == (before, tables)


def test_a_chart_of_which_a_distilled_model_has_learned_nothing_is_refused():
    model = small(reasoner=_distilled(social_chart))
    before = model.chart
    states = [IDLE, SCROLLING, EVALUATING, RESTING]
    kept = [t for t in social_chart.transitions if t.source in states and t.target in states]
    left = [Transition("decides", EVALUATING, RESTING), Transition("decides", EVALUATING, SCROLLING)]
    others = [t for t in kept if t.trigger != "decides"]
    with pytest.raises(ConfigError, match="learned none of the open choices of this chart"):
        model.chart = Statechart(states, [*others, *left], IDLE)
    assert model.chart is before


def test_a_trigger_rule_that_kernels_cannot_read_is_refused_and_does_not_always_fire(monkeypatch):
    rule = walk_tables.TriggerRule(SCROLLING, "feed_done", F.agent.mood > 0.5)
    monkeypatch.setattr(walk_tables, "TRIGGER_RULES", (rule, *walk_tables.TRIGGER_RULES))
    with pytest.raises(ValueError, match=r"feed_done in scrolling: .* agent\.mood"):
        walk_tables.WalkTables(social_chart)
