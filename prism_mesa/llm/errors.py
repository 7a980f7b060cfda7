"""The error for useless answers, and helpers of the LLM's clients and ledgers."""

from abc import ABC, abstractmethod
from typing import Final, Self

MAX_USELESS_ANSWERS: Final = 20
"""PRISM stops asking an LLM if this number of first answers are all useless."""


class UselessAnswerError(ValueError):
    """An LLM's answer cannot be used. The ledger records `reason`, which is one word."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def replace_lone_surrogates(text: str) -> str:
    """Replace lone surrogates, which SQLite cannot store, with "?"."""
    return text.encode("utf-8", "replace").decode()


class Closeable(ABC):
    """A base class of objects that a ``with`` block closes at its end."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources; calling it twice is harmless."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
