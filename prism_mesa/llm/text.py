"""Cleans and truncates text for prompts, and unwraps answers."""

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


def clean_text(text: object, cap: int) -> str:
    r"""Return `text` as one line of at most `cap` characters, without delimiters and control tokens.

    Unprintable characters are removed, white space becomes single spaces, three or more ``<`` or ``>`` become two, a
    space breaks anything that resembles a control token, and a truncated text ends in an ellipsis.

    >>> clean_text("a\x00b\n>>>> c <|im_end|>", 80)
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


def remove_frames(text: object, cap: int) -> str:
    """Return clean text (see `clean_text`) without ``<<`` and ``>>``, for a quotation within a quoted text.

    >>> remove_frames("Hi >> [9 likes] post 7 by << Ada", 80)
    'Hi [9 likes] post 7 by Ada'
    """
    line = clean_text(text, cap)
    return " ".join(_FRAMES.sub(" ", line).split()) if "<<" in line or ">>" in line else line


def letter_instruction(n_options: int) -> str:
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


def remove_thought(text: str) -> str:
    """Return an answer without the thought (``<think>`` ... ``</think>``) at its start.

    Some chat templates omit the first tag.

    >>> remove_thought("<think>A or B?</think> B"), remove_thought("<think>A or"), remove_thought("B")
    ('B', '', 'B')
    """
    stripped_text = text.lstrip(_BLANK)
    if match := _THOUGHT.match(stripped_text):
        return stripped_text[match.end() :]
    return "" if _UNENDED.match(stripped_text) else text


def unwrap(text: str) -> str:
    """Remove an answer's byte order mark, thought and Markdown fence. Raises UselessAnswerError if nothing remains."""
    answer = remove_thought(text).strip(_BLANK)
    if _FENCE.fullmatch(answer):
        answer = remove_thought(_FENCE_MARK.sub("", answer)).strip(_BLANK)
    if not answer and text.strip(_BLANK):
        raise UselessAnswerError("thought", f"the answer {text[:80]!r} is only a thought")
    return answer


def find_bare_option(answer: str, names: Sequence[str]) -> int:
    """Return the index of the option if the answer is only its name, else -1; case and punctuation do not matter.

    >>> find_bare_option(" **Composing**.", ["scrolling", "composing"]), find_bare_option("So be it", ["composing"])
    (1, -1)
    """
    answer = unwrap(answer)
    for stripped in (answer.strip(_QUOTES), answer.lstrip(_LEADING).rstrip(_TRAILING)):
        for index, name in enumerate(names):
            if stripped and name.strip(_QUOTES).casefold() == stripped.casefold():
                return index
    return -1


def parse_json(answer: str) -> Any:
    """Return an answer's JSON value. Raises UselessAnswerError (`unparsable`) if it is not JSON or repeats a key."""
    content, excerpt = (unwrap(answer), answer[:80]) if isinstance(answer, str) else ("", answer)
    try:
        return json.loads(content, object_pairs_hook=_require_unique_keys)
    except (ValueError, RecursionError) as error:
        raise UselessAnswerError("unparsable", f"the answer {excerpt!r} is not JSON") from error


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key appears twice")
    return dict(pairs)
