"""Activities and notes of agents as text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from prism_mesa.deliberation import Note
from prism_mesa.deliberation.conversation import quote_data
from prism_mesa.domain import POST_KINDS
from prism_mesa.llm.text import clean_text, remove_frames
from prism_mesa.social.behavior import ENGAGING
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.acts import show_acts
from prism_mesa.social.state.population import NO_POST, unpack_move
from prism_mesa.social.state.posts import NO_PARENT, WORDS_CAP
from prism_mesa.social.state.texts import NO_TEXT
from prism_mesa.social.tables import COUNTERS

type ActivityKind = Literal["post", "like", "reply", "reshare"]

TEXT_CAP: Final = 200
"""Maximum number of characters of a text in the line about an activity."""
_MIN_TEXT_CAP: Final = 60
NAME_CAP: Final = 80
MAX_TOOL_LIKES: Final = 12
"""Number of likes by tools to keep per agent, because its history does not include these likes."""
MAX_ROUNDS_BACK: Final = 50
"""Number of rounds that an agent can look back."""
_LIKES: Final = ENGAGING["like"]


@dataclass(frozen=True)
class Activity:
    """A post by an agent, or the agent's engagement with a post.

    Attributes:
        author: The name of the post's author; empty if the agent wrote the post.
        text: The text that the post shows.
        words: The agent's own words in a reply or a comment.
        tick: The tick, or -1 if it is unknown.
        quotes: The name of the author of `text`, if the post shows the text of another post.
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
    """Return one line about an activity, with texts and names quoted.

    >>> print(activity_line(Activity(3, "reply", 17, "Ada Lopez", "Rain again.", "It suits me.")))
    Round 3: you replied to <<< Ada Lopez >>>'s post <<< Rain again. >>> with <<< It suits me. >>>
    """
    text = quote_data(activity.text, TEXT_CAP)
    if activity.action == "post":
        return f"Round {activity.round}: you posted {text}"
    verb = "with" if activity.action == "reply" else "saying"
    words_part = f" {verb} {quote_data(activity.words, TEXT_CAP)}" if activity.words else ""
    quotes = f", which quotes {quote_data(activity.quotes, NAME_CAP)}:" if activity.quotes else ""
    post_part = f"{quote_data(activity.author, NAME_CAP)}'s post{quotes}"
    return f"Round {activity.round}: {_VERBS[activity.action]} {post_part} {text}{words_part}"


def recent_activities(platform: Platform, row: int, max_activities: int) -> list[Activity]:
    """Return the last activities of an agent (up to `max_activities`), oldest first.

    Likes come from the agent's history and its likes by tools; posts go back `MAX_ROUNDS_BACK` rounds.
    """
    activities = [*_published_posts(platform, row, max_activities), *_liked_posts(platform, row, max_activities)]
    activities.sort(key=lambda activity: (activity.round, activity.tick, activity.post))
    return activities[-max_activities:] if max_activities else []


def _published_posts(platform: Platform, row: int, max_activities: int) -> list[Activity]:
    posts = platform.posts
    first, stop = posts.first_visible(platform.round, MAX_ROUNDS_BACK), posts.n_visible(platform.round)
    posts_of_agent = (first + np.flatnonzero(posts.author[first:stop] == row))[-max_activities:]
    activities = []
    for post in posts_of_agent.tolist():
        kind, written = POST_KINDS[posts.kind[post]], int(posts.round[post] - posts.delay[post])
        if kind == "post":
            activities.append(Activity(written, "post", post, text=posts.added_text(post)))
        else:
            parent, text_id = int(posts.parent[post]), int(posts.words[post])
            words = "" if text_id == NO_TEXT else posts.texts[text_id]
            activities.append(_activity(platform, written, kind, parent, words))
    return activities


