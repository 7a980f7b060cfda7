"""Whether a text is about a domain, by its words."""

import re

from prism_mesa.economy.policy import AGAINST_NATIONS, LEVERS
from prism_mesa.economy.policy_text.clauses import clauses, sentences
from prism_mesa.economy.policy_text.lexicon import LEXICON
from prism_mesa.economy.policy_text.refusals import UnclearPolicyError
from prism_mesa.economy.policy_text.texts import cleaned
from prism_mesa.economy.policy_text.tokens import tokens

_MONETARY = "monetary|central bank|interest|quantitative easing|money supply|print(?:ing)? money|reserve requirements?"
_FISCAL = "fiscal|deficits?|surplus(?:es)?|tax\\w*|borrowing|bonds?|subsidi[sz]\\w*|welfare|universal basic income"
_TRADE = "imports?|exports?|quotas?|customs|protectionis[mt]"


def _naming(kinds: set[str], more: str) -> re.Pattern[str]:
    phrases = "|".join(re.escape(phrase) for phrase, of in LEXICON.items() if not kinds.isdisjoint(of))
    return re.compile(rf"\b(?:{phrases}|{more})\b", re.IGNORECASE)


_NAMING: dict[str, re.Pattern[str]] = {
    "monetary": _naming({"policy_rate"}, _MONETARY),
    "fiscal": _naming({"spending", "taxes", "debt"}, _FISCAL),
    "trade": _naming({*AGAINST_NATIONS, "trade"}, _TRADE),
    "economic": _naming({*LEVERS, "absent", "trade"}, f"{_MONETARY}|{_FISCAL}|{_TRADE}"),
}


def names_instrument(text: str, domain: str) -> bool:
    """Return whether `text` names an instrument of `domain`, whether it exists here or not.

    Raises:
        KeyError: If there is no such domain.
    """
    return _NAMING[domain].search(text) is not None


def is_about(text: str, domain: str) -> bool:
    """Return whether `text` names an instrument of `domain`, or leaves everything as it is, which any domain may.

    >>> is_about("Lower rates by half a point", "fiscal"), is_about("Maintain current policy.", "fiscal")
    (False, True)

    Args:
        text: Any text.
        domain: `economic` (any instrument), `monetary`, `fiscal` or `trade`.

    Raises:
        KeyError: If there is no such domain.
    """
    return names_instrument(text, domain) or _leaves_everything(text)


def _leaves_everything(text: str) -> bool:
    try:
        terms = tokens(cleaned(text), ())
    except UnclearPolicyError:
        return False
    return any(clause.holds and not clause.levers for sentence in sentences(terms) for clause in clauses(sentence))
