"""Who decides what a model that runs leaves open, and what that has cost so far."""

from collections import Counter
from typing import Any, Final

from prism_mesa.reasoner import Reasoner, asks_llm
from prism_mesa.view.page.live_model import PageModel
from prism_mesa.view.page.source import OracleOnShow, Spent

_LIMITS: Final = {"calls": "max_calls", "tokens": "max_tokens", "seconds": "max_seconds"}


def oracle_of(model: PageModel) -> OracleOnShow:
    """Return who decided what was left open so far."""
    asked = model.reasoner
    if not asks_llm(asked):
        return OracleOnShow(asked.label, dict(model.sources), notes=[asked.note] if asked.note else [])
    usage, left = asked.usage + (model.writer.usage if model.writer is not None else Counter()), _left(asked)
    tokens = usage["prompt_tokens"] + usage["completion_tokens"]
    limits = {what: getattr(asked.params, key) for what, key in _LIMITS.items()}
    seconds = None if limits["seconds"] is None else limits["seconds"] - left
    spent = [Spent("calls", usage["calls"], limits["calls"]), Spent("tokens", tokens, limits["tokens"])]
    spent += [Spent("seconds", seconds, limits["seconds"])] if seconds is not None else []
    notes = [
        f"{usage['prompt_tokens']:,} tokens of prompts, {usage['completion_tokens']:,} of answers.",
        f"If no answer comes: {asked.params.fallback}.",
        *([asked.note] if asked.note else []),
    ]
    if model.written:
        notes.append("Texts: " + ", ".join(f"{n:,} {what}" for what, n in model.written.items()) + ".")
    return OracleOnShow(asked.label, dict(model.sources), spent, dict(asked.reasons), notes)


def _left(asked: Reasoner) -> float:
    """Return how many seconds of waiting are left, infinite where there is no limit."""
    left: Any = asked.budget.snapshot()["run"]
    return float("inf") if left[2] is None else float(left[2])
