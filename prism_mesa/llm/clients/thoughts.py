"""Tells an LLM's answer from the thought before it, which is never taken for an answer."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from prism_mesa.errors import OracleError
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.text import LETTERS, without_thought

_ENOUGH = 1000
"""Tokens that most LLMs do not exceed with a thought and an answer."""
_OFF = 0.2
"""Nats by which the likeliest token may seem less likely than another, by rounding."""
_AROUND = " \n\"'().:*"


def completed(
    label: str, reply: Completion, *, thought: Any, tokens: Sequence[str], decoding: dict[str, Any]
) -> Completion:
    """Return a reply without its thought, and with log-probabilities of nothing but its answer.

    Args:
        label: What errors call the LLM.
        reply: All that a server sent as content, with the log-probabilities of all places.
        thought: What it sent beside it, if anything.
        tokens: What was said at each place that has log-probabilities.
        decoding: How the LLM was asked.

    Raises:
        OracleError: `empty` or `thought` if there is no answer, `unmatched` if log-probabilities may be of a thought.
    """
    text = without_thought(reply.text)
    spent = (reply.prompt_tokens, reply.completion_tokens)
    if not text.strip():
        if not (thought or reply.text.strip() or reply.cut):
            raise OracleError("empty", f"{label}: the answer is empty", tokens=spent)
        raise OracleError("thought", f"{label}: {_only_thought(reply, decoding)}", tokens=spent)
    after_thought = bool(thought) or text != reply.text
    first = _first_of_answer(text, tokens, after_thought=after_thought) if tokens else 0
    if first is None or (decoding.get("temperature") == 0 and _contradict(reply, tokens, first)):
        told = "the log-probabilities are not those of its answer (but of its thought?)"
        raise OracleError("unmatched", f"{label}: {told}: reasoner.answer=choice does without them", tokens=spent)
    return replace(reply, text=text, top_logprobs=reply.top_logprobs[first:])


def _only_thought(reply: Completion, decoding: dict[str, Any]) -> str:
    most, n = int(decoding["max_tokens"]), reply.completion_tokens
    thinks = decoding.get("think", False) is not False
    ways = ["reasoner.think=false"] if thinks else []
    if reply.cut:
        ways.append(more_tokens(most))
        told = f"it thought for {n or most} tokens and had none left"
    else:
        ways.append("another LLM (reasoner.model)")
        told = f"all of its {n} tokens are a thought"
    return f"{told}{'' if thinks else ' (reasoner.think=false does not stop it)'}: {' or '.join(ways)}"


def more_tokens(most: int) -> str:
    """Return which keys to change where `most` tokens do not suffice."""
    n = _ENOUGH if most < _ENOUGH else 4 * most
    return f"reasoner.max_answer_tokens={n} (of texts and surveys: deliberation.max_answer_tokens)"


def _contradict(reply: Completion, tokens: Sequence[str], first: int) -> bool:
    """Whether an LLM that takes the likeliest token said a letter that is less likely than another token."""
    places = zip(tokens[first:], map(dict, reply.top_logprobs[first:]), strict=False)
    letters = [(token, top) for token, top in places if top and token.strip(_AROUND) in {*LETTERS}]
    return any(top.get(token, -math.inf) < max(top.values()) - _OFF for token, top in letters)


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
