"""Finds prompts that a server cut: Ollama drops the head of a prompt that exceeds its context, with status 200."""

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from prism_mesa.errors import OracleError

USUAL_CONTEXT: Final = 4096
"""Tokens of context that Ollama gives an LLM at least, if nobody sets it."""
_REPEATED: Final = re.compile(r"(.)\1{2,}", re.DOTALL)
_WIDE: Final = re.compile("[\u2e80-\U0003ffff]")
"""Characters of which a token holds few: Chinese, Japanese, Korean, emoji."""

logger = logging.getLogger("prism_mesa.llm")


class WholePrompts:
    """Makes sure that a server read the whole of each prompt.

    Args:
        decoding: The client's; with ``cut_prompts: accept`` a cut prompt is only logged, once.
    """

    def __init__(self, decoding: Mapping[str, Any]) -> None:
        self._decoding = decoding
        self._is_logged = False

    def check(self, label: str, prompt: str, n_read: int, n_said: int, *, context: int, way: str) -> None:
        """Compare how many tokens a server read with the prompt it was sent.

        Args:
            label: What errors call the LLM.
            prompt: What was sent.
            n_read: Tokens that the server reports to have read; 0 if it does not say.
            n_said: Tokens of the answer.
            context: Tokens of context that the LLM has; 0 if unknown.
            way: How more context is set, with ``{}`` for the number.

        Raises:
            OracleError: `cut-prompt`, if it read only a part.
        """
        if not was_cut(prompt, n_read, context):
            return
        enough = 1 << (len(prompt.encode("utf-8", "replace")) // 2 + int(self._decoding["max_tokens"])).bit_length()
        told = (
            f"{label}: the server cut the prompt: of {len(prompt):,} characters the LLM read the last {n_read:,} tokens"
            f", so it never saw the question: {way.format(max(USUAL_CONTEXT, enough, 2 * context))}"
        )
        if self._decoding.get("cut_prompts") != "accept":
            raise OracleError("cut-prompt", told, tokens=(n_read, n_said))
        if not self._is_logged:
            self._is_logged = True
            logger.warning("%s (reasoner.cut_prompts=accept: its answers count all the same)", told)


def was_cut(prompt: str, n_read: int, context: int) -> bool:
    """Return whether a server that read `n_read` tokens cannot have read the whole prompt.

    It read fewer than any tokenizer makes of it, or as many as Ollama leaves of a longer prompt: its whole `context`
    (older versions), or half of it and 2 (then the prompt must also be long enough for more than `context`). A prompt
    of words with many tokens each, on a server that does not tell its context, can be cut without a trace.

    >>> was_cut("word " * 300, 102, 0), was_cut("word " * 300, 301, 0), was_cut("word " * 300, 0, 0)
    (True, False, False)
    """
    if n_read <= 0 or n_read < fewest_tokens(prompt):
        return n_read > 0
    if not context:
        return False
    is_half = abs(n_read - (context // 2 + 2)) <= 3 and 2 * len(prompt.encode("utf-8", "replace")) >= 5 * context
    return is_half or abs(n_read - context) <= 1


def fewest_tokens(text: str) -> int:
    """Return a number of tokens that no usual tokenizer stays below.

    A token reaches over no white space, and has at most 3 characters of Chinese and the like on average, but for a
    character that is repeated.
    """
    bare = _REPEATED.sub(r"\1", text)
    rest, wide = _WIDE.subn("", bare)
    return len(rest.split()) + wide // 3


def loaded_context(models: Iterable[Any], name: str) -> int:
    """Return the context of an LLM among those that Ollama has loaded (its ``/api/ps``); 0 if it does not say."""
    wanted = {name.casefold(), f"{name}:latest".casefold()}
    for model in models:
        entry = model if isinstance(model, Mapping) else vars(model)
        context = entry.get("context_length")
        if str(entry.get("model")).casefold() in wanted and isinstance(context, int):
            return max(context, 0)
    return 0
