"""Other words for what has been posted: an opening about the subject of a text, and a remark on its topic."""

import json
from collections import deque
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Final

import numpy as np

from prism_mesa.social.platform import Platform
from prism_mesa.social.state.population import Rows
from prism_mesa.social.world.corpus import Corpus

MOST_TRIES: Final = 12
"""Openings that are tried for a post before it says what another one has said."""


def reworded(platform: Platform, authors: Rows, texts: Rows) -> Rows:
    """Return ids of texts about the subjects of `texts`; no text is posted twice while there are others.

    The first post about a text of the corpus says that text, unless a scheduled one does. Each later one begins with
    the opening that its author draws, or one of the next that has not been used for a while in its round.
    """
    posts, (openings, remarks) = platform.posts, wordings()
    ids, is_first = texts.copy(), np.zeros(len(texts), np.bool_)
    is_first[np.unique(texts, return_index=True)[1]] = True
    is_posted = np.bincount(posts.text_id, minlength=len(posts.corpus.texts))[texts] > 0
    again = np.flatnonzero(is_posted | ~is_first | np.isin(texts, platform.schedule.text_id))
    n_wordings = len(openings) * min(map(len, remarks.values()))
    drawn = platform.streams.integers("wording", authors[again], n_wordings, round_=platform.round)
    about, said, new = texts[again].tolist(), list[str](), set[str]()
    used = deque[int](maxlen=len(openings) // 2)
    for text, draw in zip(about, drawn.tolist(), strict=True):
        for opening, words in _options(posts.corpus, text, draw):
            if not (opening in used or words in new or posts.all_texts.has_wording(words, text)):
                break
        used.append(opening)
        new.add(words)
        said.append(words)
    ids[again] = posts.all_texts.add_wordings(said, about)
    return ids


def _options(corpus: Corpus, text: int, draw: int) -> Iterator[tuple[int, str]]:
    """Yield some openings, from the one that was drawn on, and what they make of the subject of a text."""
    openings, remarks = wordings()
    remark, first = divmod(draw, len(openings))
    for opening in (place % len(openings) for place in range(first, first + MOST_TRIES)):
        words = f"{openings[opening].format(corpus.subjects[text])} {remarks[corpus.labels[text][0]][remark]}"
        yield opening, f"{words[0].upper()}{words[1:]}".rstrip()


@cache
def wordings() -> tuple[list[str], dict[str, list[str]]]:
    """Return openings with a place for a subject, and by topic the remarks that may follow."""
    parts = json.loads((resources.files("prism_mesa.social.content") / "wordings.json").read_bytes())
    return parts["openings"], parts["remarks"]
