"""Posts that users place: whose they are is chosen by size and position in the network, from the seed."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import counted
from prism_mesa.social.params import SeededParams, SocialParams
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.population import Population
from prism_mesa.social.state.posts import POST, Posts
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.communities import find_communities, share_across
from prism_mesa.streams import Streams

type Rows = npt.NDArray[np.int64]

TENTH: Final = 10
FIFTH: Final = 5
_TOLD: Final = 5


@dataclass(frozen=True)
class Seeded:
    """Posts that are placed, one an entry.

    Attributes:
        author: Row of whose it is.
        text_id: Its text.
        round: In which it appears, ascending.
        followers: Of its author, at the beginning.
        across: Share of these who are of other communities.
    """

    author: Rows
    text_id: Rows
    round: Rows
    followers: Rows
    across: npt.NDArray[np.float64]

    def as_facts(self, posts: Posts) -> list[dict[str, Any]]:
        """Return what a summary says of each that has appeared: its row in `posts`, and what stands here."""
        own = np.flatnonzero(posts.kind == POST)
        facts = []
        for author, text, round_, followers, across in zip(*self._columns(), strict=True):
            among = own[slice(*np.searchsorted(posts.round[own], [round_, round_ + 1]))]
            found = among[(posts.author[among] == author) & (posts.text_id[among] == text)]
            if len(found):  # an author that was removed posts nothing
                row = int(found[-1])  # what an agent happens to post itself stands before
                told = {"post": row, "round": round_, "author": author, "followers": followers}
                facts.append({**told, "share_across": across})
        return facts

    def notes(self) -> list[str]:
        """Return in words who was chosen."""
        if not len(self.author):
            return []
        told = [
            f"agent {author} ({counted(followers, 'follower')}, {across:.2f} of other communities)"
            for author, _, _, followers, across in zip(*self._columns(), strict=True)
        ]
        authors = list(dict.fromkeys(told))
        more = f" and {len(authors) - _TOLD} more" if len(authors) > _TOLD else ""
        return [f"posts.seeded: {counted(len(told), 'post')} by {', '.join(authors[:_TOLD])}{more}"]

    def _columns(self) -> list[list[Any]]:
        columns = (self.author, self.text_id, self.round, self.followers, self.across)
        return [column.tolist() for column in columns]


def seeded_posts(
    params: SocialParams, network: FollowNetwork, population: Population, topics: Topics, streams: Streams
) -> Seeded:
    """Return the posts that `posts.seeded` places."""
    own, n = params.posts.seeded, network.n_agents
    if not own.count:
        none = np.zeros(0, np.int64)
        return Seeded(none, none, none, none, np.zeros(0))
    main = topics.nearest_name(population.interests)
    community, n_communities = find_communities(params.network, n, topics.names, main)
    across = share_across(community, *network.edges(), n)
    followers = network.n_followers.astype(np.int64)
    fit = _fitting(own, followers, across if n_communities > 1 else None, streams)
    fit = fit[population.present[fit]] if population.present[fit].any() else fit  # who waits posts nothing
    places = np.arange(own.count)
    author = fit[places % len(fit)]
    text_id = streams.integers("seeded text", places, len(topics.vectors))
    return Seeded(author, text_id, own.round + places, followers[author], across[author])


def _fitting(own: SeededParams, followers: Rows, across: npt.NDArray[np.float64] | None, streams: Streams) -> Rows:
    """Return who fits size and position, in a drawn order, in which ties stand too; at least one agent does.

    Where there is one community, `across` is None, and every agent fits any position.
    """
    drawn = np.argsort(streams.bits("seeded author", np.arange(len(followers))))
    if own.size != "any":
        drawn = _extreme(drawn, followers, TENTH, highest=own.size == "large")
    if own.position != "any" and across is not None:
        drawn = _extreme(drawn, across, FIFTH, highest=own.position == "bridge")
    return drawn.astype(np.int64)


def _extreme(rows: npt.NDArray[Any], values: npt.NDArray[Any], part: int, *, highest: bool) -> npt.NDArray[Any]:
    """Return, in their order, a `part`-th of some rows: those with the highest values, or the lowest."""
    most = max(1, len(rows) // part)
    ascending = np.argsort(values[rows], kind="stable")
    return rows[np.sort(ascending[-most:] if highest else ascending[:most])]
