"""Texts on what agents decided about each other, when they came and went, and what moved their opinions.

The rows come from the tables `follows`, `churn` and `influences`.
"""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from prism_mesa.domain import Post
from prism_mesa.errors import counted
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.population import NO_POST

_MOST: Final = 30
"""Decisions that are told, the last ones."""
_TEXT: Final = 60
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
    text = "" if post is None else text_shown(model, post, _TEXT)
    passed = "" if post is None or post.kind != "reshare" else f", reshared by {named(model, post.author)}"
    said = _WHY[one.why].format(post=f"post {one.post} ({text}{passed})")
    return said if np.isnan(one.draw) else f"{said} (its draw {one.draw:.3g} lay below {one.chance:g})"


def text_shown(model: SocialModel, post: Post, most: int) -> str:
    """Return the text of a post, quoted, up to `most` characters; if it shows another post's text, name the author."""
    posts = model.posts
    origin = posts.origin(post.post_id)
    text = post.words or posts.said(origin)
    short = f'"{textwrap.shorten(plain(text, 400), most, placeholder=" ...")}"'
    if post.words or origin == post.post_id:
        return short
    writer = plain(model.population.names[posts.author[origin]], NAME_CAP)
    return f"{'a reply without words to ' if post.kind == 'reply' else ''}{short} by {writer}"


def named(model: SocialModel, row: int) -> str:
    """Return what an agent is called, and its row."""
    return f"{plain(model.population.names[row], NAME_CAP)} (agent {row})"


_TURNS: Final = {"join": "joined", "leave": "left", "back": "came back", "removed": "was removed"}


@dataclass(frozen=True)
class Turn:
    """A row of the table `churn`, with the draw that led to it and the chance that it lay below."""

    round: int
    event: str
    draw: float
    chance: float


def turns_of(model: SocialModel, row: int, columns: Mapping[str, Any]) -> Iterator[Turn]:
    """Yield the rows of `churn` that are about an agent."""
    own = np.flatnonzero(columns["agent"] == row)
    churn = model.params.agents.churn
    chances = {"join": churn.join, "leave": churn.leave, "back": churn.back}
    for round_, event in zip(columns["round"][own].tolist(), np.asarray(columns["event"])[own].tolist(), strict=True):
        draw = float(model.streams.uniform("churn", row, round_=round_)[0])
        yield Turn(round_, event, draw, chances.get(event, 0.0))


def turn_lines(model: SocialModel, turns: list[Turn], rounds_there: int) -> Iterator[str]:
    """Yield when an agent came and went, and in how many rounds it was there; nothing without churn."""
    if not model.params.has_churn:
        return
    events = [f"{_TURNS[turn.event]} as round {turn.round} opened{_drawn(turn)}" for turn in turns]
    if not turns and not rounds_there:
        events = ["waited to join"]
    there = f"It was there in {rounds_there} of {model.round + 1} rounds"
    yield f"{there}: it {', '.join(events)}." if events else f"{there}."


def _drawn(one: Turn) -> str:
    return "" if one.event == "removed" else f" (its draw {one.draw:.3g} lay below {one.chance:g})"


_MOST_MOVED: Final = 5
"""How many posts are named: those that moved the opinion farthest."""


@dataclass(frozen=True)
class Influence:
    """A row of the table `influences`."""

    round: int
    post: int
    before: float
    after: float


def influences_on(row: int, columns: Mapping[str, Any]) -> Iterator[Influence]:
    """Yield the rows of `influences` that are about an agent."""
    own = np.flatnonzero(columns["agent"] == row)
    values = (columns[name][own].tolist() for name in ("round", "post", "before", "after"))
    yield from (Influence(*row) for row in zip(*values, strict=True))


def opinion_lines(model: SocialModel, row: int, moved: list[Influence]) -> Iterator[str]:
    """Yield where an agent's opinion began and is now, and what moved it farthest; nothing if opinions are fixed."""
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
    for one in (moved[place] for place in sorted(order[:_MOST_MOVED])):  # as they moved it
        yield f"  round {one.round}: {one.before:.3f} -> {one.after:.3f}: {_moved_by(model, row, one.post)}"


def _value(model: SocialModel, row: int, name: str) -> float:
    """Return the value of a numeric attribute of an agent."""
    place, _ = model.platform.attributes.known.of_agents(name)
    return float(model.population.attributes[row, place])


def _moved_by(model: SocialModel, row: int, post_id: int) -> str:
    post = model.post(post_id, row)
    if post is None:
        return f"post {post_id}"
    author = int(model.posts.author[model.posts.root[post_id]])
    return f"post {post_id} ({text_shown(model, post, _TEXT)}), written by {named(model, author)}"
