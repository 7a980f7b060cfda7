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

SIZE_PARTS: Final = 10
POSITION_PARTS: Final = 5
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
            candidates = roots[slice(*np.searchsorted(posts.round[roots], [round_, round_ + 1]))]
            matching = candidates[(posts.author[candidates] == author) & (posts.text_id[candidates] == text)]
            if len(matching):  # a removed author does not post
                row = int(matching[-1])  # unscheduled posts by the agent come first
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
        empty = np.zeros(0, np.int64)
        return Seeded(empty, empty, empty, empty, np.zeros(0))
    main_interest = topics.nearest_name(population.interests)
    community, n_communities = find_communities(params.network, n, topics.names, main_interest)
    across = share_across(community, *network.edges(), n)
    followers = network.n_followers.astype(np.int64)
    rows = _authors(seeded, followers, across if n_communities > 1 else None, streams)
    rows = rows[population.present[rows]] if population.present[rows].any() else rows  # waiting agents do not post
    indices = np.arange(seeded.count)
    author = rows[indices % len(rows)]
    text_id = streams.integers("seeded text", indices, len(topics.vectors))
    return Seeded(author, text_id, seeded.round + indices, followers[author], across[author])


def _authors(seeded: SeededParams, followers: Rows, across: npt.NDArray[np.float64] | None, streams: Streams) -> Rows:
    """Return one or more agents of the requested size and position, in a drawn order, which also breaks ties.

    `across` is None with a single community; then every agent fits any position.
    """
    rows = np.argsort(streams.bits("seeded author", np.arange(len(followers))))
    if seeded.size != "any":
        rows = _extreme(rows, followers, SIZE_PARTS, highest=seeded.size == "large")
    if seeded.position != "any" and across is not None:
        rows = _extreme(rows, across, POSITION_PARTS, highest=seeded.position == "bridge")
    return rows.astype(np.int64)


def _extreme(rows: npt.NDArray[Any], values: npt.NDArray[Any], part: int, *, highest: bool) -> npt.NDArray[Any]:
    """Return the `part`-th of the rows with the highest or lowest values, in the order of `rows`."""
    n = max(1, len(rows) // part)
    ascending = np.argsort(values[rows], kind="stable")
    return rows[np.sort(ascending[-n:] if highest else ascending[:n])]


NO_COMMUNITY: Final = -1
"""The community of an agent whose interests have no name, or which was added later."""


def find_communities(
    network: NetworkParams, n: int, names: Sequence[str], main_interest: Rows
) -> tuple[npt.NDArray[np.int64], int]:
    """Return the community of each agent, `NO_COMMUNITY` or from 0, and the number of communities.

    Communities are the blocks of a stochastic block model of `n` agents. In other networks they are agents with the
    same main interest: `main_interest` has each agent's index in `names` (which may repeat), -1 for none.
    """
    if network.kind == "stochastic_block":
        block = np.searchsorted(block_bounds(network.blocks, n), np.arange(len(main_interest)), side="right") - 1
        return np.where(block < network.blocks, block, NO_COMMUNITY), network.blocks
    codes, _ = pd.factorize(np.array([*names, ""], dtype=object), sort=True)
    blank_code = codes[-1]
    by_interest = np.where(codes == blank_code, NO_COMMUNITY, codes)[np.asarray(main_interest, np.int64)]
    distinct, index = np.unique(by_interest, return_inverse=True)
    n_blank = int(len(distinct) > 0 and distinct[0] == NO_COMMUNITY)
    return index.astype(np.int64) - n_blank, len(distinct) - n_blank


def share_across(community: Rows, followed: Rows, follower: Rows, n: int) -> npt.NDArray[np.float64]:
    """Return the share of each agent's followers from other communities; 0 without followers, shape (n,).

    Each follow has a `followed` and a `follower`; follows from or to agents without a community do not count.
    """
    is_known = (community[followed] != NO_COMMUNITY) & (community[follower] != NO_COMMUNITY)
    is_across = is_known & (community[followed] != community[follower])
    n_known, n_across = (np.bincount(followed[mask], minlength=n) for mask in (is_known, is_across))
    return np.asarray(n_across / np.maximum(n_known, 1))
