"""An agent that reshares everything, and names of states."""

from prism_mesa.social.agent import SocialAgent
from prism_mesa.statechart import (
    AgentState,
)

IDLE, SCROLLING, RESTING = AgentState.IDLE, AgentState.SCROLLING, AgentState.RESTING


class Echo(SocialAgent):
    """Reads its whole feed and reshares all of it."""

    def step(self):
        while (post := self.read()) is not None:
            self.reshare(post)
