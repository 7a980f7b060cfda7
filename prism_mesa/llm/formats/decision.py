"""Options that a decision model weighs in one pass: it says no words, so nothing has to be parsed or guessed at."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm.clients.base import ChatClient, Completion, label_of
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.text import json_of
from prism_mesa.streams import digest64

MOST_LEVELS: Final = 10
_SUM_OFF, _SCORE_OFF, _ROUNDING = 0.02, 0.1, 1e-6


@dataclass(frozen=True)
class Decision:
    """A form of answer: the probability of each of some options, from a decision model.

    Such models prefer some places in the list: the order of the options follows from a hash of the prompt. The levels
    of a scale keep their order.

    >>> form = Decision(("yes", "no"), "Does it rain?")
    >>> form.read('{"asked": [["no", "yes"]], "said": [{"answer": {"probabilities": {"no": 0.25, "yes": 0.75}}}]}')
    (0.75, 0.25)

    Attributes:
        options: At least 2 different ones; `descriptions`: what each means, if that is to be told.
        instructions: What is asked about the prompt.
        orders: 2: ask also in the reverse order, and average.
        scale: Whether the options are the levels of a scale, lowest first, at most `MOST_LEVELS`.
    """

    options: tuple[str, ...]
    instructions: str
    descriptions: tuple[str, ...] = ()
    orders: int = 1
    scale: bool = False
    name: ClassVar[str] = "decision"
    schema: ClassVar[None] = None
    top_logprobs: ClassVar[int] = 0

    @cached_property
    def key(self) -> str:
        """What of the form counts for a ledger's key."""
        return json.dumps([self.instructions, self.options, self.descriptions, self.orders, self.scale])

    async def ask(self, client: ChatClient, prompt: str) -> Completion:
        """Return ``{"asked": [[option, ...]], "said": [...]}``: each order with what `decide` of the client returns.

        That is ``{"model": ..., "answer": ...}``; question and answer have the form of ``/v1/systemone``.

        Raises:
            OracleError: Whatever the client raises.
            ConfigError: If the client asks no decision models.
        """
        decide = getattr(client, "decide", None)
        if decide is None:
            raise ConfigError(f"reasoner.answer: decision: {label_of(client)} has no decide(): set another answer")
        first = self.options if self.scale else tuple(sorted(self.options, key=lambda name: digest64(prompt, name)))
        asked = [first, first[::-1]][: self.orders]
        replies: list[Completion] = []
        try:
            for order in asked:
                replies.append(await decide(prompt, self.question(order)))
        except OracleError as error:
            error.calls, error.tokens = error.calls + len(replies), _tokens(replies, *error.tokens)
            raise
        raw = json.dumps({"asked": asked, "said": [json.loads(one.text) for one in replies]}, ensure_ascii=False)
        latency_ms = math.fsum(one.latency_ms for one in replies)
        return Completion(raw, *_tokens(replies), latency_ms, calls=len(replies))

    def question(self, order: Sequence[str]) -> dict[str, Any]:
        """Return what is asked, in the form of ``/v1/systemone``, with the options in an order."""
        means = dict(zip(self.options, self.descriptions, strict=False))
        criteria = list(order) if self.scale else {option: means.get(option) for option in order}
        return {"type": "score" if self.scale else "choice", "instructions": self.instructions, "criteria": criteria}

    def heard(self, said: Completion) -> Completion:
        """Return what is to be recorded of it: all."""
        return said

    def read(self, raw: str) -> tuple[float, ...]:
        """Return the probability of each option, adding up to 1.

        Raises:
            UselessAnswerError: `no-answer`, `refusal`, `wrong-options`, `wrong-numbers`, or `contradiction`.
        """
        told = json_of(raw)
        try:
            rows = [self._weights(*pair) for pair in zip(told["asked"], told["said"], strict=False)]
            means = [math.fsum(row[option] for row in rows) / len(rows) for option in self.options]
        except (LookupError, TypeError, AttributeError, ZeroDivisionError) as error:
            raise UselessAnswerError("no-answer", f"the answer {raw[:200]!r} holds no probabilities") from error
        return tuple(mean / math.fsum(means) for mean in means)

    def _weights(self, order: list[str], said: dict[str, Any]) -> dict[str, float]:
        """Return what one answer gives each option, adding up to 1."""
        answer, shown = said["answer"], json.dumps(said)[:200]
        if (kind := answer.get("type", "score" if self.scale else "choice")) == "refusal":
            raise UselessAnswerError("refusal", f"the decision model refuses to decide: {shown}")
        legend = {str(place): level for place, level in enumerate(order)} if self.scale else dict.fromkeys(order)
        given: dict[str, float] = answer["probabilities"]
        has_levels = answer.get("legend", legend) == legend if self.scale else True
        if given.keys() != legend.keys() or kind != self.question(order)["type"] or not has_levels:
            raise UselessAnswerError("wrong-options", f"the answer has other options than {', '.join(order)}: {shown}")
        weights = [given[name] for name in legend]
        if not all(map(_is_probability, weights)) or abs(math.fsum(weights) - 1) > _SUM_OFF:
            raise UselessAnswerError("wrong-numbers", f"these are no probabilities that add up to 1: {shown}")
        mean = math.fsum(place * weight for place, weight in enumerate(weights))
        agrees = abs(answer.get("score", mean) - mean) <= _SCORE_OFF if self.scale else True
        if not agrees or ("choice" in answer and given.get(answer["choice"], 0) < max(weights) - _SUM_OFF):
            raise UselessAnswerError("contradiction", f"its choice or score is not what its numbers say: {shown}")
        return {option: max(weight, 0.0) / math.fsum(weights) for option, weight in zip(order, weights, strict=True)}


def _tokens(replies: Sequence[Completion], read: int = 0, wrote: int = 0) -> tuple[int, int]:
    return read + sum(one.prompt_tokens for one in replies), wrote + sum(one.completion_tokens for one in replies)


def _is_probability(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -_ROUNDING <= value <= 1 + _ROUNDING
