"""Profiles of agents: drawn with keys of the seed and the agent's row, or read from a file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prism_mesa.arrays import Floats, Ints, Rows
from prism_mesa.domain import ACTIONS, BIG_FIVE, TRAIT_MEANS, TRAIT_SDS, AgentState
from prism_mesa.errors import DataError, did_you_mean
from prism_mesa.social.params import AgentsParams, FilesParams, SocialParams
from prism_mesa.social.params.user_files import COLUMNS, PROFILES
from prism_mesa.social.state.agent_fields import AGENT_FIELDS, FIELD_ROWS
from prism_mesa.social.state.attributes import Attribute
from prism_mesa.social.state.chunks import fill_in_blocks
from prism_mesa.social.state.ids import Ids, Names, examples, shorten
from prism_mesa.social.state.population import MEMBER, NO_ACTION, NO_POST, Population
from prism_mesa.social.state.topics import Topics, quantised
from prism_mesa.social.world.cells import check_cells, parse_labels, parse_numbers, parse_texts, read_values
from prism_mesa.social.world.rates import activity_draws, post_rate_draws
from prism_mesa.social.world.readers import DEFAULT_FILES, name_file_in_errors, read_table
from prism_mesa.streams import Streams

# measured on the same people as domain.TRAIT_MEANS
TRAIT_CORRELATIONS: Final = (
    (1.0, 0.32, 0.37, -0.44, 0.45),
    (0.32, 1.0, 0.38, -0.44, 0.26),
    (0.37, 0.38, 1.0, -0.52, 0.19),
    (-0.44, -0.44, -0.52, 1.0, -0.2),
    (0.45, 0.26, 0.19, -0.2, 1.0),
)
_ADJECTIVES: Final = (
    ("outgoing", "reserved"),
    ("kind", "blunt"),
    ("organised", "spontaneous"),
    ("easily worried", "calm"),
    ("curious", "down-to-earth"),
)
_FIRST_NAMES: Final = (
    "Ada Amir Ana Ben Bo Carla Chidi Dana Dmitri Elif Emil Fatima Finn Gita Hana Hugo Ines Ivan Jana Jon Kai Keiko "
    "Lars Leila Lucia Malik Mei Mina Nadia Noor Omar Pia Priya Rafa Rosa Sami Sven Tariq Uma Vera Wen Yara Yusuf Zoe"
).split()
_LAST_NAMES: Final = (
    "Abe Adler Bauer Bello Castro Chen Costa Cruz Dahl Diaz Eze Farah Fischer Gupta Haas Hill Ito Jensen Kaya Khan "
    "Kim Klein Kovac Lam Lopez Mbeki Meyer Moreau Nagy Nair Novak Okafor Olsen Park Petrov Quinn Rao Rossi Sato Silva "
    "Singh Sosa Tanaka Torres Vogel Wagner Weber Yilmaz Zhang"
).split()
_NAMES: Final = tuple(f"{first} {last}" for first in _FIRST_NAMES for last in _LAST_NAMES)

_RANGES: Final[dict[str, tuple[float, float]]] = {
    **{name: (field.low, field.high) for name, field in AGENT_FIELDS.items()},
    **dict.fromkeys(ACTIONS, (0.0, 1.0)),
    **dict.fromkeys(BIG_FIVE, (1.0, 5.0)),
}


def draw_profiles(
    agents: Rows,
    ids: Sequence[str],
    interests: npt.NDArray[np.int8],
    params: SocialParams,
    streams: Streams,
    popularity: Floats | None = None,
) -> Population:
    """Return the population of `agents`, all idle, with draws keyed by their row numbers.

    Draws are rounded to float32, because the last digits of exp and log differ between machines. `popularity` has the
    scores of all agents in the network (`rates.popularity_scores`).
    """
    agent_params, n = params.agents, len(agents)

    def draw_table(width: int, draw: Callable[[Rows], Any]) -> Any:
        return fill_in_blocks(np.empty((n, width), np.float32), agents, draw)

    columns = {
        "interests": interests,
        "traits": draw_table(len(BIG_FIVE), lambda rows: draw_traits(rows, streams)),
        "numbers": np.empty((len(AGENT_FIELDS), n)),
        "propensities": draw_table(len(ACTIONS), lambda rows: _propensities(rows, agent_params, streams)),
    }
    draws: dict[str, Callable[[Rows], Any]] = {
        "engagement_threshold": lambda rows: _thresholds(rows, agent_params, streams),
        "timeout_threshold": lambda rows: params.statechart.default_timeout_ticks,
        "activity": activity_draws(agent_params, streams, popularity),
        "post_rate": post_rate_draws(agent_params, streams, popularity),
    }
    for name, index in FIELD_ROWS.items():
        fill_in_blocks(columns["numbers"][index], agents, draws[name])
    return make_population(agents, ids, columns, params, streams)


def make_population(
    agents: Rows, ids: Sequence[str], columns: dict[str, Any], params: SocialParams, streams: Streams
) -> Population:
    """Return the population of `agents`, all idle, with these `IDENTITY_COLUMNS`."""

    def name_codes(rows: Rows) -> Rows:
        first = streams.integers("first name", rows, len(_FIRST_NAMES))
        return first * len(_LAST_NAMES) + streams.integers("last name", rows, len(_LAST_NAMES))

    n, feed_size = len(agents), params.feed.size
    return Population(
        ids=ids if isinstance(ids, Ids) else Ids(ids),
        names=Names(fill_in_blocks(np.empty(n, np.uint16), agents, name_codes), _NAMES),
        **columns,
        attributes=np.zeros((n, 0)),
        present=np.ones(n, np.bool_),
        membership=np.full(n, MEMBER, np.uint8),
        scripted=np.zeros(n, np.bool_),
        state=np.full(n, AgentState.IDLE.code, np.uint8),
        ticks_in_state=np.zeros(n, np.int32),
        pending_action=np.full(n, NO_ACTION, np.uint8),
        current_post=np.full(n, NO_POST, np.int32),
        current_match=np.zeros(n, np.int16),
        feed=np.zeros((n, feed_size), np.int32),  # the system allocates memory when it is filled
        n_feed=np.zeros(n, np.uint16),
        n_read=np.zeros(n, np.uint16),
    )


def draw_traits(agents: Rows, streams: Streams) -> npt.NDArray[np.float32]:
    """Return Big Five scores, shape (n, 5), clipped to 1..5, with the measured means and correlations."""
    lower = np.linalg.cholesky(np.array(TRAIT_CORRELATIONS))
    normal = np.stack([streams.normal("traits", agents, index=k) for k in range(5)], axis=1)
    correlated = (normal[:, None, :] * lower).sum(axis=2)  # with a matrix product, rows would depend on n
    return np.clip(TRAIT_MEANS + correlated * TRAIT_SDS, 1, 5).astype(np.float32)


def personality(traits: npt.NDArray[np.floating[Any]]) -> str:
    """Describe the traits that deviate from the mean by half a standard deviation or more.

    >>> personality(np.array([4.5, 3.86, 3.64, 1.0, 3.91]))
    'outgoing and calm'
    """
    words = []
    for score, mean, sd, (high, low) in zip(traits.tolist(), TRAIT_MEANS, TRAIT_SDS, _ADJECTIVES, strict=True):
        if abs(score - mean) >= sd / 2:
            words.append(high if score > mean else low)
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "average in every respect"


def draw_interests(agents: Rows, topics: Topics, streams: Streams) -> npt.NDArray[np.int8]:
    """Return interests: the mean topics of three corpus texts drawn for each agent."""
    weights, k = np.array([1.0, 0.6, 0.3])[:, None], topics.vectors.shape[1]

    def draw(rows: Rows) -> npt.NDArray[np.int8]:
        indices = np.tile([0, 1, 2], len(rows))
        texts = streams.integers("interests", np.repeat(rows, 3), len(topics.vectors), index=indices)
        vectors = topics.vectors[texts].astype(np.float64).reshape(len(rows), 3, -1)
        return quantised((vectors * weights).sum(axis=1))

    return fill_in_blocks(np.empty((len(agents), k), np.int8), agents, draw)


def _thresholds(agents: Rows, params: AgentsParams, streams: Streams) -> npt.NDArray[np.float32]:
    thresholds = params.threshold_mean + params.threshold_sd * streams.normal("threshold", agents)
    return np.clip(thresholds, 0, 1).astype(np.float32)


def _propensities(agents: Rows, params: AgentsParams, streams: Streams) -> npt.NDArray[np.float32]:
    means = np.array([params.like, params.reply, params.reshare])
    noise = np.stack([streams.normal("propensity", agents, index=k) for k in range(3)], axis=1)
    shares = means * np.exp(params.propensity_sigma * noise)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), np.float32)


@dataclass(frozen=True)
class Profiles:
    """What a file of profiles sets.

    Attributes:
        columns: The columns with a value for every agent.
        attributes: For each attribute, the values of all agents; NaN for blank cells.
    """

    columns: frozenset[str] = frozenset()
    attributes: Mapping[str, Floats] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_profiles(
    path: str,
    population: Population,
    topics: Topics,
    files: FilesParams = DEFAULT_FILES,
    attributes: Mapping[str, tuple[str, Attribute]] | None = None,
) -> Profiles:
    """Overwrite drawn profiles with the values of a file; blank cells keep the drawn value.

    The file needs a column `agent` (the id in the network). It may have name, interests (names of topics, separated by
    ;), the fields of `AGENT_FIELDS`, like, reply, reshare, the Big Five, and the columns of `attributes`: name ->
    (column, attribute).

    Raises:
        DataError: If an agent is unknown or repeated, a column is unknown, or a value is out of range.
    """
    where, declared, known = f"{PROFILES}: {path}", attributes or {}, tuple(COLUMNS[PROFILES])
    required = ("agent", *dict.fromkeys(column for column, _ in declared.values() if column not in known))
    table = read_table(path, PROFILES, required, known[1:], files, allows_others=False)
    with name_file_in_errors(path, PROFILES):
        rows = _find_rows(parse_labels(table["agent"], "agent"), where, population)
        numbers = {
            column: _numbers(table[column], column, where, low, high)
            for column, (low, high) in _RANGES.items()
            if column in table
        }
        names, interest_texts = (parse_texts(table[c], c) if c in table else [] for c in ("name", "interests"))
        values = {name: read_values(table[c], c, attribute, where) for name, (c, attribute) in declared.items()}
    for column, cells in numbers.items():
        _write_column(column, cells, rows, population)
    for row, name in zip(rows.tolist(), names, strict=False):
        if name:
            population.names[row] = name
    for row, text in zip(rows.tolist(), interest_texts, strict=False):
        if text:
            population.interests[row] = _parse_interests(text, topics, f"{where}: agent {population.ids[row]}")
    shares = population.propensities.sum(axis=1, keepdims=True)
    if (shares <= 0).any():
        agent = population.ids[int(np.flatnonzero(shares <= 0)[0])]
        raise DataError(f"{where}: agent {agent!r}: like, reply and reshare are all 0: one must be above 0")
    population.propensities /= shares
    complete_columns = {column for column, cells in numbers.items() if not np.isnan(cells).any()}
    all_values = {name: np.full(len(population), np.nan) for name in values}
    for name, row_values in values.items():
        all_values[name][rows] = row_values
    return Profiles(frozenset(complete_columns if len(table) == len(population) else ()), all_values, table.notes)


def _find_rows(agents: Sequence[str | None], where: str, population: Population) -> Ints:
    filled = [agent for agent in agents if agent is not None]
    if len(filled) < len(agents):
        raise DataError(f"{where}: line {list(agents).index(None) + 2}: the cell 'agent' is blank")
    rows = population.ids.rows_of(filled)
    if (rows < 0).any():
        agent = shorten(filled[int(np.flatnonzero(rows < 0)[0])])
        known = f"{len(population)} agents, with ids as texts: {examples(population.ids)}"
        raise DataError(f"{where}: agent {agent!r} is not in the network ({known})")
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    if len(first) < len(rows):
        repeated = rows[np.flatnonzero(first[inverse] < np.arange(len(rows)))[0]]
        raise DataError(f"{where}: agent {population.ids[repeated]!r} is named twice")
    return rows


def _numbers(cells: pa.ChunkedArray, column: str, where: str, low: float, high: float) -> Floats:
    numbers, is_filled = parse_numbers(cells, column)
    is_whole = column in AGENT_FIELDS and AGENT_FIELDS[column].whole
    is_bad = is_filled & ~((numbers >= low) & (numbers <= high) & (not is_whole or numbers == np.round(numbers)))
    check_cells(is_bad, cells, f"{where}: {column}", f"a {'whole ' * is_whole}number in {low:g} .. {high:g}")
    return numbers


def _write_column(column: str, values: Floats, rows: Rows, population: Population) -> None:
    is_filled = ~np.isnan(values)
    rows, values = rows[is_filled], values[is_filled]
    if column in BIG_FIVE:
        population.traits[rows, BIG_FIVE.index(column)] = values
    elif column in ACTIONS:
        population.propensities[rows, ACTIONS.index(column)] = values
    else:
        getattr(population, column)[rows] = values


def _parse_interests(words: str, topics: Topics, where: str) -> npt.NDArray[np.int8]:
    total = np.zeros(topics.name_vectors.shape[1])
    for word in filter(None, map(str.strip, words.split(";"))):
        if word not in topics.names:
            suggestion = did_you_mean(word, topics.names)
            known = shorten(", ".join(topics.names), 200)
            raise DataError(f"{where}: there is no topic {shorten(word)!r} (topics: {known}).{suggestion}")
        total += topics.name_vectors[topics.names.index(word)]
    return quantised(total)
