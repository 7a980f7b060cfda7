"""What counts for the ledger's key of each form: were one to change, recorded answers would not be found any more."""

import hashlib
import json

import pytest

from prism_mesa.analysis.interview.evidence import make_recall_form
from prism_mesa.deliberation import ToolRegistry
from prism_mesa.deliberation.deliberation import ReasoningResult, reasoning_schema
from prism_mesa.economy.reading import PolicyDecision
from prism_mesa.llm import LLMRequest
from prism_mesa.llm.association import AssociationScore
from prism_mesa.llm.multiple_choice import MultipleChoice


def add(a: int, b: str = "x") -> str:
    """Return a sum.

    Args:
        a: One.
        b: Another.
    """
    return ""


@pytest.mark.parametrize(
    ("request_", "name", "digest"),
    [  # the digests are those of the code of 2026-11-21, before classes and modules got other names
        (LLMRequest("x", str), "str", "87ca37b37d96d838"),
        (LLMRequest("x", PolicyDecision), "PolicyDecision", "86d0478b3d9f5ee6"),
        (LLMRequest("x", make_recall_form([])), "Recollection", "3c0822f7ab0fd6be"),
        (LLMRequest("x", MultipleChoice(("yes", "no"))), "lettered", "90ab33c6f544baec"),
        (LLMRequest("x", AssociationScore(("yes", "no"), "Someone says:")), "likelier", "62e3b71661548300"),
        (
            LLMRequest("x", ReasoningResult, stricter_schema=reasoning_schema(ToolRegistry([add]))),
            "ReasoningResult",
            "f8cdcbae6a6eccf9",
        ),
    ],
    ids=["text", "decision", "recall", "choice", "association", "thought"],
)
def test_the_key_of_a_form_is_what_it_was(request_, name, digest):
    assert request_.options[0] == name
    assert hashlib.sha256(json.dumps(request_.options).encode()).hexdigest()[:16] == digest
