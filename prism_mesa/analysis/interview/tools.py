"""Tools that search a run, up to a round, for an agent in an interview."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from prism_mesa.deliberation import ToolRegistry
from prism_mesa.deliberation.conversation import quote_data
from prism_mesa.errors import AgentError
from prism_mesa.llm.text import NAME_CAP
from prism_mesa.runs.archive import AgentSnapshot, RunRecords
from prism_mesa.social.content.activity import Activity, ActivityKind, activity_line
from prism_mesa.social.state.topics import STOP_WORDS

MAX_LINES: Final = 5  # in a tool's result
_TEXT_CAP: Final = 200


class RecallTools:
    """The tools of an interviewed agent; the LLM may call all public methods except `registry`."""

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
        matches = best_matches(activities, about, search_text) if about.strip() else activities[-MAX_LINES:]
        lines = [f"(post {activity.post}) {activity_line(activity)}" for activity in matches]
        return "\n".join(lines) or "You did nothing of the kind."

    def read_thread(self, post: int) -> str:
        """Read a post, what it answers or passes on, and the first replies and reshares of it.

        Args:
            post: The number of the post.
        """
        posts, n_posts = self.records.posts, self._n_posts()
        if not 0 <= post < n_posts:
            known = f"posts: 0 .. {n_posts - 1}" if n_posts else "there are none yet"
            raise AgentError(f"there is no post {post} ({known})")
        above = [int(posts.parent[post])] if posts.parent[post] >= 0 else []
        below = np.flatnonzero(posts.parent[:n_posts] == post)[:MAX_LINES]
        return self._posts_text([*above, post, *below.tolist()])

    def look_at_profile(self, agent: int) -> str:
        """Look at a user: name, interests, and what they wrote last.

        Args:
            agent: The number of the user.
        """
        if not 0 <= agent < self.records.n_agents:
            raise AgentError(f"there is no user {agent} (users: 0 .. {self.records.n_agents - 1})")
        posts = np.flatnonzero(self.records.posts.author[: self._n_posts()] == agent)[-MAX_LINES:].tolist()
        name = quote_data(self.records.names[agent], NAME_CAP)
        interests = quote_data(", ".join(self.records.interests(agent)), 2 * NAME_CAP)
        return "\n".join(filter(None, [f"{name} (agent {agent}) likes {interests}.", self._posts_text(posts)]))

    def search_posts(self, words: str) -> str:
        """Search all posts up to now.

        Args:
            words: What should stand in them.
        """
        posts = self.records.posts
        numbers = range(self._n_posts())
        matches = best_matches(numbers, words, lambda post: f"{posts.shown_text(post)} {posts.words(post)}")
        return self._posts_text(matches) or "Nothing was found."

    def _n_posts(self) -> int:
        """Return the number of posts up to the interview's round; later posts have larger ids."""
        return int(np.searchsorted(self.records.posts.round, self.snapshot.last_round, side="right"))

    def _posts_text(self, posts: Iterable[int]) -> str:
        return "\n".join(map(self._post, posts))

    def _post(self, post: int) -> str:
        posts = self.records.posts
        author = int(posts.author[post])
        author_text = f"by {quote_data(self.records.names[author], NAME_CAP)} (agent {author})"
        relation_text = "" if posts.kind[post] == "post" else f" ({posts.kind[post]} of post {posts.parent[post]})"
        origin, text = posts.origin(post), quote_data(posts.shown_text(post), _TEXT_CAP)
        if origin == post:
            return f"Post {post} {author_text}, round {posts.written[post]}{relation_text}: {text}"
        quote_text = f"says {quote_data(posts.words(post), _TEXT_CAP)} and quotes" if posts.words(post) else "quotes"
        writer = quote_data(self.records.names[posts.author[origin]], NAME_CAP)
        return f"Post {post} {author_text}, round {posts.written[post]}{relation_text}, {quote_text} {writer}: {text}"


_SEARCH_VERBS: Final[dict[ActivityKind, str]] = {
    "post": "posted wrote write",
    "like": "like liked likes",
    "reply": "reply replied replies answer answered said say",
    "reshare": "reshare reshared reshares share shared passed",
}


def search_text(activity: Activity) -> str:
    """Return an activity as text to search in."""
    names = f"{activity.author} {activity.quotes}"
    return f"{_SEARCH_VERBS[activity.action]} post {names} {activity.text} {activity.words} round {activity.round}"


def best_matches[T](
    items: Sequence[T], words: str, get_text: Callable[[T], str], max_items: int = MAX_LINES, *, only_best: bool = False
) -> list[T]:
    """Return up to `max_items` items whose text contains the most of `words`, in the order of `items`.

    Later items win ties. With `only_best`, return only the items that contain as many words as the best item.

    >>> best_matches(["a red pan", "a pan", "a hat"], "red pans, pan", str, max_items=1)
    ['a red pan']
    """
    query = set(re.findall(r"\w+", words.lower())) - (STOP_WORDS - {"like"})
    counts = [len(query & set(re.findall(r"\w+", get_text(item).lower()))) for item in items] if query else []
    min_words = max(counts, default=0) if only_best else 1
    best_indices = sorted(
        (index for index, n in enumerate(counts) if n >= max(min_words, 1)), key=lambda index: (-counts[index], -index)
    )[:max_items]
    return [items[index] for index in sorted(best_indices)]
