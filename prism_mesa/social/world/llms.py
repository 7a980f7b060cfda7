"""Which of several LLMs each agent has: by a keyed draw, or by one of its attributes."""

from dataclasses import dataclass
from math import isclose

import numpy as np

from prism_mesa.llm.params import value_text
from prism_mesa.reasoner import AnyReasoner, ReasonerParams, asks_llm
from prism_mesa.social.params.attributes import check_model_by
from prism_mesa.social.state.population import Population, Rows
from prism_mesa.social.world.attributes import AttributeSource
from prism_mesa.streams import Streams


@dataclass(frozen=True)
class AgentLLMs:
    """Which of several LLMs each agent has.

    Attributes:
        names: Names of the LLMs, sorted; empty if one serves all, or none is asked.
        shares: Their shares, of any sum, where a draw decides.
        by_value: Index into `names` by the kept value of the attribute at `place`, where that decides.
    """

    streams: Streams
    names: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    by_value: tuple[tuple[float, int], ...] = ()
    place: int = 0

    def codes(self, rows: Rows, people: Population) -> Rows:
        """Return for each agent the index of its LLM in `names`; 0 if there are none."""
        if self.by_value:
            codes = dict(self.by_value)
            return np.array([codes[kept] for kept in people.attributes[rows, self.place].tolist()], np.int64)
        if not self.names:
            return np.zeros(len(rows), np.int64)
        ends = np.cumsum(self.shares)[:-1] / sum(self.shares)
        return np.searchsorted(ends, self.streams.uniform("llm", rows), side="right").astype(np.int64)

    def of(self, rows: Rows, people: Population) -> list[str]:
        """Return the name of each agent's LLM; an empty text if there are no names."""
        return [self.names[code] for code in self.codes(rows, people).tolist()] if self.names else [""] * len(rows)

    @property
    def note(self) -> str:
        """That the shares do not add up to 1, if so."""
        total = sum(self.shares)
        is_off = self.shares and not isclose(total, 1)
        return f"reasoner.model: shares add up to {total:g} and are scaled" if is_off else ""


def llms_of_agents(
    reasoner: AnyReasoner, params: ReasonerParams, attributes: AttributeSource, streams: Streams
) -> AgentLLMs:
    """Return which LLMs of a reasoner agents have by `params`, or by its own if it was made in Python.

    Raises:
        ConfigError: As `check_model_by`.
    """
    if not asks_llm(reasoner) or not (names := reasoner.llms):
        return AgentLLMs(streams)
    params = reasoner.params if reasoner.kind == "python" else params
    model = params.model if isinstance(params.model, dict) else {params.one_llm: 1.0}
    if params.model_by is None:
        return AgentLLMs(streams, names, tuple(float(model.get(name, 0)) for name in names))
    check_model_by(params, attributes.declared)
    place, own = attributes.known.of_agents(params.model_by)
    codes = [names.index(str(model[value_text(own.value(kept))])) for kept in own.kept.tolist()]
    return AgentLLMs(streams, names, by_value=tuple(zip(own.kept.tolist(), codes, strict=True)), place=place)
