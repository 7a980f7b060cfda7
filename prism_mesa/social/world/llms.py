"""Who answers for which agents: several LLMs, by a keyed draw or an attribute, and archetypes.

Archetypes are clusters of agents by interests and personality, so that one answer can serve many agents. They are
computed with k-means (Lloyd 1982, doi:10.1109/TIT.1982.1056489) on interests and standardised Big Five scores. The
initial centres are far apart, and chosen without a random draw.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from prism_mesa.arrays import Floats, Ints, Rows
from prism_mesa.domain import TRAIT_MEANS, TRAIT_SDS
from prism_mesa.llm.params import value_text
from prism_mesa.reasoner import AnyReasoner, ReasonerParams, asks_llm
from prism_mesa.social.params.attributes import check_model_by
from prism_mesa.social.state.chunks import blocks
from prism_mesa.social.state.population import Population
from prism_mesa.social.state.topics import UNIT, Topics, quantised
from prism_mesa.social.world.attributes import AttributeSource
from prism_mesa.social.world.profiles import personality
from prism_mesa.streams import Streams


@dataclass(frozen=True)
class AgentLLMs:
    """The LLM of each agent if there are several.

    Attributes:
        names: Names of the LLMs, sorted; empty if one LLM serves all agents, or no LLM is asked.
        shares: The relative share of agents for each LLM; ignored with `by_value`.
        by_value: The index into `names` for each stored value of the attribute in `column`.
    """

    streams: Streams
    names: tuple[str, ...] = ()
    shares: tuple[float, ...] = (1.0,)
    by_value: Mapping[float, int] = field(default_factory=dict)
    column: int = 0

    def codes(self, rows: Rows, people: Population) -> Rows:
        """Return the index into `names` of each agent's LLM; 0 if there are no names."""
        if self.by_value:
            return np.array([self.by_value[value] for value in people.attributes[rows, self.column].tolist()], np.int64)
        ends = np.cumsum(self.shares)[:-1] / sum(self.shares)
        return np.searchsorted(ends, self.streams.uniform("llm", rows), side="right").astype(np.int64)

    def assigned_names(self, rows: Rows, people: Population) -> list[str]:
        """Return the name of each agent's LLM; empty strings if there are no names."""
        return [self.names[code] for code in self.codes(rows, people).tolist()] if self.names else [""] * len(rows)


def assign_llms(reasoner: AnyReasoner, params: ReasonerParams, source: AttributeSource, streams: Streams) -> AgentLLMs:
    """Return the agents' LLMs, from `params` or from the parameters of a reasoner made in Python."""
    if not asks_llm(reasoner) or not (names := reasoner.llms):
        return AgentLLMs(streams)
    params = reasoner.params if reasoner.kind == "python" else params
    model = params.model if isinstance(params.model, dict) else {params.single_llm: 1.0}
    if params.model_by is None:
        return AgentLLMs(streams, names, tuple(float(model.get(name, 0)) for name in names))
    check_model_by(params, source.declared)
    index, attribute = source.schema.agent_attribute(params.model_by)
    by_value = {
        value: names.index(str(model[value_text(attribute.value(value))])) for value in attribute.stored_values.tolist()
    }
    return AgentLLMs(streams, names, by_value=by_value, column=index)


TRAIT_WEIGHT: Final = 0.1
"""Weight of one standard deviation of a trait; vectors of interests have length 1."""
_LLM_WEIGHT: Final = 1024.0
MAX_SAMPLE_SIZE: Final = 100_000
ITERATIONS: Final = 20
_MAX_INTERESTS: Final = 3
_BLOCK_ROWS: Final = 1 << 11


@dataclass(frozen=True)
class Archetypes:
    """The archetypes of a platform.

    Attributes:
        centres: Shape (k, features); with several LLMs, there are k centres for each LLM.
        interests: The topics nearest to each archetype's interests, nearest first.
        personality: The mean Big Five of each archetype in words.
        llms: The LLM of each agent if there are several.
    """

    centres: Floats
    interests: list[tuple[str, ...]]
    personality: list[str]
    llms: AgentLLMs

    def assign(self, population: Population, rows: Rows) -> Ints:
        """Return the archetype of each agent: the nearest centre, ties to the first."""
        nearest = np.empty(len(rows), np.int64)
        for part in blocks(len(rows)):
            nearest[part] = _nearest(_features(population, rows[part], self.llms), self.centres)
        return nearest


def make_archetypes(population: Population, llms: AgentLLMs, k: int, topics: Topics) -> Archetypes:
    """Return at most `k` archetypes, for each LLM if there are several.

    They are computed from up to `MAX_SAMPLE_SIZE` evenly spaced agents.
    """
    rows = np.arange(0, len(population), -(-len(population) // MAX_SAMPLE_SIZE))
    codes, features = llms.codes(rows, population), _features(population, rows, llms)
    centres = np.concatenate([_cluster(features[codes == code], k) for code in np.unique(codes)])
    n_topics = population.interests.shape[1]
    means = centres[:, n_topics : n_topics + len(TRAIT_MEANS)] / TRAIT_WEIGHT * TRAIT_SDS + TRAIT_MEANS
    words = topics.interest_names(quantised(centres[:, :n_topics]), _MAX_INTERESTS)
    return Archetypes(centres, words, [personality(row) for row in means], llms)


def _cluster(features: Floats, k: int) -> Floats:
    centres = _spread_centres(features, k)
    for _ in range(ITERATIONS):
        cluster = _nearest(features, centres)
        size = np.bincount(cluster, minlength=len(centres))
        total = np.stack([np.bincount(cluster, column, len(centres)) for column in features.T], axis=1)
        means = np.where(size[:, None] > 0, total / np.maximum(size, 1)[:, None], centres)
        if np.array_equal(means, centres):
            break
        centres = means
    return centres


def _features(population: Population, rows: Rows, llms: AgentLLMs) -> Floats:
    """Return interests, traits, and a heavily weighted column for each LLM."""
    z_scores = (population.traits[rows].astype(np.float64) - TRAIT_MEANS) / TRAIT_SDS
    llm = np.eye(len(llms.names))[llms.codes(rows, population)] if llms.names else np.empty((len(rows), 0))
    columns = [population.interests[rows] / float(UNIT), TRAIT_WEIGHT * z_scores, _LLM_WEIGHT * llm]
    return np.concatenate(columns, axis=1)


def _spread_centres(features: Floats, k: int) -> Floats:
    """Return up to k rows: the nearest to the mean, then always the farthest from earlier choices (Gonzalez 1985)."""
    chosen = [int(_distances(features, features.mean(axis=0)).argmin())]
    distances = _distances(features, features[chosen[0]])
    while len(chosen) < k and distances.max() > 0:
        chosen.append(int(distances.argmax()))
        distances = np.minimum(distances, _distances(features, features[chosen[-1]]))
    return features[chosen]


def _distances(features: Floats, centre: Floats) -> Floats:
    return np.asarray(((features - centre) ** 2).sum(axis=1), np.float64)


def _nearest(features: Floats, centres: Floats) -> Ints:
    """Return the nearest centre of each row, ties to the first; blocks are small enough for the processor's cache."""
    nearest = np.zeros(len(features), np.int64)
    for part in blocks(len(features), _BLOCK_ROWS):
        nearest[part] = np.argmin([_distances(features[part], centre) for centre in centres], axis=0)
    return nearest
