"""Questions whose options have letters, and the probabilities in an LLM's answers.

The probabilities come from the first position in the answer at which the letters' probabilities add up to `MIN_MASS` or
more; they are scaled to add up to 1. Without such a position (the LLM talks instead of choosing) the answer is useless.
A letter that is not among the `TOP_LOGPROBS` likeliest tokens gets the probability of the least likely token in the
list, or that of all unlisted tokens together if it is smaller.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf
from sys import float_info
from typing import Any, Final

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm.clients.base import ChatClient, Completion
from prism_mesa.llm.clients.completions import suggest_more_tokens
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.request import AnswerFormat
from prism_mesa.llm.text import LETTERS, find_bare_option, letter_instruction, parse_json, unwrap

TOP_LOGPROBS: Final = 20
MIN_MASS: Final = 0.5
_ROUNDING: Final = 1e-3
_CHOICE_KEYS: Final = ("next_state", "answer", "choice", "option", "letter")
"""Keys under which an LLM names its choice in a JSON object."""
_LETTERED: Final = re.compile(r"(?:(?i:the answer|answer)(?: is|:)* )?[\W_]*([A-Z])(?![^\W_])[\W_]*(.*)", re.DOTALL)
_LOG_OF_0: Final = -9999.0
"""The recorded logarithm of 0, because JSON has no infinity. Its exponential is 0."""


@dataclass(frozen=True)
class MultipleChoice(AnswerFormat[tuple[float, ...]]):
    r"""An answer format: the probability of each text; the LLM names one text by its letter.

    LLMs prefer some letters regardless of their meaning (Zheng et al. 2024, Large Language Models Are Not Robust
    Multiple Choice Selectors, arXiv:2309.03882). The text at index `first` has the letter A, and the next texts have
    the next letters. If `first` varies between agents, the preference cancels in the mean of many answers, though not
    in a single answer. The probabilities always have the order of `texts`.

    A client without log-probabilities (a function) may return a letter, a text, or ``{"yes": 0.7, "no": 0.3}``.

    >>> form = MultipleChoice(("yes", "no", "perhaps"), first=1)
    >>> form.lines
    'A. no\nB. perhaps\nC. yes'
    >>> form.read("C"), form.read('{"yes": 3, "no": 1}')
    ((1.0, 0.0, 0.0), (0.75, 0.25, 0.0))

    Attributes:
        texts: 2 to 26 different texts.
        first: The index of the text with the letter A.

    Raises ConfigError if there are too few or too many texts, two texts are equal, or `first` is out of range.
    """

    texts: tuple[str, ...]
    first: int = 0
    name = "lettered"
    top_logprobs = TOP_LOGPROBS

    def __post_init__(self) -> None:
        if not 2 <= len(self.texts) <= len(LETTERS) or len(set(self.texts)) < len(self.texts):
            raise ConfigError(f"options: needs 2 to {len(LETTERS)} different texts, not {list(self.texts)!r}")
        if not 0 <= self.first < len(self.texts):
            raise ConfigError(f"options: first: must be 0 to {len(self.texts) - 1}, not {self.first!r}")

    @cached_property
    def key(self) -> str:
        """The format's part of a ledger's key: the texts in the order of their letters."""
        return json.dumps(self._lettered_texts)

    @property
    def lines(self) -> str:
        """The texts with their letters, one per line, for prompts."""
        return "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, self._lettered_texts, strict=False))

    @property
    def request(self) -> str:
        """The sentence of a prompt that asks for a letter."""
        return letter_instruction(len(self.texts))

    async def ask(self, client: ChatClient, prompt: str, schema: Any = None, attempt: int = 0) -> Completion:
        """Return a client's answer as the ledger records it."""
        return make_recordable(await super().ask(client, prompt, schema, attempt), self._lettered_texts)

    def read(self, raw: str) -> tuple[float, ...]:
        """Return the probability of each text, adding up to 1. Raises UselessAnswerError if no text is named."""
        probabilities = read_options(raw, self._lettered_texts, "no-option")
        shift = len(self.texts) - self.first
        return probabilities[shift:] + probabilities[:shift]

    @property
    def _lettered_texts(self) -> tuple[str, ...]:
        return self.texts[self.first :] + self.texts[: self.first]


def find_option(raw: str, names: Sequence[str]) -> int:
    """Return the index of the option that an answer names by letter or name (perhaps in a JSON object), or -1."""
    answer = unwrap(raw)
    if answer.startswith("{"):
        with suppress(UselessAnswerError):
            values = [value for key, value in parse_json(answer).items() if key in _CHOICE_KEYS]
            answer = values[0] if len(values) == 1 and isinstance(values[0], str) else ""
    index = _letter_index(answer, len(names))
    return find_bare_option(answer, names) if index < 0 else index


