"""Agents of your own: accounts that pass on untrue posts."""

from prism_mesa import SocialAgent, SocialModel


class Spreader(SocialAgent):
    """Reads its whole feed and reshares each untrue post."""

    def step(self) -> None:
        """Do one tick."""
        while post := self.read():
            if post.untrue:
                self.reshare(post)


def add_spreaders(model: SocialModel, n: int = 5) -> list[Spreader]:
    """Add `n` spreaders. Each follows a part of the agents and is followed by another part."""
    rows = range(model.params.agents.n)
    return [Spreader(model, follows=rows[k :: 2 * n], followers=rows[k + n :: 2 * n]) for k in range(n)]
