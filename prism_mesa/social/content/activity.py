"""What an agent did, as prompts and people are told it, and what agents wrote down for themselves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from prism_mesa.deliberation import Note
from prism_mesa.deliberation.conversation import quoted
from prism_mesa.domain import POST_KINDS
from prism_mesa.llm.text import plain, unframed
from prism_mesa.social.behavior import ENGAGING
from prism_mesa.social.platform import Platform
from prism_mesa.social.state.population import NO_POST, unpacked_move
from prism_mesa.social.state.posts import NO_PARENT, WORDS_CAP
from prism_mesa.social.state.texts import NO_TEXT

type ActivityKind = Literal["post", "like", "reply", "reshare"]

TEXT_SHOWN: Final = 200
"""Characters of a text in what is told of an activity."""
_LEAST_TOLD: Final = 60
NAME_SHOWN: Final = 80
LIKES_KEPT: Final = 12
"""Likes by a tool that are kept of an agent: they are no change of state, so its history does not hold them."""
ROUNDS_BACK: Final = 50
"""How far an agent looks back on a platform: rounds."""
_LIKES: Final = ENGAGING["like"]


@dataclass(frozen=True)
class Activity:
    """Something that an agent did to a post, or a post of its own.

    Attributes:
        round: When it was done.
        post: The post that it was done to; for a post of its own, that one.
        author: The name of that post's author; empty for an own one.
        text: The text that the post shows: its own, or that of the post that it reshares or answers without words.
        words: What the agent said itself, in a reply or a comment.
        tick: When in the round; -1 where that is not known.
        quotes: The name of the author of `text`, if it is another post's text.
    """

    round: int
    action: ActivityKind
    post: int
    author: str = ""
    text: str = ""
    words: str = ""
    tick: int = -1
    quotes: str = ""


_DID: Final = {"like": "you liked", "reply": "you replied to", "reshare": "you reshared"}


def activity_line(activity: Activity) -> str:
    """Return an activity in one line, texts and names as data.

    >>> print(activity_line(Activity(3, "reply", 17, "Ada Lopez", "Rain again.", "It suits me.")))
    Round 3: you replied to <<< Ada Lopez >>>'s post <<< Rain again. >>> with <<< It suits me. >>>
    """
    text = quoted(activity.text, TEXT_SHOWN)
    if activity.action == "post":
        return f"Round {activity.round}: you posted {text}"
    how = (
        f" {'with' if activity.action == 'reply' else 'saying'} {quoted(activity.words, TEXT_SHOWN)}"
        if activity.words
        else ""
    )
    quotes = f", which quotes {quoted(activity.quotes, NAME_SHOWN)}:" if activity.quotes else ""
    whose = f"{quoted(activity.author, NAME_SHOWN)}'s post{quotes}"
    return f"Round {activity.round}: {_DID[activity.action]} {whose} {text}{how}"


def recent_activities(platform: Platform, row: int, most: int) -> list[Activity]:
    """Return the last activities of an agent, at most `most`, oldest first: up to this round, with its posts so far.

    Likes are known as far back as the agent's history of states goes (the last `LIKES_KEPT` of those by a tool), the
    rest for `ROUNDS_BACK` rounds.
    """
    found = [*_published(platform, row, most), *_likes(platform, row, most)]
    return sorted(found, key=lambda activity: (activity.round, activity.tick, activity.post))[-most:] if most else []


def _published(platform: Platform, row: int, most: int) -> list[Activity]:
    posts = platform.posts
    first = posts.first_visible(platform.round, ROUNDS_BACK)
    own = (first + np.flatnonzero(posts.author[first : posts.n_there(platform.round)] == row))[-most:]
    found = []
    for post in own.tolist():
        kind, written = POST_KINDS[posts.kind[post]], int(posts.written[post])
        if kind == "post":
            found.append(Activity(written, "post", post, text=posts.said(post)))
        else:
            parent, words = int(posts.parent[post]), int(posts.words[post])
            said = "" if words == NO_TEXT else posts.texts[words]
            found.append(_activity(platform, written, kind, parent, said))
    return found


def _likes(platform: Platform, row: int, most: int) -> list[Activity]:
    found = []
    for move, clock, post in platform.history.entries(row):
        round_, tick = platform.time_of_day.round_and_tick(clock)
        if unpacked_move(move)[2] is _LIKES and post != NO_POST and round_ < platform.round:
            found.append(_activity(platform, round_, "like", post, tick=tick))
    by_tool = [liked for liked in platform.liked.get(row, ()) if liked[0] < platform.round]
    found += [_activity(platform, round_, "like", post, tick=tick) for round_, tick, post in by_tool]
    return sorted(found, key=lambda activity: (activity.round, activity.tick))[-most:]


def _activity(
    platform: Platform, round_: int, action: ActivityKind, post: int, words: str = "", *, tick: int = -1
) -> Activity:
    writer, text = author_and_text(platform, post)
    author = platform.population.names[platform.posts.author[post]]
    quotes = "" if platform.posts.origin(post) == post else writer
    return Activity(round_, action, post, author, text, words, tick, quotes)


def author_and_text(platform: Platform, post: int) -> tuple[str, str]:
    """Return the author's name and the text that a post shows; a reshare or a reply may only quote them."""
    posts = platform.posts
    origin = posts.origin(post)
    return platform.population.names[posts.author[origin]], posts.said(origin)


