"""Reads an LLM's answer. Whatever is not exactly one of the options is refused, never guessed at."""

import json
from collections.abc import Sequence

from prism_mesa.statechart import AgentState

_AROUND = " \t\r\n\v\f\"'`\u2018\u2019\u201c\u201d"
"""White space and quotes."""


class UselessAnswerError(ValueError):
    """An LLM answered, but not with one of the options. `reason` is one word for the ledger."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def bare_option(said: str, names: Sequence[str]) -> int:
    """Return the place of the option whose name is all that was said, or -1; case and quotes do not matter.

    >>> bare_option(" 'Composing' ", ["scrolling", "composing"]), bare_option("Composing it is", ["composing"])
    (1, -1)
    """
    bare = said.strip(_AROUND).casefold()
    return next((place for place, name in enumerate(names) if name.strip(_AROUND).casefold() == bare), -1)


def storable(text: str) -> str:
    """Return `text` as a ledger gives it back: half a surrogate pair, which SQLite cannot store, becomes a "?"."""
    return text.encode("utf-8", "replace").decode()


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
