"""The world that a model starts with: network, texts, population, and the schedule of posts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prism_mesa.arrays import Ints, Rows
from prism_mesa.errors import ConfigError, DataError, format_count
from prism_mesa.kernels.network import sum_rows
from prism_mesa.params import explicit_values
from prism_mesa.snapshot import Plain, from_plain
from prism_mesa.social.params import SocialParams
from prism_mesa.social.params.attributes import AttributeParams
from prism_mesa.social.params.user_files import COLUMNS, EDGES, POSTS, PROFILES
from prism_mesa.social.state.attributes import Attributes
from prism_mesa.social.state.chunks import blocks
from prism_mesa.social.state.ids import Ids, examples
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.population import IDENTITY_COLUMNS, WAITING, Population
from prism_mesa.social.state.topics import Topics, build_topics, quantised
from prism_mesa.social.world.accounts import draw_accounts, with_accounts
from prism_mesa.social.world.attributes import AttributeSource, blank_notes, file_columns
from prism_mesa.social.world.corpus import Corpus, drop_phrases, load_corpus, with_media_share
from prism_mesa.social.world.follows import load_network
from prism_mesa.social.world.profiles import Profiles, draw_interests, draw_profiles, make_population, read_profiles
from prism_mesa.social.world.random_networks import block_bounds, generate_network, with_close_ties
from prism_mesa.social.world.rates import popularity_scores
from prism_mesa.social.world.seeded import SeededPosts, seeded_posts
from prism_mesa.streams import Streams

_MIN_SHARE_OF_TIES = 0.5
"""A note reports networks with a smaller share of the requested close ties."""


KEPT_COLUMNS: Final = tuple(name for name in IDENTITY_COLUMNS if name != "attributes")
"""Columns of a population that are kept; attributes are computed again, because users' functions may set them."""

MIN_FOLLOWS_TO_KEEP: Final = 16_000_000
"""Worlds with fewer follows are drawn again; drawing this number takes about two CPU seconds."""


@dataclass(frozen=True)
class KeptWorld:
    """A drawn network, and the drawn columns of its population by name."""

    network: FollowNetwork
    columns: dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Schedule:
    """Posts from a file or placed by users, by round: agent ``author[i]`` posts ``text_id[i]`` in ``round[i]``."""

    author: Rows
    text_id: Rows
    round: Rows

    def posts_in_round(self, round_: int) -> tuple[Rows, Rows]:
        """Return the authors and texts of a round."""
        first, last = np.searchsorted(self.round, [round_, round_ + 1])
        return self.author[first:last], self.text_id[first:last]

    def with_seeded(self, seeded: SeededPosts) -> "Schedule":
        """Return a schedule that also has the seeded posts, after the other posts of each round."""
        if not len(seeded.round):
            return self
        rounds = np.append(self.round, seeded.round)
        order = np.argsort(rounds, kind="stable")
        author, text_id = np.append(self.author, seeded.author), np.append(self.text_id, seeded.text_id)
        return Schedule(author[order], text_id[order], rounds[order])


@dataclass(frozen=True)
class StartingWorld:
    """The world that a model starts with.

    Attributes:
        seeded: The posts placed by posts.seeded.
        input_warnings: The notes that are also warnings: on input that was left out or may have been misread.
        profile_columns: The columns of agents.profiles that have a value for every agent.
        attributes: The source of attributes for posts and for agents that join later.
    """

    network: FollowNetwork
    corpus: Corpus
    topics: Topics
    population: Population
    schedule: Schedule
    seeded: SeededPosts
    notes: tuple[str, ...]
    input_warnings: tuple[str, ...] = ()
    profile_columns: frozenset[str] = frozenset()
    attributes: AttributeSource = field(default_factory=lambda: AttributeSource({}, Streams(0)))


