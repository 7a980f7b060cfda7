"""Options that no LLM chooses from: how much likelier a text makes each is its score (pointwise mutual information).

For LLMs that choose by the letter, whatever it stands for, as SmolLM2 does.
"""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm.clients.base import ChatClient, Completion
from prism_mesa.llm.errors import UselessAnswerError

_MOST: Final = 1e6
"""No log-probability is as far from 0 as that."""


@dataclass(frozen=True)
class AssociationScore:
    """A form of answer: the probability of each of some texts, by how much likelier the prompt makes it.

    The score of a text is its log-probability after the prompt, less that after `without`: the prompt without what the
    answer is to depend on (Holtzman et al. 2021, Surface Form Competition, doi:10.18653/v1/2021.emnlp-main.564).
    So a text gets nothing for being a common phrase, or a long one. Each line of the prompt is read alone, and the
    scores after them add up: an LLM of this size half forgets what it read first. The probabilities are the softmax
    of the scores, in nats: what Bayes' rule makes of them if all texts are equally likely without the prompt, and its
    lines are independent of each other given the text. Order plays no part.

    >>> form = AssociationScore(("yes", "no"), without="Someone says:")
    >>> form.read('{"logprob": {"yes": [-4.0, -3.0, -5.0], "no": [-2.0, -1.5, -2.5]}}')
    (0.5, 0.5)

    Attributes:
        texts: At least 2 different ones.
        without: What is read in place of the prompt to know how likely the texts are anyway.

    Raises:
        ConfigError: If there are too few texts, or two are equal.
    """

    texts: tuple[str, ...]
    without: str
    name: ClassVar[str] = "likelier"
    schema: ClassVar[None] = None
    top_logprobs: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if len(self.texts) < 2 or len(set(self.texts)) < len(self.texts):
            raise ConfigError(f"options: needs at least 2 different texts, not {list(self.texts)!r}")

    @cached_property
    def key(self) -> str:
        """What of the form counts for a ledger's key."""
        return json.dumps({"method": "pmi", "texts": self.texts, "without": self.without})

    async def ask(self, client: ChatClient, prompt: str) -> Completion:
        """Return ``{"logprob": {"yes": [-4.0, -3.0], ...}}``: without the prompt, and after each line of it.

        The numbers are rounded to four digits.

        Raises:
            OracleError: `no-weights` if the client cannot tell how likely texts are, or whatever it raises.
        """
        weigh = getattr(client, "weigh", None)  # see `embedded.EmbeddedChatClient`
        if weigh is None:
            raise OracleError("no-weights", f"{client.name} does not tell how likely texts are")
        said = tuple(f" {text}" for text in self.texts)
        started = time.perf_counter()
        weighed = [await weigh(line, said) for line in (self.without, *prompt.split("\n"))]
        of_texts = zip(*(logprobs for logprobs, _ in weighed), strict=True)
        logprob = {
            text: [round(one, 4) for one in logprobs] for text, logprobs in zip(self.texts, of_texts, strict=True)
        }
        n_tokens = sum(n for _, n in weighed[1:])
        latency_ms = (time.perf_counter() - started) * 1000
        return Completion(json.dumps({"logprob": logprob}, ensure_ascii=False), n_tokens, latency_ms=latency_ms)

    def recordable(self, completion: Completion) -> Completion:
        """Return what is to be recorded of it: all."""
        return completion

    def read(self, raw: str) -> tuple[float, ...]:
        """Return the probability of each text, adding up to 1.

        Raises:
            UselessAnswerError: `unparsable`, if what was recorded does not hold numbers for each text.
        """
        try:
            logprob = json.loads(raw)["logprob"]
            scores = [_score([_number(one) for one in logprob[text]]) for text in self.texts]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            wanted = '{"logprob": {<text>: [<number>, ...], ...}}'
            raise UselessAnswerError("unparsable", f"the answer {raw[:80]!r} is not an object {wanted}") from error
        weights = [math.exp(score - max(scores)) for score in scores]
        return tuple(weight / math.fsum(weights) for weight in weights)


def _score(logprobs: Sequence[float]) -> float:
    """Return by how much each but the first is above the first, all together."""
    without, *after = logprobs
    return math.fsum(one - without for one in after)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MOST:
        raise ValueError(f"{value!r} is no log-probability")
    return float(value)
