"""A wall to write on, with its tools."""

from dataclasses import dataclass
from enum import Enum

from pydantic import BaseModel

Vote = Enum("Vote", {"UP": "up", "DOWN": "down"})


class City(BaseModel):
    city: str
    near: list["City"] = []


@dataclass
class Wall:
    """A platform of which tools are methods."""

    said: list

    def reply(self, post: int, text: str) -> str:
        """Reply to a post.

        Args:
            post: its number.
            text (str): what you say,
                in full.

        Returns:
            post: nothing of this is told.
        """
        self.said.append((post, text))
        return f"replied to {post}"

    def vote(self, post: int, kind: Vote = Vote.UP, *, weight: float = 1.0) -> "UnknownHere":  # noqa: F821
        """Vote for a post,
        or against it
        """
        return {"post": post, "kind": kind, "weight": weight}
