"""Free-text policies: read into typed ones, or refused with a reason."""

from prism_mesa.economy.policy_text.grounding import unsupported
from prism_mesa.economy.policy_text.parser import parse_policy
from prism_mesa.economy.policy_text.refusals import UnclearPolicyError
from prism_mesa.economy.policy_text.relevance import is_about
from prism_mesa.economy.policy_text.standing import Standing
from prism_mesa.economy.policy_text.texts import MAX_LENGTH

__all__ = ["MAX_LENGTH", "Standing", "UnclearPolicyError", "is_about", "parse_policy", "unsupported"]