def _liked_posts(platform: Platform, row: int, max_activities: int) -> list[Activity]:
    activities = []
    for move, clock, post in platform.history.entries(row):
        round_, tick = platform.time_of_day.round_and_tick(clock)
        if unpack_move(move, platform.states)[2].resembled is _LIKES and post != NO_POST and round_ < platform.round:
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
    """Return the name of the author of the text that a post shows, and the text."""
    posts = platform.posts
    origin = posts.origin(post)
    return platform.population.names[posts.author[origin]], posts.added_text(origin)


def post_lines(platform: Platform, posts: Sequence[int], reader: int) -> list[str]:
    """Return a line for each post with its number, author, text, labels and counts, as a reader sees it.

    With many posts, texts are shorter.
    """
    post_table, lines = platform.posts, list[str]()
    readers, ids = np.full(len(posts), reader), np.array(posts, np.int64)
    shown = show_acts(platform, readers, [replace(v, about="") for v in platform.views(readers, ids)]) if posts else []
    cap = max(_MIN_TEXT_CAP, 2 * TEXT_CAP // max(1, len(posts) - 2))
    for post, view in zip(posts, shown, strict=True):
        author = int(post_table.author[post])
        name = quote_data(platform.population.names[author], NAME_CAP)
        counts = {column: getattr(view, column) for column in COUNTERS}
        count_text = ", ".join(f"{n} {column}" for column, n in counts.items() if n)
        kind = POST_KINDS[post_table.kind[post]]
        relation = f" ({kind} to post {post_table.parent[post]})" if post_table.parent[post] != NO_PARENT else ""
        text = quote_data(post_table.visible_texts([post])[0], cap)
        if post_table.origin(post) != post and post_table.words[post] == NO_TEXT:
            text = f"no words; it quotes {quote_data(author_and_text(platform, post)[0], NAME_CAP)}: {text}"
        written = post_table.round[post] - post_table.delay[post]
        line = f"post {post} by {name} (agent {author}), round {written}{relation}: {text}"
        line += f" ({view.about})" if view is not None and view.about else ""
        lines.append(f"{line} [{count_text}]" if count_text else line)
    return lines


NOTE_CAP: Final = 200
"""Maximum number of characters of a note."""


def recall_notes(platform: Platform, row: int, topic: str) -> list[str]:
    """Return the notes of an agent that fit a topic best, best first."""
    max_notes = platform.params.deliberation.notes_told
    if not max_notes or not platform.notebook.agent_notes(row):
        return []
    vector = platform.topics.embed_texts([topic])[0].astype(np.float64) if topic.strip() else None
    return [note.text for note in platform.notebook.recall(row, vector, platform.hours, max_notes)]


def store_notes(platform: Platform) -> None:
    """Add the notes of this round to the notebook, sorted by tick and agent, and record them."""
    notes = sorted(platform.events.notes, key=lambda note: note[:2])  # stable, so an agent's notes stay in order
    if not notes:
        return
    vectors = platform.topics.embed_texts([text for _, _, text, _ in notes])
    for (_, row, text, importance), vector in zip(notes, vectors, strict=True):
        platform.notebook.add(row, Note(text, platform.hours, importance, tuple(vector.tolist())))
    if platform.recorder is not None:
        types = {"tick": np.int32, "agent": np.int32, "text": object, "importance": np.int32}
        pairs = zip(types.items(), zip(*notes, strict=True), strict=True)
        columns = {name: np.array(values, kind) for (name, kind), values in pairs}
        platform.recorder.write("notes", {"round": np.full(len(notes), platform.round, np.int32)} | columns)


_QUOTE_MARKS: Final = {('"', '"'), ("“", "”"), ("'", "'")}


def strip_quotes(text: str) -> str:
    r"""Return a text on one line, without enclosing quotation marks, truncated after `WORDS_CAP` characters.

    >>> strip_quotes('  "Rain again.\nOh well." ')
    'Rain again. Oh well.'
    """
    line = remove_frames(text, 2 * WORDS_CAP)
    while len(line) > 1 and (line[0], line[-1]) in _QUOTE_MARKS:
        line = line[1:-1].strip()
    return clean_text(line, WORDS_CAP)
