"""Other words for what has been posted: an opening about the subject of a text, and a remark on its topic."""

import json
from collections.abc import Iterator
from functools import cache
from importlib import resources

import numpy as np

from prism_mesa.social.platform import Platform
from prism_mesa.social.state.population import Rows
from prism_mesa.social.world.corpus import Corpus


def reworded(platform: Platform, authors: Rows, texts: Rows) -> Rows:
    """Return ids of texts about the subjects of `texts`; no text is posted twice while there are others.

    The first post about a text of the corpus says that text, unless a scheduled one does. Each later one begins with
    the opening that its author draws, or the next that no other post of its round has, as long as there are enough.
    """
    posts, (openings, remarks) = platform.posts, wordings()
    ids, is_first = texts.copy(), np.zeros(len(texts), np.bool_)
    is_first[np.unique(texts, return_index=True)[1]] = True
    is_posted = np.bincount(posts.text_id, minlength=len(posts.corpus.texts))[texts] > 0
    again = np.flatnonzero(is_posted | ~is_first | np.isin(texts, platform.schedule.text_id))
    n_wordings = len(openings) * min(map(len, remarks.values()))
    drawn = platform.streams.integers("wording", authors[again], n_wordings, round_=platform.round)
    about, said, new, used = texts[again].tolist(), list[str](), set[str](), set[int]()
    for text, draw in zip(about, drawn.tolist(), strict=True):
        used = used if len(used) < len(openings) else set()
        for opening, words in _options(posts.corpus, text, draw):
            if not (opening in used or words in new or posts.all_texts.has_wording(words, text)):
                break
        used.add(opening)
        new.add(words)
        said.append(words)
    ids[again] = posts.all_texts.add_wordings(said, about)
    return ids


def _options(corpus: Corpus, text: int, draw: int) -> Iterator[tuple[int, str]]:
    """Yield each opening, from the one that was drawn on, and what it makes of the subject of a text."""
    openings, remarks = wordings()
    remark, first = divmod(draw, len(openings))
    for opening in (place % len(openings) for place in range(first, first + len(openings))):
        words = f"{openings[opening].format(corpus.subjects[text])} {remarks[corpus.labels[text][0]][remark]}"
        yield opening, f"{words[0].upper()}{words[1:]}".rstrip()


@cache
def wordings() -> tuple[list[str], dict[str, list[str]]]:
    """Return openings with a place for a subject, and by topic the remarks that may follow."""
    parts = json.loads((resources.files("prism_mesa.social.content") / "wordings.json").read_bytes())
    return parts["openings"], parts["remarks"]
