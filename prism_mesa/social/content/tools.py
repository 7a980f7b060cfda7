"""The tools of an agent in one turn: it can look things up on the platform, and act.

Tools show the platform as it was when the round opened. Actions go to the round's `Events` until the commit. Other
agents see their effects from the next round on, so the order of agents does not matter.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

import numpy as np

from prism_mesa.arrays import Rows
from prism_mesa.deliberation import ToolRegistry
from prism_mesa.deliberation.conversation import quote_data
from prism_mesa.domain import ACTIONS, ActionName
from prism_mesa.errors import AgentError
from prism_mesa.llm.text import clean_text
from prism_mesa.social.content.activity import (
    MAX_TOOL_LIKES,
    NAME_CAP,
    NOTE_CAP,
    TEXT_CAP,
    activity_line,
    post_lines,
    recall_notes,
    recent_activities,
    strip_quotes,
)
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.acts import hidden_from
from prism_mesa.social.round.effects import note_engagement, read_posts
from prism_mesa.social.round.engagements import has_engaged
from prism_mesa.social.round.follow_rules import BLOCK, FOLLOW, MUTE, REPORT, TOOL, UNBLOCK, UNFOLLOW, UNMUTE
from prism_mesa.social.round.follows import note_decision, other_row
from prism_mesa.social.state.population import NO_POST

MAX_POSTS: Final = 5
"""Maximum number of posts from a search, and of replies in a thread."""


class PlatformTools:
    """The tools of one agent in one turn, as methods that the LLM may call.

    Args:
        platform: The platform.
        row: The agent's row.
        tick: The tick of the agent's actions. An engagement is never earlier than the agent read the post.
    """

    def __init__(self, platform: Platform, row: int, *, tick: int) -> None:
        self.platform = platform
        self.row = row
        self.tick = tick

    def registry(self, *, acts: bool) -> ToolRegistry:
        """Return a registry of the tools; tools that read the feed and act are included only with `acts`."""
        lookups = (self.read_thread, self.look_at_profile, self.search_posts, self.recall, self.remember)
        activities = (self.read_feed, self.like, self.reply, self.reshare, self.post) if acts else ()
        relations: tuple[Callable[..., str], ...] = ()
        if acts and self.platform.params.network.dynamics == "live":
            relations = (self.follow, self.unfollow, self.mute, self.unmute, self.block, self.unblock, self.report)
        return ToolRegistry(
            (*lookups, *activities, *relations),
            timeout_s=None,
            result_cap=self.platform.params.deliberation.result_chars,
        )

    def read_feed(self) -> str:
        """Read all posts that your feed shows in this round."""
        read_posts(self.platform, self.row, self.tick, len(self._feed_posts()))
        return "\n".join(post_lines(self.platform, self._feed_posts(), self.row)) or "Your feed is empty."

    def read_thread(self, post: int) -> str:
        """Read a post, what it answers, and the latest replies to it.

        Args:
            post: The number of the post.
        """
        posts = self.platform.posts
        n_posts = posts.n_visible(self.platform.round)
        if not 0 <= post < n_posts:
            known = f" (posts: 0 .. {n_posts - 1})" if n_posts else ": there are none yet"
            raise AgentError(f"there is no post {post}{known}")
        parents = [int(posts.parent[post])] if posts.parent[post] != NO_POST else []
        recent = self._recent_posts()
        replies = recent[posts.parent[recent] == post]
        thread = np.array([*parents, post, *replies[-MAX_POSTS:].tolist()])
        return "\n".join(self._describe_posts(thread, looked_at=int(posts.author[post])))

    def look_at_profile(self, agent: int) -> str:
        """Look at another user: name, interests, followers, what they posted last.

        Args:
            agent: The number of the user.
        """
        platform = self.platform
        if not 0 <= agent < len(platform.population) or not platform.population.present[agent]:
            raise AgentError(f"there is no user {agent} (users: 0 .. {len(platform.population) - 1})")
        if platform.relations.are_blocked(np.array([self.row]), np.array([agent]))[0]:
            return f"You see nothing of agent {agent}: a block stands between the two of you."
        recent = self._recent_posts()
        published = recent[platform.posts.author[recent] == agent]
        name = quote_data(platform.population.names[agent], NAME_CAP)
        [interests] = platform.topics.interest_names(platform.population.interests[[agent]])
        likes = quote_data(", ".join(interests), TEXT_CAP)
        first_line = f"{name} (agent {agent}) likes {likes}; {platform.network.n_followers[agent]} followers."
        return "\n".join([first_line, *self._describe_posts(published[-MAX_POSTS:], looked_at=agent)])

    def search_posts(self, words: str) -> str:
        """Search the posts of the last rounds for what is nearest to some words.

        Args:
            words: What to look for.
        """
        posts = self.platform.posts
        ids = self._visible_posts(self._recent_posts())
        query_vector = self.platform.topics.embed_texts([words[: 10 * NOTE_CAP]])[0].astype(np.int64)
        nearness = posts.vectors(ids).astype(np.int64) @ query_vector
        query = words.casefold().strip()
        if query:
            contains_words = np.array([query in text.casefold() for text in posts.visible_texts(ids)], np.bool_)
            nearness[contains_words] += np.int64(2) ** 32  # posts that contain the words come first
        order = np.lexsort((-ids, -nearness))[:MAX_POSTS]
        found = ids[order[nearness[order] > 0]].tolist()
        return "\n".join(post_lines(self.platform, found, self.row)) or "Nothing was found."

    def recall(self, about: str = "") -> str:
        """Recall your notes, and what you did on the platform, latest first.

        Args:
            about: What the notes should be about.
        """
        lines = [f"Note: {quote_data(note, NOTE_CAP)}" for note in recall_notes(self.platform, self.row, about)]
        activities = recent_activities(self.platform, self.row, 2 * MAX_POSTS)[::-1]  # the end may be truncated
        lines += [activity_line(activity) for activity in activities]
        return "\n".join(lines) or "You have done nothing yet."

    def remember(self, note: str, importance: int) -> str:
        """Write a note to yourself, which you will remember later.

        Args:
            note: What to remember, in one sentence.
            importance: From 1 (trivial) to 10 (changes a life).
        """
        text = clean_text(note, NOTE_CAP)
        if not text:
            raise AgentError("note: is empty: say what to remember")
        if not 1 <= importance <= 10:
            raise AgentError(f"importance: {importance} is not in 1..10")
        self.platform.events.notes.append((self.tick, self.row, text, importance))
        return "You will remember it from the next round on."

    def like(self, post: int) -> str:
        """Like a post of your feed.

        Args:
            post: The number of the post.
        """
        self._engage("like", post)
        likes = self.platform.liked.setdefault(self.row, deque(maxlen=MAX_TOOL_LIKES))
        likes.append((self.platform.round, self.tick, post))
        return f"You like post {post}."

    def reply(self, post: int, text: str) -> str:
        """Reply to a post of your feed.

        Args:
            post: The number of the post.
            text: What you say.
        """
        self._engage("reply", post, self._require_words(text))
        return f"You reply to post {post}; others see it in the next round."

    def reshare(self, post: int, comment: str = "") -> str:
        """Reshare a post of your feed.

        Args:
            post: The number of the post.
            comment: What you add, if anything.
        """
        self._engage("reshare", post, self._require_words(comment) if comment else "")
        return f"You reshare post {post}; others see it in the next round."

    def post(self, text: str) -> str:
        """Write a post of your own.

        Args:
            text: What you say.
        """
        words = self._require_words(text)
        if (self.row, words) in self.platform.events.written:
            raise AgentError("you have posted that already")
        self.platform.events.written.append((self.row, words))
        return "You have written a post; others see it in the next round."

    def follow(self, agent: int) -> str:
        """Follow another user: your feed shows what they post.

        Args:
            agent: The number of the user.
        """
        return self._decide(agent, FOLLOW, "You follow agent {} from the next round on.", "you follow agent {} already")

    def unfollow(self, agent: int) -> str:
        """Follow another user no more.

        Args:
            agent: The number of the user.
        """
        return self._decide(agent, UNFOLLOW, "You unfollow agent {}.", "you do not follow agent {}")

    def mute(self, agent: int) -> str:
        """Mute another user: you see nothing of them any more.

        Args:
            agent: The number of the user.
        """
        return self._decide(agent, MUTE, "You have muted agent {}.", "you have muted agent {} already")

    def block(self, agent: int) -> str:
        """Block another user: neither of you follows the other or sees anything of the other any more.

        Args:
            agent: The number of the user.
        """
        return self._decide(agent, BLOCK, "You have blocked agent {}.", "you have blocked agent {} already")

    def unmute(self, agent: int) -> str:
        """Take back that you muted another user.

        Args:
            agent: The number of the user.
        """
        return self._decide(agent, UNMUTE, "You have muted agent {} no more.", "you have not muted agent {}")

    def unblock(self, agent: int) -> str:
        """Take back that you blocked another user: you may see each other again; follows do not come back.

        Args:
            agent: The number of the user.
        """
        return self._decide(agent, UNBLOCK, "You have blocked agent {} no more.", "you have not blocked agent {}")

    def report(self, post: int) -> str:
        """Report a post of your feed to the platform.

        Args:
            post: The number of the post.
        """
        self._require_in_feed(post)
        other = other_row(self.platform, self.row, int(self.platform.posts.author[post]), "report")
        if not note_decision(self.platform, self.row, other, REPORT, TOOL, post):
            raise AgentError(f"you have reported post {post} already")
        return f"You have reported post {post}."

    def _decide(self, agent: int, event: int, success: str, failure: str) -> str:
        if not note_decision(self.platform, self.row, other_row(self.platform, self.row, agent, "agent"), event, TOOL):
            raise AgentError(failure.format(agent))
        return success.format(agent)

    def _recent_posts(self) -> Rows:
        """Return the posts that feeds can show in this round, by ascending id."""
        platform, posts = self.platform, self.platform.posts
        return np.arange(
            posts.first_visible(platform.round, platform.params.feed.window), posts.n_visible(platform.round)
        )

    def _visible_posts(self, ids: Rows) -> Rows:
        """Return the posts of `ids` whose author and whose root's author are not hidden from the agent."""
        posts, are_hidden = self.platform.posts, self.platform.relations.are_hidden
        row = np.full(len(ids), self.row)
        ids, row = (part[~hidden_from(self.platform, self.row, ids)] for part in (ids, row))
        return ids[~(are_hidden(row, posts.author[ids]) | are_hidden(row, posts.author[posts.root[ids]]))]

    def _describe_posts(self, ids: Rows, *, looked_at: int) -> list[str]:
        """Return a line for each post; for a post by a muted or blocked author, the line omits the text.

        Posts by the author `looked_at` are shown even if that author is muted.
        """
        posts, relations, row = self.platform.posts, self.platform.relations, np.full(len(ids), self.row)
        writers = (posts.author[ids], posts.author[posts.root[ids]])
        apart = np.logical_or.reduce([relations.are_blocked(row, writer) for writer in writers])
        muted = np.logical_or.reduce([relations.are_hidden(row, writer) & (writer != looked_at) for writer in writers])
        removed = hidden_from(self.platform, self.row, ids)
        shown_ids = ids[~(apart | muted | removed)].tolist()
        lines = dict(zip(shown_ids, post_lines(self.platform, shown_ids, self.row), strict=True))
        for post, is_removed, is_apart in zip(ids.tolist(), removed.tolist(), apart.tolist(), strict=True):
            reason = "a block stands between you and its author" if is_apart else "you have muted its author"
            reason = "the platform has removed it" if is_removed else reason
            lines.setdefault(post, f"post {post} is not shown: {reason}")
        return [lines[post] for post in ids.tolist()]

    def _feed_posts(self) -> list[int]:
        population = self.platform.population
        feed: list[int] = population.feed[self.row, : population.n_feed[self.row]].tolist()
        return feed

    def _require_in_feed(self, post: int) -> None:
        feed = self._feed_posts()
        if post not in feed:
            raise AgentError(f"post {post} is not in your feed (posts: {', '.join(map(str, feed)) or 'none'})")

    def _require_words(self, text: str) -> str:
        words = strip_quotes(text)
        if not words:
            raise AgentError("text: is empty: say something")
        return words

    def _engage(self, action: ActionName, post: int, words: str = "") -> None:
        """Note an engagement with a post of the feed, unless the agent has engaged with it in this way already."""
        self._require_in_feed(post)
        code = ACTIONS.index(action)
        if has_engaged(self.platform, self.row, post, code):
            raise AgentError(f"you have done that to post {post} already")
        read_posts(self.platform, self.row, self.tick, len(self._feed_posts()))
        note_engagement(self.platform, self.row, post, code, words, tick=max(self.tick, self._tick_read(post)))

    def _tick_read(self, post: int) -> int:
        """Return the tick in which the agent read a post in this round, or 0."""
        impressions = self.platform.events.impressions
        read = (tick[(agent == self.row) & (seen == post)] for tick, agent, seen in impressions)
        return min((int(ticks.min()) for ticks in read if len(ticks)), default=0)
