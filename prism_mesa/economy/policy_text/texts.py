"""What is plain of a text as a whole: too long, a question, code, a condition."""

import re
import unicodedata

from prism_mesa.economy.policy_text.refusals import UnclearPolicyError

MAX_LENGTH = 500

_PLAIN = str.maketrans("\u2212\u2018\u2019", "-''", '\u201c\u201d"*')
_OUTCOMES = r"(?:inflation|unemployment|gdp|growth|prices|the economy|output|demand|it|they)"
_REFUSED: tuple[tuple[str, str, str], ...] = (
    (
        "injection",
        r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,60}\b(?:previous|prior|above|instructions?|rules|prompt)\b"
        r"|\b(?:system|assistant|user|developer)\s*:|\bsystem prompt\b|\blanguage model\b|\bas an ai\b|\byou are\b"
        r"|\b(?:respond|reply|answer|output) (?:with|only)\b|[{}<>\[\]\\`|=_^@#]|://|/\*|\(\)",
        "speaks to its reader or is code: write the policy as one plain sentence",
    ),
    (
        "question",
        r"\?|^(?:should|shall|could|can|would|will|do|does|is|are) (?:we|i|you|they|the government)\b"
        r"|\bwhat (?:if|about)\b",
        "asks a question: write what is done",
    ),
    (
        "condition",
        r"\b(?:if|unless|provided that|providing that|assuming|supposing|in case|in the event|as long as|so long as"
        r"|depending on|depends on|conditional on|contingent on|subject to|as needed|as necessary)\b"
        rf"|\bshould (?:the )?{_OUTCOMES}\b|^should (?!be\b)|[,.;] should (?!be\b)",
        "depends on a condition: write what is done now",
    ),
)


def cleaned(text: str) -> str:
    """Return `text` in plain characters and single spaces.

    Raises:
        UnclearPolicyError: With reason `empty`, `long` or `control`.
    """
    if len(text) > MAX_LENGTH:
        raise UnclearPolicyError("long", f"has {len(text)} characters: write at most {MAX_LENGTH}")
    # "2½" would become "21/2".
    plain = unicodedata.normalize("NFKC", re.sub(r"(?<=\d)(?=[¼½¾⅐-⅞])", " ", text)).translate(_PLAIN)
    plain = re.sub(r"(?:^|\n)\s*(?:[-*•]|\d+[.)])\s+", "\n. ", plain)  # lists become sentences
    plain = " ".join(re.sub(r"(?<=[A-Za-z0-9%])-(?=[A-Za-z])|(?<=[A-Za-z])-(?=[0-9])", " ", plain).split())
    if not plain.strip(". "):
        raise UnclearPolicyError("empty", "says nothing")
    if any(unicodedata.category(character).startswith("C") for character in plain):
        raise UnclearPolicyError("control", "holds control characters")
    return plain


def refuse_whole(text: str) -> None:
    """Refuse a cleaned text that is no statement of what is done.

    Raises:
        UnclearPolicyError: With reason `injection`, `question` or `condition`.
    """
    for reason, pattern, message in _REFUSED:
        if found := re.search(pattern, text, re.IGNORECASE):
            raise UnclearPolicyError(reason, f"{message} ({found[0].strip()!r})")
