"""Activities and notes of agents in words."""

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
from prism_mesa.social.tables import COUNTERS

type ActivityKind = Literal["post", "like", "reply", "reshare"]

TEXT_SHOWN: Final = 200
"""Characters of a text in the line about an activity."""
_MIN_TEXT_SHOWN: Final = 60
NAME_SHOWN: Final = 80
LIKES_KEPT: Final = 12
"""Likes by tools that are kept per agent, since its history does not include them."""
ROUNDS_BACK: Final = 50
"""Rounds that an agent can look back."""
_LIKES: Final = ENGAGING["like"]


@dataclass(frozen=True)
class Activity:
    """An engagement of an agent with a post, or a post by it.

    Attributes:
        author: The name of the post's author; empty if the agent wrote it.
        text: The text of the post, or of the post that it reshares, or answers without words.
        words: The agent's own words in a reply or a comment.
        tick: The tick; -1 if it is unknown.
        quotes: The author of `text`, if another post is quoted.
    """

    round: int
    action: ActivityKind
    post: int
    author: str = ""
    text: str = ""
    words: str = ""
    tick: int = -1
    quotes: str = ""


_VERBS: Final = {"like": "you liked", "reply": "you replied to", "reshare": "you reshared"}


def activity_line(activity: Activity) -> str:
    """Return an activity as one line, with texts and names quoted.

    >>> print(activity_line(Activity(3, "reply", 17, "Ada Lopez", "Rain again.", "It suits me.")))
    Round 3: you replied to <<< Ada Lopez >>>'s post <<< Rain again. >>> with <<< It suits me. >>>
    """
    text = quoted(activity.text, TEXT_SHOWN)
    if activity.action == "post":
        return f"Round {activity.round}: you posted {text}"
    verb = "with" if activity.action == "reply" else "saying"
    how = f" {verb} {quoted(activity.words, TEXT_SHOWN)}" if activity.words else ""
    quotes = f", which quotes {quoted(activity.quotes, NAME_SHOWN)}:" if activity.quotes else ""
    whose = f"{quoted(activity.author, NAME_SHOWN)}'s post{quotes}"
    return f"Round {activity.round}: {_VERBS[activity.action]} {whose} {text}{how}"


def recent_activities(platform: Platform, row: int, max_activities: int) -> list[Activity]:
    """Return up to `max_activities` last activities of an agent, oldest first, up to this round.

    Likes go back as far as the agent's history (and the last `LIKES_KEPT` likes by tools), posts `ROUNDS_BACK` rounds.
    """
    activities = [*_published(platform, row, max_activities), *_likes(platform, row, max_activities)]
    activities.sort(key=lambda activity: (activity.round, activity.tick, activity.post))
    return activities[-max_activities:] if max_activities else []


def _published(platform: Platform, row: int, max_activities: int) -> list[Activity]:
    posts = platform.posts
    first, stop = posts.first_visible(platform.round, ROUNDS_BACK), posts.n_there(platform.round)
    posts_of_agent = (first + np.flatnonzero(posts.author[first:stop] == row))[-max_activities:]
    activities = []
    for post in posts_of_agent.tolist():
        kind, written = POST_KINDS[posts.kind[post]], int(posts.written[post])
        if kind == "post":
            activities.append(Activity(written, "post", post, text=posts.added_text(post)))
        else:
            parent, text_id = int(posts.parent[post]), int(posts.words[post])
            words = "" if text_id == NO_TEXT else posts.texts[text_id]
            activities.append(_activity(platform, written, kind, parent, words))
    return activities


def _likes(platform: Platform, row: int, max_activities: int) -> list[Activity]:
    activities = []
    for move, clock, post in platform.history.entries(row):
        round_, tick = platform.time_of_day.round_and_tick(clock)
        if unpacked_move(move)[2] is _LIKES and post != NO_POST and round_ < platform.round:
            activities.append(_activity(platform, round_, "like", post, tick=tick))
    likes_by_tool = [liked for liked in platform.liked.get(row, ()) if liked[0] < platform.round]
    activities += [_activity(platform, round_, "like", post, tick=tick) for round_, tick, post in likes_by_tool]
    return sorted(activities, key=lambda activity: (activity.round, activity.tick))[-max_activities:]


