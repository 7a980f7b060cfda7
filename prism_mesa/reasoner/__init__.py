"""The oracle: questions, prompts, answers, the ledger, and the clients that speak to an LLM. Never an agent."""

from prism_mesa.reasoner.books import Books
from prism_mesa.reasoner.choosing import AnyReasoner, make_llm_client, make_reasoner, make_writer
from prism_mesa.reasoner.client import ChatClient, Completion, FunctionClient
from prism_mesa.reasoner.distilled import DistilledModel, DistilledReasoner, read_distilled
from prism_mesa.reasoner.embedded import EmbeddedChatClient, PmiOracle
from prism_mesa.reasoner.hosts import Hosts
from prism_mesa.reasoner.ledger import AskedRow, Ledger, StoredAnswer, answer_key
from prism_mesa.reasoner.llm_client import LLMClient
from prism_mesa.reasoner.ollama import OllamaChatClient
from prism_mesa.reasoner.openai import OpenAIChatClient
from prism_mesa.reasoner.oracle import ChatOracle, Oracle
from prism_mesa.reasoner.params import LLMParams, ReasonerParams, RuleParams
from prism_mesa.reasoner.parse import UselessAnswerError, parse_reasoner_response
from prism_mesa.reasoner.profile import persona_of, post_of, question_of
from prism_mesa.reasoner.prompt import (
    STATE_DESCRIPTIONS,
    answer_schema,
    build_reasoner_prompt,
    format_context,
    question_prompt,
)
from prism_mesa.reasoner.question import Answer, Ask, DetailedChoices, OpenChoices, Persona, Question, Source
from prism_mesa.reasoner.reasoner import Reasoner
from prism_mesa.reasoner.rule import RuleReasoner
from prism_mesa.reasoner.wanted import Place, Wanted

__all__ = [
    "STATE_DESCRIPTIONS",
    "Answer",
    "AnyReasoner",
    "Ask",
    "AskedRow",
    "Books",
    "ChatClient",
    "ChatOracle",
    "Completion",
    "DetailedChoices",
    "DistilledModel",
    "DistilledReasoner",
    "EmbeddedChatClient",
    "FunctionClient",
    "Hosts",
    "LLMClient",
    "LLMParams",
    "Ledger",
    "OllamaChatClient",
    "OpenAIChatClient",
    "OpenChoices",
    "Oracle",
    "Persona",
    "Place",
    "PmiOracle",
    "Question",
    "Reasoner",
    "ReasonerParams",
    "RuleParams",
    "RuleReasoner",
    "Source",
    "StoredAnswer",
    "UselessAnswerError",
    "Wanted",
    "answer_key",
    "answer_schema",
    "build_reasoner_prompt",
    "format_context",
    "make_llm_client",
    "make_reasoner",
    "make_writer",
    "parse_reasoner_response",
    "persona_of",
    "post_of",
    "question_of",
    "question_prompt",
    "read_distilled",
]
