"""Making the world that a model starts with: network, texts, population, and the schedule of posts."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isclose
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prism_mesa.errors import DataError, counted
from prism_mesa.kernels.network import add_up
from prism_mesa.params import said_of
from prism_mesa.social.params import NetworkParams, SocialParams
from prism_mesa.social.params.user_files import COLUMNS, EDGES, POSTS, PROFILES
from prism_mesa.social.state.attributes import Attributes
from prism_mesa.social.state.chunks import blocks
from prism_mesa.social.state.ids import Ids, examples
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.population import Population
from prism_mesa.social.state.topics import Topics, build_topics, quantised
from prism_mesa.social.world.attribute_files import columns_of, said_of_blanks
from prism_mesa.social.world.attributes import AttributeSource
from prism_mesa.social.world.close_ties import with_close_ties
from prism_mesa.social.world.corpus import Corpus, load_corpus, numbered, with_media_share
from prism_mesa.social.world.follows import load_network
from prism_mesa.social.world.kept import KeptWorld
from prism_mesa.social.world.profiles import Profiled, draw_interests, draw_profiles, population_of, read_profiles
from prism_mesa.social.world.random_networks import block_bounds, generate_network
from prism_mesa.social.world.rates import popularity_of
from prism_mesa.social.world.seeded import Seeded, seeded_posts
from prism_mesa.streams import Streams

type Rows = npt.NDArray[np.integer[Any]]

_FEW_TIES = 0.5
"""Share of the close ties asked for below which a note says that there are fewer."""


@dataclass(frozen=True)
class Schedule:
    """Posts that agents do not write of themselves: ``text_id[i]`` by row ``author[i]`` in ``round[i]``, ascending."""

    author: npt.NDArray[np.int64]
    text_id: npt.NDArray[np.int64]
    round: npt.NDArray[np.int64]

    def of_round(self, round_: int) -> tuple[Rows, Rows]:
        """Return authors and texts of one round."""
        first, last = np.searchsorted(self.round, [round_, round_ + 1])
        return self.author[first:last], self.text_id[first:last]

    def with_seeded(self, seeded: Seeded) -> "Schedule":
        """Return the schedule with posts that users place, each after the others of its round."""
        if not len(seeded.round):
            return self
        rounds = np.append(self.round, seeded.round)
        order = np.argsort(rounds, kind="stable")
        author, text_id = np.append(self.author, seeded.author), np.append(self.text_id, seeded.text_id)
        return Schedule(author[order], text_id[order], rounds[order])


@dataclass(frozen=True)
class StartingWorld:
    """What a model starts with.

    Attributes:
        notes: How the input was taken, where that may surprise, in words.
        misfits: Those of them about what did not fit: what was left out, taken otherwise than it may have been meant,
            or is more than there can be.
        profiled: What the file of profiles gives for every agent: its columns.
        seeded: The posts of the schedule that users place.
        attributes: Gives posts, and agents who come later, their attributes.
    """

    network: FollowNetwork
    corpus: Corpus
    topics: Topics
    population: Population
    schedule: Schedule
    seeded: Seeded
    notes: tuple[str, ...]
    misfits: tuple[str, ...] = ()
    profiled: frozenset[str] = frozenset()
    attributes: AttributeSource = field(default_factory=lambda: AttributeSource({}, Streams(0)))


def make_world(params: SocialParams, streams: Streams, kept: KeptWorld | None = None) -> StartingWorld:
    """Return the world of `params`; what was `kept` of an equal one is not drawn again.

    Raises:
        ConfigError: If parameters contradict each other.
        DataError: If a file cannot be used.
    """
    network, ids = make_network(params, streams) if kept is None else (kept.network, Ids(range(params.agents.n)))
    known, declared = Attributes(params.attributes), params.attributes
    of_texts = columns_of(declared, known.posts)
    loaded = load_corpus(params.posts.file, params.files, of_texts, params.posts.dates)
    corpus = with_media_share(loaded, params.posts.media_share, streams)
    topics = build_topics(corpus, params.posts)
    schedule, unmatched = _schedule(corpus, network, ids, params)
    agents, without, persons = np.arange(network.n_agents), 0, streams.of(params.agents.seed)
    if kept is None:
        interests = draw_interests(agents, topics, persons)
        if len(schedule.author):
            interests, without = _observed_interests(interests, schedule, topics, network)
        popularity = popularity_of(network, params.agents, persons)
        population = draw_profiles(agents, ids, interests, params, persons, popularity)
    else:
        population = population_of(agents, ids, kept.columns, params, persons)
    notes = [*network.notes, *corpus.notes]
    profiled = Profiled()
    if params.agents.profiles is not None:
        of_agents = columns_of(declared, known.agents)
        profiled = read_profiles(params.agents.profiles, population, topics, params.files, of_agents)
    notes += profiled.notes
    source = AttributeSource(declared, persons, corpus.attributes, _bounds(params, network))
    population.attributes = source.of_agents(agents, population, network, profiled.attributes)
    notes += said_of_blanks(profiled.attributes, "agents.profiles", "agent")
    notes += said_of_blanks(corpus.attributes, "posts.file", "text")
    shares = {name: sum(one.share or [1]) for name, one in declared.items()}
    notes += [f"attributes.{k}: shares add up to {n:g} and are scaled" for k, n in shares.items() if not isclose(n, 1)]
    if params.agents.churn.waiting:
        population.mark_waiting(streams.happens("waits", np.full(len(agents), params.agents.churn.waiting)))
    seeded = seeded_posts(params, network, population, topics, streams)
    notes += seeded.notes()
    authors = Ids(pa.array(dict.fromkeys(corpus.authors or ()), pa.string()))
    misfits = [f"{key}: {said}" for key, own in ((EDGES, ids), (POSTS, authors)) for said in own.doubts()]
    misfits += [f"network.edges: {dropped} left out" for dropped in numbered(network.dropped)]
    misfits += [f"posts.file: {dropped} left out" for dropped in numbered((*corpus.dropped, *unmatched))]
    misfits += _beyond(params, len(corpus.texts))
    notes += _otherwise(params, network)
    notes += misfits
    if without:
        who = counted(without, "agent")
        notes.append(f"{who}: no topic is known of what they and those they follow post; their interests are drawn")
    schedule = schedule.with_seeded(seeded)
    return StartingWorld(
        network, corpus, topics, population, schedule, seeded, tuple(notes), tuple(misfits), profiled.columns, source
    )


def _bounds(params: SocialParams, network: FollowNetwork) -> npt.NDArray[np.int64]:
    """Return where communities that agents can inherit from begin and end; none: 0 alone."""
    blocks = params.network.blocks if params.network.kind == "stochastic_block" else 0
    return block_bounds(blocks, network.n_agents) if blocks else np.zeros(1, np.int64)


def make_network(params: SocialParams, streams: Streams) -> tuple[FollowNetwork, Ids]:
    """Return the network of `params`, and what its agents are called.

    Raises:
        ConfigError: If parameters contradict each other.
        DataError: If a file cannot be used.
    """
    if params.network.edges is not None:
        network, ids = load_network(params.network.edges, params.network.direction, params.files)
    else:
        network = generate_network(_possible(params), params.agents.n, streams.of(params.network.seed))
        ids = Ids(range(network.n_agents))
    if params.utility.sensitivity:  # else nothing ever goes by close ties
        network = with_close_ties(network, params.network.close_ties, streams.of(params.network.seed))
    return network, ids


def _otherwise(params: SocialParams, network: FollowNetwork) -> Iterator[str]:
    """Yield in words what came out otherwise than was asked for."""
    asked = params.network
    followees, close = network.n_edges / network.n_agents, len(network.close_indices) / network.n_agents
    if asked.edges is None and abs(followees / asked.mean_degree - 1) > 0.05:
        yield f"network.mean_degree: {asked.mean_degree:g} was asked for, {followees:.3g} came out"
    said = asked.edges is None or "close_ties" in said_of(asked)  # of a file the default is the most
    count = params.utility.sensitivity and params.utility.closeness is not None
    if said and count and close < _FEW_TIES * asked.close_ties:
        few = "too few agents follow each other"
        yield f"network.close_ties: {asked.close_ties} was asked for, {close:.3g} came out: {few}"


def _beyond(params: SocialParams, n_texts: int) -> Iterator[str]:
    """Yield in words what was set to more than there can be, and counts as that; any higher number does the same."""
    said, others = said_of(params), params.agents.n - 1
    if "network.mean_degree" in said and params.network.edges is None and params.network.mean_degree > others:
        yield f"network.mean_degree: {params.network.mean_degree:g} is more than the {others} others that there are"
    paths = {EDGES: params.network.edges, POSTS: params.posts.file, PROFILES: params.agents.profiles}
    for key in (key for key, path in paths.items() if path is None and any(paths.values())):
        if idle := [column for column in params.files.columns if column in COLUMNS[key]]:
            yield f"files.columns: {', '.join(idle)}: no effect: {key} is not set"
    if "posts.circulating" in said and params.posts.circulating > n_texts:
        yield f"posts.circulating: {params.posts.circulating:,} is more than the {n_texts:,} texts that there are"


def _possible(params: SocialParams) -> NetworkParams:
    """Return the network's parameters with a mean degree that so few agents can have."""
    most = min(params.network.mean_degree, params.agents.n - 1)
    return params.network.model_copy(update={"mean_degree": most})


