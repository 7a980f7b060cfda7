"""How an agent's opinion moved, and which posts moved it most, in words: of the rows of table `influences`."""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from prism_mesa.errors import counted
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.social.model import SocialModel

_MOST: Final = 5
"""Posts that are told: those that moved it farthest."""
_TEXT: Final = 60


@dataclass(frozen=True)
class Influence:
    """A row of the table `influences`."""

    round: int
    post: int
    before: float
    after: float


def influences_on(row: int, columns: Mapping[str, Any]) -> Iterator[Influence]:
    """Yield those of some rows of `influences`, as they are recorded, that are about an agent."""
    own = np.flatnonzero(columns["agent"] == row)
    told = (columns[name][own].tolist() for name in ("round", "post", "before", "after"))
    yield from (Influence(*one) for one in zip(*told, strict=True))


def opinion_lines(model: SocialModel, row: int, moved: list[Influence]) -> Iterator[str]:
    """Yield where an agent's opinion began and is now, and what moved it farthest; nothing where none moves."""
    of, read = model.params.opinions.of, model.recorded["impressions"]
    if of is None:
        return
    now = _value(model, row, of)
    if read is not None and not read[row]:
        yield f"Its {of} is {now:.3f}; what moved it was not recorded (records.impressions)."
        return
    if not moved:
        yield f"Its {of} is {now:.3f}, and nothing that it read has moved it."
        return
    order = sorted(range(len(moved)), key=lambda place: -abs(moved[place].after - moved[place].before))
    yield f"Its {of} went from {moved[0].before:.3f} to {now:.3f}, by {counted(len(moved), 'post')}; farthest by:"
    for one in (moved[place] for place in sorted(order[:_MOST])):  # as they moved it
        yield f"  round {one.round}: {one.before:.3f} -> {one.after:.3f}: {_said(model, row, one.post)}"


def _value(model: SocialModel, row: int, name: str) -> float:
    """Return a number that an agent has as an attribute."""
    place, _ = model.platform.attributes.known.of_agents(name)
    return float(model.population.attributes[row, place])


def _said(model: SocialModel, row: int, post_id: int) -> str:
    post = model.post(post_id, row)
    if post is None:
        return f"post {post_id}"
    text = textwrap.shorten(plain(post.text, 400), _TEXT, placeholder=" ...")
    author = int(model.posts.author[model.posts.root[post_id]])
    return f'post {post_id} ("{text}"), written by {plain(model.population.names[author], NAME_CAP)} (agent {author})'
