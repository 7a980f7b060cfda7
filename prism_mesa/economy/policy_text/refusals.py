"""How a text is refused: the error, and words of the text in it."""

from collections.abc import Iterable

from prism_mesa.economy.policy_text.tokens import Token

INSTRUMENTS = "the policy rate, government spending, taxes, tariffs, trade sanctions, and debt"


class UnclearPolicyError(ValueError):
    """A text that is not read as a policy.

    Attributes:
        reason: One word for the records.
        plain: Whether it is plain what is wrong with the text. If not, the text was not understood, and somebody who
            reads better may be asked what it says.
    """

    def __init__(self, reason: str, message: str, *, plain: bool = True) -> None:
        super().__init__(message)
        self.reason = reason
        self.plain = plain


def not_understood(terms: Iterable[Token]) -> UnclearPolicyError:
    """Return the error that is not plain."""
    return UnclearPolicyError("unclear", f"not understood: {quoted(terms)}", plain=False)


def quoted(terms: Iterable[Token]) -> str:
    """Return the first words of some terms in quotation marks; a phrase that became two tokens is said once."""
    said = [token.text for token in terms]
    once = [text for text, before in zip(said, ["", *said], strict=False) if text != before]
    return repr(" ".join(once)[:80])