def _schedule(
    corpus: Corpus, network: FollowNetwork, ids: Ids, params: SocialParams
) -> tuple[Schedule, tuple[tuple[str, int], ...]]:
    """Return who posts which text when, and what found no place."""
    none = np.zeros(0, np.int64)
    if corpus.authors is None:
        return Schedule(none, none, none), ()
    by_rank = params.posts.authors == "rank"
    rows = _by_rank(corpus.authors, network) if by_rank else ids.rows_of(corpus.authors)
    matched = rows >= 0
    if not matched.any():
        raise DataError(f"posts.file: {params.posts.file}: {_no_match(list(dict.fromkeys(corpus.authors)), ids)}")
    text_id = np.flatnonzero(matched)
    if corpus.rounds is None:
        rounds = np.arange(len(text_id)) * params.rounds // len(text_id)
    else:
        rounds = corpus.rounds[text_id]
    late = int((rounds >= params.rounds).sum())
    alike = None if by_rank else ids.otherwise(list(dict.fromkeys(np.array(corpus.authors)[~matched].tolist())))
    why = f" ({alike[0]!r} is not {alike[1]!r})" if alike else ""
    unmatched = ((f"posts whose author is no agent{why}", int((~matched).sum())), ("posts after the last round", late))
    return Schedule(rows[text_id], text_id, rounds), unmatched


