"""Explain rows of the tables `follows`, `churn` and `influences`."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from prism_mesa.domain import Post
from prism_mesa.errors import counted
from prism_mesa.llm.text import NAME_CAP, plain
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.population import NO_POST

_MAX_LINES: Final = 30  # decisions to show, the latest
_TEXT_WIDTH: Final = 60
_EVENT_TEXTS: Final = {
    "follow": "followed {}",
    "unfollow": "unfollowed {}",
    "mute": "muted {}",
    "block": "blocked {}",
    "report": "reported a post by {}",
    "unmute": "unmuted {}",
    "unblock": "unblocked {}",
}
_REASONS: Final = {
    "engaged": "it engaged with {post}, whose author it did not follow",
    "exposure": "it read {post}, whose author it did not follow",
    "follow_back": "to follow back a new follower",
    "triad": "because one of its followees follows that agent",
    "ignored": "it read {post}, whose value was below its band, and did not engage with it",
    "script": "its script decided",
    "tool": "it called a tool",
    "block": "because one of the two blocked the other",
}


def follow_events(model: SocialModel, row: int, columns: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    """Describe the rows of `follows` by an agent (True) or about it (False)."""
    rows = np.flatnonzero((columns["agent"] == row) | (columns["other"] == row))
    values = (np.asarray(columns[name])[rows].tolist() for name in ("round", "agent", "other", "event", "post", "why"))
    for round_, agent, other, event, post_id, reason_key in zip(*values, strict=True):
        is_own = agent == row
        post = model.post(post_id, agent) if post_id != NO_POST else None
        text = "" if post is None else text_shown(model, post, _TEXT_WIDTH)
        by = "" if post is None or post.kind != "reshare" else f", reshared by {named(model, post.author)}"
        reason = _REASONS[reason_key].format(post=f"post {post_id} ({text}{by})")
        if reason_key in ("engaged", "exposure", "ignored"):
            key = model.posts.key[model.posts.root[post_id]]
            draw = float(model.streams.uniform(event, agent, round_=round_, index=key)[0])
            reason += f" (its draw {draw:.3g} lay below {_chance(model, agent, other, event, reason_key):g})"
        event_text = _EVENT_TEXTS[event].format(named(model, other) if is_own else "it")
        yield is_own, f"  round {round_}: {'it' if is_own else named(model, agent)} {event_text}: {reason}"


def _chance(model: SocialModel, agent: int, other: int, event: str, reason_key: str) -> float:
    rates = model.params.network.rates
    chance = float(getattr(rates, event))
    if reason_key == "engaged":
        chance = min(1.0, chance * rates.engaged)
    if event == "follow":
        liking = model.odds.homophily.follow_factor(model.population.attributes, np.array([agent]), np.array([other]))
        chance *= float(np.max(liking))
    if event == "unfollow" and model.network.holds(np.array([other]), np.array([agent]))[0]:
        chance *= rates.reciprocal
    return chance


def follow_lines(events: Sequence[tuple[bool, str]]) -> Iterator[str]:
    """Yield the latest `follow_events`: those by the agent first, then those by others about it."""
    for subject, others, is_own in (("It", "others", True), ("Others", "it", False)):
        lines = [line for by_agent, line in events if by_agent == is_own]
        n = len(lines)
        more = f" (the last {_MAX_LINES} of {n:,}; table `follows` has all)" if n > _MAX_LINES else ""
        if lines:
            yield f"{subject} decided {counted(n, 'time')} about {others}, which held from the next round on{more}:"
            yield from lines[-_MAX_LINES:]


def text_shown(model: SocialModel, post: Post, max_chars: int) -> str:
    """Return the quoted text of a post, up to `max_chars` characters, and its author if another agent wrote it."""
    posts = model.posts
    origin = posts.origin(post.post_id)
    text = post.words or posts.added_text(origin)
    quote = f'"{textwrap.shorten(plain(text, 400), max_chars, placeholder=" ...")}"'
    if post.words or origin == post.post_id:
        return quote
    writer = plain(model.population.names[posts.author[origin]], NAME_CAP)
    return f"{'a reply without words to ' if post.kind == 'reply' else ''}{quote} by {writer}"


def named(model: SocialModel, row: int) -> str:
    """Return the name of an agent and its row."""
    return f"{plain(model.population.names[row], NAME_CAP)} (agent {row})"


_CHURN_TEXTS: Final = {"join": "joined", "leave": "left", "back": "came back", "removed": "was removed"}


def churn_events(model: SocialModel, row: int, columns: Mapping[str, Any]) -> Iterator[str]:
    """Describe the rows of `churn` about an agent."""
    churn = model.params.agents.churn
    chances = {"join": churn.join, "leave": churn.leave, "back": churn.back}
    for place in np.flatnonzero(columns["agent"] == row).tolist():
        round_, event = int(columns["round"][place]), str(np.asarray(columns["event"])[place])
        draw = float(model.streams.uniform("churn", row, round_=round_)[0])
        why = f" (its draw {draw:.3g} lay below {chances[event]:g})" if event in chances else ""
        yield f"{_CHURN_TEXTS[event]} as round {round_} opened{why}"


def turn_lines(model: SocialModel, churn_events: Sequence[str], n_rounds: int) -> Iterator[str]:
    """Yield when an agent joined and left, and its number of rounds, if there is churn."""
    if model.params.has_churn:
        churn_texts = churn_events or ([] if n_rounds else ["waited to join"])
        presence = f"It was on the platform in {n_rounds} of {model.round + 1} rounds"
        yield f"{presence}: it {', '.join(churn_texts)}." if churn_texts else f"{presence}."


_MAX_INFLUENCES: Final = 5  # posts to name, with the largest effects


class Influence(NamedTuple):
    """A row of the table `influences`."""

    round: int
    post: int
    before: float
    after: float


def influences(row: int, columns: Mapping[str, Any]) -> Iterator[Influence]:
    """Yield the rows of `influences` about an agent."""
    rows = np.flatnonzero(columns["agent"] == row)
    values = (columns[name][rows].tolist() for name in ("round", "post", "before", "after"))
    yield from (Influence(*row) for row in zip(*values, strict=True))


def opinion_lines(model: SocialModel, row: int, influences: list[Influence]) -> Iterator[str]:
    """Yield an agent's first and current opinion, and the posts that changed it most, if opinions change."""
    name, recorded = model.params.opinions.of, model.recorded["impressions"]
    if name is None:
        return
    place, _ = model.platform.attributes.known.of_agents(name)
    now = float(model.population.attributes[row, place])
    if recorded is not None and not recorded[row]:
        yield f"Its {name} is {now:.3f}; the posts that moved it were not recorded (records.impressions)."
        return
    if not influences:
        yield f"Its {name} is {now:.3f}, and no post has moved it."
        return
    order = sorted(range(len(influences)), key=lambda place: -abs(influences[place].after - influences[place].before))
    n_posts = counted(len(influences), "post")
    yield f"Its {name} went from {influences[0].before:.3f} to {now:.3f}, by {n_posts}; most of all by:"
    for influence in (influences[place] for place in sorted(order[:_MAX_INFLUENCES])):
        cause, post = f"post {influence.post}", model.post(influence.post, row)
        if post is not None:
            author = int(model.posts.author[model.posts.root[influence.post]])
            cause += f" ({text_shown(model, post, _TEXT_WIDTH)}), written by {named(model, author)}"
        yield f"  round {influence.round}: {influence.before:.3f} -> {influence.after:.3f}: {cause}"
