"""Seeded posts, with authors chosen by size and position in the network."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.arrays import Floats, Ints, Rows
from prism_mesa.errors import format_count
from prism_mesa.social.params import NetworkParams, SeededParams, SocialParams
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.population import Population
from prism_mesa.social.state.posts import POST, Posts
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.random_networks import block_bounds
from prism_mesa.streams import Streams

SIZE_PARTS: Final = 10
POSITION_PARTS: Final = 5
_AUTHORS_NAMED: Final = 5


@dataclass(frozen=True)
class SeededPosts:
    """Posts that users place, as columns.

    Attributes:
        author: Row of each post's author.
        round: The round in which the post appears, ascending.
        followers: The author's number of followers at the start.
        across_shares: The share of these followers from other communities.
    """

    author: Rows
    text_id: Rows
    round: Rows
    followers: Rows
    across_shares: Floats

    def to_facts(self, posts: Posts) -> list[dict[str, Any]]:
        """Return facts on each post that has appeared, for a summary; `post` is the post's row in `posts`."""
        roots = np.flatnonzero(posts.kind == POST)
        facts = []
        for author, text, round_, followers, share in zip(*self._columns(), strict=True):
            candidates = roots[slice(*np.searchsorted(posts.round[roots], [round_, round_ + 1]))]
            matching = candidates[(posts.author[candidates] == author) & (posts.text_id[candidates] == text)]
            if len(matching):  # a removed author does not post
                fact = {"post": int(matching[-1]), "round": round_, "author": author}  # unscheduled posts come first
                facts.append({**fact, "followers": followers, "share_across": share})
        return facts

    def notes(self) -> list[str]:
        """Return a note on the chosen authors, if there are any."""
        if not len(self.author):
            return []
        by_post = [
            f"agent {author} ({format_count(followers, 'follower')}, {share:.2f} of other communities)"
            for author, _, _, followers, share in zip(*self._columns(), strict=True)
        ]
        authors = list(dict.fromkeys(by_post))
        more = f" and {len(authors) - _AUTHORS_NAMED} more" if len(authors) > _AUTHORS_NAMED else ""
        return [f"posts.seeded: {format_count(len(by_post), 'post')} by {', '.join(authors[:_AUTHORS_NAMED])}{more}"]

    def _columns(self) -> list[list[Any]]:
        return [column.tolist() for column in vars(self).values()]


def seeded_posts(
    params: SocialParams, network: FollowNetwork, population: Population, topics: Topics, streams: Streams
) -> SeededPosts:
    """Return the posts that `posts.seeded` places."""
    seeded, n = params.posts.seeded, network.n_agents
    if not seeded.count:
        empty = np.zeros(0, np.int64)
        return SeededPosts(empty, empty, empty, empty, np.zeros(0))
    main_interest = topics.nearest_name(population.interests)
    community, n_communities = find_communities(params.network, n, topics.names, main_interest)
    across_shares = share_across(community, *network.edges(), n)
    followers = network.n_followers.astype(np.int64)
    rows = _pick_authors(seeded, followers, across_shares if n_communities > 1 else None, streams)
    rows = rows[population.present[rows]] if population.present[rows].any() else rows  # waiting agents do not post
    indices = np.arange(seeded.count)
    author = rows[indices % len(rows)]
    text_id = streams.integers("seeded text", indices, len(topics.vectors))
    return SeededPosts(author, text_id, seeded.round + indices, followers[author], across_shares[author])


def _pick_authors(seeded: SeededParams, followers: Rows, shares: Floats | None, streams: Streams) -> Rows:
    """Return one or more agents of the requested size and position, in a random order that also breaks ties.

    `shares` has each agent's share of followers from other communities, or is None if there is one community.
    """
    rows = np.argsort(streams.bits("seeded author", np.arange(len(followers))))
    if seeded.size != "any":
        rows = _extreme_rows(rows, followers, SIZE_PARTS, highest=seeded.size == "large")
    if seeded.position != "any" and shares is not None:
        rows = _extreme_rows(rows, shares, POSITION_PARTS, highest=seeded.position == "bridge")
    return rows.astype(np.int64)


def _extreme_rows(rows: npt.NDArray[Any], values: npt.NDArray[Any], part: int, *, highest: bool) -> npt.NDArray[Any]:
    """Return one `part`-th of the rows, with the highest or lowest values, in the same order."""
    n = max(1, len(rows) // part)
    ascending = np.argsort(values[rows], kind="stable")
    return rows[np.sort(ascending[-n:] if highest else ascending[:n])]


NO_COMMUNITY: Final = -1
"""The community of agents whose interests have no name, and of agents that were added later."""


def find_communities(network: NetworkParams, n: int, names: Sequence[str], main_interest: Rows) -> tuple[Ints, int]:
    """Return the community of each agent (0, 1, ... or `NO_COMMUNITY`), and the number of communities.

    Communities are the blocks of a stochastic block model of `n` agents. In other networks, agents with the same main
    interest form a community: `main_interest` has each agent's index into `names` (which may repeat), -1 for none.
    """
    if network.kind == "stochastic_block":
        block = np.searchsorted(block_bounds(network.blocks, n), np.arange(len(main_interest)), side="right") - 1
        return np.where(block < network.blocks, block, NO_COMMUNITY), network.blocks
    codes, _ = pd.factorize(np.array([*names, ""], dtype=object), sort=True)
    by_interest = np.where(codes == codes[-1], NO_COMMUNITY, codes)[np.asarray(main_interest, np.int64)]
    distinct, index = np.unique(by_interest, return_inverse=True)
    n_blank = int(len(distinct) > 0 and distinct[0] == NO_COMMUNITY)
    return index.astype(np.int64) - n_blank, len(distinct) - n_blank


def share_across(community: Rows, followed: Rows, follower: Rows, n: int) -> Floats:
    """Return the share of each agent's followers from other communities, shape (n,); 0 without followers.

    ``follower[i]`` follows ``followed[i]``. Follows from or to agents without a community are ignored.
    """
    is_known = (community[followed] != NO_COMMUNITY) & (community[follower] != NO_COMMUNITY)
    is_across = is_known & (community[followed] != community[follower])
    n_known, n_across = (np.bincount(followed[mask], minlength=n) for mask in (is_known, is_across))
    return np.asarray(n_across / np.maximum(n_known, 1))
