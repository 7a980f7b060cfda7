"""Who comes to the platform and leaves it while a run goes on: parameters."""

from pydantic import Field

from prism_mesa.params import Params


class ChurnParams(Params):
    """Agents who join, leave and come back, each with a probability per round, as the round opens; round 0 has none."""

    waiting: float = Field(
        0.0, ge=0, le=1, description="share of agents who are not there as the run begins, but wait to join"
    )
    join: float = Field(0.0, ge=0, le=1, description="probability of one who waits to join, per round")
    leave: float = Field(0.0, ge=0, le=1, description="probability of one who is there to leave, per round")
    back: float = Field(
        0.0,
        ge=0,
        le=1,
        description="probability of one who has left so to come back, per round (0: all leave for good)",
    )
