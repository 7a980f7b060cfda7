"""Why an agent followed or dropped others, and why others did so with it, in words: of the rows of table `follows`."""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from prism_mesa.errors import counted
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.population import NO_POST

_MOST: Final = 30
"""Decisions that are told, the last ones."""
_TEXT: Final = 60
_REPLIES: Final = "(in reply to: "
_DID: Final = {
    "follow": "followed {}",
    "unfollow": "unfollowed {}",
    "mute": "muted {}",
    "block": "blocked {}",
    "report": "reported a post by {}",
    "unmute": "took back that it muted {}",
    "unblock": "took back that it blocked {}",
}
_WHY: Final = {
    "engaged": "it engaged with {post}, whose author it did not follow",
    "exposure": "it read {post}, whose author it did not follow",
    "follow_back": "to follow back, as it had a new follower",
    "triad": "as one whom somebody follows whom it follows",
    "ignored": "it read {post}, which was worth less to it than its band, and did not engage with it",
    "script": "its script said so",
    "tool": "it called a tool",
    "block": "as one of the two has blocked the other",
}


@dataclass(frozen=True)
class DecisionAboutOther:
    """A row of the table `follows`, with the draw that led to it and what it lay below; none but by a post: nan."""

    round: int
    agent: int
    other: int
    event: str
    post: int
    why: str
    draw: float
    chance: float


def decisions_about(model: SocialModel, row: int, columns: Mapping[str, Any]) -> Iterator[DecisionAboutOther]:
    """Yield those of some rows of `follows`, as they are recorded, that are by an agent or about it."""
    own = np.flatnonzero((columns["agent"] == row) | (columns["other"] == row))
    told = (np.asarray(columns[name])[own].tolist() for name in ("round", "agent", "other", "event", "post", "why"))
    for round_, agent, other, event, post, why in zip(*told, strict=True):
        drawn = _draw_and_chance(model, round_, agent, other, event, post, why)
        yield DecisionAboutOther(round_, agent, other, event, post, why, *drawn)


def _draw_and_chance(
    model: SocialModel, round_: int, agent: int, other: int, event: str, post: int, why: str
) -> tuple[float, float]:
    """Return the draw of a decision by a post, and the probability that it lay below."""
    rates = model.params.network.rates
    if why not in ("engaged", "exposure", "ignored"):
        return np.nan, np.nan
    chance = getattr(rates, event)
    if why == "engaged":
        chance = min(1.0, chance * rates.engaged)
    if event == "follow":
        liking = model.odds.homophily.follows(model.population.attributes, np.array([agent]), np.array([other]))
        chance *= float(np.max(liking))
    if event == "unfollow" and model.network.holds(np.array([other]), np.array([agent]))[0]:
        chance *= rates.reciprocal
    key = model.posts.key[model.posts.root[post]]
    return float(model.streams.uniform(event, agent, round_=round_, index=key)[0]), chance


def follow_lines(model: SocialModel, row: int, decided: list[DecisionAboutOther]) -> Iterator[str]:
    """Yield what an agent decided about others, and others about it, and why; the last of many."""
    for whose, own in (("It", True), ("Others", False)):
        found = [one for one in decided if (one.agent == row) == own]
        if not found:
            continue
        more = f" (the last {_MOST} of {len(found):,}; table `follows` has all)" if len(found) > _MOST else ""
        times = counted(len(found), "time")
        yield f"{whose} decided {times} about {'others' if own else 'it'}, which held from the next round on{more}:"
        for one in found[-_MOST:]:
            who = "it" if own else named(model, one.agent)
            did = _DID[one.event].format(named(model, one.other) if own else "it")
            yield f"  round {one.round}: {who} {did}: {_why(model, one)}"


def _why(model: SocialModel, one: DecisionAboutOther) -> str:
    post = model.post(one.post, one.agent) if one.post != NO_POST else None
    words = "" if post is None else plain(post.words or post.text, 400)
    is_copied = words.startswith(_REPLIES) and words.endswith(")")
    words = words.removeprefix(_REPLIES).removesuffix(")") if is_copied else words
    text = f'{"in reply to " if is_copied else ""}"{textwrap.shorten(words, _TEXT, placeholder=" ...")}"'
    passed = "" if post is None or post.kind != "reshare" else f", reshared by {named(model, post.author)}"
    said = _WHY[one.why].format(post=f"post {one.post} ({text}{passed})")
    return said if np.isnan(one.draw) else f"{said} (its draw {one.draw:.3g} lay below {one.chance:g})"


def named(model: SocialModel, row: int) -> str:
    """Return what an agent is called, and its row."""
    return f"{plain(model.population.names[row], NAME_CAP)} (agent {row})"
