"""Whether an LLM has ever given an answer that could be used: if the first ones are all useless, asking has no use."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from prism_mesa.errors import LLMFailureException, OracleError
from prism_mesa.llm.dispatch.pending import PendingQuestion
from prism_mesa.llm.errors import MOST_USELESS
from prism_mesa.llm.params import DECISION_MODEL
from prism_mesa.llm.text import plain
from prism_mesa.reasoner.oracle import Oracle
from prism_mesa.reasoner.question import Answer, PlacedQuestion
from prism_mesa.snapshot import Restorable

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


class Usefulness(Restorable):
    """Count each LLM's useless answers and refusals until an answer can be used; a dead server does not count."""

    changes = ("_useless", "_used")

    def __init__(self) -> None:
        self._useless: Counter[str] = Counter()
        self._used: set[str] = set()

    def answer_was_used(self, llm: str) -> None:
        """Note that an LLM gave a useful answer: from now on its useless answers do not count."""
        self._used.add(llm)

    def answer_was_useless(self, call: PendingQuestion[PlacedQuestion, Answer], oracle: Oracle) -> None:
        """Take note of one that could not.

        Raises:
            LLMFailureException: If the LLM's first `MOST_USELESS` answers are all useless.
        """
        llm = call.place.llm
        self._useless[llm] += 1
        if llm not in self._used and (n := self._useless[llm]) >= MOST_USELESS:
            raise LLMFailureException("useless", n, "agents", _error_text(n, call, oracle))


def _error_text(n: int, call: PendingQuestion[PlacedQuestion, Answer], oracle: Oracle) -> str:
    decides = getattr(oracle, "form", "") == "decision"
    if decides or (isinstance(call.error, OracleError) and call.error.reason != "empty"):
        told = plain(str(call.error).removeprefix(f"{oracle.label}: "), _MOST_TOLD)
        if "reasoner." not in told:
            told += f": {_way_out(told)}"
        return f"{oracle.label}: none of its first {n} answers is of any use: {told}"
    options = [option.value for option in call.question.question.options]
    said = plain(call.said or call.error, _SHOWN)
    return (
        f"{oracle.label}: none of its first {n} answers is of any use; the last one was {said!r}, and wanted is "
        f"{_wanted(options, oracle)}: change what it answers, or the LLM (reasoner.model)"
    )


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
