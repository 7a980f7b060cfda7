"""The parameters of the statechart."""

from pydantic import Field

from prism_mesa.params import Params


class StatechartParams(Params):
    """How charts are run; the chart itself is Python code."""

    default_timeout_ticks: int = Field(
        5, ge=1, le=1_000_000, description="ticks after which an agent times out in a state"
    )
    max_history_depth: int = Field(50, ge=0, le=10_000, description="kept changes of state per agent; 0 keeps none")
    oracle_enabled: bool = Field(True, description="false: an open choice takes its first option, nobody is asked")
    chart: str | None = Field(None, description="a chart of your own, as module:object; null: the default chart")
    strict: bool = Field(False, description="true: a guard that raises ends the run; false: it counts as false")
