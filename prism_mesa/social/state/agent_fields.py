"""The numeric fields of agents.

Each field is a row of `Population.numbers`, a property of agents, a value that guards, feeds and user functions can
read, a column of `agents.profiles` and of the table `agents`, and a row of the ODD description. `draw_profiles` draws
the values.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt


class AgentField(NamedTuple):
    """A numeric field of every agent, from `low` to `high`; `whole` is True for whole numbers."""

    name: str
    meaning: str
    unit: str
    low: float = 0
    high: float = 1
    whole: bool = False

    def to_column(self, values: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """Return the values as a column for users; whole numbers become integers."""
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
"""The fields by name, in the order of their rows; kernels rely on the first two rows (`kernels.walking.arrays`)."""
FIELD_ROWS: Final = {name: row for row, name in enumerate(AGENT_FIELDS)}
