"""Agents of one's own: accounts that pass on whatever is untrue."""

from prism_mesa import SocialAgent, SocialModel


class Spreader(SocialAgent):
    """Reads all of its feed whenever it is shown one, and reshares each untrue post."""

    def step(self) -> None:
        """Do one tick."""
        while post := self.read():
            if post.untrue:
                self.reshare(post)


def add_spreaders(model: SocialModel, n: int = 5) -> list[Spreader]:
    """Add `n` spreaders, each of whom follows all agents with a number and is followed by all with the next one."""
    rows = range(model.params.agents.n)
    return [Spreader(model, follows=rows[k :: 2 * n], followers=rows[k + n :: 2 * n]) for k in range(n)]