def make_recordable(completion: Completion, names: Sequence[str]) -> Completion:
    """Return an answer as JSON with its text and log-probabilities; an answer without log-probabilities is unchanged.

    The log-probabilities are used only if the text is a letter, perhaps followed by its option.
    """
    if not require_complete(completion).top_logprobs:
        return completion
    logprobs = {token: _LOG_OF_0 if value == -inf else value for token, value in _deciding_tokens(completion, names)}
    return replace(completion, text=json.dumps({"text": completion.text, "top_logprobs": logprobs}), top_logprobs=())


def require_complete(completion: Completion) -> Completion:
    """Return an answer. Raises OracleError (`cut-answer`) if it was truncated: "A" may be the start of "A person"."""
    if completion.truncated and not completion.text.rstrip("` \n").endswith("}"):
        remedy = suggest_more_tokens(completion.completion_tokens)
        fault = f"the answer {completion.text[:80]!r} was cut: {remedy}"
        raise OracleError("cut-answer", fault, tokens=(completion.prompt_tokens, completion.completion_tokens))
    return completion


def read_options(raw: str, names: Sequence[str], reason: str) -> tuple[float, ...]:
    """Return the probability of each option in an answer. Raises the same errors as `read_probabilities`."""
    index = find_option(raw, names)
    if index < 0:
        return read_probabilities(raw, names, reason)
    return tuple(float(i == index) for i in range(len(names)))


def read_probabilities(raw: str, names: Sequence[str], reason: str) -> tuple[float, ...]:
    """Return the probability of each option in a recorded answer, which lists options by letter or name.

    Unlisted options have probability 0. An invalid weight makes the whole answer useless, because the other
    probabilities depend on it.

    Raises UselessAnswerError: `unparsable` if the answer is not a JSON object, `reason` if it names no option or has an
    invalid weight.
    """
    answer = parse_json(raw)
    if not isinstance(answer, dict):
        raise UselessAnswerError("unparsable", f"the answer {raw[:80]!r} has no probabilities")
    logprobs = answer.get("top_logprobs")
    if isinstance(logprobs, dict):
        _check_weights(logprobs, -inf, _ROUNDING, raw, reason)
        weights = _letter_weights(logprobs, len(names))
    else:
        by_name = {name: answer[name] for name in names if name in answer}
        _check_weights(by_name, 0, float_info.max, raw, reason)
        weights = [float(by_name.get(name, 0)) for name in names]
    total = sum(weights)
    if not 0.0 < total < inf:
        allowed = ", ".join(names)
        raise UselessAnswerError(reason, f"the answer {raw[:80]!r} names no option (allowed: {allowed})")
    return tuple(weight / total for weight in weights)


def _check_weights(values: Mapping[str, Any], low: float, high: float, raw: str, reason: str) -> None:
    for name, value in values.items():
        if not _is_number(value, low, high):
            fault = f"{name[:20]!r}: {str(value)[:20]!r}, not a number from {low:g} to {high:.3g}"
            raise UselessAnswerError(reason, f"the answer {raw[:80]!r} gives {fault}")


def _deciding_tokens(completion: Completion, names: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Return the tokens at the first position where the letters have enough mass, or where a number is invalid."""
    for tokens in completion.top_logprobs if _is_letter(completion.text, names) else ():
        letters: list[Any] = [logprob for token, logprob in tokens if _letter_index(token, len(names)) >= 0]
        is_invalid = any(not _is_number(logprob, -inf, _ROUNDING) for logprob in letters)
        if is_invalid or sum(exp(min(logprob, 0.0)) for logprob in letters) >= MIN_MASS:
            return tokens
    return ()


def _is_letter(text: str, names: Sequence[str]) -> bool:
    """Return whether a text has no words, or consists of a letter and perhaps the start of the letter's option."""
    match = _LETTERED.fullmatch(text)
    if match is None:
        return not re.search(r"\w", text)
    option = names[index] if (index := LETTERS.find(match[1])) < len(names) else None
    return option is not None and option.casefold().startswith(re.sub(r"[\W_]+$", "", match[2].casefold()))


def _letter_index(token: str, n_options: int) -> int:
    """Return the index of the option that a token names, or -1. A lowercase ``a`` counts as a word, not as a letter."""
    letter = token.strip().strip("\"'().:*")
    return LETTERS[:n_options].find(letter) if len(letter) == 1 else -1


def _letter_weights(logprobs: Mapping[str, float], n_options: int) -> list[float]:
    weights = [0.0] * n_options
    shares = {token: exp(min(logprob, 0.0)) for token, logprob in logprobs.items()}
    for token, share in shares.items():
        index = _letter_index(token, n_options)
        if index >= 0:
            weights[index] += share
    if not any(weights):
        return weights
    min_share = min(*shares.values(), max(1.0 - sum(shares.values()), 0.0))
    return [weight or min_share for weight in weights]


def _is_number(value: Any, low: float, high: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return low <= value <= high and not -inf < value < -float_info.max
