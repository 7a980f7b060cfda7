"""Posts that users place, with authors chosen by size and position in the network."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.errors import counted
from prism_mesa.social.params import NetworkParams, SeededParams, SocialParams
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.population import Population, Rows
from prism_mesa.social.state.posts import POST, Posts
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.random_networks import block_bounds
from prism_mesa.streams import Streams

TENTH: Final = 10
FIFTH: Final = 5
_AUTHORS_NAMED: Final = 5


@dataclass(frozen=True)
class Seeded:
    """Posts that users place, as columns.

    Attributes:
        author: Row of the author.
        text_id: The text.
        round: The round in which the post appears, ascending.
        followers: Followers of the author at the start.
        across: Share of these followers from other communities.
    """

    author: Rows
    text_id: Rows
    round: Rows
    followers: Rows
    across: npt.NDArray[np.float64]

    def as_facts(self, posts: Posts) -> list[dict[str, Any]]:
        """Return the facts of each post that has appeared, for a summary; `post` is its row in `posts`."""
        roots = np.flatnonzero(posts.kind == POST)
        facts = []
        for author, text, round_, followers, across in zip(*self._columns(), strict=True):
            among = roots[slice(*np.searchsorted(posts.round[roots], [round_, round_ + 1]))]
            matching = among[(posts.author[among] == author) & (posts.text_id[among] == text)]
            if len(matching):  # a removed author does not post
                row = int(matching[-1])  # the agent's own posts come before
                fact = {"post": row, "round": round_, "author": author, "followers": followers}
                facts.append({**fact, "share_across": across})
        return facts

    def notes(self) -> list[str]:
        """Return a note on the chosen authors, if there are any."""
        if not len(self.author):
            return []
        by_post = [
            f"agent {author} ({counted(followers, 'follower')}, {across:.2f} of other communities)"
            for author, _, _, followers, across in zip(*self._columns(), strict=True)
        ]
        authors = list(dict.fromkeys(by_post))
        more = f" and {len(authors) - _AUTHORS_NAMED} more" if len(authors) > _AUTHORS_NAMED else ""
        return [f"posts.seeded: {counted(len(by_post), 'post')} by {', '.join(authors[:_AUTHORS_NAMED])}{more}"]

    def _columns(self) -> list[list[Any]]:
        columns = (self.author, self.text_id, self.round, self.followers, self.across)
        return [column.tolist() for column in columns]


def seeded_posts(
    params: SocialParams, network: FollowNetwork, population: Population, topics: Topics, streams: Streams
) -> Seeded:
    """Return the posts that `posts.seeded` places."""
    seeded, n = params.posts.seeded, network.n_agents
    if not seeded.count:
        none = np.zeros(0, np.int64)
        return Seeded(none, none, none, none, np.zeros(0))
    main = topics.nearest_name(population.interests)
    community, n_communities = find_communities(params.network, n, topics.names, main)
    across = share_across(community, *network.edges(), n)
    followers = network.n_followers.astype(np.int64)
    fit = _fitting(seeded, followers, across if n_communities > 1 else None, streams)
    fit = fit[population.present[fit]] if population.present[fit].any() else fit  # waiting agents do not post
    places = np.arange(seeded.count)
    author = fit[places % len(fit)]
    text_id = streams.integers("seeded text", places, len(topics.vectors))
    return Seeded(author, text_id, seeded.round + places, followers[author], across[author])


def _fitting(seeded: SeededParams, followers: Rows, across: npt.NDArray[np.float64] | None, streams: Streams) -> Rows:
    """Return the agents of the wanted size and position, at least one, in a drawn order, which also breaks ties.

    `across` is None with a single community; then every agent fits any position.
    """
    drawn = np.argsort(streams.bits("seeded author", np.arange(len(followers))))
    if seeded.size != "any":
        drawn = _extreme(drawn, followers, TENTH, highest=seeded.size == "large")
    if seeded.position != "any" and across is not None:
        drawn = _extreme(drawn, across, FIFTH, highest=seeded.position == "bridge")
    return drawn.astype(np.int64)


def _extreme(rows: npt.NDArray[Any], values: npt.NDArray[Any], part: int, *, highest: bool) -> npt.NDArray[Any]:
    """Return the `part`-th of the rows with the highest or lowest values, in the order of `rows`."""
    n = max(1, len(rows) // part)
    ascending = np.argsort(values[rows], kind="stable")
    return rows[np.sort(ascending[-n:] if highest else ascending[:n])]


NONE: Final = -1
"""The community of an agent whose interests have no name, or that was added later."""


def find_communities(
    network: NetworkParams, n: int, names: Sequence[str], main_interest: Rows
) -> tuple[npt.NDArray[np.int64], int]:
    """Return the community of each agent, `NONE` or from 0, and the number of communities.

    Communities are the blocks of a stochastic block model of `n` agents, in other networks agents with the same main
    interest: `main_interest` has the index in `names` (which may repeat) of each agent, -1 for none.
    """
    if network.kind == "stochastic_block":
        block = np.searchsorted(block_bounds(network.blocks, n), np.arange(len(main_interest)), side="right") - 1
        return np.where(block < network.blocks, block, NONE), network.blocks
    codes, _ = pd.factorize(np.array([*names, ""], dtype=object), sort=True)
    blank = codes[-1]
    named = np.where(codes == blank, NONE, codes)[np.asarray(main_interest, np.int64)]
    distinct, place = np.unique(named, return_inverse=True)
    without = int(len(distinct) > 0 and distinct[0] == NONE)
    return place.astype(np.int64) - without, len(distinct) - without


def share_across(community: Rows, followed: Rows, follower: Rows, n: int) -> npt.NDArray[np.float64]:
    """Return the share of each agent's followers from other communities; 0 without followers, shape (n,).

    Follows have a `followed` and a `follower`; those from or to agents without a community do not count.
    """
    known = (community[followed] != NONE) & (community[follower] != NONE)
    across = known & (community[followed] != community[follower])
    counted, crossing = (np.bincount(followed[which], minlength=n) for which in (known, across))
    return np.asarray(crossing / np.maximum(counted, 1))
