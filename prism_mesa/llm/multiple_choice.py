"""Options that an LLM names by a letter: how they are asked for, and the probability of each that is read from it.

Where the LLM tells log-probabilities, the probabilities are those of the letters at the first place of what it says at
which they have at least `LEAST_MASS` together, scaled to add up to 1; where there is none (the LLM talks, and does not
choose) the answer is useless. Letters that are not among the `TOP_LOGPROBS` likeliest tokens count as the least likely
of these, or as what these leave of 1 if that is less; both are at least what they have.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.clients.completions import suggest_more_tokens
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.text import LETTERS, bare_option, one_letter, parse_json, unwrapped

TOP_LOGPROBS: Final = 20
LEAST_MASS: Final = 0.5
_ROUNDING: Final = 1e-3
_NAMED: Final = ("next_state", "answer", "choice", "option", "letter")
"""Keys under which an LLM names its choice, if it says an object."""
_LETTERED: Final = re.compile(r"(?:(?i:the answer|answer)(?: is|:)* )?[\W_]*([A-Z])(?![^\W_])[\W_]*(.*)", re.DOTALL)
_NEVER: Final = -9999.0
"""What is recorded for the logarithm of 0, for which JSON has no word; read again it is 0."""


@dataclass(frozen=True)
class MultipleChoice:
    r"""A form of answer: the probability of each of some texts, of which the LLM is to name one by its letter.

    LLMs prefer some letters whatever they stand for (Zheng et al. 2024, Large Language Models Are Not Robust Multiple
    Choice Selectors, arXiv:2309.03882). `first` says which text is lettered A; the others follow in turn, and those
    before it come last. Give askers different ones, and the preference is spread over the texts: that takes it out of
    their mean, not out of a single answer. What is read always has the order of `texts`.

    An LLM that tells no log-probabilities (a function) may say a letter, a text, or ``{"yes": 0.7, "no": 0.3}``.

    >>> form = MultipleChoice(("yes", "no", "perhaps"), first=1)
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

    def recordable(self, completion: Completion) -> Completion:
        """Return what is to be recorded of what an LLM said."""
        return recordable(completion, self._shown)

    def read(self, raw: str) -> tuple[float, ...]:
        """Return the probability of each text, adding up to 1.

        Raises:
            UselessAnswerError: `unparsable` or `no-option`, if what was recorded names none of them.
        """
        place = named_option(raw, self._shown)
        if place >= 0:
            shown: tuple[float, ...] = tuple(float(at == place) for at in range(len(self.texts)))
        else:
            shown = read_probabilities(raw, self._shown, "no-option")
        back = len(self.texts) - self.first
        return shown[back:] + shown[:back]

    @property
    def _shown(self) -> tuple[str, ...]:
        return self.texts[self.first :] + self.texts[: self.first]


def named_option(raw: str, names: Sequence[str]) -> int:
    """Return the place of the option that is all that a recorded answer says, or -1.

    It says a letter, a name, or a JSON object with one of the two under one of `_NAMED`.

    Raises:
        UselessAnswerError: `thought`, if there is nothing but a thought.
    """
    said = unwrapped(raw)
    if said.startswith("{"):
        with suppress(UselessAnswerError):
            values = [value for key, value in parse_json(said).items() if key in _NAMED]
            said = values[0] if len(values) == 1 and isinstance(values[0], str) else ""
    place = _place(said, len(names))
    return bare_option(said, names) if place < 0 else place


def recordable(said: Completion, names: Sequence[str]) -> Completion:
    """Return what was said as JSON of the text and the letters' numbers; as it is if no log-probabilities were told.

    A text that goes on after its letter with anything but its option, or has it in a sentence, has no numbers. Errors
    are those of `whole`.
    """
    if not whole(said).top_logprobs:
        return said
    fault = {token: _NEVER if value == -math.inf else value for token, value in _deciding(said, names)}
    raw = json.dumps({"text": said.text, "top_logprobs": fault})
    return replace(said, text=raw, top_logprobs=())


def whole(said: Completion) -> Completion:
    """Return an answer, unless (OracleError, `cut-answer`) it was cut and may go on: "A" may begin "A person"."""
    if said.cut and not said.text.rstrip("` \n").endswith("}"):
        fault = f"the answer {said.text[:80]!r} has no end, it was cut: {suggest_more_tokens(said.completion_tokens)}"
        raise OracleError("cut-answer", fault, tokens=(said.prompt_tokens, said.completion_tokens))
    return said


