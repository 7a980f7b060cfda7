"""A stand-in for an Ollama server: for tests, benchmarks, and for trying the Ollama path without Ollama.

It speaks Ollama's protocol to any client, answers from a function, and breaks on request.
"""

from stand_in.brains import Body, Brain, Said, Token, choose_by_hash, embedded_brain, prompt_text
from stand_in.decisions import ROWS, DecisionFault, Decisions, Dialect, Row
from stand_in.faults import FAULTS, Fault, FaultName, first_attempts
from stand_in.server import StandIn
from stand_in.thoughts import THINK_MODES, ThinkMode

__all__ = [
    "FAULTS",
    "ROWS",
    "THINK_MODES",
    "Body",
    "Brain",
    "DecisionFault",
    "Decisions",
    "Dialect",
    "Fault",
    "FaultName",
    "Row",
    "Said",
    "StandIn",
    "ThinkMode",
    "Token",
    "choose_by_hash",
    "embedded_brain",
    "first_attempts",
    "prompt_text",
]
