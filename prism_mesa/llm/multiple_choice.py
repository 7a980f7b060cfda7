"""Questions whose options have letters, and the probabilities in an LLM's answers.

The probabilities are those of the letters at the first position of the answer where they add up to `MIN_MASS` or more,
scaled to add up to 1. Without such a position (the LLM talks instead of choosing) the answer is useless. A letter that
is not among the `TOP_LOGPROBS` likeliest tokens is as likely as the least likely of them, or as all other tokens
together if that is less.
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
from prism_mesa.llm.text import LETTERS, bare_option, one_letter, parse_json, unwrapped

TOP_LOGPROBS: Final = 20
MIN_MASS: Final = 0.5
_ROUNDING: Final = 1e-3
_CHOICE_KEYS: Final = ("next_state", "answer", "choice", "option", "letter")
"""Keys under which an LLM names its choice in a JSON object."""
_LETTERED: Final = re.compile(r"(?:(?i:the answer|answer)(?: is|:)* )?[\W_]*([A-Z])(?![^\W_])[\W_]*(.*)", re.DOTALL)
_LOG_OF_0: Final = -9999.0
"""Recorded for the logarithm of 0, which JSON cannot write; read again it is 0."""


@dataclass(frozen=True)
class MultipleChoice(AnswerFormat[tuple[float, ...]]):
    r"""An answer format: the probability of each text; the LLM names one text by its letter.

    LLMs prefer some letters regardless of their meaning (Zheng et al. 2024, Large Language Models Are Not Robust
    Multiple Choice Selectors, arXiv:2309.03882). `first` is the text with the letter A; the others follow in turn. If
    `first` varies between agents, the preference cancels in the mean of many answers, though not in a single one. The
    probabilities always have the order of `texts`.

    An LLM without log-probabilities (a function) may answer a letter, a text, or ``{"yes": 0.7, "no": 0.3}``.

    >>> form = MultipleChoice(("yes", "no", "perhaps"), first=1)
    >>> form.lines
    'A. no\nB. perhaps\nC. yes'
    >>> form.read("C"), form.read('{"yes": 3, "no": 1}')
    ((1.0, 0.0, 0.0), (0.75, 0.25, 0.0))

    Attributes:
        texts: 2 to 26 different texts.
        first: The index of the text with the letter A.

    Raises:
        ConfigError: If there are too few or too many texts, two are equal, or `first` is out of range.
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
        """The form's part of a ledger's key: the texts in the order of their letters."""
        return json.dumps(self._lettered_texts)

    @property
    def lines(self) -> str:
        """The texts with their letters, one per line, for prompts."""
        return "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, self._lettered_texts, strict=False))

    @property
    def request(self) -> str:
        """The sentence of a prompt that asks for a letter."""
        return one_letter(len(self.texts))

    async def ask(self, client: ChatClient, prompt: str, schema: Any = None, attempt: int = 0) -> Completion:
        """Return a client's answer in the form that the ledger records."""
        return recordable(await super().ask(client, prompt, schema, attempt), self._lettered_texts)

    def read(self, raw: str) -> tuple[float, ...]:
        """Return the probability of each text, adding up to 1; UselessAnswerError if the answer names no text."""
        probabilities = read_options(raw, self._lettered_texts, "no-option")
        shift = len(self.texts) - self.first
        return probabilities[shift:] + probabilities[:shift]

    @property
    def _lettered_texts(self) -> tuple[str, ...]:
        return self.texts[self.first :] + self.texts[: self.first]


def named_option(raw: str, names: Sequence[str]) -> int:
    """Return the index of the option in an answer (a letter, a name, or an object with either), or -1."""
    answer = unwrapped(raw)
    if answer.startswith("{"):
        with suppress(UselessAnswerError):
            values = [value for key, value in parse_json(answer).items() if key in _CHOICE_KEYS]
            answer = values[0] if len(values) == 1 and isinstance(values[0], str) else ""
    index = _letter_index(answer, len(names))
    return bare_option(answer, names) if index < 0 else index


def recordable(completion: Completion, names: Sequence[str]) -> Completion:
    """Return an answer as JSON with its text and its letters' log-probabilities; without these, return it unchanged.

    Log-probabilities count only if the text is a letter, perhaps followed by its option.
    """
    if not require_complete(completion).top_logprobs:
        return completion
    logprobs = {token: _LOG_OF_0 if value == -inf else value for token, value in _deciding_tokens(completion, names)}
    return replace(completion, text=json.dumps({"text": completion.text, "top_logprobs": logprobs}), top_logprobs=())


