"""Asking a language model anything: clients, forms of answers, limits, the ledger."""

from prism_mesa.llm.client import LLMClient
from prism_mesa.llm.clients.base import ChatClient, Completion, FunctionClient
from prism_mesa.llm.clients.embedded import EmbeddedChatClient
from prism_mesa.llm.clients.ollama import OllamaChatClient
from prism_mesa.llm.clients.openai import OpenAIChatClient
from prism_mesa.llm.clients.pool import HostPool
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.factory import make_llm_client
from prism_mesa.llm.formats.request import LLMRequest, RunPosition
from prism_mesa.llm.ledger.answers import AnswerStore
from prism_mesa.llm.ledger.database import AskedRow, Ledger, StoredAnswer, answer_key
from prism_mesa.llm.params import LLMParams, Source

__all__ = [
    "AnswerStore",
    "AskedRow",
    "ChatClient",
    "Completion",
    "EmbeddedChatClient",
    "FunctionClient",
    "HostPool",
    "LLMClient",
    "LLMParams",
    "LLMRequest",
    "Ledger",
    "OllamaChatClient",
    "OpenAIChatClient",
    "RunPosition",
    "Source",
    "StoredAnswer",
    "UselessAnswerError",
    "answer_key",
    "make_llm_client",
]