def make_world(params: SocialParams, streams: Streams, kept: KeptWorld | None = None) -> StartingWorld:
    """Return the world of `params`; with `kept`, reuse an equal world's network and columns instead of drawing them.

    Raises:
        ConfigError: If parameters contradict each other.
        DataError: If a file cannot be used.
    """
    network, ids = _base_network(params, streams) if kept is None else (kept.network, Ids(range(params.agents.n)))
    schema, declared = Attributes(params.attributes), params.attributes
    file_corpus = load_corpus(params.posts.file, params.files, file_columns(declared, schema.posts), params.posts.dates)
    corpus = with_media_share(file_corpus, params.posts.media_share, streams)
    topics = build_topics(corpus, params.posts)
    schedule, unmatched = _make_schedule(corpus, network, ids, params)
    agents, n_without_topics, agent_streams = np.arange(network.n_agents), 0, streams.with_seed(params.agents.seed)
    if kept is None:
        interests = draw_interests(agents, topics, agent_streams)
        if len(schedule.author):
            interests, n_without_topics = _observed_interests(interests, schedule, topics, network)
        popularity = popularity_scores(network, params.agents, agent_streams)
        population = draw_profiles(agents, ids, interests, params, agent_streams, popularity)
    else:
        population = make_population(agents, ids, kept.columns, params, agent_streams)
    profiles = Profiles()
    if params.agents.profiles is not None:
        columns = file_columns(declared, schema.agents)
        profiles = read_profiles(params.agents.profiles, population, topics, params.files, columns)
    has_blocks = params.network.kind == "stochastic_block"
    bounds = block_bounds(params.network.blocks, network.n_agents) if has_blocks else np.zeros(1, np.int64)
    source = AttributeSource(declared, agent_streams, corpus.attributes, bounds)
    population.attributes = source.agent_values(agents, population, network, profiles.attributes)
    if params.agents.churn.waiting:
        is_waiting = streams.draw_events("waits", np.full(len(agents), params.agents.churn.waiting))
        population.present[is_waiting], population.membership[is_waiting] = False, WAITING
    seeded = seeded_posts(params, network, population, topics, streams)
    warned = tuple(_input_warnings(params, network, ids, corpus, unmatched))
    explanation = "interests are drawn, because neither they nor the agents they follow post about a known topic"
    notes = (
        *(*network.notes, *corpus.notes, *profiles.notes),
        *blank_notes(profiles.attributes, "agents.profiles", "agent"),
        *blank_notes(corpus.attributes, "posts.file", "text"),
        *_scaled_shares(declared),
        *seeded.notes(),
        *_unmet_settings(params, network),
        *warned,
        *([f"{format_count(n_without_topics, 'agent')}: {explanation}"] if n_without_topics else []),
    )
    schedule = schedule.with_seeded(seeded)
    if params.accounts:
        network = with_accounts(network, params, agent_streams)
        people = draw_accounts(network, topics, source, params, agent_streams)
        if len(twice := np.flatnonzero(ids.rows_of(list(people.ids)) >= 0)):
            raise ConfigError(f"accounts: the network has an agent {people.ids[twice[0]]!r}, too: choose another name")
        population.append(people)
    return StartingWorld(network, corpus, topics, population, schedule, seeded, notes, warned, profiles.columns, source)


