"""Makes the configured reasoner. Modules that ask an LLM are imported only if needed."""

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
    """Return the reasoner of `params.kind`.

    `auto` chooses Ollama if it answers and has the model, else the embedded LLM if it is installed, else the distilled
    model if one is configured, else the rule. The reasoner's `note` gives the reason. A replay uses the LLM in its
    ledger.

    Raises:
        ConfigError: If the LLM is missing, or an address is wrong.
        DataError: If the ledger cannot be opened, or a distilled model's file does not fit.
    """
    without_llm = params.kind in ("rule", "distilled")
    if without_llm and (params.llm_share < 1 or (params.kind == "rule" and params.distilled is not None)):
        key = "llm_share" if params.llm_share < 1 else "distilled"
        raise ConfigError(f"reasoner.{key} has no effect with reasoner.kind={params.kind}; set reasoner.kind=auto")
    if params.kind == "rule":
        return RuleReasoner(params.rule)
    from prism_mesa.reasoner.asking import distilled_reasoner, make_asking_reasoner

    return distilled_reasoner(params, params.persona) if params.kind == "distilled" else make_asking_reasoner(params)


def asks_llm(reasoner: AnyReasoner) -> "TypeIs[Reasoner]":
    """Return whether a reasoner asks an LLM, or a function in its place."""
    return not isinstance(reasoner, BatchReasoner)


def is_distilled(reasoner: object) -> "TypeIs[DistilledReasoner]":
    """Return whether a reasoner is a distilled model."""
    return isinstance(reasoner, BatchReasoner) and not isinstance(reasoner, RuleReasoner)
