"""Makes distilled reasoners, and reasoners and writers that ask an LLM or replay its answers."""

from functools import partial
from typing import Any

from prism_mesa.errors import ConfigError
from prism_mesa.llm.answer_store import AnswerStore
from prism_mesa.llm.client import LLMClient
from prism_mesa.llm.clients.base import ChatClient
from prism_mesa.llm.clients.embedded import EmbeddedChatClient
from prism_mesa.llm.clients.recorded import RecordedClient, find_recorded, recorded_client, same_options
from prism_mesa.llm.factory import answer_store, find_client
from prism_mesa.llm.kinds import LLM_KINDS, first_kind
from prism_mesa.llm.ledger import Ledger
from prism_mesa.llm.params import DECISION_MODEL, OLLAMA_MODEL, decision_decoding
from prism_mesa.reasoner.distilled import DistilledReasoner, read_distilled
from prism_mesa.reasoner.oracle import Oracle, as_oracle
from prism_mesa.reasoner.params import LETTER_TOKENS, ReasonerParams
from prism_mesa.reasoner.pmi import PmiOracle
from prism_mesa.reasoner.reasoner import Reasoner
from prism_mesa.reasoner.rule import RuleReasoner

type AnyReasoner = Reasoner | RuleReasoner | DistilledReasoner


def make_asking_reasoner(params: ReasonerParams) -> AnyReasoner:
    """Return a reasoner that asks an LLM or replays its answers. Raises the same errors as `make_reasoner`."""
    store = answer_store(params)
    try:
        return _make_reasoner(params, store)
    except BaseException:
        store.close()
        raise


def make_writer(
    params: ReasonerParams, reasoner: AnyReasoner, *, temperature: float, max_answer_tokens: int
) -> tuple[LLMClient | None, str]:
    """Return a writer of texts, or None and the reason if `auto` finds no LLM.

    The writer uses the reasoner's LLM, ledger and limits, with another temperature and length.

    Raises:
        ConfigError: If the parameters name no LLM.
    """
    if not isinstance(reasoner, Reasoner):
        if params.kind != "auto":
            fault = f"content: llm needs an LLM, but reasoner.kind={params.kind} does not ask one"
            raise ConfigError(f"{fault}; set reasoner.kind ({LLM_KINDS}), or content: template")
        return None, f"content: there is no LLM, so texts come from templates ({reasoner.note})"
    clients: dict[str, ChatClient] = {}
    for llm, base_params in reasoner.params.by_llm().items():
        llm_params = base_params.as_llm(temperature=temperature, max_answer_tokens=max_answer_tokens)
        client: ChatClient | None
        if reasoner.kind == "python":
            client = getattr(reasoner.oracles[llm], "client", None)
        elif reasoner.store.mode == "replay" and reasoner.store.shared_ledger is not None:
            client = recorded_client(reasoner.store.shared_ledger, llm_params, llm)
        else:
            client, _, _ = find_client(llm_params, continues=True)
        if client is None:
            raise ConfigError("content: llm: the reasoner has no LLM that can write; give it a chat client")
        clients[llm] = client
    store, kind, budget = reasoner.store, reasoner.kind, reasoner.budget
    return LLMClient(clients, llm_params, store=store, kind=kind, budget=budget, fails_if_useless=True), ""


def distilled_reasoner(params: ReasonerParams, persona: str | None) -> DistilledReasoner:
    """Return the configured distilled reasoner. Raises ConfigError if its model was fitted to another `persona`."""
    model, text = read_distilled(params.distilled or "")
    if persona not in (None, model.persona):
        fault = f"{persona}, but {params.distilled} was fitted to persona={model.persona}"
        raise ConfigError(f"reasoner.persona: {fault}; set that one, or distill a run with reasoner.persona={persona}")
    return DistilledReasoner(model, RuleReasoner(params.rule), text)


def _make_reasoner(params: ReasonerParams, store: AnswerStore) -> AnyReasoner:
    if store.mode == "replay" and store.shared_ledger is not None:
        oracles = {llm: recorded_oracle(store.shared_ledger, part, llm) for llm, part in params.by_llm().items()}
        return _build(params, oracles, params.kind, store, "")
    clients = {llm: find_client(llm_params) for llm, llm_params in params.by_llm().items()}
    oracles = {llm: _make_oracle(client, params) for llm, (client, _, _) in clients.items() if client is not None}
    _, kind, note = next(iter(clients.values()))
    if oracles:
        return _build(params, oracles, kind, store, note)
    store.close()
    if params.distilled is not None:
        reasoner = distilled_reasoner(params, params.persona)
        reasoner.note = note
        return reasoner
    return RuleReasoner(params.rule, note=note)


def _make_oracle(client: ChatClient, params: ReasonerParams) -> Oracle:
    if isinstance(client, EmbeddedChatClient) and params.answer in (None, "probabilities"):
        return PmiOracle(client, params.rule)
    return as_oracle(client, params)


def _build(params: ReasonerParams, oracles: dict[str, Oracle], kind: str, store: AnswerStore, note: str) -> Reasoner:
    """Return a reasoner with the defaults of `answer` and `persona` for these oracles."""
    gives_scores = next(iter(oracles.values())).decoding.get("answer") is None
    answer = params.answer or ("probabilities" if gives_scores else "choice")
    persona = params.persona or ("archetype" if gives_scores or kind == "embedded" else "individual")
    resolved = params.model_copy(update={"answer": answer, "persona": persona})
    distilled = distilled_reasoner(params, persona) if params.llm_share < 1 else None
    return Reasoner(oracles, params=resolved, store=store, kind=kind, note=note, distilled=distilled)


def recorded_oracle(ledger: Ledger, params: ReasonerParams, llm: str = "") -> Oracle:
    """Return the latest oracle in a ledger with the decoding options of `params`.

    If the ledger has no answers (perhaps only fallbacks), return an oracle of the configured kind. `llm` is the name of
    one of several LLMs. Raises ConfigError if all answers are from other LLMs, or have other options.
    """
    recorded_llm = find_recorded(ledger, llm, partial(_is_configured, params), answered_choices=True)
    client = recorded_llm or RecordedClient(str(params.model or ""))
    gives_scores = params.kind == "embedded" and params.answer in (None, "probabilities")
    gives_scores = "answer" not in client.decoding if recorded_llm else gives_scores
    return PmiOracle(client, params.rule) if gives_scores else as_oracle(client, params)


def _is_configured(params: ReasonerParams, name: str, decoding: dict[str, Any]) -> bool:
    """Return whether a recorded LLM is the one that `params` configures."""
    if "answer" not in decoding:  # a `PmiOracle`
        return params.kind in ("auto", "embedded") and params.answer in (None, "probabilities")
    expected = {**params.decoding, "answer": params.answer or "choice"}
    if params.needs_decisions:
        expected = {"decision_orders": 1} | decision_decoding(params.decoding, params.decision_orders)
        decoding = {"decision_orders": 1} | decoding
    if params.answer == "probabilities" and decoding.get("max_tokens") == LETTER_TOKENS:
        expected["max_tokens"] = min(params.max_answer_tokens, LETTER_TOKENS)  # as older ledgers record it
    if not same_options(decoding, expected):
        return False
    server_default = DECISION_MODEL if params.needs_decisions else OLLAMA_MODEL
    default = server_default if first_kind(params.kind) == first_kind("auto") else name
    return "build" in decoding or name == (params.model or default)