def _input_warnings(
    params: SocialParams, network: FollowNetwork, ids: Ids, corpus: Corpus, unmatched: Sequence[tuple[str, int]]
) -> Iterator[str]:
    """Yield notes on input that was left out, or may have been misread."""
    authors = Ids(pa.array(dict.fromkeys(corpus.authors or ()), pa.string()))
    for key, key_ids in ((EDGES, ids), (POSTS, authors)):
        yield from (f"{key}: {note}" for note in key_ids.spelling_notes())
    yield from (f"network.edges: {phrase} left out" for phrase in drop_phrases(network.dropped))
    yield from (f"posts.file: {phrase} left out" for phrase in drop_phrases((*corpus.dropped, *unmatched)))
    explicit, others = explicit_values(params), params.agents.n - 1
    if "network.mean_degree" in explicit and params.network.edges is None and params.network.mean_degree > others:
        yield f"network.mean_degree: {params.network.mean_degree:g} is more than the {others} other agents"
    paths = {EDGES: params.network.edges, POSTS: params.posts.file, PROFILES: params.agents.profiles}
    for key in (key for key, path in paths.items() if path is None and any(paths.values())):
        if unused := [column for column in params.files.columns if column in COLUMNS[key]]:
            yield f"files.columns: {', '.join(unused)}: no effect: {key} is not set"
    for kind, account in enumerate(params.accounts):
        asked = {"follows": account.follows, "followers": account.followers}
        for key in (key for key, k in asked.items() if k is not None and k > network.n_agents):
            yield f"accounts: {kind}: {key}: {asked[key]:,} is more than the {network.n_agents:,} other agents"
    circulating, n_texts = params.posts.circulating, len(corpus.texts)
    if "posts.circulating" in explicit and circulating > n_texts:
        yield f"posts.circulating: {circulating:,} is more than the {n_texts:,} texts of the corpus"


def _scaled_shares(declared: Mapping[str, AttributeParams]) -> Iterator[str]:
    for name, params in declared.items():
        total = sum(params.share or [1])
        if not isclose(total, 1):
            yield f"attributes.{name}: shares add up to {total:g} and are scaled"


def make_network(params: SocialParams, streams: Streams) -> FollowNetwork:
    """Return the network of `params`.

    Raises:
        ConfigError: If parameters contradict each other.
        DataError: If a file cannot be used.
    """
    network, _ = _base_network(params, streams)
    return with_accounts(network, params, streams.with_seed(params.agents.seed)) if params.accounts else network


def _base_network(params: SocialParams, streams: Streams) -> tuple[FollowNetwork, Ids]:
    if params.network.edges is not None:
        network, ids = load_network(params.network.edges, params.network.direction, params.files)
    else:
        degree = min(params.network.mean_degree, params.agents.n - 1)
        network_params = params.network.model_copy(update={"mean_degree": degree})
        network = generate_network(network_params, params.agents.n, streams.with_seed(params.network.seed))
        ids = Ids(range(network.n_agents))
    if params.utility.sensitivity:  # else close ties have no effect
        network = with_close_ties(network, params.network.close_ties, streams.with_seed(params.network.seed))
    return network, ids


def _unmet_settings(params: SocialParams, network: FollowNetwork) -> Iterator[str]:
    requested = params.network
    followees, close = network.n_edges / network.n_agents, len(network.close_indices) / network.n_agents
    if requested.edges is None and abs(followees / requested.mean_degree - 1) > 0.05:
        yield f"network.mean_degree: the drawn network has {followees:.3g}, not {requested.mean_degree:g}"
    # with a file the default is a maximum
    is_explicit = requested.edges is None or "close_ties" in explicit_values(requested)
    has_effect = params.utility.sensitivity and params.utility.closeness is not None
    if is_explicit and has_effect and close < _MIN_SHARE_OF_TIES * requested.close_ties:
        reason = "too few agents follow each other"
        yield f"network.close_ties: the network has {close:.3g} per agent, not {requested.close_ties}: {reason}"


def _make_schedule(
    corpus: Corpus, network: FollowNetwork, ids: Ids, params: SocialParams
) -> tuple[Schedule, tuple[tuple[str, int], ...]]:
    """Return the schedule of the corpus, and the number of unusable posts by reason."""
    empty = np.zeros(0, np.int64)
    if corpus.authors is None:
        return Schedule(empty, empty, empty), ()
    by_rank = params.posts.authors == "rank"
    rows = _rows_by_rank(corpus.authors, network) if by_rank else ids.rows_of(corpus.authors)
    is_agent = rows >= 0
    if not is_agent.any():
        raise DataError(f"posts.file: {params.posts.file}: {_mismatch(list(dict.fromkeys(corpus.authors)), ids)}")
    text_id = np.flatnonzero(is_agent)
    spread_rounds = np.arange(len(text_id)) * params.rounds // len(text_id)
    rounds = spread_rounds if corpus.rounds is None else corpus.rounds[text_id]
    n_late = int((rounds >= params.rounds).sum())
    similar = None if by_rank else ids.find_misspelt(list(dict.fromkeys(np.array(corpus.authors)[~is_agent].tolist())))
    hint = f" ({similar[0]!r} is not {similar[1]!r})" if similar else ""
    n_unknown = int((~is_agent).sum())
    unmatched = ((f"posts whose author is not an agent{hint}", n_unknown), ("posts after the last round", n_late))
    return Schedule(rows[text_id], text_id, rounds), unmatched


