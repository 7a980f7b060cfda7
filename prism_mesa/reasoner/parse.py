"""Reads an LLM's answer. Whatever is not exactly one of the options is refused, never guessed at."""

from collections.abc import Sequence

from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.text import json_of, plain
from prism_mesa.statechart import AgentState

_REASON_CAP = 300


def parse_reasoner_response(response_text: str, options: Sequence[AgentState]) -> AgentState:
    """Return the option that ``{"next_state": "<value>"}`` names; case and what `unwrapped` takes off do not matter.

    Raises:
        UselessAnswerError: (a ValueError) with reason `unparsable` if the text is not a JSON object with
            a string under ``next_state``, `invalid-state` if that string is not among the options, or `thought` if
            the text is only a thought.
    """
    said = _next_state(response_text)
    for option in options:
        if option.value == said.strip().lower():
            return option
    allowed = ", ".join(option.value for option in options)
    raise UselessAnswerError("invalid-state", f"invalid state {said[:80]!r} (allowed: {allowed})")


def reason_in(response_text: str) -> str:
    """Return the reason in an answer, as `plain` text; empty if there is none."""
    try:
        data = json_of(response_text)
    except UselessAnswerError:
        return ""
    reason = data.get("reason") if isinstance(data, dict) else None
    return plain(reason, _REASON_CAP) if isinstance(reason, str) else ""


def _next_state(response_text: str) -> str:
    data = json_of(response_text)
    said = data.get("next_state") if isinstance(data, dict) else None
    if not isinstance(said, str):
        told = f'the answer {response_text[:80]!r} is not an object {{"next_state": "<state>"}}'
        raise UselessAnswerError("unparsable", told)
    return said
