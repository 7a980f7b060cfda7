"""The answer format of a decision model, which gives the probabilities of all options without writing text."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm.clients.base import ChatClient, Completion, client_label
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.request import AnswerFormat
from prism_mesa.llm.text import parse_json
from prism_mesa.streams import digest64

MAX_LEVELS: Final = 10
_SUM_TOLERANCE, _SCORE_TOLERANCE, _ROUNDING = 0.02, 0.1, 1e-6


@dataclass(frozen=True)
class Decision(AnswerFormat[tuple[float, ...]]):
    """An answer format: a decision model gives the probability of each option.

    Decision models prefer some positions in a list. Therefore a hash of the prompt determines the order of the options.
    The levels of a scale keep their order.

    >>> form = Decision(("yes", "no"), "Does it rain?")
    >>> form.read('{"asked": [["no", "yes"]], "said": [{"answer": {"probabilities": {"no": 0.25, "yes": 0.75}}}]}')
    (0.75, 0.25)

    Attributes:
        options: At least 2 different options; `descriptions` may explain them to the model.
        instructions: The question about the prompt.
        n_orders: Number of orders in which to ask, 1 or 2; with 2 the answer is the mean over an order and its reverse.
        is_scale: Whether the options are the levels of a scale, lowest first, at most `MAX_LEVELS`.
    """

    options: tuple[str, ...]
    instructions: str
    descriptions: tuple[str, ...] = ()
    n_orders: int = 1
    is_scale: bool = False
    name = "decision"

    @cached_property
    def key(self) -> str:
        """The format's part of a ledger's key."""
        return json.dumps([self.instructions, self.options, self.descriptions, self.n_orders, self.is_scale])

    async def ask(self, client: ChatClient, prompt: str, schema: Any = None, attempt: int = 0) -> Completion:
        """Return ``{"asked": [[option, ...]], "said": [...]}``: the orders, and the replies of the client's `decide`.

        Questions and answers have the format of ``/v1/systemone``. Raises ConfigError if the client has no `decide`.
        """
        decide = getattr(client, "decide", None)
        if decide is None:
            raise ConfigError(f"reasoner.answer: decision: {client_label(client)} has no decide(): set choice")
        sorted_options = tuple(sorted(self.options, key=lambda name: digest64(prompt, name)))
        options = self.options if self.is_scale else sorted_options
        orders = [options, options[::-1]][: self.n_orders]
        replies: list[Completion] = []
        try:
            for order in orders:
                replies.append(await decide(prompt, self.question(order)))
        except OracleError as error:
            error.calls, error.tokens = error.calls + len(replies), _count_tokens(replies, *error.tokens)
            raise
        raw = json.dumps({"asked": orders, "said": [json.loads(reply.text) for reply in replies]}, ensure_ascii=False)
        latency_ms = math.fsum(reply.latency_ms for reply in replies)
        return Completion(raw, *_count_tokens(replies), latency_ms, calls=len(replies))

    def question(self, order: Sequence[str]) -> dict[str, Any]:
        """Return the question in the format of ``/v1/systemone``, with the options in `order`."""
        descriptions = dict(zip(self.options, self.descriptions, strict=False))
        criteria = list(order) if self.is_scale else {option: descriptions.get(option) for option in order}
        return {"type": "score" if self.is_scale else "choice", "instructions": self.instructions, "criteria": criteria}

    def read(self, raw: str) -> tuple[float, ...]:
        """Return the probability of each option, adding up to 1. Raises UselessAnswerError if they are invalid."""
        record = parse_json(raw)
        try:
            rows = [self._weights(*pair) for pair in zip(record["asked"], record["said"], strict=False)]
            means = [math.fsum(row[option] for row in rows) / len(rows) for option in self.options]
        except (LookupError, TypeError, AttributeError, ZeroDivisionError) as error:
            raise UselessAnswerError("no-answer", f"the answer {raw[:200]!r} holds no probabilities") from error
        return tuple(mean / math.fsum(means) for mean in means)

    def _weights(self, order: list[str], reply: dict[str, Any]) -> dict[str, float]:
        """Return the probability of each option in one reply, adding up to 1."""
        answer, quote = reply["answer"], json.dumps(reply)[:200]
        if (kind := answer.get("type", "score" if self.is_scale else "choice")) == "refusal":
            raise UselessAnswerError("refusal", f"the decision model refuses to decide: {quote}")
        legend = {str(index): level for index, level in enumerate(order)} if self.is_scale else dict.fromkeys(order)
        by_name: dict[str, float] = answer["probabilities"]
        has_levels = not self.is_scale or answer.get("legend", legend) == legend
        if by_name.keys() != legend.keys() or kind != self.question(order)["type"] or not has_levels:
            raise UselessAnswerError("wrong-options", f"the answer has other options than {', '.join(order)}: {quote}")
        weights = [by_name[name] for name in legend]
        if not all(map(_is_probability, weights)) or abs(math.fsum(weights) - 1) > _SUM_TOLERANCE:
            raise UselessAnswerError("wrong-numbers", f"the numbers are not probabilities that add up to 1: {quote}")
        mean = math.fsum(index * weight for index, weight in enumerate(weights))
        agrees = not self.is_scale or abs(answer.get("score", mean) - mean) <= _SCORE_TOLERANCE
        if not agrees or ("choice" in answer and by_name.get(answer["choice"], 0) < max(weights) - _SUM_TOLERANCE):
            raise UselessAnswerError("contradiction", f"its choice or score contradicts its probabilities: {quote}")
        return {option: max(weight, 0.0) / math.fsum(weights) for option, weight in zip(order, weights, strict=True)}


def _count_tokens(replies: Sequence[Completion], n_read: int = 0, n_written: int = 0) -> tuple[int, int]:
    n_read += sum(reply.prompt_tokens for reply in replies)
    return n_read, n_written + sum(reply.completion_tokens for reply in replies)


def _is_probability(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -_ROUNDING <= value <= 1 + _ROUNDING
