"""What becomes of the words that an LLM gives an agent, as a response or by a tool, before others read them."""

from typing import Final

from prism_mesa.llm.text import plain, unframed
from prism_mesa.social.state.posts import WORDS_CAP

_MARKS: Final = {('"', '"'), ("“", "”"), ("'", "'")}


def cleaned(text: str) -> str:
    r"""Return words as one line of at most `WORDS_CAP` characters, without quotation marks around it or delimiters.

    >>> cleaned('  "Rain again.\nOh well." ')
    'Rain again. Oh well.'
    """
    line = unframed(text, 2 * WORDS_CAP)
    while len(line) > 1 and (line[0], line[-1]) in _MARKS:
        line = line[1:-1].strip()
    return plain(line, WORDS_CAP)
