"""Find prompts that a server cut: Ollama drops the head of a prompt that exceeds its context, with status 200."""

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

from prism_mesa.errors import OracleError

_LEAST_CONTEXT: Final = 4096
"""Ollama gives an LLM at least this many tokens of context."""
_REPEATED: Final = re.compile(r"(.)\1{2,}", re.DOTALL)
_WIDE: Final = re.compile("[\u2e80-\U0003ffff]")

logger = logging.getLogger("prism_mesa.llm")


class WholePrompts:
    """Refuse answers to a part of a prompt; with ``cut_prompts: accept`` in `decoding`, log the first instead."""

    def __init__(self, decoding: Mapping[str, Any], remedy: str) -> None:
        self._decoding, self._remedy = decoding, remedy
        self._is_logged = False

    def check(self, label: str, prompt: str, spent: tuple[int, int], context: int = 0) -> None:
        """Raise OracleError (`cut-prompt`) if the tokens that the server `spent` show that it cut the prompt."""
        if not was_cut(prompt, spent[0], context):
            return
        most = len(prompt.encode("utf-8", "replace")) // 2 + int(self._decoding["max_tokens"])
        remedy = self._remedy.format(max(_LEAST_CONTEXT, 1 << most.bit_length(), 2 * context))
        fault = f"{label}: the server cut the prompt to its last {spent[0]} tokens ({len(prompt)} characters): {remedy}"
        if self._decoding.get("cut_prompts") != "accept":
            raise OracleError("cut-prompt", fault, tokens=spent)
        if not self._is_logged:
            logger.warning("%s (reasoner.cut_prompts=accept keeps such answers)", fault)
        self._is_logged = True


def was_cut(prompt: str, n_read: int, context: int) -> bool:
    """Return whether a server that read `n_read` tokens (0: unknown) cannot have read the whole prompt.

    Either `n_read` is below the fewest tokens of any tokenizer, or it is what Ollama leaves of a cut prompt: all of its
    `context` (older versions; 0: unknown), or half of it plus 2. Other cuts that leave a token per word are missed.

    >>> was_cut("word " * 300, 102, 0), was_cut("word " * 300, 301, 0), was_cut("word " * 300, 0, 0)
    (True, False, False)
    """
    may_be_longer = 2 * len(prompt.encode("utf-8", "replace")) >= 5 * context
    is_half = abs(n_read - context // 2 - 2) <= 3 and may_be_longer
    is_cut_size = context > 0 and (is_half or abs(n_read - context) <= 1)
    return n_read > 0 and (is_cut_size or n_read < fewest_tokens(prompt))


def fewest_tokens(text: str) -> int:
    """Return the fewest tokens of a text: one for a word, and one for 3 characters of Chinese and similar scripts."""
    rest, n_wide = _WIDE.subn("", _REPEATED.sub(r"\1", text))
    return len(rest.split()) + n_wide // 3
