"""Charts whose agents always engage, and counts of what they did."""

from collections import Counter

from prism_mesa.domain import ACTIONS
from prism_mesa.social.behavior import build_chart
from prism_mesa.social.state.outcomes import cascades
from prism_mesa.statechart import AgentState, Statechart, Transition

EVALUATING, SCROLLING, LIKING = AgentState.EVALUATING, AgentState.SCROLLING, AgentState.ENGAGING_LIKE


ALL_ONLINE = {"agents_activity": 1.0, "agents_activity_sigma": 0.0, "agents_post_rate": 0.5, "feed_size": 20}


def always(target, *more, without=()):
    """Return the default chart, but that every post that is read is liked, or reshared, at once."""
    states = {AgentState.IDLE, SCROLLING, EVALUATING, target, AgentState.RESTING}
    dropped = {("decides", EVALUATING), ("ignores", EVALUATING), *without}
    default = [t for t in build_chart().transitions if {t.source, t.target} <= states]
    kept = [t for t in default if (t.trigger, t.source) not in dropped]
    own = [Transition(trigger, EVALUATING, target) for trigger in ("decides", "ignores")]
    return Statechart(states, [*kept, *own, *more], AgentState.IDLE, timeouts={AgentState.RESTING: 2})


def engagements(model, *of):
    """Return the recorded engagements of some agents, of all if none is named: (round, tick, agent, root, action)."""
    rows = model.recorder.tables.get("engagements", [])
    names = ("round", "tick", "agent", "root", "action")
    return [tuple(row[name] for name in names) for row in rows if not of or row["agent"] in of]


def assert_counts_agree(model):
    """Hold the table of engagements against counters, cascades and totals."""
    table = model.recorder.tables.get("engagements", [])
    assert (
        max(Counter((r["agent"], r["root"], r["action"]) for r in table if r["action"] != "reply").values(), default=1)
        == 1
    )
    answered = Counter((r["round"], r["agent"], r["post"]) for r in table if r["action"] == "reply")
    assert max(answered.values(), default=1) == 1
    for action, counter in zip(ACTIONS, ("likes", "replies", "reshares"), strict=True):
        by_root = Counter(row["root"] for row in table if row["action"] == action)
        assert {i: n for i, n in enumerate(getattr(model.posts, counter).tolist()) if n} == by_root
        assert model.totals[counter] == by_root.total()
    trees = cascades(model.posts.parent, model.posts.root, model.posts.kind)
    assert (trees["size"] - 1).tolist() == model.posts.reshares[trees["root"]].tolist()
    by_agent = Counter(row["agent"] for row in table)
    assert model.recorded.n_engaged.tolist() == [by_agent[row] for row in range(len(model.population))]
