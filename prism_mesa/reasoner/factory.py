"""Makes the reasoner that a configuration asks for; what asks an LLM is loaded only where one may be asked."""

from typing import TYPE_CHECKING

from prism_mesa.errors import ConfigError
from prism_mesa.reasoner.batch import BatchReasoner
from prism_mesa.reasoner.params import ReasonerParams
from prism_mesa.reasoner.rule import RuleReasoner

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from prism_mesa.reasoner.distilled import DistilledReasoner
    from prism_mesa.reasoner.reasoner import Reasoner

type AnyReasoner = Reasoner | RuleReasoner | DistilledReasoner


def make_reasoner(params: ReasonerParams) -> AnyReasoner:
    """Return the reasoner of `params.kind`; its `label` and `kind` say which one it is.

    With `auto` that is Ollama where it answers and has the model, else the embedded LLM where it is installed, else
    the distilled model, if one is named, else the rule; its `note` says why not the ones before. In replay nobody is
    looked for: an LLM is known by what the ledger says of it.

    Raises:
        ConfigError: If what is asked for is not there; always, if an address is none.
        DataError: If the ledger cannot be opened, or the file of a distilled model does not fit.
    """
    if params.kind == "rule":
        if params.llm_share < 1 or params.distilled is not None:
            key = "distilled" if params.distilled is not None else "llm_share"
            raise ConfigError(
                f"reasoner.{key}: has no effect with reasoner.kind=rule; set reasoner.kind (auto, distilled)"
            )
        return RuleReasoner(params.rule)
    if params.kind == "distilled":
        if params.llm_share < 1:
            raise ConfigError(
                "reasoner.llm_share: has no effect with reasoner.kind=distilled; name an LLM's kind, or auto"
            )
        from prism_mesa.reasoner.asking import distilled_reasoner

        return distilled_reasoner(params, params.persona)
    from prism_mesa.reasoner.asking import asking_reasoner

    return asking_reasoner(params)


def asks_llm(reasoner: AnyReasoner) -> "TypeIs[Reasoner]":
    """Return whether a reasoner asks an LLM, or whoever was given in its place."""
    return not isinstance(reasoner, BatchReasoner)


def is_distilled(reasoner: object) -> "TypeIs[DistilledReasoner]":
    """Return whether a reasoner has learned its answers from those of an LLM."""
    return isinstance(reasoner, BatchReasoner) and not isinstance(reasoner, RuleReasoner)
