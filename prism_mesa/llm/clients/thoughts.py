"""Tells an LLM's answer from the thought before it, which is never taken for an answer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from prism_mesa.errors import OracleError
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.text import without_thought

_ENOUGH = 1000
"""Tokens that most LLMs do not exceed with a thought and an answer."""


def completed(
    label: str, reply: Completion, *, thought: Any, cut: bool, tokens: Sequence[str], decoding: dict[str, Any]
) -> Completion:
    """Return a reply without its thought, and with log-probabilities of nothing but its answer.

    Args:
        label: What errors call the LLM.
        reply: All that a server sent as content, with the log-probabilities of all places.
        thought: What it sent beside it, if anything.
        cut: Whether the LLM had no tokens left.
        tokens: What was said at each place that has log-probabilities.
        decoding: How the LLM was asked.

    Raises:
        OracleError: `empty` or `thought` if there is no answer, `unmatched` if log-probabilities may be of a thought.
    """
    text = without_thought(reply.text)
    spent = (reply.prompt_tokens, reply.completion_tokens)
    if not text.strip():
        if not (thought or reply.text.strip() or cut):
            raise OracleError("empty", f"{label}: the answer is empty", tokens=spent)
        raise OracleError("thought", f"{label}: {_only_thought(reply.completion_tokens, decoding, cut)}", tokens=spent)
    after_thought = bool(thought) or text != reply.text
    first = _first_of_answer(text, tokens, after_thought=after_thought) if tokens else 0
    if first is None:
        told = "the log-probabilities are not those of its answer (but of its thought?)"
        raise OracleError("unmatched", f"{label}: {told}: reasoner.answer=choice does without them", tokens=spent)
    return replace(reply, text=text, top_logprobs=reply.top_logprobs[first:])


def _only_thought(n: int, decoding: dict[str, Any], cut: bool) -> str:
    most = int(decoding["max_tokens"])
    thinks = decoding.get("think", False) is not False
    ways = ["reasoner.think=false"] if thinks else []
    if cut:
        ways.append(f"reasoner.max_answer_tokens={_ENOUGH if most < _ENOUGH else 4 * most}")
        ways[-1] += " (of texts and surveys: deliberation.max_answer_tokens)"
        told = f"it thought for {n or most} tokens and had none left"
    else:
        ways.append("another LLM (reasoner.model)")
        told = f"all of its {n} tokens are a thought"
    return f"{told}{'' if thinks else ' (reasoner.think=false does not stop it)'}: {' or '.join(ways)}"


def _first_of_answer(text: str, tokens: Sequence[str], *, after_thought: bool) -> int | None:
    """Return from which token on a reply is its answer; None if its tokens do not end with the answer."""
    wanted, said = _bare(text), ""
    if not after_thought and _bare("".join(tokens)) == wanted:
        return 0
    for first in range(len(tokens) - 1, -1, -1):
        if not (said == "" and tokens[first].startswith("<")):  # the token that ends a turn
            said = _bare(tokens[first]) + said
        if said == wanted:
            return first
        if len(said) > len(wanted):
            break
    return None


def _bare(text: str) -> str:
    """Return the ASCII characters of a text but white space: a token may hold a part of any other."""
    return "".join(text.encode("ascii", "ignore").decode().split())