def _mismatch(authors: list[str], ids: Ids) -> str:
    similar = ids.find_misspelt(authors)
    hint = ": without network.edges ids are row numbers" if ids.is_range else ""
    if similar:
        hint = f": ids are compared as text, and {similar[0]!r} is not {similar[1]!r}: write them alike in both files"
    return (
        f"none of its {len(authors)} authors is an agent of the network; set posts.authors=rank to match them by "
        f"activity and followers. Authors are {examples(authors)}; ids of the network are {examples(ids)}{hint}"
    )


def _rows_by_rank(authors: list[str], network: FollowNetwork) -> Ints:
    """Return the row of each text's author, or -1: the k-th author by posts is the k-th agent by followers."""
    _, first, inverse, counts = np.unique(np.array(authors), return_index=True, return_inverse=True, return_counts=True)
    by_posts = np.lexsort((first, -counts))
    by_followers = np.argsort(-network.n_followers, kind="stable")
    rows, n = np.full(len(first), -1), min(len(first), network.n_agents)
    rows[by_posts[:n]] = by_followers[:n]
    return rows[inverse]


def _observed_interests(
    drawn: npt.NDArray[np.int8], schedule: Schedule, topics: Topics, network: FollowNetwork
) -> tuple[npt.NDArray[np.int8], int]:
    """Return the mean topics of posts by each agent and its followees, and the number of agents without such posts."""
    n, k = drawn.shape
    authors, index = np.unique(schedule.author, return_inverse=True)
    sums = np.empty((len(authors), k + 1), np.int64)  # the last column counts posts
    for column in range(k):
        sums[:, column] = np.bincount(index, topics.vectors[schedule.text_id, column], len(authors))
    sums[:, k] = np.bincount(index, minlength=len(authors))
    author_index = np.full(n, -1, np.int32)
    author_index[authors] = np.arange(len(authors))
    observed, n_without = drawn.copy(), 0
    for part in blocks(n):
        author = author_index[part]
        total = np.where(author[:, None] >= 0, sums[author], 0)
        sum_rows(part.start, network.indptr, network.indices, author_index, sums, total)
        means = quantised(total[:, :-1] / np.maximum(total[:, -1:], 1))
        has_topics = np.abs(means).max(axis=1) > 0
        observed[part][has_topics] = means[has_topics]
        n_without += int((~has_topics).sum())
    return observed, n_without


def world_to_keep(params: SocialParams, network: FollowNetwork, population: Population) -> dict[str, Plain] | None:
    """Return a starting world as plain data; None if it is quick to draw, or partly read from files."""
    reads_files = (params.network.edges, params.agents.profiles, params.posts.file) != (None, None, None)
    if reads_files or params.accounts or network.n_edges < MIN_FOLLOWS_TO_KEEP or network.dropped or network.notes:
        return None
    return {"network": network.snapshot(), "agents": {name: getattr(population, name) for name in KEPT_COLUMNS}}


def restore_world(kept: Mapping[str, Plain]) -> KeptWorld:
    """Rebuild a world from the data of `world_to_keep`; restoring a snapshot checks that it belongs to the run."""
    network = FollowNetwork(np.zeros(1, np.int64), np.zeros(0, np.int32))
    network.restore(kept["network"])
    return KeptWorld(network, {name: from_plain(column) for name, column in kept["agents"].items()})
