"""The eight states an agent can be in. This module never changes one."""

from enum import Enum
from typing import NoReturn

from prism_mesa.errors import ChartError, did_you_mean


class AgentState(str, Enum):  # noqa: UP042 - the contract asks for a `str` enum whose str() is the member
    """What an agent is doing now. The values are lowercase, for JSON and tables."""

    IDLE = "idle"
    SCROLLING = "scrolling"
    EVALUATING = "evaluating"
    COMPOSING = "composing"
    ENGAGING_LIKE = "engaging_like"
    ENGAGING_REPLY = "engaging_reply"
    ENGAGING_RESHARE = "engaging_reshare"
    RESTING = "resting"

    @property
    def code(self) -> int:
        """The state's place in this enum, 0..7: what the columns hold."""
        return _CODES[self]

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        names = [state.value for state in cls]
        raise ChartError(
            f"{value!r} is not a state (allowed: {', '.join(names)}).{did_you_mean(str(value), names)}"
        )


STATES: tuple[AgentState, ...] = tuple(AgentState)
_CODES = {state: code for code, state in enumerate(STATES)}
