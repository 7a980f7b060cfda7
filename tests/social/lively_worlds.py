"""Worlds in which much happens, and what happened in them."""

from prism_mesa.statechart import AgentState

IDLE, SCROLLING, EVALUATING, COMPOSING, RESTING = (
    AgentState.IDLE,
    AgentState.SCROLLING,
    AgentState.EVALUATING,
    AgentState.COMPOSING,
    AgentState.RESTING,
)


LIVELY = {"agents_activity": 1.0, "agents_activity_sigma": 0.0, "agents_post_rate": 0.6}


def rounds_of(model):
    return model.datacollector.get_model_vars_dataframe()


def moves(model, **wanted):
    rows = model.recorder.tables.get("transitions", [])
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]