def _activity(
    platform: Platform, round_: int, action: ActivityKind, post: int, words: str = "", *, tick: int = -1
) -> Activity:
    writer, text = author_and_text(platform, post)
    author = platform.population.names[platform.posts.author[post]]
    quotes = "" if platform.posts.origin(post) == post else writer
    return Activity(round_, action, post, author, text, words, tick, quotes)


def author_and_text(platform: Platform, post: int) -> tuple[str, str]:
    """Return the author and the text that a post shows: its own, or those of the post behind it."""
    posts = platform.posts
    origin = posts.origin(post)
    return platform.population.names[posts.author[origin]], posts.added_text(origin)


def post_lines(platform: Platform, posts: Sequence[int]) -> list[str]:
    """Return a line for each post, with its number, author and counts; lines are shorter for more posts."""
    post_table, lines = platform.posts, []
    cap = max(_MIN_TEXT_SHOWN, 2 * TEXT_SHOWN // max(1, len(posts) - 2))
    for post in posts:
        author, root = int(post_table.author[post]), int(post_table.root[post])
        name = quoted(platform.population.names[author], NAME_SHOWN)
        counts = {column: int(getattr(post_table, column)[root]) for column in COUNTERS}
        count_text = ", ".join(f"{n} {column}" for column, n in counts.items() if n)
        kind = POST_KINDS[post_table.kind[post]]
        relation = f" ({kind} to post {post_table.parent[post]})" if post_table.parent[post] != NO_PARENT else ""
        text = quoted(post_table.shown([post])[0], cap)
        if post_table.origin(post) != post and post_table.words[post] == NO_TEXT:
            text = f"no words; it quotes {quoted(author_and_text(platform, post)[0], NAME_SHOWN)}: {text}"
        line = f"post {post} by {name} (agent {author}), round {post_table.written[post]}{relation}: {text}"
        lines.append(f"{line} [{count_text}]" if count_text else line)
    return lines


NOTE_CAP: Final = 200
"""Characters of a note."""


def recall_notes(platform: Platform, row: int, topic: str) -> list[str]:
    """Return the notes of an agent that are nearest to a topic, nearest first."""
    max_notes = platform.params.deliberation.notes_told
    if not max_notes or not platform.notebook.of(row):
        return []
    vector = platform.topics.place([topic])[0].astype(np.float64) if topic.strip() else None
    return [note.text for note in platform.notebook.recalled(row, vector, platform.hours, max_notes)]


def keep_notes(platform: Platform) -> None:
    """Add the notes of this round to the notebook, by tick and agent, and record them."""
    notes = sorted(platform.events.notes, key=lambda note: note[:2])  # stable: keeps the order of each agent
    if not notes:
        return
    vectors = platform.topics.place([text for _, _, text, _ in notes])
    for (_, row, text, importance), vector in zip(notes, vectors, strict=True):
        platform.notebook.add(row, Note(text, platform.hours, importance, tuple(vector.tolist())))
    if platform.recorder is not None:
        types = {"tick": np.int32, "agent": np.int32, "text": object, "importance": np.int32}
        pairs = zip(types.items(), zip(*notes, strict=True), strict=True)
        columns = {name: np.array(values, kind) for (name, kind), values in pairs}
        platform.recorder.write("notes", {"round": np.full(len(notes), platform.round, np.int32)} | columns)


_QUOTE_MARKS: Final = {('"', '"'), ("“", "”"), ("'", "'")}


def cleaned(text: str) -> str:
    r"""Return words on one line, without surrounding quotes or delimiters, truncated after `WORDS_CAP` characters.

    >>> cleaned('  "Rain again.\nOh well." ')
    'Rain again. Oh well.'
    """
    line = unframed(text, 2 * WORDS_CAP)
    while len(line) > 1 and (line[0], line[-1]) in _QUOTE_MARKS:
        line = line[1:-1].strip()
    return plain(line, WORDS_CAP)
