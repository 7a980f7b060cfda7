"""Statecharts of eight states: the engine, its tables for columns, its checks and pictures.

`Reasoner` can be imported from here too, although it lives above, in `prism_mesa.reasoner`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from prism_mesa.statechart.batch import ArrayColumns, Columns, Fired, column_values
from prism_mesa.statechart.checks import Finding
from prism_mesa.statechart.definition import TIMEOUT
from prism_mesa.statechart.guards import NEEDS_ORACLE, Expression, F, expression_of
from prism_mesa.statechart.pictures import draw_chart, mermaid
from prism_mesa.statechart.statechart import Statechart
from prism_mesa.statechart.states import (
    STATE_COLORS,
    STATES,
    AgentState,
    agents_in_state,
    export_agent,
    state_distribution,
)
from prism_mesa.statechart.transitions import ANY, StateTransition, Transition
from prism_mesa.statechart.users_code import FailingGuard, act
from prism_mesa.statechart.values import Values

__all__ = [
    "ANY",
    "NEEDS_ORACLE",
    "STATES",
    "STATE_COLORS",
    "TIMEOUT",
    "AgentState",
    "ArrayColumns",
    "Columns",
    "Expression",
    "F",
    "FailingGuard",
    "Finding",
    "Fired",
    "StateTransition",
    "Statechart",
    "Transition",
    "Values",
    "act",
    "agents_in_state",
    "column_values",
    "draw_chart",
    "export_agent",
    "expression_of",
    "mermaid",
    "state_distribution",
]

if not TYPE_CHECKING:  # a type checker would take any name for one of this package

    def __getattr__(name: str) -> Any:
        if name == "Reasoner":
            return import_module("prism_mesa.reasoner").Reasoner
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
