"""The kinds of reasoners, told apart without loading what only some of them need."""

from typing import TYPE_CHECKING

from prism_mesa.reasoner.batch import BatchReasoner
from prism_mesa.reasoner.rule import RuleReasoner

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from prism_mesa.reasoner.distilled import DistilledReasoner
    from prism_mesa.reasoner.reasoner import Reasoner

type AnyReasoner = Reasoner | RuleReasoner | DistilledReasoner


def asks_llm(reasoner: AnyReasoner) -> "TypeIs[Reasoner]":
    """Return whether a reasoner asks an LLM, or whoever was given in its place."""
    return not isinstance(reasoner, BatchReasoner)


def is_distilled(reasoner: object) -> "TypeIs[DistilledReasoner]":
    """Return whether a reasoner has learned its answers from those of an LLM."""
    return isinstance(reasoner, BatchReasoner) and not isinstance(reasoner, RuleReasoner)
