"""The numeric fields of agents, each declared once.

A field becomes a row of `Population.numbers`, a property of agents, a value for guards, feeds and user functions, a
column of `agents.profiles` and the table `agents`, and a row of the ODD description. `draw_profiles` draws it.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt


class AgentField(NamedTuple):
    """A numeric field of every agent, from `low` to `high`; `whole` marks whole numbers."""

    name: str
    meaning: str
    unit: str
    low: float = 0
    high: float = 1
    whole: bool = False

    def as_read(self, values: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """Return values for users; whole numbers become integers."""
        return values.astype(np.int32) if self.whole else values


AGENT_FIELDS: Final = {
    field.name: field
    for field in (
        AgentField("engagement_threshold", "the middle of the band, where choices are open", "relevance"),
        AgentField(
            "timeout_threshold", "how long the agent stays in a state before timeout", "ticks", 1, 2**31 - 1, whole=True
        ),
        AgentField("activity", "how likely the agent is to come online in a round", "probability"),
        AgentField("post_rate", "how likely the agent is to post in a round", "probability"),
    )
}
"""The fields by name, in order of rows; kernels know the first two places (`kernels.walking.arrays`)."""
PLACES: Final = {name: place for place, name in enumerate(AGENT_FIELDS)}
