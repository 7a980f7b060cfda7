"""Reads an LLM's answer. Whatever is not exactly one of the options is refused, never guessed at."""

import json
from collections.abc import Sequence

from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.statechart import AgentState


def parse_reasoner_response(response_text: str, options: Sequence[AgentState]) -> AgentState:
    """Return the option that ``{"next_state": "<value>"}`` names; case and outer white space do not matter.

    Raises:
        UselessAnswerError: (a ValueError) with reason `unparsable` if the text is not a JSON object with
            a string under ``next_state``, or `invalid-state` if that string is not among the options.
    """
    said = _next_state(response_text)
    for option in options:
        if option.value == said.strip().lower():
            return option
    allowed = ", ".join(option.value for option in options)
    raise UselessAnswerError("invalid-state", f"invalid state {said[:80]!r} (allowed: {allowed})")


def _next_state(response_text: str) -> str:
    shown = repr(response_text[:80] if isinstance(response_text, str) else response_text)
    try:
        data = json.loads(response_text)
    except (ValueError, TypeError, RecursionError) as error:
        raise UselessAnswerError("unparsable", f"the answer {shown} is not JSON") from error
    said = data.get("next_state") if isinstance(data, dict) else None
    if not isinstance(said, str):
        raise UselessAnswerError("unparsable", f'the answer {shown} is not an object {{"next_state": "<state>"}}')
    return said
