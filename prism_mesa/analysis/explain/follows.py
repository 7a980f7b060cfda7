"""Explain rows of the tables `follows`, `churn` and `influences`."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from prism_mesa.domain import Post
from prism_mesa.errors import format_count
from prism_mesa.llm.text import NAME_CAP, clean_text
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.population import NO_POST

_MAX_LINES: Final = 30  # the number of latest decisions to show
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


def follow_event_texts(model: SocialModel, row: int, columns: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    """Describe the rows of `follows` in which an agent acts (True) or is the object (False)."""
    rows = np.flatnonzero((columns["agent"] == row) | (columns["other"] == row))
    values = (np.asarray(columns[name])[rows].tolist() for name in ("round", "agent", "other", "event", "post", "why"))
    for round_, agent, other, event, post_id, reason_key in zip(*values, strict=True):
        is_by_agent = agent == row
        post = model.post(post_id, agent) if post_id != NO_POST else None
        text = "" if post is None else post_quote(model, post, _TEXT_WIDTH)
        sharer = "" if post is None or post.kind != "reshare" else f", reshared by {agent_label(model, post.author)}"
        reason = _REASONS[reason_key].format(post=f"post {post_id} ({text}{sharer})")
        if reason_key in ("engaged", "exposure", "ignored"):
            key = model.posts.key[model.posts.root[post_id]]
            draw = float(model.streams.uniform(event, agent, round_=round_, index=key)[0])
            reason += f" (its draw {draw:.3g} lay below {_chance(model, agent, other, event, reason_key):g})"
        event_text = _EVENT_TEXTS[event].format(agent_label(model, other) if is_by_agent else "it")
        subject = "it" if is_by_agent else agent_label(model, agent)
        yield is_by_agent, f"  round {round_}: {subject} {event_text}: {reason}"


def _chance(model: SocialModel, agent: int, other: int, event: str, reason_key: str) -> float:
    rates = model.params.network.rates
    chance = float(getattr(rates, event))
    if reason_key == "engaged":
        chance = min(1.0, chance * rates.engaged)
    if event == "follow":
        factor = model.odds.homophily.follow_factor(model.population.attributes, np.array([agent]), np.array([other]))
        chance *= float(np.max(factor))
    if event == "unfollow" and model.network.contains(np.array([other]), np.array([agent]))[0]:
        chance *= rates.reciprocal
    return chance


def follow_lines(events: Sequence[tuple[bool, str]]) -> Iterator[str]:
    """Yield the latest follow events: decisions by the agent, then decisions by others about it."""
    for subject, others, is_own in (("It", "others", True), ("Others", "it", False)):
        lines = [line for by_agent, line in events if by_agent == is_own]
        n = len(lines)
        cap_note = f" (the last {_MAX_LINES} of {n:,}; table `follows` has all)" if n > _MAX_LINES else ""
        if lines:
            n_times = format_count(n, "time")
            yield f"{subject} decided {n_times} about {others}, with effect from the next round on{cap_note}:"
            yield from lines[-_MAX_LINES:]


def post_quote(model: SocialModel, post: Post, max_chars: int) -> str:
    """Return the quoted text of a post, up to `max_chars` characters, and its author if someone else wrote it."""
    posts = model.posts
    origin = posts.origin(post.post_id)
    text = post.words or posts.added_text(origin)
    quote = f'"{textwrap.shorten(clean_text(text, 400), max_chars, placeholder=" ...")}"'
    if post.words or origin == post.post_id:
        return quote
    writer = clean_text(model.population.names[posts.author[origin]], NAME_CAP)
    return f"{'a reply without words to ' if post.kind == 'reply' else ''}{quote} by {writer}"


def agent_label(model: SocialModel, row: int) -> str:
    """Return an agent's name and row."""
    return f"{clean_text(model.population.names[row], NAME_CAP)} (agent {row})"


_CHURN_TEXTS: Final = {"join": "joined", "leave": "left", "back": "came back", "removed": "was removed"}


def churn_event_texts(model: SocialModel, row: int, columns: Mapping[str, Any]) -> Iterator[str]:
    """Describe the rows of `churn` about an agent."""
    churn = model.params.agents.churn
    chances = {"join": churn.join, "leave": churn.leave, "back": churn.back}
    for row_index in np.flatnonzero(columns["agent"] == row).tolist():
        round_, event = int(columns["round"][row_index]), str(np.asarray(columns["event"])[row_index])
        draw = float(model.streams.uniform("churn", row, round_=round_)[0])
        reason = f" (its draw {draw:.3g} lay below {chances[event]:g})" if event in chances else ""
        yield f"{_CHURN_TEXTS[event]} as round {round_} opened{reason}"


def churn_lines(model: SocialModel, churn_events: Sequence[str], n_rounds: int) -> Iterator[str]:
    """With churn, yield when an agent joined and left, and its number of rounds."""
    if model.params.has_churn:
        churn_texts = churn_events or ([] if n_rounds else ["waited to join"])
        presence_text = f"It was on the platform in {n_rounds} of {model.round + 1} rounds"
        yield f"{presence_text}: it {', '.join(churn_texts)}." if churn_texts else f"{presence_text}."


_MAX_INFLUENCES: Final = 5  # the number of posts to name


class Influence(NamedTuple):
    """A row of the table `influences`."""

    round: int
    post: int
    before: float
    after: float


def read_influences(row: int, columns: Mapping[str, Any]) -> Iterator[Influence]:
    """Yield the rows of `influences` about an agent."""
    rows = np.flatnonzero(columns["agent"] == row)
    values = (columns[name][rows].tolist() for name in ("round", "post", "before", "after"))
    yield from (Influence(*row) for row in zip(*values, strict=True))


def opinion_lines(model: SocialModel, row: int, influences: list[Influence]) -> Iterator[str]:
    """If opinions change, yield an agent's first and current opinion, and the posts that changed it most."""
    name, is_recorded = model.params.opinions.of, model.recorded["impressions"]
    if name is None:
        return
    column, _ = model.platform.attributes.schema.agent_attribute(name)
    opinion = float(model.population.attributes[row, column])
    if is_recorded is not None and not is_recorded[row]:
        yield f"Its {name} is {opinion:.3f}; the posts that moved it were not recorded (records.impressions)."
        return
    if not influences:
        yield f"Its {name} is {opinion:.3f}, and no post has moved it."
        return
    order = sorted(range(len(influences)), key=lambda i: -abs(influences[i].after - influences[i].before))
    n_posts = format_count(len(influences), "post")
    yield f"Its {name} went from {influences[0].before:.3f} to {opinion:.3f}, by {n_posts}; most of all by:"
    for influence in (influences[i] for i in sorted(order[:_MAX_INFLUENCES])):
        cause, post = f"post {influence.post}", model.post(influence.post, row)
        if post is not None:
            author = int(model.posts.author[model.posts.root[influence.post]])
            cause += f" ({post_quote(model, post, _TEXT_WIDTH)}), written by {agent_label(model, author)}"
        yield f"  round {influence.round}: {influence.before:.3f} -> {influence.after:.3f}: {cause}"