def require_complete(completion: Completion) -> Completion:
    """Return an answer; OracleError (`cut-answer`) if it was truncated, because "A" may be the start of "A person"."""
    if completion.truncated and not completion.text.rstrip("` \n").endswith("}"):
        remedy = suggest_more_tokens(completion.completion_tokens)
        fault = f"the answer {completion.text[:80]!r} was cut: {remedy}"
        raise OracleError("cut-answer", fault, tokens=(completion.prompt_tokens, completion.completion_tokens))
    return completion


def read_options(raw: str, names: Sequence[str], reason: str) -> tuple[float, ...]:
    """Return the probability of each option in an answer; errors as in `read_probabilities`."""
    index = named_option(raw, names)
    if index < 0:
        return read_probabilities(raw, names, reason)
    return tuple(float(i == index) for i in range(len(names)))


def read_probabilities(raw: str, names: Sequence[str], reason: str) -> tuple[float, ...]:
    """Return the probability of each option in a recorded answer, by its letter or name; missing options have 0.

    An invalid weight makes the whole answer useless, because the other options' shares depend on it.

    Raises:
        UselessAnswerError: `unparsable` if the answer is not a JSON object, `reason` if it names no option or has an
            invalid weight.
    """
    answer = parse_json(raw)
    if not isinstance(answer, dict):
        raise UselessAnswerError("unparsable", f"the answer {raw[:80]!r} has no probabilities")
    top = answer.get("top_logprobs")
    if isinstance(top, dict):
        _check(top, -inf, _ROUNDING, raw, reason)
        weights = _letter_weights(top, len(names))
    else:
        by_name = {name: answer[name] for name in names if name in answer}
        _check(by_name, 0, float_info.max, raw, reason)
        weights = [float(by_name.get(name, 0)) for name in names]
    total = sum(weights)
    if not 0.0 < total < inf:
        allowed = ", ".join(names)
        raise UselessAnswerError(reason, f"the answer {raw[:80]!r} names no option (allowed: {allowed})")
    return tuple(weight / total for weight in weights)


def _check(values: Mapping[str, Any], low: float, high: float, raw: str, reason: str) -> None:
    for name, value in values.items():
        if not _is_number(value, low, high):
            fault = f"{name[:20]!r}: {str(value)[:20]!r}, not a number from {low:g} to {high:.3g}"
            raise UselessAnswerError(reason, f"the answer {raw[:80]!r} gives {fault}")


def _deciding_tokens(completion: Completion, names: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Return the tokens of the first position whose letters have enough mass or an invalid number."""
    for tokens in completion.top_logprobs if _is_letter(completion.text, names) else ():
        letters: list[Any] = [logprob for token, logprob in tokens if _letter_index(token, len(names)) >= 0]
        is_wrong = any(not _is_number(logprob, -inf, _ROUNDING) for logprob in letters)
        if is_wrong or sum(exp(min(logprob, 0.0)) for logprob in letters) >= MIN_MASS:
            return tokens
    return ()


def _is_letter(text: str, names: Sequence[str]) -> bool:
    """Return whether a text has no words, or is a letter that the start of its option may follow."""
    match = _LETTERED.fullmatch(text)
    if match is None:
        return not re.search(r"\w", text)
    option = names[index] if (index := LETTERS.find(match[1])) < len(names) else None
    return option is not None and option.casefold().startswith(re.sub(r"[\W_]+$", "", match[2].casefold()))


def _letter_index(token: str, n_options: int) -> int:
    """Return the index of the option that a token names, or -1; a lowercase ``a`` is a word, not a letter."""
    letter = token.strip().strip("\"'().:*")
    return LETTERS[:n_options].find(letter) if len(letter) == 1 else -1


def _letter_weights(top: Mapping[str, float], n_options: int) -> list[float]:
    weights = [0.0] * n_options
    shares = {token: exp(min(logprob, 0.0)) for token, logprob in top.items()}
    for token, share in shares.items():
        index = _letter_index(token, n_options)
        if index >= 0:
            weights[index] += share
    if not any(weights):
        return weights
    min_share = min(*shares.values(), max(1.0 - sum(shares.values()), 0.0))
    return [weight or min_share for weight in weights]


def _is_number(value: Any, low: float, high: float) -> bool:
    """Return whether `value` is a number in a range that a float can represent."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return low <= value <= high and not -inf < value < -float_info.max
