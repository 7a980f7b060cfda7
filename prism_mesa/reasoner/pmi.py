"""An oracle that decides by pointwise mutual information, computed with the embedded LLM."""

import json
import time
from functools import lru_cache
from typing import Final

import numpy as np

from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.clients.embedded import (
    N_LOGPROBS,
    EmbeddedChatClient,
    escape,
    forced_text_request,
    next_token_request,
    token_entries,
)
from prism_mesa.llm.clients.recorded import RecordedClient
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.text import MAX_INTERESTS, MEDIA_CAP, NAME_CAP, TEXT_CAP, clean_text, parse_json
from prism_mesa.reasoner.params import RuleParams
from prism_mesa.reasoner.question import PlacedQuestion, Question
from prism_mesa.reasoner.rule import RuleReasoner, question_columns

PMI_MIDDLE: Final = 1.06
PMI_SCALE: Final = 1.53
"""The mean score is PMI_MIDDLE + PMI_SCALE for matching posts, else PMI_MIDDLE - PMI_SCALE (benchmarks/embedded.py)."""
_MAX_RATIO: Final = 1e6
"""Maximum absolute value of a score."""
_MAX_CACHED_POSTS: Final = 1024
_MAX_CACHED_INTERESTS: Final = 8192
_LIKED: Final = '"{}" was liked by people interested in'
_NO_POST: Final = _LIKED.format("...")


class PmiOracle:
    """Decides by how much a post increases the probability of an interest (pointwise mutual information).

    Holtzman et al. 2021, doi:10.18653/v1/2021.emnlp-main.564, use this measure for choices by LLMs. The LLM reads
    ``"<post>" was liked by people interested in``. The score of an interest is the log-probability of its first token,
    minus the log-probability with ``"..."`` in place of the post. Tokens that are not among the `N_LOGPROBS` likeliest
    count as the least likely of these. Each interest is spelled unchanged or in lowercase, whichever is likelier
    without a post. The score of a post is the highest score of an interest (AUC over default personas and posts .98;
    with the mean .94, with the sum .96).

    The score replaces the utility in the rule (`RuleReasoner`). Its position on the band is ``(pmi - PMI_MIDDLE) /
    PMI_SCALE``, limited to -3..3. The LLM reads a post once for all interests, and the last 1,024 posts are cached.
    """

    def __init__(self, client: EmbeddedChatClient | RecordedClient, params: RuleParams | None = None) -> None:
        self.rule = RuleReasoner(params)
        self.name, self.digest, self.label = client.name, client.digest, client.label
        if isinstance(client, RecordedClient):
            self.decoding = client.decoding
            return
        self.client = client
        self.decoding = {"method": "pmi", "top": N_LOGPROBS, "without": _NO_POST, "build": client.build}
        self._logprobs_after = lru_cache(_MAX_CACHED_POSTS)(self._read_prompt)
        self._first_token = lru_cache(_MAX_CACHED_INTERESTS)(self._read_first_token)

    def write(self, question: Question) -> str:
        """Return lines: the text for the LLM, then the sorted interests; empty without a post."""
        post = question.post
        text = "" if post is None else clean_text(post.text, TEXT_CAP)
        media = "" if post is None else clean_text(post.media_description, MEDIA_CAP)
        quoted = escape(f"{text} ({media})".strip() if media else text).replace('"', "'")
        interests = {clean_text(interest, NAME_CAP) for interest in question.persona.interests[:MAX_INTERESTS]} - {""}
        return "\n".join([_LIKED.format(quoted), *sorted(interests)]) if quoted else ""

    async def ask(self, prompt: str, question: Question, attempt: int = 0) -> Completion:
        """Return ``{"pmi": 2.25, "of": {"jazz": 2.25, "tea": -0.5}}``, rounded to four digits.

        Without a post or interests the score is PMI_MIDDLE, and the LLM is not asked.
        """
        sentence, *interests = prompt.split("\n")
        if not interests:
            return Completion(json.dumps({"pmi": PMI_MIDDLE, "of": {}}))
        started = time.perf_counter()
        scores, n_tokens = await self.client.run(lambda: self._scores(sentence, interests))
        raw = json.dumps({"pmi": max(scores.values()), "of": scores}, ensure_ascii=False)
        return Completion(raw, n_tokens, 1, (time.perf_counter() - started) * 1000)

    def read(self, question: Question, raw: str) -> tuple[float, ...]:
        """Return the probability of each option by the rule, with the score in place of the utility."""
        choices = question_columns(question.options, [PlacedQuestion(question)])
        return tuple(self.rule.probabilities(choices, np.array([band_position(raw)]))[0].tolist())

    def _scores(self, sentence: str, interests: list[str]) -> tuple[dict[str, float], int]:
        """Return the score of each interest, and the number of tokens that the LLM read."""
        baseline, _ = self._logprobs_after(_NO_POST)
        logprobs, n_tokens = self._logprobs_after(sentence)
        scores = {}
        for interest in interests:
            tokens = [self._first_token(f" {spelling}") for spelling in (interest, interest.lower())]
            token = max(tokens, key=lambda token: _logprob(baseline, token))
            scores[interest] = round(_logprob(logprobs, token) - _logprob(baseline, token), 4)
        return scores, n_tokens

    def _read_prompt(self, prompt: str) -> tuple[dict[int, float], int]:
        """Return the likeliest next tokens with log-probabilities, best first, and the number of tokens in `prompt`."""
        reply = self.client.call("handle_completions", next_token_request(prompt, N_LOGPROBS))
        candidates = token_entries(reply)[0]["top_logprobs"]
        return {token["id"]: token["logprob"] for token in candidates}, reply["usage"]["prompt_tokens"]

    def _read_first_token(self, text: str) -> int | None:
        """Return the first token of `text`, or None if it is only part of a character."""
        entries = token_entries(self.client.call("handle_completions", forced_text_request(" ", text, 1)))
        return int(entries[0]["id"]) if entries else None


def _logprob(logprobs: dict[int, float], token: int | None) -> float:
    return logprobs.get(-1 if token is None else token, min(logprobs.values()))


def band_position(raw: str) -> float:
    """Return the position of a recorded score on the band. Raises UselessAnswerError if there is none."""
    answer = parse_json(raw)
    score = answer.get("pmi") if isinstance(answer, dict) else None
    if not isinstance(score, float | int) or isinstance(score, bool) or not abs(score) < _MAX_RATIO:
        raise UselessAnswerError("unparsable", f'the answer {raw[:80]!r} is not an object {{"pmi": <number>}}')
    return (score - PMI_MIDDLE) / PMI_SCALE
