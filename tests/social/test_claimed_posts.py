"""What a chart makes of posts outside an agent's band: which it passes by, which it engages with, and what is asked."""

from types import SimpleNamespace

import pytest
from worlds import differing, ran, small

from prism_mesa.social.behavior import build_chart, social_chart, viral_chart
from prism_mesa.statechart import NEEDS_ORACLE, AgentState, F, Statechart, Transition

IDLE, SCROLLING, EVALUATING, COMPOSING = list(AgentState)[:4]
LIVELY = {"agents_n": 60, "agents_activity": 1.0, "agents_activity_sigma": 0.0, "agents_post_rate": 0.5}
NOTED = {"attributes": {"noted": {"of": "post", "values": [True, False], "share": [0.4, 0.6]}}}
IS_ABOVE, IS_BELOW = F.post.utility > F.agent.high_threshold, F.post.utility < F.agent.low_threshold
NOT_NOTED = F.post.noted == False  # noqa: E712


def deciding(*ways, name="own", without=()):
    """Return the default chart with these ways (target, guard) out of EVALUATING on `decides`."""
    kept = [t for t in social_chart.transitions if t.trigger not in ("decides", *without)]
    own = [Transition("decides", EVALUATING, target, *guard) for target, *guard in ways]
    return Statechart(AgentState, [*kept, *own], IDLE, timeouts=social_chart.timeouts, name=name)


def widened(chart, fields=None):
    return [finding for finding in chart.check(fields=fields) if finding.kind == "widens"]


def counts(model):
    return [model.totals[name] for name in ("likes", "replies", "reshares")]


EVERYTHING = {
    "unguarded": deciding((COMPOSING,)),
    "expression": build_chart(engages=F.post.impressions >= 0),
    "callable": deciding((COMPOSING, lambda agent, post: True), (SCROLLING,)),
    "needs an answer": deciding((COMPOSING, lambda agent, post: NEEDS_ORACLE)),
    "each its way": deciding((COMPOSING, F.post.likes > 0), (AgentState.ENGAGING_LIKE,)),
    "without ignores": deciding((COMPOSING,), without=["ignores"]),
}


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
@pytest.mark.parametrize("name", EVERYTHING)
def test_a_chart_that_engages_with_everything_engages_with_every_impression(name, scheduler):
    model = ran(small(chart=EVERYTHING[name], scheduler=scheduler, ticks_per_round=240, **LIVELY), 3)
    engaged = sum(counts(model)) + model.totals["repeated"]
    assert engaged == model.totals["impressions"] > 100


MIXED = {
    "viral below the band": build_chart(engages=IS_ABOVE | (F.post.velocity > 2)),
    "divides": build_chart(engages=1 / F.post.likes > 0.4),
    "by the tick": build_chart(engages=(F.agent.n_unread == 3) | IS_ABOVE),
    "else elsewhere": deciding((SCROLLING, F.post.impressions > 9), (COMPOSING,)),
    "callable and marker": deciding((COMPOSING, lambda a, p: p.likes > 1), (None, lambda a, p: NEEDS_ORACLE)),
    "python": deciding((COMPOSING, lambda a, p: p.likes > 1), (SCROLLING, lambda a, p: a.n_unread > 4), (None,)),
    "guarded none": deciding((COMPOSING, IS_ABOVE), (None, F.post.replies > 0), (SCROLLING,)),
}


@pytest.mark.filterwarnings("ignore:SocialModel. the guard of:prism_mesa.errors.PrismWarning")
@pytest.mark.parametrize("glances", [1, 10])
@pytest.mark.parametrize("name", MIXED)
def test_agents_one_by_one_claim_the_posts_that_columns_claim(name, glances):
    def model(scheduler):
        return ran(small(chart=MIXED[name], scheduler=scheduler, feed_glances=glances, **LIVELY), 5)

    rows, columns = model("mesa"), model("columns")
    assert differing(rows, columns) == []
    if name != "divides":
        assert sum(counts(columns)) > 20


@pytest.mark.parametrize("name", ["viral below the band", "else elsewhere", "callable and marker", "python"])
def test_below_the_band_ignores_is_for_the_posts_that_decides_does_not_claim(name):
    chart = MIXED[name]
    model = small(chart=chart, feed_glances=10, **LIVELY)
    n_claimed = 0
    for round_ in range(5):
        model.step()
        for move in model.recorder.tables["transitions"]:
            if move["round"] != round_ or move["trigger"] not in ("ignores", "decides"):
                continue
            agent, post = model.agent(move["agent"]), model.post(move["post"], move["agent"])
            is_below = post.utility < agent.low_threshold
            if move["trigger"] == "ignores":
                assert is_below
            elif is_below:
                n_claimed += 1
                assert move["to_state"] != "scrolling" or name == "python"
    assert n_claimed > 0


HEEDING = [NOT_NOTED & IS_ABOVE, lambda agent, post: not post.noted and post.utility > agent.high_threshold]


@pytest.mark.parametrize("engages", HEEDING, ids=["expression", "callable"])
@pytest.mark.parametrize("utility", [0.1, 0.45, 0.55, 0.9])
@pytest.mark.parametrize("noted", [False, True])
def test_a_post_that_fails_the_engaging_condition_is_passed_by_unless_the_band_leaves_it_open(noted, utility, engages):
    class Agent:
        state, ticks_in_state, max_history_depth = EVALUATING, 0, 0
        low_threshold, engagement_threshold, high_threshold = 0.4, 0.5, 0.6

        def __init__(self):
            self.state_history = []

    heeding, post = build_chart(engages=engages), SimpleNamespace(noted=noted, utility=utility)
    in_band = 0.4 <= utility <= 0.6
    expected = [COMPOSING, SCROLLING] if in_band else COMPOSING if utility > 0.6 and not noted else SCROLLING
    assert heeding.fire(Agent(), "decides", post) == expected


def test_what_only_widens_what_the_oracle_is_asked_is_found_and_noted():
    below_or_open = (SCROLLING, IS_BELOW), (None,)
    narrowed = deciding((COMPOSING, NOT_NOTED & IS_ABOVE), *below_or_open)
    marked = deciding((COMPOSING, NOT_NOTED & IS_ABOVE), (SCROLLING, IS_BELOW), (None, lambda a, p: NEEDS_ORACLE))
    beside = deciding((COMPOSING, IS_ABOVE), (None, F.post.likes > 3), (SCROLLING,))
    negated = deciding((COMPOSING, ~(F.post.noted | (F.post.utility <= F.agent.high_threshold))), *below_or_open)
    cases = {narrowed: "post.noted == False", negated: "not post.noted", marked: "post.noted == False", beside: "> 3"}
    for chart, condition in cases.items():
        [finding] = widened(chart)
        assert condition in finding.message
        assert any(finding.message in note for note in small(chart=chart, **NOTED).notes)
    for chart in (social_chart, viral_chart, build_chart(engages=NOT_NOTED & IS_ABOVE)):
        assert widened(chart) == []
    apart = deciding((COMPOSING, F.post.likes > 9), (None, (F.post.likes > 3) & (F.post.likes <= 9)), (SCROLLING,))
    assert widened(apart) == []
