"""A form of answer without a choice: an option's score is how much likelier a text makes it.

For LLMs that choose a letter whatever it stands for, as SmolLM2 does.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm.clients.base import ChatClient, Completion, timed
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.request import AnswerFormat

_MOST: Final = 1e6
"""No log-probability is as far from 0 as that."""


@dataclass(frozen=True)
class AssociationScore(AnswerFormat[tuple[float, ...]]):
    """A form of answer: the probability of each text, by how much likelier the prompt makes it.

    The score of a text is its log-probability after the prompt, less that after `without` (pointwise mutual
    information; Holtzman et al. 2021, Surface Form Competition, doi:10.18653/v1/2021.emnlp-main.564). So a text gains
    nothing by being short or common. Each line of the prompt is read alone and the scores add up, because an LLM of
    this size half forgets what it read first. The probabilities are the softmax of the scores, in nats: Bayes' rule
    with equal priors and independent lines.

    >>> form = AssociationScore(("yes", "no"), without="Someone says:")
    >>> form.read('{"logprob": {"yes": [-4.0, -3.0, -5.0], "no": [-2.0, -1.5, -2.5]}}')
    (0.5, 0.5)

    Attributes:
        texts: At least 2 different texts.
        without: The text that is read in place of the prompt for the baseline.

    Raises:
        ConfigError: If there are too few texts, or two are equal.
    """

    texts: tuple[str, ...]
    without: str
    name = "likelier"

    def __post_init__(self) -> None:
        if len(self.texts) < 2 or len(set(self.texts)) < len(self.texts):
            raise ConfigError(f"options: needs at least 2 different texts, not {list(self.texts)!r}")

    @cached_property
    def key(self) -> str:
        """The part of the form that is in a ledger's key."""
        return json.dumps({"method": "pmi", "texts": self.texts, "without": self.without})

    @timed
    async def ask(self, client: ChatClient, prompt: str, schema: Any = None, attempt: int = 0) -> Completion:
        """Return ``{"logprob": {"yes": [-4.0, -3.0], ...}}``: without the prompt, and after each line of it.

        Raises:
            OracleError: `no-weights` if the client cannot tell how likely texts are.
        """
        weigh = getattr(client, "weigh", None)  # see `embedded.EmbeddedChatClient`
        if weigh is None:
            raise OracleError("no-weights", f"{client.name} does not tell how likely texts are")
        texts = tuple(f" {text}" for text in self.texts)
        weighed = [await weigh(line, texts) for line in (self.without, *prompt.split("\n"))]
        by_text = zip(*(logprobs for logprobs, _ in weighed), strict=True)
        rounded = ([round(logprob, 4) for logprob in logprobs] for logprobs in by_text)
        raw = json.dumps({"logprob": dict(zip(self.texts, rounded, strict=True))}, ensure_ascii=False)
        return Completion(raw, sum(n for _, n in weighed[1:]))

    def read(self, raw: str) -> tuple[float, ...]:
        """Return the probability of each text, adding up to 1; UselessAnswerError (`unparsable`) without numbers."""
        try:
            logprob = json.loads(raw)["logprob"]
            scores = [_score(list(map(_number, logprob[text]))) for text in self.texts]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            wanted = '{"logprob": {<text>: [<number>, ...], ...}}'
            raise UselessAnswerError("unparsable", f"the answer {raw[:80]!r} is not an object {wanted}") from error
        weights = [math.exp(score - max(scores)) for score in scores]
        return tuple(weight / math.fsum(weights) for weight in weights)


def _score(logprobs: Sequence[float]) -> float:
    """Return the sum of what each log-probability but the first has above the first."""
    without, *after = logprobs
    return math.fsum(logprob - without for logprob in after)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MOST:
        raise ValueError(f"{value!r} is no log-probability")
    return float(value)
