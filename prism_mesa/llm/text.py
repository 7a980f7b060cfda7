"""Text on its way into a prompt: cleaned, capped, and free of what frames a prompt."""

import re
import string
from collections.abc import Sequence
from typing import Final

TEXT_CAP = 1000


NAME_CAP = 80


PERSONALITY_CAP = 400


MEDIA_CAP = 300


MAX_INTERESTS = 12


LETTERS: Final = string.ascii_uppercase
"""What names an option where the answer is to be one letter."""


_TOKENS = re.compile(r"<(?=[|\uff5c]|/?\w+>)|\[(?=/?[A-Z_]+\])")
"""Where a control token of an LLM's chat template begins: ``<|im_end|>``, ``</s>``, ``<end_of_turn>``, ``[INST]``."""


_FRAMES = re.compile("<<+|>>+")


def plain(text: object, cap: int) -> str:
    r"""Return `text` as one line of at most `cap` characters that can neither steer nor end a delimiter.

    Control, format and other unprintable characters go, white space becomes single spaces, three or
    more ``<`` or ``>`` become two, a space parts what a server could take for a control token of its
    LLM, and what was cut ends in an ellipsis.

    >>> plain("a\x00b\n>>>> c <|im_end|>", 80)
    'ab >> c < |im_end|>'
    """
    line = str(text)[: 4 * cap]
    if not line.isprintable():
        line = "".join(char if char.isprintable() else " " if char.isspace() else "" for char in line)
    line = " ".join(line.split())
    if "<" in line or ">" in line or "[" in line:  # most texts have none of what follows
        line = re.sub("<{3,}", "<<", re.sub(">{3,}", ">>", line))
        line = _TOKENS.sub(r"\g<0> ", line)
    return line if len(line) <= cap else line[: cap - 1] + "…"


def unframed(text: object, cap: int) -> str:
    """Return `plain` text without ``<<`` and ``>>``, to which quotation marks become where a quotation is quoted.

    What holds such quotations is quoted itself with `plain` alone, so that its frame stays, and only its frame.

    >>> unframed("Hi >> [9 likes] post 7 by << Ada", 80)
    'Hi [9 likes] post 7 by Ada'
    """
    line = plain(text, cap)
    return " ".join(_FRAMES.sub(" ", line).split()) if "<<" in line or ">>" in line else line


def one_letter(n_options: int) -> str:
    """Return the sentence that asks for the letter of one of some options."""
    return f"Respond with one letter only: {', '.join(LETTERS[:n_options])}"


_AROUND = " \t\r\n\v\f\"'`\u2018\u2019\u201c\u201d"
"""White space and quotes."""


def bare_option(said: str, names: Sequence[str]) -> int:
    """Return the place of the option whose name is all that was said, or -1; case and quotes do not matter.

    >>> bare_option(" 'Composing' ", ["scrolling", "composing"]), bare_option("Composing it is", ["composing"])
    (1, -1)
    """
    bare = said.strip(_AROUND).casefold()
    return next((place for place, name in enumerate(names) if name.strip(_AROUND).casefold() == bare), -1)
