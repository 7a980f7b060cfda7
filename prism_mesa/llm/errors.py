"""What can be wrong with an answer of a language model."""

from typing import Final

MOST_USELESS: Final = 20
"""PRISM gives an LLM up if this many first answers are all useless."""


class UselessAnswerError(ValueError):
    """An LLM answered, but not with one of the options. `reason` is one word for the ledger."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def storable(text: str) -> str:
    """Return `text` as a ledger gives it back: half a surrogate pair, which SQLite cannot store, becomes a "?"."""
    return text.encode("utf-8", "replace").decode()
