"""Charts of a user's own, for `statechart.chart`. They hold what goes wrong in runs; nothing here is a test."""

from prism_mesa.social.behavior import build_chart
from prism_mesa.statechart import AgentState, F, Statechart, Transition

EVALUATING, COMPOSING, SCROLLING = AgentState.EVALUATING, AgentState.COMPOSING, AgentState.SCROLLING
_kept = [t for t in build_chart().transitions if t.trigger != "decides"]


def deciding_by(guard, name):
    """Return the default chart, but with this guard at `decides`."""
    own = [Transition("decides", EVALUATING, COMPOSING, guard=guard), Transition("decides", EVALUATING, SCROLLING)]
    return Statechart(AgentState, [*_kept, *own], AgentState.IDLE, timeouts={AgentState.RESTING: 2}, name=name)


def _breaks_from_round_1(agent, post):
    if post.round >= 1:
        raise LookupError("no opinion about round 1")
    return True


def _is_interrupted_from_round_1(agent, post):
    if post.round >= 1:
        raise KeyboardInterrupt
    return True


breaking = deciding_by(_breaks_from_round_1, "breaking")
interrupted = deciding_by(_is_interrupted_from_round_1, "interrupted")
unreachable = Statechart(AgentState, [t for t in _kept if t.target is not COMPOSING], AgentState.IDLE, name="cut")


def _always_breaks(agent, post):
    raise LookupError("no opinion at all")


hopeless = deciding_by(_always_breaks, "hopeless")
divided = deciding_by(F.post.relevance / (F.post.likes - F.post.likes) > 0, "divided")
seldom = deciding_by(1 / (F.post.round - 1) < 0, "seldom")
misspelt = deciding_by(F.post.velocty > 3, "misspelt")
tired = deciding_by(F.agent.fatigue > 3, "tired")
heeding = build_chart(engages=F.post.noted == False, name="heeding")  # noqa: E712
heeding_above = build_chart(
    engages=(F.post.utility > F.agent.high_threshold) & (F.post.noted == False),  # noqa: E712
    name="heeding_above",
)
doom = build_chart(
    name="doom",
    more_states={"doomscrolling": SCROLLING},
    transitions=[
        Transition("ignores", EVALUATING, "doomscrolling", F.post.relevance < 0.45),
        Transition("sees_post", "doomscrolling", EVALUATING),
        Transition("feed_done", "doomscrolling", AgentState.IDLE),
        Transition("timeout", "doomscrolling", AgentState.RESTING, F.agent.state == "doomscrolling"),
    ],
)
