"""Options that an LLM names by a letter: how they are asked for, and the probability of each that is read from it.

Where the LLM tells log-probabilities, the probabilities are those of the letters at the first place of what it says at
which they have at least `LEAST_MASS` together, scaled to add up to 1; where there is none (the LLM talks, and does not
choose) the answer is useless. Letters that are not among the `TOP_LOGPROBS` likeliest tokens count as the least likely
of these, or as what these leave of 1 if that is less; both are at least what they have. Nothing here asks an LLM.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final

from prism_mesa.errors import ConfigError
from prism_mesa.reasoner.client import Completion
from prism_mesa.reasoner.parse import UselessAnswerError
from prism_mesa.reasoner.prompt import LETTERS, one_letter

TOP_LOGPROBS: Final = 20
LEAST_MASS: Final = 0.5


@dataclass(frozen=True)
class Lettered:
    r"""A form of answer: the probability of each of some texts, of which the LLM is to name one by its letter.

    LLMs prefer some letters whatever they stand for (Zheng et al. 2024, Large Language Models Are Not Robust Multiple
    Choice Selectors, arXiv:2309.03882). `first` says which text is lettered A; the others follow in turn, and those
    before it come last. Give askers different ones, and the preference is spread over the texts: that takes it out of
    their mean, not out of a single answer. What is read always has the order of `texts`.

    An LLM that tells no log-probabilities (a function) may say a letter, or ``{"yes": 0.7, "no": 0.3}``.

    >>> form = Lettered(("yes", "no", "perhaps"), first=1)
    >>> form.lines
    'A. no\nB. perhaps\nC. yes'
    >>> form.read("C"), form.read('{"yes": 3, "no": 1}')
    ((1.0, 0.0, 0.0), (0.75, 0.25, 0.0))

    Attributes:
        texts: 2 to 26 different ones; more than 20 have letters for which the LLM may tell no number.
        first: 0 .. their number - 1.

    Raises:
        ConfigError: If there are too few texts or too many, two are equal, or `first` is none of their places.
    """

    texts: tuple[str, ...]
    first: int = 0
    name: ClassVar[str] = "lettered"
    schema: ClassVar[None] = None
    top_logprobs: ClassVar[int] = TOP_LOGPROBS

    def __post_init__(self) -> None:
        if not 2 <= len(self.texts) <= len(LETTERS) or len(set(self.texts)) < len(self.texts):
            raise ConfigError(f"options: needs 2 to {len(LETTERS)} different texts, not {list(self.texts)!r}")
        if not 0 <= self.first < len(self.texts):
            raise ConfigError(f"options: first: must be 0 to {len(self.texts) - 1}, not {self.first!r}")

    @cached_property
    def key(self) -> str:
        """What of the form counts for a ledger's key: the texts as they are lettered."""
        return json.dumps(self._shown)

    @property
    def lines(self) -> str:
        """The texts with their letters, a line for each, as a prompt shows them."""
        return "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, self._shown, strict=False))

    @property
    def request(self) -> str:
        """The sentence with which a prompt asks for a letter."""
        return one_letter(len(self.texts))

    def heard(self, said: Completion) -> Completion:
        """Return what is to be recorded of what an LLM said."""
        return recordable(said, len(self.texts))

    def read(self, raw: str) -> tuple[float, ...]:
        """Return the probability of each text, adding up to 1.

        Raises:
            UselessAnswerError: `unparsable` or `no-option`, if what was recorded names none of them.
        """
        place = _place(raw, len(self.texts))
        if place >= 0:
            shown: tuple[float, ...] = tuple(float(at == place) for at in range(len(self.texts)))
        else:
            shown = probabilities_of(raw, self._shown, "no-option")
        back = len(self.texts) - self.first
        return shown[back:] + shown[:back]

    @property
    def _shown(self) -> tuple[str, ...]:
        return self.texts[self.first :] + self.texts[: self.first]


def recordable(said: Completion, n_options: int) -> Completion:
    """Return what was said as JSON of the text and the letters' numbers; as it is if no log-probabilities were told."""
    if not said.top_logprobs:
        return said
    raw = json.dumps({"text": said.text, "top_logprobs": _deciding_place(said, n_options)})
    return replace(said, text=raw, top_logprobs=())


def probabilities_of(raw: str, names: Sequence[str], reason: str) -> tuple[float, ...]:
    """Return the probability of each option that a recorded answer holds: of its letter, or under its name.

    Raises:
        UselessAnswerError: `unparsable` if the answer is no JSON object, `reason` if it names no option.
    """
    try:
        said = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UselessAnswerError("unparsable", f"the answer {raw[:80]!r} is not JSON") from error
    if not isinstance(said, dict):
        raise UselessAnswerError("unparsable", f"the answer {raw[:80]!r} holds no probabilities")
    top = said.get("top_logprobs")
    if isinstance(top, dict):
        weights = _weights_of_letters(top, len(names))
    else:
        weights = [_positive(said.get(name, 0.0)) for name in names]
    total = sum(weights)
    if not 0.0 < total < math.inf:
        allowed = ", ".join(names)
        raise UselessAnswerError(reason, f"the answer {raw[:80]!r} names no option (allowed: {allowed})")
    return tuple(weight / total for weight in weights)


def _deciding_place(said: Completion, n_options: int) -> dict[str, float]:
    """Return the tokens of the first place at which a letter of an option is among the likeliest."""
    for place in said.top_logprobs:
        likely = sum(math.exp(min(logprob, 0.0)) for token, logprob in place if _place(token, n_options) >= 0)
        if likely >= LEAST_MASS:
            return dict(place)
    return {}


def _place(token: str, n_options: int) -> int:
    """Return the option that a token names, or -1; a small ``a`` is a word, not a letter."""
    bare = token.strip().strip("\"'().:*")
    return LETTERS[:n_options].find(bare) if len(bare) == 1 else -1


def _weights_of_letters(top: Mapping[str, Any], n_options: int) -> list[float]:
    known = {token: float(value) for token, value in top.items() if _is_number(value)}
    if not known:
        return [0.0] * n_options
    shares = [math.exp(min(logprob, 0.0)) for logprob in known.values()]
    floor = min(*shares, max(1.0 - sum(shares), 0.0))
    weights = [0.0] * n_options
    for token, logprob in known.items():
        place = _place(token, n_options)
        if place >= 0:
            weights[place] += math.exp(min(logprob, 0.0))
    return [weight or floor for weight in weights] if any(weights) else weights


def _is_number(value: Any) -> bool:
    """Whether `value` is a number that a float can hold, infinities included."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    except OverflowError:
        return False


def _positive(value: Any) -> float:
    return max(float(value), 0.0) if _is_number(value) else 0.0
