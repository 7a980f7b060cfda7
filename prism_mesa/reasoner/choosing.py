"""Makes the reasoner that a configuration asks for. It looks whether a server answers; it asks no question."""

from prism_mesa.errors import ConfigError
from prism_mesa.reasoner.ledger import Ledger
from prism_mesa.reasoner.ollama import OllamaChatClient
from prism_mesa.reasoner.params import ReasonerParams
from prism_mesa.reasoner.reasoner import Reasoner
from prism_mesa.reasoner.rule import RuleReasoner


def make_reasoner(params: ReasonerParams, ledger: Ledger | None = None) -> Reasoner | RuleReasoner:
    """Return the reasoner of `params.kind`; its `label` says which one it is.

    With `auto` that is Ollama where it answers and has the model, else the rule, whose `note` says why.

    Raises:
        ConfigError: With `ollama`, if the server does not answer or has not the model; always, if the
            address is none.
    """
    if params.kind == "rule":
        return RuleReasoner(params.rule)
    client = OllamaChatClient(params.model, params.host, params.timeout_s, params.temperature, params.seed)
    try:
        client.check()
    except ConfigError as error:
        if params.kind == "ollama":
            raise
        return RuleReasoner(params.rule, note=str(error))
    return Reasoner(
        client,
        ledger=ledger,
        fallback=params.fallback,
        max_concurrency=params.max_concurrency,
        rule=RuleReasoner(params.rule),
    )
