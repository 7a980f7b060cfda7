"""Cleans and caps text for prompts, and unwraps answers."""

import json
import re
import string
from collections.abc import Sequence
from typing import Any, Final

from prism_mesa.llm.errors import UselessAnswerError

TEXT_CAP = 1000
NAME_CAP = 80
PERSONALITY_CAP = 400
MEDIA_CAP = 300
MAX_INTERESTS = 12
LETTERS: Final = string.ascii_uppercase
"""Names of options in prompts that ask for one letter."""
_TOKENS = re.compile(r"<(?=[|\uff5c]|/?\w+>)|\[(?=/?[A-Z_]+\])")
"""The start of a control token in a chat template: ``<|im_end|>``, ``</s>``, ``<end_of_turn>``, ``[INST]``."""
_FRAMES = re.compile("<<+|>>+")


def plain(text: object, cap: int) -> str:
    r"""Return `text` as one line of at most `cap` characters, without delimiters and control tokens.

    Unprintable characters are removed, white space becomes single spaces, three or more ``<`` or ``>`` become two, a
    space breaks anything that resembles a control token, and a truncated text ends in an ellipsis.

    >>> plain("a\x00b\n>>>> c <|im_end|>", 80)
    'ab >> c < |im_end|>'
    """
    line = str(text)[: 4 * cap]
    if not line.isprintable():
        line = "".join(char if char.isprintable() else " " if char.isspace() else "" for char in line)
    line = " ".join(line.split())
    if "<" in line or ">" in line or "[" in line:  # skip the regular expressions for most texts
        line = re.sub("<{3,}", "<<", re.sub(">{3,}", ">>", line))
        line = _TOKENS.sub(r"\g<0> ", line)
    return line if len(line) <= cap else line[: cap - 1] + "…"


def unframed(text: object, cap: int) -> str:
    """Return `plain` text without ``<<`` and ``>>``, for a quotation within a quoted text.

    >>> unframed("Hi >> [9 likes] post 7 by << Ada", 80)
    'Hi [9 likes] post 7 by Ada'
    """
    line = plain(text, cap)
    return " ".join(_FRAMES.sub(" ", line).split()) if "<<" in line or ">>" in line else line


def one_letter(n_options: int) -> str:
    """Return the sentence that asks for the letter of an option."""
    return f"Respond with one letter only: {', '.join(LETTERS[:n_options])}"


_BLANK = " \t\r\n\v\f\ufeff"
_QUOTES = f"{_BLANK}\"'`\u2018\u2019\u201c\u201d"
_LEADING = f"{_QUOTES}*_(:"
_TRAILING = f"{_QUOTES}*_).,;:!"
_THOUGHT = re.compile(r"(?:<(think|thinking|thought)>)?(?:(?!<think|<thought).)*?</(?(1)\1|think)>\s*", re.DOTALL)
_UNENDED = re.compile(r"<(?:think|thinking|thought)>")
_FENCE_MARK = re.compile(r"^```[\w-]*|```$")
_FENCE = re.compile(r"```[\w-]*\s(?:(?!```).)*```", re.DOTALL)


def without_thought(text: str) -> str:
    """Return a text without the ``<think>`` ... ``</think>`` before it; some chat templates omit the first tag.

    >>> without_thought("<think>A or B?</think> B"), without_thought("<think>A or"), without_thought("B")
    ('B', '', 'B')
    """
    inner = text.lstrip(_BLANK)
    if match := _THOUGHT.match(inner):
        return inner[match.end() :]
    return "" if _UNENDED.match(inner) else text


def unwrapped(text: str) -> str:
    """Strip an answer's byte order mark, thought and Markdown fence; UselessAnswerError if nothing remains."""
    answer = without_thought(text).strip(_BLANK)
    if _FENCE.fullmatch(answer):
        answer = without_thought(_FENCE_MARK.sub("", answer)).strip(_BLANK)
    if not answer and text.strip(_BLANK):
        raise UselessAnswerError("thought", f"the answer {text[:80]!r} is only a thought")
    return answer


def bare_option(answer: str, names: Sequence[str]) -> int:
    """Return the index of the option that the whole answer names, or -1; case and punctuation do not matter.

    >>> bare_option(" **Composing**.", ["scrolling", "composing"]), bare_option("Composing it is", ["composing"])
    (1, -1)
    """
    answer = unwrapped(answer)
    for stripped in (answer.strip(_QUOTES), answer.lstrip(_LEADING).rstrip(_TRAILING)):
        for index, name in enumerate(names):
            if stripped and name.strip(_QUOTES).casefold() == stripped.casefold():
                return index
    return -1


def parse_json(answer: str) -> Any:
    """Return an answer's JSON value; UselessAnswerError (`unparsable`) if it is not JSON or repeats a key."""
    content, shown = (unwrapped(answer), answer[:80]) if isinstance(answer, str) else ("", answer)
    try:
        return json.loads(content, object_pairs_hook=_require_unique_keys)
    except (ValueError, RecursionError) as error:
        raise UselessAnswerError("unparsable", f"the answer {shown!r} is not JSON") from error


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key appears twice")
    return dict(pairs)
