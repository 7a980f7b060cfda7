"""Tools with which an interviewed agent searches its run, up to a round."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from prism_mesa.deliberation import ToolRegistry
from prism_mesa.deliberation.conversation import quoted
from prism_mesa.errors import AgentError
from prism_mesa.llm.text import NAME_CAP
from prism_mesa.runs.archive import AgentSnapshot, RunRecords
from prism_mesa.social.content.activity import Activity, ActivityKind, activity_line
from prism_mesa.social.state.topics import STOP_WORDS

MAX_LINES: Final = 5  # in a tool's result
_TEXT_CAP: Final = 200


class RecallTools:
    """The tools of an agent of a run: the LLM may call all public methods except `registry`."""

    def __init__(self, records: RunRecords, snapshot: AgentSnapshot) -> None:
        self.records, self.snapshot = records, snapshot

    def registry(self, result_cap: int) -> ToolRegistry:
        """Return the tools for a deliberation."""
        tools: list[Callable[..., Any]] = [self.what_i_did, self.read_thread, self.look_at_profile, self.search_posts]
        return ToolRegistry(tools, result_cap=result_cap)

    def what_i_did(self, about: str = "") -> str:
        """Look up what you did on the platform.

        Args:
            about: Words that should stand in it; empty for what you did last.
        """
        activities = self.snapshot.activities
        matches = best_matches(activities, about, searched) if about.strip() else activities[-MAX_LINES:]
        lines = [f"(post {activity.post}) {activity_line(activity)}" for activity in matches]
        return "\n".join(lines) or "You did nothing of the kind."

    def read_thread(self, post: int) -> str:
        """Read a post, what it answers or passes on, and the first replies and reshares of it.

        Args:
            post: The number of the post.
        """
        posts, there = self.records.posts, self._n_there()
        if not 0 <= post < there:
            known = f"posts: 0 .. {there - 1}" if there else "there are none yet"
            raise AgentError(f"there is no post {post} ({known})")
        above = [int(posts.parent[post])] if posts.parent[post] >= 0 else []
        below = np.flatnonzero(posts.parent[:there] == post)[:MAX_LINES]
        return self._posts_text([*above, post, *below.tolist()])

    def look_at_profile(self, agent: int) -> str:
        """Look at a user: name, interests, and what they wrote last.

        Args:
            agent: The number of the user.
        """
        if not 0 <= agent < self.records.n_agents:
            raise AgentError(f"there is no user {agent} (users: 0 .. {self.records.n_agents - 1})")
        posts = np.flatnonzero(self.records.posts.author[: self._n_there()] == agent)[-MAX_LINES:].tolist()
        name = quoted(self.records.names[agent], NAME_CAP)
        interests = quoted(", ".join(self.records.interests(agent)), 2 * NAME_CAP)
        return "\n".join(filter(None, [f"{name} (agent {agent}) likes {interests}.", self._posts_text(posts)]))

    def search_posts(self, words: str) -> str:
        """Search all posts up to now.

        Args:
            words: What should stand in them.
        """
        posts = self.records.posts
        numbers = range(self._n_there())
        matches = best_matches(numbers, words, lambda post: f"{posts.says(post)} {posts.words(post)}")
        return self._posts_text(matches) or "Nothing was found."

    def _n_there(self) -> int:
        """Return the number of posts up to the interview's round; ids grow with time."""
        return int(np.searchsorted(self.records.posts.round, self.snapshot.at, side="right"))

    def _posts_text(self, posts: Iterable[int]) -> str:
        return "\n".join(map(self._post, posts))

    def _post(self, post: int) -> str:
        posts = self.records.posts
        author = int(posts.author[post])
        whose = f"by {quoted(self.records.names[author], NAME_CAP)} (agent {author})"
        about = "" if posts.kind[post] == "post" else f" ({posts.kind[post]} of post {posts.parent[post]})"
        origin, text = posts.origin(post), quoted(posts.says(post), _TEXT_CAP)
        if origin == post:
            return f"Post {post} {whose}, round {posts.written[post]}{about}: {text}"
        shows = f"says {quoted(posts.words(post), _TEXT_CAP)} and quotes" if posts.words(post) else "quotes"
        writer = quoted(self.records.names[posts.author[origin]], NAME_CAP)
        return f"Post {post} {whose}, round {posts.written[post]}{about}, {shows} {writer}: {text}"


_VERBS: Final[dict[ActivityKind, str]] = {
    "post": "posted wrote write",
    "like": "like liked likes",
    "reply": "reply replied replies answer answered said say",
    "reshare": "reshare reshared reshares share shared passed",
}


def searched(activity: Activity) -> str:
    """Return the text of an activity for searching."""
    names = f"{activity.author} {activity.quotes}"
    return f"{_VERBS[activity.action]} post {names} {activity.text} {activity.words} round {activity.round}"


def best_matches[T](
    things: Sequence[T], words: str, text: Callable[[T], str], max_things: int = MAX_LINES, *, ties: bool = False
) -> list[T]:
    """Return up to `max_things` things whose text contains the most of `words`, in their order; later ones win ties.

    With `ties`, only the things that contain as many words as the best one.

    >>> best_matches(["a red pan", "a pan", "a hat"], "red pans, pan", str, max_things=1)
    ['a red pan']
    """
    query = set(re.findall(r"\w+", words.lower())) - (STOP_WORDS - {"like"})
    counts = [len(query & set(re.findall(r"\w+", text(thing).lower()))) for thing in things] if query else []
    min_words = max(counts, default=0) if ties else 1
    best_places = sorted(
        (place for place, n in enumerate(counts) if n >= max(min_words, 1)), key=lambda place: (-counts[place], -place)
    )[:max_things]
    return [things[place] for place in sorted(best_places)]
