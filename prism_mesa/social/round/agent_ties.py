"""What a user of a platform decides about others, and whether it is there: `PlatformAgent` has these methods."""

from typing import Any, Final

import numpy as np

from prism_mesa.domain import Post
from prism_mesa.errors import AgentError
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.follow_rules import BLOCK, FOLLOW, MUTE, REPORT, SCRIPT, UNBLOCK, UNFOLLOW, UNMUTE
from prism_mesa.social.round.follows import absence, note_decision, other_row

_NO_POST_OF: Final = "is no post of this platform (see feed, read)"


class DecidesAboutOthers:
    """Following, muting and blocking, which can be taken back, and reporting.

    Others are given by their rows, or as agents. What is decided counts when the round is committed and holds from the
    next one on, also where `network.dynamics` is fixed; `social.round.follows` says what of it counts.
    """

    row: int

    @property
    def _platform(self) -> Platform:
        raise NotImplementedError

    @property
    def has_left(self) -> bool:
        """Whether the agent is not there: it was removed, has left, or has not joined yet (`agents.churn`)."""
        return self.row in self._platform.leaving or not self._platform.population.present[self.row]

    @property
    def _absence(self) -> str:
        return absence(self._platform, self.row)

    def _must_be_there(self, act: str) -> None:
        """Raise AgentError if the agent has left before this round, or has not joined yet."""
        if not self._platform.population.present[self.row]:
            raise AgentError(f"SocialAgent.{act}: agent {self.row} {self._absence}")

    def follow(self, other: Any) -> bool:
        """Follow another agent, and return whether that is new.

        Raises:
            AgentError: If it is none, has left or is oneself; or if one of the two has blocked the other.
        """
        return self._decide("follow", other, FOLLOW)

    def unfollow(self, other: Any) -> bool:
        """Follow another agent no more, and return whether that is new; a close tie ends with it."""
        return self._decide("unfollow", other, UNFOLLOW)

    def mute(self, other: Any) -> bool:
        """See nothing of another agent any more, and return whether that is new.

        No feed shows its posts then, or what others reshare of them; who follows it goes on following it.
        """
        return self._decide("mute", other, MUTE)

    def unmute(self, other: Any) -> bool:
        """Take back that another agent is muted, and return whether that is new.

        Feeds show what it writes from then on, not what it wrote before.
        """
        return self._decide("unmute", other, UNMUTE)

    def block(self, other: Any) -> bool:
        """Have nothing to do with another agent any more, and return whether that is new.

        Neither follows the other then, or sees anything of it, as if muted.
        """
        return self._decide("block", other, BLOCK)

    def unblock(self, other: Any) -> bool:
        """Take back that another agent is blocked, and return whether that is new.

        Both see again what the other writes from then on, unless one is muted or the other has blocked as well; the
        follows that the block ended do not come back. Following the other is possible when it holds.
        """
        return self._decide("unblock", other, UNBLOCK)

    def report(self, post: Post) -> bool:
        """Report a post, and return whether that is new; it is recorded and counted, and changes nothing else."""
        where = f"{type(self).__name__}.report"
        if not isinstance(post, Post) or not 0 <= post.post_id < len(self._platform.posts):
            raise AgentError(f"{where}: {post!r} {_NO_POST_OF}")
        other = other_row(self._platform, self.row, post.author, where)
        return note_decision(self._platform, self.row, other, REPORT, SCRIPT, post.post_id)

    def _decide(self, name: str, other: Any, event: int) -> bool:
        where = f"{type(self).__name__}.{name}"
        if isinstance(other, DecidesAboutOthers):
            if other._platform is not self._platform:
                raise AgentError(f"{where}: {other!r} is an agent of another platform")
            other = other.row
        if isinstance(other, bool) or not isinstance(other, int | np.integer):
            raise AgentError(f"{where}: {other!r} is no agent: give one, or its row")
        return note_decision(
            self._platform, self.row, other_row(self._platform, self.row, int(other), where), event, SCRIPT
        )
