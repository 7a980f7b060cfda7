"""The error for useless answers, and a base class for objects that a `with` block closes."""

from abc import ABC, abstractmethod
from typing import Final, Self

MAX_USELESS: Final = 20
"""PRISM gives up an LLM if its first answers, this many, are all useless."""


class UselessAnswerError(ValueError):
    """An LLM's answer cannot be used; `reason` is one word for the ledger."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def replace_lone_surrogates(text: str) -> str:
    """Replace lone surrogates, which SQLite cannot store, with "?"."""
    return text.encode("utf-8", "replace").decode()


class Closing(ABC):
    """Calls `close` at the end of a ``with`` block."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources; calling it twice is harmless."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
