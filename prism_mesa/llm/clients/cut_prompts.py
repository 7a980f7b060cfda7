"""Finds prompts that a server cut: Ollama drops the head of one that exceeds its context, with status 200."""

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

from prism_mesa.errors import OracleError

_USUAL: Final = 4096
"""Tokens of context that Ollama gives an LLM at least."""
_REPEATED: Final = re.compile(r"(.)\1{2,}", re.DOTALL)
_WIDE: Final = re.compile("[\u2e80-\U0003ffff]")

logger = logging.getLogger("prism_mesa.llm")


class WholePrompts:
    """Refuses answers to a part of a prompt; with ``cut_prompts: accept`` in `decoding` it logs the first of them."""

    def __init__(self, decoding: Mapping[str, Any], way: str) -> None:
        self._decoding, self._way = decoding, way
        self._is_logged = False

    def check(self, label: str, prompt: str, spent: tuple[int, int], context: int = 0) -> None:
        """Raise OracleError, `cut-prompt`, if a server that tells what it `spent` did not read the whole prompt."""
        if not was_cut(prompt, spent[0], context):
            return
        most = len(prompt.encode("utf-8", "replace")) // 2 + int(self._decoding["max_tokens"])
        way = self._way.format(max(_USUAL, 1 << most.bit_length(), 2 * context))
        told = f"{label}: the server cut the prompt to its last {spent[0]} tokens, of {len(prompt)} characters: {way}"
        if self._decoding.get("cut_prompts") != "accept":
            raise OracleError("cut-prompt", told, tokens=spent)
        if not self._is_logged:
            logger.warning("%s (reasoner.cut_prompts=accept: such answers count)", told)
        self._is_logged = True


def was_cut(prompt: str, n_read: int, context: int) -> bool:
    """Return whether a server that read `n_read` tokens (0: it does not say) cannot have read the whole prompt.

    It read fewer than any tokenizer makes of it, or as many as Ollama leaves: all of its `context` (older versions; 0:
    unknown), or half of it and 2. What a prompt has half as many tokens of as words is cut without a trace otherwise.

    >>> was_cut("word " * 300, 102, 0), was_cut("word " * 300, 301, 0), was_cut("word " * 300, 0, 0)
    (True, False, False)
    """
    may_be_longer = 2 * len(prompt.encode("utf-8", "replace")) >= 5 * context
    is_half = abs(n_read - context // 2 - 2) <= 3 and may_be_longer
    is_cut_size = context > 0 and (is_half or abs(n_read - context) <= 1)
    return n_read > 0 and (is_cut_size or n_read < fewest_tokens(prompt))


def fewest_tokens(text: str) -> int:
    """Return how many tokens a text has at least: one a word, and one for 3 characters of Chinese and the like."""
    rest, n_wide = _WIDE.subn("", _REPEATED.sub(r"\1", text))
    return len(rest.split()) + n_wide // 3
