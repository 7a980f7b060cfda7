"""An answer format that scores each option by how much the prompt increases its probability.

Use it for LLMs that prefer one letter whatever its option is, such as SmolLM2.
"""

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm.clients.base import ChatClient, Completion, timed
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.request import AnswerFormat

_MAX_LOGPROB: Final = 1e6
"""An upper bound of the absolute value of log-probabilities."""


@dataclass(frozen=True)
class AssociationScore(AnswerFormat[tuple[float, ...]]):
    """An answer format: the probability of each text, computed from how much the prompt increases it.

    The score of a text is its log-probability after the prompt minus its log-probability after `baseline` (pointwise
    mutual information; Holtzman et al. 2021, Surface Form Competition, doi:10.18653/v1/2021.emnlp-main.564), so short
    or common texts have no advantage. The LLM reads each line of the prompt separately, and the scores of the lines are
    added, because a small LLM forgets much of a long prompt. The probabilities are the softmax of the scores, in nats:
    Bayes' rule with equal priors and independent lines.

    >>> form = AssociationScore(("yes", "no"), baseline="Someone says:")
    >>> form.read('{"logprob": {"yes": [-4.0, -3.0, -5.0], "no": [-2.0, -1.5, -2.5]}}')
    (0.5, 0.5)

    Attributes:
        texts: At least 2 different texts.
        baseline: The text that replaces the prompt for comparison.

    Raises ConfigError if there are fewer than 2 texts, or if two texts are equal.
    """

    texts: tuple[str, ...]
    baseline: str
    name = "likelier"

    def __post_init__(self) -> None:
        if len(self.texts) < 2 or len(set(self.texts)) < len(self.texts):
            raise ConfigError(f"options: needs at least 2 different texts, not {list(self.texts)!r}")

    @cached_property
    def key(self) -> str:
        """The format's part of a ledger's key."""
        return json.dumps({"method": "pmi", "texts": self.texts, "without": self.baseline})

    @timed
    async def ask(self, client: ChatClient, prompt: str, schema: Any = None, attempt: int = 0) -> Completion:
        """Return ``{"logprob": {"yes": [-4.0, -3.0], ...}}``: after `baseline`, then after each line of the prompt.

        Raises OracleError (`no-weights`) if the client gives no log-probabilities of texts.
        """
        text_logprobs = getattr(client, "text_logprobs", None)  # see `embedded.EmbeddedChatClient`
        if text_logprobs is None:
            raise OracleError("no-weights", f"{client.name} gives no log-probabilities of texts")
        texts = tuple(f" {text}" for text in self.texts)
        logprobs_by_line = [await text_logprobs(line, texts) for line in (self.baseline, *prompt.split("\n"))]
        by_text = zip(*(logprobs for logprobs, _ in logprobs_by_line), strict=True)
        rounded = ([round(logprob, 4) for logprob in logprobs] for logprobs in by_text)
        raw = json.dumps({"logprob": dict(zip(self.texts, rounded, strict=True))}, ensure_ascii=False)
        return Completion(raw, sum(n for _, n in logprobs_by_line[1:]))

    def read(self, raw: str) -> tuple[float, ...]:
        """Return the probability of each text, adding up to 1. Raises UselessAnswerError if there are no numbers."""
        try:
            logprob = json.loads(raw)["logprob"]
            by_text = [list(map(_number, logprob[text])) for text in self.texts]
            scores = [math.fsum(line - baseline for line in lines) for baseline, *lines in by_text]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            expected = '{"logprob": {<text>: [<number>, ...], ...}}'
            raise UselessAnswerError("unparsable", f"the answer {raw[:80]!r} is not an object {expected}") from error
        weights = [math.exp(score - max(scores)) for score in scores]
        return tuple(weight / math.fsum(weights) for weight in weights)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MAX_LOGPROB:
        raise ValueError(f"{value!r} is not a log-probability")
    return float(value)
