"""The division of agents among several LLMs, by a keyed draw or by an attribute."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from prism_mesa.llm.params import value_text
from prism_mesa.reasoner import AnyReasoner, ReasonerParams, asks_llm
from prism_mesa.social.params.attributes import check_model_by
from prism_mesa.social.state.population import Population, Rows
from prism_mesa.social.world.attributes import AttributeSource
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