def _no_match(authors: list[str], ids: Ids) -> str:
    """Return why none of the authors is an agent, and what to do."""
    alike = ids.otherwise(authors)
    why = "they name others"
    if alike:
        why = f"ids are compared as text, and {alike[0]!r} is not {alike[1]!r}: write them alike in both files"
    elif ids.is_range:
        why = "without network.edges agents are called by their numbers"
    return (
        f"none of its {len(authors)} authors is an agent of the network; give posts.authors=rank to match them by "
        f"activity and followers. Authors are {examples(authors)}; ids of the network are {examples(ids)}: {why}"
    )


def _by_rank(authors: list[str], network: FollowNetwork) -> npt.NDArray[np.int64]:
    """Return the author's row of each text, -1 for none.

    The author with the most posts is the agent with the most followers, and so on.
    """
    _, first, inverse, counts = np.unique(np.array(authors), return_index=True, return_inverse=True, return_counts=True)
    by_posts = np.lexsort((first, -counts))
    by_followers = np.argsort(-network.n_followers, kind="stable")
    row = np.full(len(first), -1)
    n = min(len(first), network.n_agents)
    row[by_posts[:n]] = by_followers[:n]
    return row[inverse]


def _observed_interests(
    drawn: npt.NDArray[np.int8], schedule: Schedule, topics: Topics, network: FollowNetwork
) -> tuple[npt.NDArray[np.int8], int]:
    """Return each agent's mean topics of what it and those it follows post, and how many have none of these."""
    n, k = drawn.shape
    authors, place = np.unique(schedule.author, return_inverse=True)
    own = np.empty((len(authors), k + 1), np.int64)  # the last column counts posts
    for column in range(k):
        own[:, column] = np.bincount(place, topics.vectors[schedule.text_id, column], len(authors))
    own[:, k] = np.bincount(place, minlength=len(authors))
    place_of = np.full(n, -1, np.int32)
    place_of[authors] = np.arange(len(authors))
    observed, without = drawn.copy(), 0
    for part in blocks(n):
        found = _topics_read(part, own, place_of, network)
        some = np.abs(found).max(axis=1) > 0
        observed[part][some] = found[some]
        without += int((~some).sum())
    return observed, without


def _topics_read(
    part: slice, own: npt.NDArray[np.int64], place_of: npt.NDArray[np.int32], network: FollowNetwork
) -> npt.NDArray[np.int8]:
    """Return the mean topics of the posts of each agent of a block and of those it follows."""
    place = place_of[part]
    total = np.where(place[:, None] >= 0, own[place], 0)
    add_up(part.start, network.indptr, network.indices, place_of, own, total)
    return quantised(total[:, :-1] / np.maximum(total[:, -1:], 1))