def read_probabilities(raw: str, names: Sequence[str], reason: str) -> tuple[float, ...]:
    """Return the probability of each option that a recorded answer holds: of its letter, or under its name.

    An option that is not named has none. A weight that is no finite number from 0 makes all of the answer useless, and
    so does a log-probability that is none: what that option gets is not known, and so not what the others get.

    Raises:
        UselessAnswerError: `unparsable` if the answer is no JSON object, `reason` if it names no option, or gives one
            what is no weight.
    """
    said = parse_json(raw)
    if not isinstance(said, dict):
        raise UselessAnswerError("unparsable", f"the answer {raw[:80]!r} holds no probabilities")
    top = said.get("top_logprobs")
    if isinstance(top, dict):
        _check(top, _is_logprob, "a log-probability", raw, reason)
        weights = _letter_weights(top, len(names))
    else:
        given = {name: said[name] for name in names if name in said}
        _check(given, _is_weight, "a finite number from 0", raw, reason)
        weights = [float(given.get(name, 0)) for name in names]
    total = sum(weights)
    if not 0.0 < total < math.inf:
        allowed = ", ".join(names)
        raise UselessAnswerError(reason, f"the answer {raw[:80]!r} names no option (allowed: {allowed})")
    return tuple(weight / total for weight in weights)


def _check(given: Mapping[str, Any], is_right: Callable[[Any], bool], wanted: str, raw: str, reason: str) -> None:
    """Raise UselessAnswerError for the first value that is not what is wanted."""
    for name, value in given.items():
        if not is_right(value):
            fault = f"{name[:20]!r}: {str(value)[:20]!r}"
            raise UselessAnswerError(reason, f"the answer {raw[:80]!r} gives {fault}, which is not {wanted}")


def _deciding(said: Completion, names: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """Return the tokens of the first place at which a letter of an option is among the likeliest.

    A place at which nobody knows how likely a letter is decides too: it makes the answer useless when it is read.
    """
    n_options = len(names)
    for place in said.top_logprobs if _is_letter(said.text, names) else ():
        letters = [logprob for token, logprob in place if _place(token, n_options) >= 0]
        if not all(map(_is_logprob, letters)):
            return place
        if sum(math.exp(min(logprob, 0.0)) for logprob in letters) >= LEAST_MASS:
            return place
    return ()


def _is_letter(text: str, names: Sequence[str]) -> bool:
    """Whether a text is one letter, also with its option, or how it begins, after it; or has no words at all."""
    words = _LETTERED.fullmatch(text)
    if words is None:
        return not re.search(r"\w", text)
    option = names[place] if (place := LETTERS.find(words[1])) < len(names) else None
    return option is not None and option.casefold().startswith(re.sub(r"[\W_]+$", "", words[2].casefold()))


def _place(token: str, n_options: int) -> int:
    """Return the option that a token names, or -1; a small ``a`` is a word, not a letter."""
    bare = token.strip().strip("\"'().:*")
    return LETTERS[:n_options].find(bare) if len(bare) == 1 else -1


def _letter_weights(top: Mapping[str, float], n_options: int) -> list[float]:
    if not top:
        return [0.0] * n_options
    shares = [math.exp(min(logprob, 0.0)) for logprob in top.values()]
    floor = min(*shares, max(1.0 - sum(shares), 0.0))
    weights = [0.0] * n_options
    for token, logprob in top.items():
        place = _place(token, n_options)
        if place >= 0:
            weights[place] += math.exp(min(logprob, 0.0))
    return [weight or floor for weight in weights] if any(weights) else weights


def _is_weight(value: Any) -> bool:
    """Whether `value` is a finite number from 0."""
    return _is_number(value) and 0 <= value < math.inf


def _is_logprob(value: Any) -> bool:
    """Whether `value` is the logarithm of a probability, of 0 too, or by rounding a little more."""
    return _is_number(value) and value <= _ROUNDING


def _is_number(value: Any) -> bool:
    """Whether `value` is a number that a float can hold, infinities included."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    except OverflowError:
        return False
