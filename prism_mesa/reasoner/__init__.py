"""The oracle: questions of agents, prompts, and who answers them: an LLM, the rule, a distilled model."""

from prism_mesa.reasoner.describe import persona_of, post_of, question_of
from prism_mesa.reasoner.distilled import DistilledModel, DistilledReasoner, read_distilled
from prism_mesa.reasoner.factory import AnyReasoner, make_reasoner, make_writer
from prism_mesa.reasoner.oracle import ChatOracle, Oracle
from prism_mesa.reasoner.params import ReasonerParams, RuleParams
from prism_mesa.reasoner.parse import parse_reasoner_response
from prism_mesa.reasoner.pmi import PmiOracle
from prism_mesa.reasoner.prompt import (
    STATE_DESCRIPTIONS,
    answer_schema,
    build_reasoner_prompt,
    format_context,
    question_prompt,
)
from prism_mesa.reasoner.question import Answer, DetailedChoices, OpenChoices, Persona, PlacedQuestion, Question
from prism_mesa.reasoner.reasoner import Reasoner
from prism_mesa.reasoner.rule import RuleReasoner

__all__ = [
    "STATE_DESCRIPTIONS",
    "Answer",
    "AnyReasoner",
    "ChatOracle",
    "DetailedChoices",
    "DistilledModel",
    "DistilledReasoner",
    "OpenChoices",
    "Oracle",
    "Persona",
    "PlacedQuestion",
    "PmiOracle",
    "Question",
    "Reasoner",
    "ReasonerParams",
    "RuleParams",
    "RuleReasoner",
    "answer_schema",
    "build_reasoner_prompt",
    "format_context",
    "make_reasoner",
    "make_writer",
    "parse_reasoner_response",
    "persona_of",
    "post_of",
    "question_of",
    "question_prompt",
    "read_distilled",
]
