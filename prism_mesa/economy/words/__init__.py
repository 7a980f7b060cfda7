"""Free-text policies: read into typed ones, or refused with a reason. Nothing here asks an LLM or changes a world."""

from prism_mesa.economy.words.grounding import unsupported
from prism_mesa.economy.words.parser import parse_policy
from prism_mesa.economy.words.refusals import UnclearPolicyError
from prism_mesa.economy.words.relevance import is_about
from prism_mesa.economy.words.standing import Standing
from prism_mesa.economy.words.texts import MAX_LENGTH

__all__ = ["MAX_LENGTH", "Standing", "UnclearPolicyError", "is_about", "parse_policy", "unsupported"]
