"""A chart of your own: agents behave as by default, but follow the crowd."""

from prism_mesa import AgentState, F, Statechart, Transition
from prism_mesa.social.behavior import social_chart

# Velocity counts the likes, replies and reshares of a post in the last rounds.
MOVES_FAST = F.post.velocity > 2

# A post below an agent's band triggers `ignores`, and by default the agent scrolls on. Now it responds to fast posts.
follows_crowd = Transition("ignores", AgentState.EVALUATING, AgentState.COMPOSING, guard=MOVES_FAST)

crowd = Statechart(
    AgentState,
    [follows_crowd, *social_chart.transitions],
    AgentState.IDLE,
    timeouts=social_chart.timeouts,
    name="crowd",
)
