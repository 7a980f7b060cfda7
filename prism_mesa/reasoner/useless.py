"""What to say of an LLM whose first answers are all useless, and what to change."""

import re
from collections.abc import Sequence
from typing import Any, Final

from prism_mesa.errors import OracleError
from prism_mesa.llm.dispatch.pending import PendingQuestion
from prism_mesa.llm.errors import MOST_USELESS
from prism_mesa.llm.params import DECISION_MODEL
from prism_mesa.llm.text import plain
from prism_mesa.reasoner.oracle import Oracle
from prism_mesa.reasoner.question import Answer, PlacedQuestion

_SHOWN: Final = 120
_MOST_TOLD: Final = 400
_WAYS_OUT: Final = (
    (r"status 40[13]\b", "set the key of the server (OPENAI_API_KEY, OLLAMA_API_KEY)"),
    ("think|reasoning", "reasoner.think=false, or an LLM that thinks (reasoner.model)"),
    ("decision|systemone", f"an LLM that decides (reasoner.model={DECISION_MODEL}), or reasoner.answer=choice"),
    ("support chat", "an LLM that chats (reasoner.model), or reasoner.answer=decision for one that decides"),
    ("context|too long", "more context (reasoner.num_ctx with Ollama, else the server's), or fewer max_answer_tokens"),
)
"""What to change, by what the server says."""


def hopeless_text(call: PendingQuestion[PlacedQuestion, Answer], oracle: Oracle) -> str:
    """Return the message that an LLM's first answers are all useless: the last one, that to `call`, and a way out."""
    none = f"{oracle.label}: none of its first {MOST_USELESS} answers is of any use"
    decides = getattr(oracle, "form", "") == "decision"
    if decides or (isinstance(call.error, OracleError) and call.error.reason != "empty"):
        told = plain(str(call.error).removeprefix(f"{oracle.label}: "), _MOST_TOLD)
        if "reasoner." not in told:
            told += f": {_way_out(told)}"
        return f"{none}: {told}"
    options = [option.value for option in call.question.question.options]
    said = plain(call.said or call.error, _SHOWN)
    wanted = _wanted(options, oracle)
    way_out = "change what it answers, or the LLM (reasoner.model)"
    return f"{none}; the last one was {said!r}, and wanted is {wanted}: {way_out}"


def _way_out(told: str) -> str:
    """Return what to change where a server refuses all questions."""
    ways = (way for words, way in _WAYS_OUT if re.search(words, told, re.IGNORECASE))
    return next(ways, "change the LLM (reasoner.model), or the server (reasoner.host)")


def _wanted(options: Sequence[str], oracle: Any) -> str:
    names = " or ".join(options)
    match getattr(oracle, "form", ""):
        case "choice":
            return f'{{"next_state": "{options[0]}"}}, or the name of an option alone: {names}'
        case "probabilities":
            weights = ", ".join(f'"{option}": {1 / len(options):.2g}' for option in options)
            return f"{{{weights}}}, the name of an option alone ({names}), or a letter with its log-probabilities"
    return f"what {type(oracle).__name__}.read reads as probabilities of {names}"
