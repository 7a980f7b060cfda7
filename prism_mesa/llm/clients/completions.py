"""Extracts the LLM's answer from a server's reply, without its thought, and detects cut prompts."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from prism_mesa.errors import OracleError
from prism_mesa.llm.clients.base import Completion, TokenLogprobs
from prism_mesa.llm.text import LETTERS, remove_thought

_USUAL_TOKENS: Final = 1000
"""Number of tokens that suffices most LLMs for a thought and an answer."""
_ROUNDING: Final = 0.2
"""Tolerance in nats: rounding may make the likeliest token appear less likely than another token."""
_PUNCTUATION: Final = " \n\"'().:*"
_REPEATED: Final = re.compile(r"(.)\1{2,}", re.DOTALL)
_WIDE_CHARACTERS: Final = re.compile("[\u2e80-\U0003ffff]")


def likeliest_tokens(positions: Iterable[Mapping[str, Any]]) -> TokenLogprobs:
    """Return the likeliest tokens at each position, or only the chosen token if the server lists no others."""
    return tuple(
        tuple((str(entry["token"]), float(entry["logprob"])) for entry in position.get("top_logprobs") or [position])
        for position in positions
    )


def strip_thought(
    label: str, reply: Completion, *, thought: Any, tokens: Sequence[str], decoding: Mapping[str, Any]
) -> Completion:
    """Return a reply without its thought and without the thought's log-probabilities.

    Args:
        label: The LLM's name in errors.
        reply: The server's text, with the log-probabilities at all positions.
        thought: The thought, if the server sent it separately.
        tokens: The token at each position with log-probabilities.
        decoding: The options of the request.

    Raises:
        OracleError: `empty` or `thought` if there is no answer; `unmatched` if the log-probabilities may belong to a
            thought.
    """
    text = remove_thought(reply.text)
    token_counts = (reply.prompt_tokens, reply.completion_tokens)
    if not text.strip():
        if not (thought or reply.text.strip() or reply.truncated):
            raise OracleError("empty", f"{label}: the answer is empty", tokens=token_counts)
        raise OracleError("thought", f"{label}: {_thought_fault(reply, decoding)}", tokens=token_counts)
    after_thought = bool(thought) or text != reply.text
    first = _answer_start(text, tokens, after_thought=after_thought) if tokens else 0
    if first is None or (decoding.get("temperature") == 0 and _contradicts(reply, tokens, first)):
        fault = "the log-probabilities may belong to its thought: set reasoner.answer=choice, which needs none"
        raise OracleError("unmatched", f"{label}: {fault}", tokens=token_counts)
    return replace(reply, text=text, top_logprobs=reply.top_logprobs[first:])


def _thought_fault(reply: Completion, decoding: Mapping[str, Any]) -> str:
    max_tokens, n = int(decoding["max_tokens"]), reply.completion_tokens
    thinks = decoding.get("think", False) is not False
    remedies = ["reasoner.think=false"] if thinks else []
    if reply.truncated:
        remedies.append(suggest_more_tokens(max_tokens))
        fault = f"it thought for {n or max_tokens} tokens and had none left"
    else:
        remedies.append("another LLM (reasoner.model)")
        fault = f"all its {n} tokens are a thought"
    return f"{fault}{'' if thinks else ' (reasoner.think=false does not stop it)'}: {' or '.join(remedies)}"


def suggest_more_tokens(max_tokens: int) -> str:
    """Return the keys to set if `max_tokens` tokens do not suffice."""
    n = _USUAL_TOKENS if max_tokens < _USUAL_TOKENS else 4 * max_tokens
    return f"reasoner.max_answer_tokens={n} (for texts and surveys: deliberation.max_answer_tokens)"


def _contradicts(reply: Completion, tokens: Sequence[str], first: int) -> bool:
    """Return whether a letter in the answer is not the likeliest token, although temperature 0 requires that."""
    pairs = zip(tokens[first:], map(dict, reply.top_logprobs[first:]), strict=False)
    letters = [(token, logprobs) for token, logprobs in pairs if logprobs and token.strip(_PUNCTUATION) in {*LETTERS}]
    return any(logprobs.get(token, -math.inf) < max(logprobs.values()) - _ROUNDING for token, logprobs in letters)


def _answer_start(text: str, tokens: Sequence[str], *, after_thought: bool) -> int | None:
    """Return the index of the answer's first token; None if the last tokens are not the answer."""
    answer, tail = _ascii(text), ""
    if not after_thought and _ascii("".join(tokens)) == answer:
        return 0
    for first in range(len(tokens) - 1, -1, -1):
        if tail or not tokens[first].startswith("<"):  # skip an end token such as <|im_end|>
            tail = _ascii(tokens[first]) + tail
        if tail == answer:
            return first
        if len(tail) > len(answer):
            break
    return None


def _ascii(text: str) -> str:
    """Return the ASCII characters without white space, because tokens may split other characters."""
    return "".join(text.encode("ascii", "ignore").decode().split())


def was_cut(prompt: str, n_read: int, context: int) -> bool:
    """Return whether a server that read `n_read` tokens (0: unknown) cannot have read the whole prompt.

    This is the case if no tokenizer makes so few tokens of the prompt, or if Ollama cuts prompts to this length: to its
    `context` (older versions; 0: unknown), or to half the context plus 2. Other cuts that leave at least one token per
    word are not detected.

    >>> was_cut("word " * 300, 102, 0), was_cut("word " * 300, 301, 0), was_cut("word " * 300, 0, 0)
    (True, False, False)
    """
    may_be_longer = 2 * len(prompt.encode("utf-8", "replace")) >= 5 * context
    is_half_context = abs(n_read - context // 2 - 2) <= 3 and may_be_longer
    is_cut_size = context > 0 and (is_half_context or abs(n_read - context) <= 1)
    return n_read > 0 and (is_cut_size or n_read < min_tokens(prompt))


def min_tokens(text: str) -> int:
    """Return the minimum number of tokens: one per word, and one per 3 characters of Chinese and similar scripts."""
    other_text, n_wide = _WIDE_CHARACTERS.subn("", _REPEATED.sub(r"\1", text))
    return len(other_text.split()) + n_wide // 3