def post_lines(platform: Platform, posts: Sequence[int]) -> list[str]:
    """Return posts as an agent reads them: number, author, when, what, counts; a line each, shorter in a long list."""
    own, lines = platform.posts, []
    cap = max(_LEAST_TOLD, 2 * TEXT_SHOWN // max(1, len(posts) - 2))
    for post in posts:
        author = int(own.author[post])
        name = quoted(platform.population.names[author], NAME_SHOWN)
        root = int(own.root[post])
        counts = [(int(getattr(own, column)[root]), column) for column in ("likes", "replies", "reshares")]
        counted = ", ".join(f"{n} {what}" for n, what in counts if n)
        kind = POST_KINDS[own.kind[post]]
        about = f" ({kind} to post {own.parent[post]})" if own.parent[post] != NO_PARENT else ""
        text = quoted(own.shown([post])[0], cap)
        if own.origin(post) != post and own.words[post] == NO_TEXT:
            text = f"no words; it quotes {quoted(author_and_text(platform, post)[0], NAME_SHOWN)}: {text}"
        lines.append(
            f"post {post} by {name} (agent {author}), round {own.written[post]}{about}: {text}"
            + (f" [{counted}]" if counted else "")
        )
    return lines


NOTE_CAP: Final = 200
"""Characters of a note."""


def recalled(platform: Platform, row: int, about: str) -> list[str]:
    """Return the notes of an agent that come to mind of a text, best first."""
    most = platform.params.deliberation.notes_told
    if not most or not platform.notebook.of(row):
        return []
    towards = platform.topics.place([about])[0].astype(np.float64) if about.strip() else None
    return [note.text for note in platform.notebook.recalled(row, towards, platform.hours, most)]


def keep_notes(platform: Platform) -> None:
    """Let what agents wrote down in this round become notes, by tick and agent, which they have from now on."""
    noted = sorted(platform.events.notes, key=lambda note: note[:2])  # stable: each agent's in its own order
    if not noted:
        return
    vectors = platform.topics.place([text for _, _, text, _ in noted])
    for (_, row, text, importance), vector in zip(noted, vectors, strict=True):
        platform.notebook.add(row, Note(text, platform.hours, importance, tuple(vector.tolist())))
    if platform.recorder is not None:
        kinds = {"tick": np.int32, "agent": np.int32, "text": object, "importance": np.int32}
        columns = zip(kinds.items(), zip(*noted, strict=True), strict=True)
        told = {name: np.array(values, kind) for (name, kind), values in columns}
        platform.recorder.write("notes", {"round": np.full(len(noted), platform.round, np.int32)} | told)


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
