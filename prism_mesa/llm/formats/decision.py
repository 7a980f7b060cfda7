"""Options that a decision model weighs in one pass: it says no words, so nothing has to be parsed or guessed at."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm.clients.base import ChatClient, Completion, Decides, label_of
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.text import json_of
from prism_mesa.streams import digest64

MOST_LEVELS: Final = 10
_SUM_OFF: Final = 0.02
_SCORE_OFF: Final = 0.1
_ROUNDING: Final = 1e-6


@dataclass(frozen=True)
class Decision:
    """A form of answer: the probability of each of some options, from a decision model.

    Such models prefer some places in the list: the order of the options follows from a hash of the prompt, which
    spreads that over the options. The levels of a scale keep their order.

    >>> form = Decision(("yes", "no"), "Does it rain?")
    >>> form.read('{"asked": [["no", "yes"]], "said": [{"answer": {"probabilities": {"no": 0.25, "yes": 0.75}}}]}')
    (0.75, 0.25)

    Attributes:
        options: At least 2 different ones.
        instructions: What is asked about the prompt.
        descriptions: What each option means; empty: no more than it says.
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
        """Return ``{"asked": [[option, ...]], "said": [...]}``: the orders, and what `base.Decides` says to each.

        Raises:
            OracleError: Whatever the client raises.
            ConfigError: If the client asks no decision models.
        """
        if not isinstance(client, Decides):
            raise ConfigError(f"reasoner.answer: decision: {label_of(client)} has no decide(): set another answer")
        first = self.options if self.scale else tuple(sorted(self.options, key=lambda name: digest64(prompt, name)))
        asked = [first, first[::-1]][: self.orders]
        replies: list[Completion] = []
        try:
            for order in asked:
                replies.append(await client.decide(prompt, self._question(order)))
        except OracleError as error:
            error.calls += len(replies)
            error.tokens = _tokens(replies, *error.tokens)
            raise
        raw = json.dumps({"asked": asked, "said": [json.loads(one.text) for one in replies]}, ensure_ascii=False)
        latency_ms = math.fsum(one.latency_ms for one in replies)
        return Completion(raw, *_tokens(replies), latency_ms, calls=len(replies))

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
            raise UselessAnswerError("no-answer", f"the answer {raw[:120]!r} holds no probabilities") from error
        return tuple(mean / math.fsum(means) for mean in means)

    @property
    def _type(self) -> str:
        return "score" if self.scale else "choice"

    def _question(self, order: Sequence[str]) -> dict[str, Any]:
        means = dict(zip(self.options, self.descriptions or (None,) * len(order), strict=True))
        criteria = list(order) if self.scale else {option: means[option] for option in order}
        return {"type": self._type, "instructions": self.instructions, "criteria": criteria}

    def _weights(self, order: list[str], said: dict[str, Any]) -> dict[str, float]:
        """Return what one answer gives each option, adding up to 1."""
        answer = said["answer"]
        if (kind := answer.get("type", self._type)) != self._type:
            told = "refuses to decide" if kind == "refusal" else f"answers {kind!r}, not {self._type!r}"
            raise UselessAnswerError("refusal" if kind == "refusal" else "no-answer", f"the decision model {told}")
        legend = {str(place): level for place, level in enumerate(order)} if self.scale else dict.fromkeys(order)
        given, names = answer["probabilities"], list(legend)
        if given.keys() != legend.keys() or (self.scale and answer.get("legend", legend) != legend):
            told = f"it has probabilities of {', '.join(given)}; the options were {', '.join(order)}"
            raise UselessAnswerError("wrong-options", f"the answer is of other options: {told}"[:300])
        weights = [given[name] for name in names]
        if not all(map(_is_probability, weights)) or abs(math.fsum(weights) - 1) > _SUM_OFF:
            told = f"the answer's numbers are no probabilities that add up to 1: {weights}"
            raise UselessAnswerError("wrong-numbers", told[:300])
        choice, score = answer.get("choice"), answer.get("score")
        mean = math.fsum(place * weight for place, weight in enumerate(weights))
        if (choice is not None and given.get(choice, 0) < max(weights) - _SUM_OFF) or (
            self.scale and score is not None and abs(score - mean) > _SCORE_OFF
        ):
            told = f"the answer says {choice if score is None else score!r}, its probabilities {weights}"
            raise UselessAnswerError("contradiction", told[:300])
        return {option: max(weight, 0.0) / math.fsum(weights) for option, weight in zip(order, weights, strict=True)}


def _tokens(replies: Sequence[Completion], read: int = 0, wrote: int = 0) -> tuple[int, int]:
    return read + sum(one.prompt_tokens for one in replies), wrote + sum(one.completion_tokens for one in replies)


def _is_probability(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and -_ROUNDING <= value <= 1 + _ROUNDING
